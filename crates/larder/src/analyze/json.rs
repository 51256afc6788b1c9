//! What was found of a trace, as JSON. Sizes and distances are in blocks, ratios between 0 and 1, times in seconds.

use std::collections::BTreeMap;

use larder_locality::{AtSize, ClassCounts, Sampling};
use larder_sim::{Region, Window};
use serde::Serialize;

use super::distances::{Distances, PERCENTILES};
use super::found::Found;
use super::line::Line;

/// A trace.
#[derive(Serialize)]
pub struct Report<'a> {
    trace: &'a str,
    format: &'a str,
    block_bytes: u32,
    requests: u64,
    reads: u64,
    writes: u64,
    flushes: u64,
    discards: u64,
    block_accesses: u64,
    footprint_blocks: u64,
    /// From the first request to the last.
    seconds: f64,
    sampling: SamplingReport,
    classes: Classes,
    trd: DistanceReport,
    urd: DistanceReport,
    /// The size beyond which no hits are gained; 0 where there are none.
    wss_blocks: u64,
    /// The same for reads alone.
    useful_wss_blocks: u64,
    /// The smallest size with nine tenths of those hits.
    knee_blocks: Option<u64>,
    /// LRU caches, by write policy.
    curves: BTreeMap<&'static str, Curve>,
    /// Other policies, estimated.
    estimates: Vec<Estimate<'a>>,
    windows: Vec<WindowReport>,
    hot: Vec<HotRegion>,
    memory_bytes: u64,
}

#[derive(Serialize)]
struct SamplingReport {
    /// `exact`, `rate` or `blocks`.
    kind: &'static str,
    /// Share of the blocks that was looked at, at the end.
    rate: f64,
    sampled_blocks: u64,
}

#[derive(Serialize)]
struct Classes {
    #[serde(flatten)]
    counts: Counts,
    /// Shares of all block accesses; 0 where there are none.
    ratios: BTreeMap<&'static str, f64>,
    /// ECI-Cache's: WAW and WAR among all.
    write_ratio: f64,
}

#[derive(Serialize)]
struct Counts {
    cr: u64,
    cw: u64,
    rar: u64,
    raw: u64,
    war: u64,
    waw: u64,
}

#[derive(Serialize)]
struct DistanceReport {
    /// Accesses that have a distance.
    count: u64,
    max: Option<u64>,
    percentiles: Option<BTreeMap<&'static str, u64>>,
}

/// Lists of one length: what a cache of each size would do.
#[derive(Default, Serialize)]
struct Curve {
    sizes: Vec<u64>,
    read_hit_ratio: Vec<f64>,
    request_hit_ratio: Vec<f64>,
    hit_ratio: Vec<f64>,
    read_hits: Vec<u64>,
    write_hits: Vec<u64>,
    request_hits: Vec<u64>,
    read_request_hits: Vec<u64>,
    /// `fills` and `guest_writes`.
    ssd_writes: Vec<u64>,
    fills: Vec<u64>,
    guest_writes: Vec<u64>,
    invalidations: Vec<u64>,
    backing_reads: Vec<u64>,
    backing_writes: Vec<u64>,
}

#[derive(Serialize)]
struct Estimate<'a> {
    policy: &'a str,
    write_policy: &'a str,
    #[serde(flatten)]
    curve: Curve,
}

#[derive(Serialize)]
struct WindowReport {
    first_request: u64,
    /// None where the trace has no times.
    start_seconds: Option<f64>,
    seconds: Option<f64>,
    reads: u64,
    writes: u64,
    #[serde(flatten)]
    classes: Classes,
}

#[derive(Serialize)]
struct HotRegion {
    volume: String,
    /// Bytes.
    offset: u64,
    bytes: u64,
    /// Blocks.
    reads: u64,
    writes: u64,
}

