//! What a tenant can get, and what each would bring and cost: for every mode (replacement, admission, write policy) the
//! mean latency of a request and the writes to the SSD over the size of its partition.
//!
//! A menu is made of what the analyzer found ([`Menu::of`]): its curves and its bank say how many requests would be
//! served by what, and the tenant's measured latencies say what that takes. Centaur's equation 1,
//! `lat = (1 - mr) lat_ssd + mr lat_disk`, is the same for reads alone; here writes have a latency of their own, which depends on the
//! write policy.

use larder_locality::{AtSize, BankCurve, PolicyCurves};
use larder_policy::WritePolicy;
use larder_policy::spec::CachingSpec;
use larder_policy::trial::Counters;

use crate::{Findings, Latencies, Mode};

/// Points of a way at most: a curve with more steps is thinned out.
pub const POINTS_MAX: usize = 1000;

/// One size of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Its blocks.
    pub blocks: u64,
    /// Mean seconds of a request.
    pub latency: f64,
    /// Blocks written to the SSD per second.
    pub ssd_writes: f64,
    /// Requests that the SSD serves alone, 0 to 1: reads all of whose blocks are hits, and writes that it takes.
    pub request_hit_ratio: f64,
}

/// One way to run a partition: a mode, over sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// The mode.
    pub mode: Mode,
    /// In rising order of size, from 0 blocks on. A partition whose size lies between two points does as the smaller one.
    pub points: Vec<Point>,
}

impl Way {
    /// What a partition of `blocks` does.
    pub fn at(&self, blocks: u64) -> Point {
        let until = self.points.partition_point(|point| point.blocks <= blocks);
        until.checked_sub(1).map_or_else(Point::default, |last| self.points[last])
    }
}

impl Way {
    /// The latency of a partition of `blocks`, on the straight line between the sizes beside it: without a bias where it is held against what was measured.
    pub(crate) fn latency_between(&self, blocks: u64) -> f64 {
        let until = self.points.partition_point(|point| point.blocks <= blocks);
        let before = until.checked_sub(1).map_or_else(Point::default, |last| self.points[last]);
        self.points.get(until).map_or(before.latency, |after| {
            let part = (blocks - before.blocks) as f64 / (after.blocks - before.blocks) as f64;
            before.latency + (after.latency - before.latency) * part
        })
    }
}

/// All ways of one tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Menu {
    /// The ways.
    pub ways: Vec<Way>,
    /// Requests per second: what a mean latency weighs.
    pub requests_per_second: f64,
}

impl Menu {
    /// The menu of a tenant that did what was found, from all curves and all of the bank whose write policy is allowed:
    /// without `write_back` none that holds dirty blocks. Curves of batched population are no way to run a partition.
    pub fn of(findings: &Findings, write_back: bool) -> Self {
        let seconds = findings.seconds.max(f64::MIN_POSITIVE);
        let allowed = |write: WritePolicy| {
            write_back || !matches!(write, WritePolicy::WriteBack | WritePolicy::WriteOnly)
        };
        let lru = findings.curves.iter().filter_map(|curves| {
            let write = curves.policy().write_policy().filter(|&write| allowed(write))?;
            Some(of_curves(curves, findings.sampled, write, findings.latencies, seconds))
        });
        let bank = findings.bank.iter().filter(|curve| allowed(curve.write));
        let others = bank.filter_map(|curve| of_bank(curve, findings.latencies, seconds));
        Self {
            ways: lru.chain(others).collect(),
            requests_per_second: findings.epoch.requests as f64 / seconds,
        }
    }
}

/// Requests, by what serves them; in numbers that need not be whole.
struct Served {
    read_hits: f64,
    read_misses: f64,
    cached_writes: f64,
    backing_writes: f64,
    /// Dirty blocks that leave.
    written_back: f64,
}

impl Served {
    fn latency(&self, latencies: &Latencies) -> f64 {
        let requests = self.read_hits + self.read_misses + self.cached_writes + self.backing_writes;
        let seconds = self.read_hits * latencies.read_hit
            + self.read_misses * latencies.read_miss
            + self.cached_writes * latencies.cached_write
            + self.backing_writes * latencies.backing_write
            + self.written_back * latencies.write_back;
        if requests > 0.0 { seconds / requests } else { 0.0 }
    }
}

/// A curve rises so much, as a part of all requests, where it has a cliff: as of a loop, of which an LRU cache that is a block too small has nothing.
const CLIFF: f64 = 0.1;

/// What is seen of a cliff in a sample is off by so many standard deviations at most.
const DEVIATIONS: f64 = 2.0;

/// What a partition needs for what a sample says of one of so many blocks: more, where there is a cliff.
///
/// Of `blocks` a sample at rate R has `blocks R` in the mean, with the variance of as many throws of a coin at most.
fn beyond_cliff(curves: &PolicyCurves, sampled: f64, blocks: u64) -> u64 {
    let (size, requests) = (blocks as f64, curves.counted().requests as f64);
    if sampled <= 0.0 || blocks == 0 {
        return blocks;
    }
    let margin = 1.0 + DEVIATIONS * ((1.0 - sampled).max(0.0) / (size * sampled)).sqrt();
    let hits = |blocks: u64| curves.counted().read_request_hits.at(blocks) as f64;
    let is_cliff = hits(blocks) - hits((size / margin) as u64) > CLIFF * requests;
    if is_cliff { (size * margin).ceil() as u64 } else { blocks }
}

