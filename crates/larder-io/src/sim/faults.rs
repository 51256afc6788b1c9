//! What may go wrong on a simulated device, as data, and the dice that decide each operation.

use super::Rng;
use super::contract::extent;
use larder_engine::{IoError, OpKind};
use std::ops::Range;

/// How one device behaves. The default is a device without faults that reorders.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultModel {
    /// Probability that a read fails.
    pub read_error: f64,
    /// Probability that a write (or write-zeroes) fails.
    pub write_error: f64,
    /// Probability that a flush fails.
    pub flush_error: f64,
    /// Probability that a discard fails.
    pub discard_error: f64,
    /// A failing write may have written some of its sectors; otherwise it has written none.
    pub torn_writes: bool,
    /// What a discard does.
    pub discard: DiscardEffect,
    /// Write-zeroes ends in [`IoError::NotSupported`].
    pub no_write_zeroes: bool,
    /// When data moves.
    pub transfer: Transfer,
    /// Shortest and longest latency in ticks; one operation in sixteen takes up to eight times the longest.
    pub latency: (u64, u64),
    /// The same for flushes, where it is longer.
    pub flush_latency: (u64, u64),
    /// Writes are durable only after a flush or with FUA, and the device keeps account of it.
    pub write_cache: bool,
    /// The device keeps what a power cut would leave ([`super::SimHost::power_cut`]).
    pub power_cuts: bool,
}

impl Default for FaultModel {
    fn default() -> Self {
        Self {
            read_error: 0.0,
            write_error: 0.0,
            flush_error: 0.0,
            discard_error: 0.0,
            torn_writes: true,
            discard: DiscardEffect::Mixed,
            no_write_zeroes: false,
            transfer: Transfer::Seeded,
            latency: (1, 20),
            flush_latency: (1, 20),
            write_cache: true,
            power_cuts: false,
        }
    }
}

impl FaultModel {
    /// True if operations fail by rate.
    pub fn fails(&self) -> bool {
        [self.read_error, self.write_error, self.flush_error, self.discard_error]
            .iter()
            .any(|&rate| rate > 0.0)
    }
}

/// What a discard does to the sectors that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardEffect {
    /// Nothing.
    Keep,
    /// They read as zeroes.
    Zero,
    /// Each either reads as zeroes or stays as it is, by the seed.
    Mixed,
}

/// When an operation moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// By the seed: all at submission, all at completion, or a part at each.
    Seeded,
    /// At submission.
    Submission,
    /// At completion, or when [`super::SimHost::transfer`] says so.
    Completion,
}

/// The kinds of operation that can be made to fail apart from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Reads.
    Read,
    /// Writes and write-zeroes.
    Write,
    /// Flushes.
    Flush,
    /// Discards.
    Discard,
}

impl FaultKind {
    /// The kind of a device operation.
    pub fn of(kind: &OpKind) -> Self {
        match kind {
            OpKind::Read { .. } => Self::Read,
            OpKind::Write { .. } | OpKind::WriteZeroes { .. } => Self::Write,
            OpKind::Flush => Self::Flush,
            OpKind::Discard { .. } => Self::Discard,
        }
    }
}

/// What happens to one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// It fails.
    Fail,
    /// It ends well, and has done nothing.
    Lose,
    /// It ends well, and has written to this offset instead.
    Misdirect(u64),
}

/// A fault model with its dice, and the faults that a test asked for by name.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    pub model: FaultModel,
    rng: Rng,
    /// How many of the next operations of a kind fail.
    script: [u32; 4],
    ranges: Vec<(FaultKind, Range<u64>)>,
    strikes: Vec<(FaultKind, Range<u64>, Strike)>,
    /// The device does not answer.
    pub gone: bool,
}

impl Faults {
    pub fn new(model: FaultModel, seed: u64) -> Self {
        Self {
            model,
            rng: Rng::new(seed),
            script: [0; 4],
            ranges: Vec::new(),
            strikes: Vec::new(),
            gone: false,
        }
    }

