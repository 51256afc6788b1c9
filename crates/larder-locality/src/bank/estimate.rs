//! From the counts of a small cache to those of the one that it stands for.

use larder_policy::WritePolicy;
use larder_policy::trial::{Action, Counters};

use super::batch::End;

/// Requests and block accesses, all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    block_reads: f64,
    block_writes: f64,
    read_requests: f64,
    write_requests: f64,
    discards: f64,
}

impl Totals {
    /// So many blocks were accessed.
    pub(super) fn accesses(&mut self, action: Action, blocks: u64) {
        match action {
            Action::Read => self.block_reads += blocks as f64,
            Action::Write => self.block_writes += blocks as f64,
            Action::Discard | Action::Flush => {}
        }
    }

    /// A request ended.
    pub(super) fn request(&mut self, action: Action) {
        match action {
            Action::Read => self.read_requests += 1.0,
            Action::Write => self.write_requests += 1.0,
            Action::Discard => self.discards += 1.0,
            Action::Flush => {}
        }
    }

    /// Reads among the accesses to blocks.
    fn read_share(&self) -> f64 {
        let all = self.block_reads + self.block_writes;
        if all > 0.0 { self.block_reads / all } else { 0.0 }
    }

    pub(super) fn fade(&mut self, keep: f64) {
        let Self { block_reads, block_writes, read_requests, write_requests, discards } = self;
        for total in [block_reads, block_writes, read_requests, write_requests, discards] {
            *total *= keep;
        }
    }
}

/// How many standard deviations of the sample's own an error may have before a block outside of the sample must be to
/// blame for it.
const DEVIATIONS: f64 = 2.0;

/// How a total is divided. A *pull* tells how much a part has to do with the total's error: the more often a block was
/// accessed, the more its being in the sample or not moves the estimate.
#[derive(Clone, Copy, Debug)]
struct Shares<const N: usize> {
    counts: [f64; N],
    pulls: [f64; N],
}

impl<const N: usize> Default for Shares<N> {
    fn default() -> Self {
        Self { counts: [0.0; N], pulls: [0.0; N] }
    }
}

impl<const N: usize> Shares<N> {
    /// The parts of a total that is known. What the counts miss of it, or have too much, goes where the pulls are. If it is
    /// so much that they do not explain it, blocks hotter than any in the sample are missing: that becomes what `hot` says.
    fn parts(&self, total: f64, hot: [f64; N]) -> [f64; N] {
        let error = total - self.counts.iter().sum::<f64>();
        let pull: f64 = self.pulls.iter().sum();
        // The sum of pulls is half of that of squared counts, which is the variance.
        let explained = if error <= DEVIATIONS * (2.0 * pull).sqrt() && pull > 0.0 { error } else { 0.0 };
        let mut parts = self.counts;
        for at in 0..N {
            let share = if pull > 0.0 { self.pulls[at] / pull } else { 0.0 };
            parts[at] = (parts[at] + explained * share + (error - explained) * hot[at]).max(0.0);
        }
        // Where a part would have become negative, the others have too much now.
        let sum: f64 = parts.iter().sum();
        let scale = if sum > 0.0 { total / sum } else { 0.0 };
        parts.map(|part| part * scale)
    }

    fn fade(&mut self, keep: f64) {
        self.counts.iter_mut().chain(&mut self.pulls).for_each(|count| *count *= keep);
    }
}

/// Accesses of one kind, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accesses {
    /// Blocks: hit, entered, passed.
    blocks: Shares<3>,
    /// Requests: hit, missed.
    requests: Shares<2>,
}

impl Accesses {
    /// A request ended.
    pub(super) fn request(&mut self, hit: bool, end: End) {
        let at = usize::from(!hit);
        self.requests.counts[at] += end.weight;
        self.requests.pulls[at] += end.pull;
    }

    fn add(&mut self, outcomes: [u64; 3], pulls: [u64; 3], rate: f64) {
        let weight = 1.0 / rate;
        for at in 0..3 {
            self.blocks.counts[at] += outcomes[at] as f64 * weight;
            // A block's accesses are in the estimate times `weight`, with a probability of `1 / weight`: the variance
            // of that.
            self.blocks.pulls[at] += pulls[at] as f64 * weight * (weight - 1.0);
        }
    }

