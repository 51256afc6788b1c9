//! One simulated device: its bytes, the operations in flight on it, and what becomes of them.
//!
//! An operation has two moments at which data may move, its submission and its completion; real devices use either, and any
//! moment between. Each sector moves once and whole. How an operation ends is decided when it starts, so that a failing
//! one can leave any subset of its sectors behind.

use super::contract::{extent, memory_of};
use super::faults::Faults;
use super::memory::GARBAGE;
use super::volatile::Volatile;
use super::{DiscardEffect, FaultKind, FaultModel, Memory, Rng, SparseBytes, Strike};
use larder_engine::{Buf, IoError, OpId, OpKind, SECTOR_BYTES};
use std::collections::BTreeMap;
use std::ops::Range;

/// A device of a simulation.
#[derive(Clone, Debug)]
pub struct SimDevice {
    bytes: SparseBytes,
    faults: Faults,
    pending: BTreeMap<OpId, Pending>,
    /// Sectors that a power cut would lose, with the number of the completion that wrote them.
    volatile: BTreeMap<u64, u64>,
    /// The same with the values that it would leave, where the model asks for that.
    values: Volatile,
    completions: u64,
    started: [u64; 4],
    started_bytes: [u64; 4],
    watched: (Range<u64>, Vec<(u64, Vec<u8>)>),
}

#[derive(Clone, Debug)]
struct Pending {
    kind: OpKind,
    outcome: Result<(), IoError>,
    lands: Lands,
    /// Sectors whose turn to move has passed.
    moved: u64,
    /// Completions before its submission: what a flush covers.
    covers: u64,
}

/// Which sectors of an operation really move.
#[derive(Clone, Copy, Debug)]
enum Lands {
    All,
    None,
    /// Those below.
    Prefix(u64),
    /// Each by the toss of a coin with this seed.
    Subset(u64),
}

impl SimDevice {
    /// A device of `bytes` zeroes.
    pub fn new(bytes: u64, model: FaultModel, seed: u64) -> Self {
        Self {
            bytes: SparseBytes::new(bytes),
            faults: Faults::new(model, seed),
            pending: BTreeMap::new(),
            volatile: BTreeMap::new(),
            values: Volatile::default(),
            completions: 0,
            started: [0; 4],
            started_bytes: [0; 4],
            watched: (0..0, Vec::new()),
        }
    }

    /// What it holds now.
    pub fn content(&self) -> &SparseBytes {
        &self.bytes
    }

    /// What it holds now, to be prepared by a test.
    pub fn content_mut(&mut self) -> &mut SparseBytes {
        &mut self.bytes
    }

    /// Operations of a kind started so far.
    pub fn started(&self, kind: FaultKind) -> u64 {
        self.started[kind as usize]
    }

    /// Bytes of the operations of a kind started so far.
    pub fn started_bytes(&self, kind: FaultKind) -> u64 {
        self.started_bytes[kind as usize]
    }

    /// The next `count` operations of a kind fail.
    pub fn fail_next(&mut self, kind: FaultKind, count: u32) {
        self.faults.fail_next(kind, count);
    }

    /// Every operation of a kind that touches these bytes fails.
    pub fn fail_range(&mut self, kind: FaultKind, bytes: Range<u64>) {
        self.faults.fail_range(kind, bytes);
    }

    /// Something happens to the next operation of a kind that touches these bytes.
    pub fn strike_next(&mut self, kind: FaultKind, bytes: Range<u64>, strike: Strike) {
        self.faults.strike_next(kind, bytes, strike);
    }

    /// Operations started from now on do not fail.
    pub fn heal(&mut self) {
        self.faults.heal();
    }

    /// All that it holds is durable.
    pub fn settle(&mut self) {
        self.volatile.clear();
        self.values = Volatile::default();
    }

    /// What was to fail or to be struck is not, from now on; rates stay.
    pub fn forgive(&mut self) {
        self.faults.forgive();
    }