fn of_curves(
    curves: &PolicyCurves,
    sampled: f64,
    write: WritePolicy,
    latencies: Latencies,
    seconds: f64,
) -> Way {
    let counted = curves.counted();
    let mut sizes: Vec<(u64, u64)> = [&counted.read_request_hits, &counted.read_hits, &counted.write_hits]
        .iter()
        .flat_map(|curve| curve.steps().iter().map(|step| step.0))
        .map(|blocks| (beyond_cliff(curves, sampled, blocks), blocks))
        .chain([(0, 0), (1, 1)])
        .collect();
    // What is needed, and what is served by then: of what is needed for several sizes, the largest.
    sizes.sort_unstable_by_key(|&(needed, served)| (needed, std::cmp::Reverse(served)));
    sizes.dedup_by_key(|&mut (needed, _)| needed);
    let requests = counted.requests as f64;
    let reads = counted.read_requests as f64;
    let point = |(needed, blocks): (u64, u64)| {
        let at: AtSize = curves.at(blocks);
        let read_hits = (at.read_request_hits as f64).min(reads);
        let writes = requests - reads;
        let cached = if write == WritePolicy::WriteBack && blocks > 0 { writes } else { 0.0 };
        // A write that goes to both is done when the slower one is.
        let both = write == WritePolicy::WriteThrough && blocks > 0;
        let backing_write = latencies.backing_write.max(if both { latencies.cached_write } else { 0.0 });
        let latencies = Latencies { backing_write, ..latencies };
        let served = Served {
            read_hits,
            read_misses: reads - read_hits,
            cached_writes: cached,
            backing_writes: writes - cached,
            written_back: if write == WritePolicy::WriteBack && blocks > 0 {
                at.backing_writes as f64
            } else {
                0.0
            },
        };
        Point {
            blocks: needed,
            latency: served.latency(&latencies),
            ssd_writes: at.ssd_writes() as f64 / seconds,
            request_hit_ratio: ratio(served.read_hits + served.cached_writes, requests),
        }
    };
    let mode = Mode { caching: CachingSpec::default(), write };
    Way { mode, points: thinned(&sizes).map(point).collect() }
}

/// At most [`POINTS_MAX`] of the sizes, the first and the last among them.
fn thinned<S: Copy>(sizes: &[S]) -> impl Iterator<Item = S> + '_ {
    let every = sizes.len().div_ceil(POINTS_MAX - 1).max(1);
    let last = sizes.len().saturating_sub(1);
    (0..sizes.len()).filter(move |at| at % every == 0 || *at == last).map(|at| sizes[at])
}

/// Points between two sizes of a bank, on the straight line: sizes there are half an octave apart.
const BETWEEN: u64 = 8;

fn of_bank(curve: &BankCurve, latencies: Latencies, seconds: f64) -> Option<Way> {
    let (_, some) = curve.points.first()?;
    let nothing = none_cached(some);
    let points = std::iter::once((0, nothing)).chain(curve.points.iter().copied());
    let mut points: Vec<_> =
        points.map(|(blocks, counters)| of_counters(blocks, &counters, &latencies, seconds)).collect();
    let mode = Mode { caching: curve.caching, write: curve.write };
    let mut way = Way { mode, points: Vec::with_capacity(points.len() * BETWEEN as usize) };
    let filled = lets_all_in(some);
    if filled {
        // However small a cache is, what misses is written to it.
        points[0].ssd_writes = points[1].ssd_writes + some.read_hits as f64 / seconds;
    }
    for pair in points.windows(2) {
        let gap = pair[1].blocks - pair[0].blocks;
        let steps = BETWEEN.min(gap).max(1);
        way.points.extend((0..steps).map(|step| between(&pair[0], &pair[1], step as f64 / steps as f64)));
    }
    way.points.extend(points.last());
    way.points.dedup_by_key(|point| point.blocks);
    if filled {
        let smallest = Point { blocks: 1, ..points[0] };
        way.points[0].ssd_writes = 0.0;
        if way.points.get(1).is_some_and(|point| point.blocks > 1) {
            way.points.insert(1, smallest);
        }
    }
    Some(way)
}

/// Whatever is read and misses enters.
fn lets_all_in(counters: &Counters) -> bool {
    counters.fills > 0 && counters.fills == counters.backing_reads
}

/// The same accesses with no cache.
fn none_cached(some: &Counters) -> Counters {
    Counters {
        requests: some.requests,
        read_requests: some.read_requests,
        block_reads: some.block_reads,
        block_writes: some.block_writes,
        backing_reads: some.block_reads,
        backing_writes: some.block_writes,
        ..Counters::default()
    }
}

fn of_counters(blocks: u64, counters: &Counters, latencies: &Latencies, seconds: f64) -> Point {
    let reads = counters.read_requests as f64;
    let writes = counters.requests as f64 - reads;
    let read_hits = (counters.read_request_hits as f64).min(reads);
    // What was written to the backing by the guest, not by an eviction.
    let past = counters.backing_writes.saturating_sub(counters.dirty_evictions) as f64;
    let backing_writes = writes * ratio(past, counters.block_writes as f64);
    let served = Served {
        read_hits,
        read_misses: reads - read_hits,
        cached_writes: writes - backing_writes,
        backing_writes,
        written_back: counters.dirty_evictions as f64,
    };
    Point {
        blocks,
        latency: served.latency(latencies),
        ssd_writes: counters.ssd_writes() as f64 / seconds,
        request_hit_ratio: ratio(served.read_hits + served.cached_writes, counters.requests as f64),
    }
}

fn between(from: &Point, to: &Point, part: f64) -> Point {
    let mix = |from: f64, to: f64| from + (to - from) * part;
    Point {
        blocks: from.blocks + ((to.blocks - from.blocks) as f64 * part) as u64,
        latency: mix(from.latency, to.latency),
        ssd_writes: mix(from.ssd_writes, to.ssd_writes),
        request_hit_ratio: mix(from.request_hit_ratio, to.request_hit_ratio),
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests;