    /// Hits, blocks that entered, and all, which are `total`. Of accesses to hot blocks a share `hits`, the others enter,
    /// or pass if they do not hit at all.
    fn blocks(&self, total: f64, hits: f64) -> (u64, u64, u64) {
        let others = if hits > 0.0 { [1.0 - hits, 0.0] } else { [0.0, 1.0] };
        let [hit, entered, _] = self.blocks.parts(total, [hits, others[0], others[1]]);
        let all = total.round() as u64;
        let hit = (hit.round() as u64).min(all);
        (hit, (entered.round() as u64).min(all - hit), all)
    }

    /// Requests that hit, and all, which are `total`. Of requests for hot blocks a share `hits`.
    fn requests(&self, total: f64, hits: f64) -> (u64, u64) {
        let all = total.round() as u64;
        ((self.requests.parts(total, [hits, 1.0 - hits])[0].round() as u64).min(all), all)
    }

    fn fade(&mut self, keep: f64) {
        self.blocks.fade(keep);
        self.requests.fade(keep);
    }
}

/// Sums of pulls by what became of the blocks, as counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pulls {
    pub(super) reads: [u64; 3],
    pub(super) writes: [u64; 3],
}

/// What a small cache counted, scaled up, before corrections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) reads: Accesses,
    pub(super) writes: Accesses,
    evictions: f64,
    dirty_evictions: f64,
    invalidations: f64,
    discarded: f64,
}

impl Tally {
    /// Counts and pulls of a stretch with one rate of sampling.
    pub(super) fn add(&mut self, counters: &Counters, pulls: &Pulls, rate: f64) {
        let &Counters { block_reads, read_hits, fills, block_writes, write_hits, guest_writes, .. } =
            counters;
        let read = [read_hits, fills, block_reads - read_hits - fills];
        let written = [write_hits, guest_writes - write_hits, block_writes - guest_writes];
        self.reads.add(read, pulls.reads, rate);
        self.writes.add(written, pulls.writes, rate);
        self.evictions += counters.evictions as f64 / rate;
        self.dirty_evictions += counters.dirty_evictions as f64 / rate;
        self.invalidations += counters.invalidations as f64 / rate;
        self.discarded += counters.discarded as f64 / rate;
    }

    pub(super) fn fade(&mut self, keep: f64) {
        self.reads.fade(keep);
        self.writes.fade(keep);
        let Self { evictions, dirty_evictions, invalidations, discarded, .. } = self;
        for count in [evictions, dirty_evictions, invalidations, discarded] {
            *count *= keep;
        }
    }

    /// The counts of the cache that is stood for.
    pub(super) fn estimate(&self, totals: &Totals, write: WritePolicy) -> Counters {
        // A hot block is resident; under `ro`, unless it was written last.
        let [reads, writes] = if write.invalidates() { [totals.read_share(), 0.0] } else { [1.0, 1.0] };
        let (read_hits, fills, block_reads) = self.reads.blocks(totals.block_reads, reads);
        let (write_hits, entered, block_writes) = self.writes.blocks(totals.block_writes, writes);
        let (read_request_hits, read_requests) = self.reads.requests(totals.read_requests, reads);
        let (write_request_hits, write_requests) = self.writes.requests(totals.write_requests, writes);
        let dirty_evictions = self.dirty_evictions.round() as u64;
        let guest_writes = write_hits + entered;
        let backing_writes = match write {
            WritePolicy::WriteBack | WritePolicy::WriteOnly => block_writes - guest_writes + dirty_evictions,
            WritePolicy::WriteThrough | WritePolicy::WriteThroughNoAllocate | WritePolicy::ReadOnly => {
                block_writes
            }
        };
        Counters {
            requests: read_requests + write_requests,
            request_hits: read_request_hits + write_request_hits,
            read_requests,
            read_request_hits,
            flushes: 0,
            discards: totals.discards.round() as u64,
            block_reads,
            block_writes,
            read_hits,
            write_hits,
            fills,
            guest_writes,
            evictions: self.evictions.round() as u64,
            dirty_evictions,
            invalidations: self.invalidations.round() as u64,
            discarded: self.discarded.round() as u64,
            backing_reads: block_reads - read_hits,
            backing_writes,
        }
    }
}