    /// The device does not answer: every operation started fails, and moves nothing. Or it is there again, as it was.
    pub fn set_gone(&mut self, gone: bool) {
        self.faults.gone = gone;
    }

    /// It loses its power while it is in use: of what was not flushed any part is lost, operations in flight fail, and it does not answer.
    pub fn pull(&mut self, tears: bool, rng: &mut Rng) {
        for pending in self.pending.values_mut() {
            (pending.outcome, pending.lands) = (Err(IoError::Io), Lands::None);
        }
        self.volatile.clear();
        self.values.cut(&mut self.bytes, tears, rng);
        self.faults.gone = true;
    }

    /// Operations started from now on take this long ([`FaultModel::latency`]).
    pub fn set_latency(&mut self, latency: (u64, u64)) {
        self.faults.model.latency = latency;
    }

    /// True if a read of these bytes fails.
    pub(super) fn is_unreadable(&self, bytes: Range<u64>) -> bool {
        self.faults.gone || self.faults.by_range(FaultKind::Read, bytes)
    }

    /// It is shorter or longer from now on, with zeroes at the end; nothing is in flight.
    pub fn resize(&mut self, bytes: u64) {
        assert!(self.pending.is_empty(), "a device with operations in flight is not resized");
        self.bytes.resize(bytes);
        self.volatile.retain(|sector, _| *sector < bytes / SECTOR_BYTES);
        self.values.truncate(bytes / SECTOR_BYTES);
    }

    /// It is longer from now on, with zeroes at the end.
    pub fn grow(&mut self, bytes: u64) {
        assert!(bytes >= self.bytes.len(), "it does not become shorter");
        self.bytes.resize(bytes);
    }

    /// Keep what is written to these bytes from now on, whole operations.
    pub fn watch(&mut self, bytes: Range<u64>) {
        self.watched = (bytes, Vec::new());
    }

    /// Offset and bytes of each write since [`SimDevice::watch`].
    pub fn watched(&self) -> &[(u64, Vec<u8>)] {
        &self.watched.1
    }

    /// Operations completed so far: a flush started now covers the writes among them.
    pub fn completions(&self) -> u64 {
        self.completions
    }

    /// True if a power cut would lose nothing of this sector.
    pub fn is_durable(&self, sector: u64) -> bool {
        !self.volatile.contains_key(&sector)
    }

    /// A sector that a power cut would lose although the write completed among the first `completions`.
    pub fn volatile_before(&self, completions: u64) -> Option<u64> {
        self.volatile.iter().find(|&(_, &seq)| seq <= completions).map(|(&sector, _)| sector)
    }

    /// Start an operation; returns after how many ticks it would end.
    pub fn submit(&mut self, id: OpId, kind: OpKind, memory: &mut Memory) -> u64 {
        if let (OpKind::Read { .. }, Some((buf, len))) = (&kind, memory_of(&kind)) {
            memory.write(buf, len).fill(GARBAGE);
        }
        let (class, bytes) = (FaultKind::of(&kind) as usize, extent(&kind).1);
        self.started[class] += 1;
        self.started_bytes[class] += bytes;
        self.note_watched(&kind, memory);
        let (outcome, strike) = self.faults.outcome(&kind);
        let sectors = bytes / SECTOR_BYTES;
        let lands = match strike {
            Some(Strike::Lose) => Lands::None,
            _ if self.faults.gone => Lands::None,
            _ => self.landing(&kind, outcome, sectors),
        };
        let kind = match strike {
            Some(Strike::Misdirect(offset)) => elsewhere(kind, offset),
            _ => kind,
        };
        let ticks = self.faults.latency(&kind);
        let pending = Pending { kind, outcome, lands, moved: 0, covers: self.completions };
        assert!(self.pending.insert(id, pending).is_none(), "{id:?} is in flight already");
        let early = self.faults.early(sectors);
        self.advance(id, early, memory);
        ticks
    }

