//! One simulated device: its bytes, the operations in flight on it, and what becomes of them.
//!
//! An operation has two moments at which data may move, its submission and its completion; real devices use either, and any
//! moment between. Each sector moves once and whole. How an operation ends is decided when it starts, so that a failing
//! one can leave any subset of its sectors behind.

use super::contract::{extent, memory_of};
use super::faults::Faults;
use super::memory::GARBAGE;
use super::volatile::Volatile;
use super::{DiscardEffect, FaultKind, FaultModel, Memory, Rng, SparseBytes};
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

    /// Operations started from now on do not fail.
    pub fn heal(&mut self) {
        self.faults.heal();
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
        let outcome = self.faults.outcome(&kind);
        let sectors = bytes / SECTOR_BYTES;
        let lands = self.landing(&kind, outcome, sectors);
        let pending = Pending { kind, outcome, lands, moved: 0, covers: self.completions };
        assert!(self.pending.insert(id, pending).is_none(), "{id:?} is in flight already");
        let early = self.faults.early(sectors);
        self.advance(id, early, memory);
        self.faults.latency()
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
            self.values.finish(id, self.completions, fua && ok);
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
            self.values.finish(id, self.completions, false);
        }
        self.pending.clear();
    }

    /// The power goes: operations in flight have moved as much as they like, and of what was not flushed any part is lost.
    pub(super) fn power_cut(&mut self, memory: &mut Memory, tears: bool, rng: &mut Rng) {
        self.abandon(memory, rng);
        self.volatile.clear();
        self.values.cut(&mut self.bytes, tears, rng);
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
        for run in pending.lands.runs(turn) {
            let (skip, count) = (run.start * SECTOR_BYTES, (run.end - run.start) * SECTOR_BYTES);
            let before = self.faults.model.power_cuts.then(|| sectors_of(&self.bytes, start + skip, count));
            move_bytes(&mut self.bytes, &pending.kind, start + skip, skip, count, memory);
            let changes = before.filter(|_| !matches!(pending.kind, OpKind::Read { .. } | OpKind::Flush));
            let Some(before) = changes else { continue };
            let after = sectors_of(&self.bytes, start + skip, count);
            for ((before, after), sector) in
                before.into_iter().zip(after).zip((start + skip) / SECTOR_BYTES..)
            {
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
mod tests {
    use super::super::Transfer;
    use super::*;
    use larder_engine::{BufOwner, RequestId};

    const BUF: Buf = Buf { owner: BufOwner::Guest(RequestId(0)), offset: 0 };

    fn write(offset: u64, len: u32, fua: bool) -> OpKind {
        OpKind::Write { offset, len, buf: BUF, fua }
    }

    fn device(model: FaultModel) -> SimDevice {
        SimDevice::new(1 << 16, model, 1)
    }

    fn memory(byte: u8) -> Memory {
        let mut memory = Memory::default();
        memory.add_guest(RequestId(0), vec![byte; 8192], false);
        memory
    }

    /// How many sectors of the device's first 16 hold this byte.
    fn sectors_with(device: &SimDevice, byte: u8) -> usize {
        let mut bytes = vec![0; 8192];
        device.content().read(0, &mut bytes);
        bytes.chunks(512).filter(|s| s.iter().all(|&b| b == byte)).count()
    }

    #[test]
    fn data_moves_when_the_model_says() {
        for (transfer, at_submission) in [(Transfer::Submission, 16), (Transfer::Completion, 0)] {
            let mut device = device(FaultModel { transfer, ..FaultModel::default() });
            let mut memory = memory(5);
            device.submit(OpId(0), write(0, 8192, false), &mut memory);
            assert_eq!(sectors_with(&device, 5), at_submission);
            assert_eq!(device.finish(OpId(0), &mut memory), Ok(()));
            assert_eq!(sectors_with(&device, 5), 16);
        }
    }

    #[test]
    fn a_failing_write_tears_at_sectors() {
        let mut seen = [0; 17];
        for seed in 0..200 {
            let mut device = SimDevice::new(1 << 16, FaultModel::default(), seed);
            device.fail_next(FaultKind::Write, 1);
            let mut memory = memory(5);
            device.submit(OpId(0), write(0, 8192, false), &mut memory);
            assert!(device.finish(OpId(0), &mut memory).is_err());
            assert_eq!(sectors_with(&device, 5) + sectors_with(&device, 0), 16);
            seen[sectors_with(&device, 5)] += 1;
        }
        assert!(seen.iter().all(|&n| n > 0), "every number of sectors is possible: {seen:?}");
    }

    #[test]
    fn faults_by_range_and_script_name_their_kind() {
        let mut device = device(FaultModel::default());
        let mut memory = memory(1);
        device.fail_range(FaultKind::Read, 512..1024);
        let mut run = |device: &mut SimDevice, kind| {
            device.submit(OpId(0), kind, &mut memory);
            device.finish(OpId(0), &mut memory)
        };
        let read = |offset| OpKind::Read { offset, len: 512, buf: BUF };
        assert_eq!(run(&mut device, read(512)), Err(IoError::Io));
        assert_eq!(run(&mut device, read(1024)), Ok(()));
        assert_eq!(run(&mut device, write(512, 512, false)), Ok(()));
        device.heal();
        assert_eq!(run(&mut device, read(512)), Ok(()));
        device.fail_next(FaultKind::Flush, 1);
        assert_eq!(run(&mut device, OpKind::Flush), Err(IoError::Io));
        assert_eq!(run(&mut device, OpKind::Flush), Ok(()));
        assert_eq!((device.started(FaultKind::Read), device.started_bytes(FaultKind::Read)), (3, 3 * 512));
    }

    #[test]
    fn a_flush_covers_what_completed_before_it() {
        let mut device = device(FaultModel::default());
        let mut memory = memory(1);
        device.submit(OpId(0), write(0, 512, false), &mut memory);
        assert!(device.finish(OpId(0), &mut memory).is_ok());
        let mark = device.completions();
        device.submit(OpId(1), OpKind::Flush, &mut memory);
        device.submit(OpId(2), write(512, 512, false), &mut memory);
        assert!(device.finish(OpId(2), &mut memory).is_ok());
        assert_eq!(device.volatile_before(mark), Some(0));
        assert!(device.finish(OpId(1), &mut memory).is_ok());
        assert_eq!(device.volatile_before(mark), None);
        assert!(device.is_durable(0) && !device.is_durable(1));
        device.submit(OpId(3), write(512, 512, true), &mut memory);
        assert!(device.finish(OpId(3), &mut memory).is_ok());
        assert!(device.is_durable(1));
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let run = |seed| {
            let model = FaultModel { write_error: 0.3, ..FaultModel::default() };
            let mut device = SimDevice::new(1 << 16, model, seed);
            let mut memory = memory(9);
            let mut log = Vec::new();
            for n in 0..50 {
                let ticks = device.submit(OpId(n), write(u64::from(n) * 512, 4096, false), &mut memory);
                log.push((ticks, device.finish(OpId(n), &mut memory), sectors_with(&device, 9)));
            }
            log
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }
}