    pub fn fail_next(&mut self, kind: FaultKind, count: u32) {
        self.script[kind as usize] = count;
    }

    pub fn fail_range(&mut self, kind: FaultKind, bytes: Range<u64>) {
        self.ranges.push((kind, bytes));
    }

    pub fn strike_next(&mut self, kind: FaultKind, bytes: Range<u64>, strike: Strike) {
        self.strikes.push((kind, bytes, strike));
    }

    /// No fault from now on but by rate.
    pub fn forgive(&mut self) {
        (self.script, self.ranges, self.strikes) = ([0; 4], Vec::new(), Vec::new());
    }

    /// No fault from now on, scripted, ranged or by rate.
    pub fn heal(&mut self) {
        self.forgive();
        let model = &mut self.model;
        for rate in
            [&mut model.read_error, &mut model.write_error, &mut model.flush_error, &mut model.discard_error]
        {
            *rate = 0.0;
        }
    }

    /// How an operation will end, and what else happens to it.
    pub fn outcome(&mut self, kind: &OpKind) -> (Result<(), IoError>, Option<Strike>) {
        let strike = self.take_strike(kind);
        (self.result(kind, strike == Some(Strike::Fail)), strike)
    }

    fn take_strike(&mut self, kind: &OpKind) -> Option<Strike> {
        if self.strikes.is_empty() || self.gone {
            return None;
        }
        let (class, (start, len)) = (FaultKind::of(kind), extent(kind));
        let hit = |(struck, bytes, _): &(FaultKind, Range<u64>, Strike)| {
            *struck == class && (len == 0 || overlap(bytes, &(start..start + len)))
        };
        let at = self.strikes.iter().position(hit)?;
        Some(self.strikes.remove(at).2)
    }

    fn result(&mut self, kind: &OpKind, struck: bool) -> Result<(), IoError> {
        if self.gone {
            return Err(IoError::Io);
        }
        if self.model.no_write_zeroes && matches!(kind, OpKind::WriteZeroes { .. }) {
            return Err(IoError::NotSupported);
        }
        let class = FaultKind::of(kind);
        let rate = match class {
            FaultKind::Read => self.model.read_error,
            FaultKind::Write => self.model.write_error,
            FaultKind::Flush => self.model.flush_error,
            FaultKind::Discard => self.model.discard_error,
        };
        let by_rate = self.rng.chance(rate);
        let (start, len) = extent(kind);
        let by_range = self.by_range(class, start..start + len);
        match self.by_script(class) || by_range || by_rate || struck {
            true if class == FaultKind::Write && self.rng.chance(0.25) => Err(IoError::NoSpace),
            true => Err(IoError::Io),
            false => Ok(()),
        }
    }

    fn by_script(&mut self, class: FaultKind) -> bool {
        let left = &mut self.script[class as usize];
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        fails
    }

    pub fn by_range(&self, class: FaultKind, bytes: Range<u64>) -> bool {
        self.ranges.iter().any(|(k, bad)| *k == class && overlap(bad, &bytes))
    }

    /// Ticks until an operation ends.
    pub fn latency(&mut self, kind: &OpKind) -> u64 {
        let FaultModel { latency, flush_latency, .. } = self.model;
        let slower = *kind == OpKind::Flush && flush_latency.1 > latency.1;
        let (low, high) = if slower { flush_latency } else { latency };
        let high = if self.rng.chance(1.0 / 16.0) { high * 8 } else { high };
        low + self.rng.below(high.saturating_sub(low) + 1)
    }

    /// How many of `sectors` move at submission; the rest moves at completion.
    pub fn early(&mut self, sectors: u64) -> u64 {
        match self.model.transfer {
            Transfer::Submission => sectors,
            Transfer::Completion => 0,
            Transfer::Seeded => match self.rng.below(4) {
                0 => self.rng.below(sectors + 1),
                1 => sectors,
                _ => 0,
            },
        }
    }

    /// A seed for what one operation does sector by sector.
    pub fn salt(&mut self) -> u64 {
        self.rng.next_u64()
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}