    /// Move the data of an operation in flight now, as far as it has not moved yet.
    pub fn transfer(&mut self, id: OpId, memory: &mut Memory) {
        self.advance(id, u64::MAX, memory);
    }

    /// True if an operation in flight has moved all its data.
    pub fn is_transferred(&self, id: OpId) -> bool {
        self.pending.get(&id).is_some_and(|p| p.moved == extent(&p.kind).1 / SECTOR_BYTES)
    }

    /// End an operation.
    pub fn finish(&mut self, id: OpId, memory: &mut Memory) -> Result<(), IoError> {
        self.transfer(id, memory);
        let done = self.pending.remove(&id).unwrap_or_else(|| panic!("{id:?} is not in flight"));
        self.completions += 1;
        if self.faults.model.write_cache {
            self.account(&done);
        }
        if self.faults.model.power_cuts {
            let ok = done.outcome.is_ok();
            let fua =
                matches!(done.kind, OpKind::Write { fua: true, .. } | OpKind::WriteZeroes { fua: true, .. });
            self.values.finish(id, sectors_in(&done.kind), self.completions, fua && ok);
            if ok && done.kind == OpKind::Flush {
                self.values.flush(done.covers);
            }
        }
        done.outcome
    }

    /// Whoever asked is gone: operations in flight have moved as much as they like.
    pub(super) fn abandon(&mut self, memory: &mut Memory, rng: &mut Rng) {
        let writes = |pending: &Pending| !matches!(pending.kind, OpKind::Read { .. } | OpKind::Flush);
        let ids: Vec<OpId> = self.pending.iter().filter(|(_, p)| writes(p)).map(|(&id, _)| id).collect();
        for id in ids {
            let sectors = extent(&self.pending[&id].kind).1 / SECTOR_BYTES;
            self.advance(id, rng.below(sectors + 1), memory);
            self.completions += 1;
            self.values.finish(id, sectors_in(&self.pending[&id].kind), self.completions, false);
        }
        self.pending.clear();
    }

    /// The power goes: operations in flight have moved as much as they like, and of what was not flushed any part is lost.
    pub(super) fn power_cut(&mut self, memory: &mut Memory, tears: bool, rng: &mut Rng) {
        self.abandon(memory, rng);
        self.volatile.clear();
        self.values.cut(&mut self.bytes, tears, rng);
    }

    /// What a power cut now could leave, of operations that have ended or moved.
    pub fn after_cut(&self, rng: &mut Rng) -> SparseBytes {
        let mut bytes = self.bytes.clone();
        self.values.clone().cut(&mut bytes, false, rng);
        bytes
    }

    fn note_watched(&mut self, kind: &OpKind, memory: &Memory) {
        if let OpKind::Write { offset, len, buf, .. } = *kind
            && self.watched.0.contains(&offset)
        {
            self.watched.1.push((offset, memory.read(buf, len).to_vec()));
        }
    }

    fn landing(&mut self, kind: &OpKind, outcome: Result<(), IoError>, sectors: u64) -> Lands {
        let effect = self.faults.model.discard;
        let torn = self.faults.model.torn_writes || matches!(kind, OpKind::Read { .. });
        let salt = self.faults.salt();
        match (outcome, kind) {
            (Err(IoError::NotSupported), _) => Lands::None,
            (Ok(()), OpKind::Discard { .. }) if effect == DiscardEffect::Keep => Lands::None,
            (Ok(()), OpKind::Discard { .. }) if effect == DiscardEffect::Mixed => Lands::Subset(salt),
            (Ok(()), _) => Lands::All,
            (Err(_), _) if !torn => Lands::None,
            (Err(_), _) if salt.is_multiple_of(2) => Lands::Prefix((salt >> 8) % (sectors + 1)),
            (Err(_), _) => Lands::Subset(salt),
        }
    }