impl<'a> Report<'a> {
    /// Of what was found.
    pub fn new(found: &'a Found) -> Self {
        let summary = &found.summary;
        Self {
            trace: &found.asked.trace,
            format: &found.asked.format,
            block_bytes: found.block.bytes(),
            requests: summary.requests(),
            reads: summary.reads,
            writes: summary.writes,
            flushes: summary.flushes,
            discards: summary.discards,
            block_accesses: summary.block_accesses,
            footprint_blocks: summary.footprint_blocks,
            seconds: seconds(summary.elapsed_ns),
            sampling: SamplingReport::new(found),
            classes: (&found.classes).into(),
            trd: (&found.trd).into(),
            urd: (&found.urd).into(),
            wss_blocks: found.reach.blocks(),
            useful_wss_blocks: found.urd.blocks(),
            knee_blocks: found.reach.knee,
            curves: found.lines.iter().map(|line| (line.write, Curve::new(line))).collect(),
            estimates: found.estimates.iter().map(Estimate::new).collect(),
            windows: found
                .windows
                .iter()
                .map(|window| WindowReport::new(window, found.has_times()))
                .collect(),
            hot: found.hot.iter().map(|region| HotRegion::new(found, region)).collect(),
            memory_bytes: found.memory_bytes,
        }
    }
}

impl SamplingReport {
    fn new(found: &Found) -> Self {
        let kind = match found.asked.sampling {
            Sampling::Exact => "exact",
            Sampling::Rate(_) => "rate",
            Sampling::Blocks(_) => "blocks",
        };
        Self { kind, rate: found.rate, sampled_blocks: found.sampled_blocks }
    }
}

impl From<&ClassCounts> for Classes {
    fn from(counts: &ClassCounts) -> Self {
        let ClassCounts { cr, cw, rar, raw, war, waw } = *counts;
        let named = [("cr", cr), ("cw", cw), ("rar", rar), ("raw", raw), ("war", war), ("waw", waw)];
        Self {
            counts: Counts { cr, cw, rar, raw, war, waw },
            ratios: named.map(|(name, count)| (name, ratio(count, counts.total()))).into(),
            write_ratio: counts.write_ratio(),
        }
    }
}

impl From<&Distances> for DistanceReport {
    fn from(distances: &Distances) -> Self {
        let named =
            |values: [u64; 5]| PERCENTILES.into_iter().zip(values).map(|((name, _), value)| (name, value));
        Self {
            count: distances.count,
            max: distances.max,
            percentiles: distances.percentiles.map(|values| named(values).collect()),
        }
    }
}

impl Curve {
    fn new(line: &Line) -> Self {
        let list =
            |count: fn(&AtSize) -> u64| line.points.iter().map(|(_, at)| count(at)).collect::<Vec<_>>();
        let ratios = |count: fn(&AtSize) -> u64, whole| {
            line.points.iter().map(|(_, at)| ratio(count(at), whole)).collect::<Vec<_>>()
        };
        Self {
            sizes: line.points.iter().map(|&(blocks, _)| blocks).collect(),
            read_hit_ratio: ratios(|at| at.read_hits, line.reads),
            request_hit_ratio: ratios(|at| at.request_hits, line.requests),
            hit_ratio: ratios(|at| at.read_hits + at.write_hits, line.reads + line.writes),
            read_hits: list(|at| at.read_hits),
            write_hits: list(|at| at.write_hits),
            request_hits: list(|at| at.request_hits),
            read_request_hits: list(|at| at.read_request_hits),
            ssd_writes: list(AtSize::ssd_writes),
            fills: list(|at| at.fills),
            guest_writes: list(|at| at.guest_writes),
            invalidations: list(|at| at.invalidations),
            backing_reads: list(|at| at.backing_reads),
            backing_writes: list(|at| at.backing_writes),
        }
    }
}

impl<'a> Estimate<'a> {
    fn new(line: &'a Line) -> Self {
        Self { policy: &line.caching, write_policy: line.write, curve: Curve::new(line) }
    }
}

impl WindowReport {
    fn new(window: &Window, has_times: bool) -> Self {
        let time = |ns| has_times.then(|| seconds(ns));
        Self {
            first_request: window.first_request,
            start_seconds: time(window.start_ns),
            seconds: time(window.ns),
            reads: window.reads,
            writes: window.writes,
            classes: (&window.classes).into(),
        }
    }
}

impl HotRegion {
    fn new(found: &Found, region: &Region) -> Self {
        let Region { volume, offset, bytes, reads, writes } = *region;
        Self { volume: found.volume(volume), offset, bytes, reads, writes }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// 0 of nothing: a curve without accesses is flat.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
