//! What may go wrong on a simulated device, as data, and the dice that decide each operation.

use super::Rng;
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
            write_cache: true,
            power_cuts: false,
        }
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

/// A fault model with its dice, and the faults that a test asked for by name.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    pub model: FaultModel,
    rng: Rng,
    /// How many of the next operations of a kind fail.
    script: [u32; 4],
    ranges: Vec<(FaultKind, Range<u64>)>,
}

impl Faults {
    pub fn new(model: FaultModel, seed: u64) -> Self {
        Self { model, rng: Rng::new(seed), script: [0; 4], ranges: Vec::new() }
    }

    pub fn fail_next(&mut self, kind: FaultKind, count: u32) {
        self.script[kind as usize] = count;
    }

    pub fn fail_range(&mut self, kind: FaultKind, bytes: Range<u64>) {
        self.ranges.push((kind, bytes));
    }

    /// No fault from now on, scripted, ranged or by rate.
    pub fn heal(&mut self) {
        (self.script, self.ranges) = ([0; 4], Vec::new());
        let model = &mut self.model;
        for rate in
            [&mut model.read_error, &mut model.write_error, &mut model.flush_error, &mut model.discard_error]
        {
            *rate = 0.0;
        }
    }

    /// How an operation will end.
    pub fn outcome(&mut self, kind: &OpKind) -> Result<(), IoError> {
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
        match self.by_script(class) || self.by_range(class, kind) || by_rate {
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

    fn by_range(&self, class: FaultKind, kind: &OpKind) -> bool {
        let (start, len) = super::contract::extent(kind);
        self.ranges.iter().any(|(k, bad)| *k == class && bad.start < start + len && start < bad.end)
    }

    /// Ticks until an operation ends.
    pub fn latency(&mut self) -> u64 {
        let (low, high) = self.model.latency;
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