    fn advance(&mut self, id: OpId, upto: u64, memory: &mut Memory) {
        let pending = self.pending.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not in flight"));
        let (start, len) = extent(&pending.kind);
        let turn = pending.moved..upto.min(len / SECTOR_BYTES).max(pending.moved);
        pending.moved = turn.end;
        let writes = !matches!(pending.kind, OpKind::Read { .. } | OpKind::Flush);
        for run in pending.lands.runs(turn) {
            let (skip, count) = (run.start * SECTOR_BYTES, (run.end - run.start) * SECTOR_BYTES);
            let keeps = writes && self.faults.model.power_cuts;
            let before = if keeps { sectors_of(&self.bytes, start + skip, count) } else { Vec::new() };
            move_bytes(&mut self.bytes, &pending.kind, start + skip, skip, count, memory);
            for (before, sector) in before.into_iter().zip((start + skip) / SECTOR_BYTES..) {
                let mut after = [0; SECTOR_BYTES as usize];
                self.bytes.read(sector * SECTOR_BYTES, &mut after);
                self.values.write(sector, before, after, id);
            }
        }
    }

    /// Keep account of what is durable.
    fn account(&mut self, done: &Pending) {
        let (start, len) = extent(&done.kind);
        let sectors = start / SECTOR_BYTES..(start + len) / SECTOR_BYTES;
        match done.kind {
            OpKind::Flush if done.outcome.is_ok() => self.volatile.retain(|_, seq| *seq > done.covers),
            OpKind::Write { fua: true, .. } | OpKind::WriteZeroes { fua: true, .. }
                if done.outcome.is_ok() =>
            {
                self.volatile.retain(|sector, _| !sectors.contains(sector));
            }
            OpKind::Write { .. } | OpKind::WriteZeroes { .. } => {
                self.volatile.extend(sectors.map(|sector| (sector, self.completions)));
            }
            _ => {}
        }
    }
}

impl Lands {
    /// The runs of sectors among these that move.
    fn runs(self, turn: Range<u64>) -> Vec<Range<u64>> {
        match self {
            Self::None => Vec::new(),
            Self::All if turn.is_empty() => Vec::new(),
            Self::All => vec![turn],
            Self::Prefix(cut) => turn.filter(|&s| s < cut).map(|s| s..s + 1).collect(),
            Self::Subset(seed) => {
                let coin = |s: &u64| Rng::new(seed ^ s.wrapping_mul(0xff51_afd7_ed55_8ccd)).chance(0.5);
                turn.filter(coin).map(|s| s..s + 1).collect()
            }
        }
    }
}

/// The numbers of the sectors that an operation touches.
fn sectors_in(kind: &OpKind) -> Range<u64> {
    let (start, len) = extent(kind);
    start / SECTOR_BYTES..(start + len) / SECTOR_BYTES
}

/// The same write in another place.
fn elsewhere(kind: OpKind, offset: u64) -> OpKind {
    match kind {
        OpKind::Write { len, buf, fua, .. } => OpKind::Write { offset, len, buf, fua },
        other => other,
    }
}

fn sectors_of(bytes: &SparseBytes, offset: u64, count: u64) -> Vec<[u8; SECTOR_BYTES as usize]> {
    let read = |at| {
        let mut sector = [0; SECTOR_BYTES as usize];
        bytes.read(at, &mut sector);
        sector
    };
    (offset..offset + count).step_by(SECTOR_BYTES as usize).map(read).collect()
}

/// Move `count` bytes at `offset` of the device, `skip` bytes into the operation.
fn move_bytes(
    bytes: &mut SparseBytes,
    kind: &OpKind,
    offset: u64,
    skip: u64,
    count: u64,
    memory: &mut Memory,
) {
    let part = |buf: Buf| Buf { offset: buf.offset + skip as u32, ..buf };
    match *kind {
        OpKind::Read { buf, .. } => bytes.read(offset, memory.write(part(buf), count as u32)),
        OpKind::Write { buf, .. } => bytes.write(offset, memory.read(part(buf), count as u32)),
        OpKind::Discard { .. } | OpKind::WriteZeroes { .. } => bytes.zero(offset, count),
        OpKind::Flush => {}
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
