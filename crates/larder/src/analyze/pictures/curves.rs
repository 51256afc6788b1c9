//! Curves over cache size.

use larder_locality::AtSize;
use larder_plot::{Axis, Chart, Panel, Series, Unit};

use super::cache_size;
use crate::analyze::found::Found;
use crate::analyze::line::{Line, merged};

/// Miss ratio of all accesses beside that of reads, in a cache that takes both.
pub fn misses(found: &Found) -> Chart {
    let line = &found.lru;
    let all = (line.reads + line.writes, (|at| at.read_hits + at.write_hits) as Count);
    let reads = (line.reads, (|at| at.read_hits) as Count);
    let panel = Panel::new(cache_size(), ratio_axis("Miss ratio"));
    let panel = [("all accesses (TRD)", all), ("reads (URD)", reads)].into_iter().fold(
        panel,
        |panel, (name, (whole, hits))| match whole {
            0 => panel,
            _ => panel.series(Series::new(name, miss_ratios(found, line, hits, whole))),
        },
    );
    Chart::new("Miss ratio over cache size, of all accesses and of reads (LRU)").panel(panel)
}

/// Miss ratio by policy: of block reads, and of requests.
pub fn policies(found: &Found) -> Chart {
    let lines = lines(found);
    let groups = merged(&lines, |line| {
        line.points.iter().map(|&(blocks, at)| (blocks, at.read_hits, at.request_hits)).collect::<Vec<_>>()
    });
    let panel = |label: &str, hits: Count, whole: fn(&Line) -> u64| {
        groups.iter().filter(|(_, line)| whole(line) > 0).fold(
            Panel::new(cache_size(), ratio_axis(label)),
            |panel, (names, line)| {
                panel.series(Series::new(names, miss_ratios(found, line, hits, whole(line))))
            },
        )
    };
    let chart = Chart::new("Miss ratio over cache size, by policy");
    let chart = match found.lru.reads {
        0 => chart,
        _ => chart.panel(panel("Miss ratio of block reads", |at| at.read_hits, |line| line.reads)),
    };
    chart.panel(panel("Miss ratio of requests", |at| at.request_hits, |line| line.requests))
}

/// SSD writes by policy.
pub fn writes(found: &Found) -> Chart {
    Chart::new("SSD writes over cache size, by policy").panel(amounts(
        found,
        "SSD writes",
        AtSize::ssd_writes,
    ))
}

/// Writes of the backing by policy.
pub fn backing(found: &Found) -> Chart {
    Chart::new("Backing writes over cache size, by policy")
        .panel(amounts(found, "Backing writes", |at| at.backing_writes))
}

/// A cache that serves less than this share of the accesses serves next to nothing.
const SERVES: f64 = 0.005;

/// A count of a cache of one size.
type Count = fn(&AtSize) -> u64;

fn lines(found: &Found) -> Vec<Line> {
    found.telling().into_iter().chain(found.estimates.iter().cloned()).collect()
}

fn ratio_axis(label: &str) -> Axis {
    Axis::new(label, Unit::Ratio).covering(0.0, 1.0)
}

fn amounts(found: &Found, label: &str, count: Count) -> Panel {
    let lines = lines(found);
    let groups = merged(&lines, |line| {
        line.points.iter().map(|(blocks, at)| (*blocks, count(at))).collect::<Vec<_>>()
    });
    let y = Axis::new(label, Unit::Bytes).covering(0.0, 0.0);
    groups.iter().fold(Panel::new(cache_size(), y), |panel, (names, line)| {
        let points = drawn(found, line).map(|(blocks, at)| (bytes(found, *blocks), bytes(found, count(at))));
        panel.series(Series::new(names, points))
    })
}

fn miss_ratios(found: &Found, line: &Line, hits: Count, whole: u64) -> Vec<(f64, f64)> {
    let miss_ratio = |at: &AtSize| (1.0 - hits(at) as f64 / whole as f64).clamp(0.0, 1.0);
    drawn(found, line).map(|(blocks, at)| (bytes(found, *blocks), miss_ratio(at))).collect()
}

/// The points of a line that are worth drawing.
fn drawn<'a>(found: &Found, line: &'a Line) -> impl Iterator<Item = &'a (u64, AtSize)> + use<'a> {
    let first = first_drawn(found);
    line.points.iter().filter(move |(blocks, _)| *blocks >= first)
}

/// The size where pictures begin: below it caches serve next to nothing, and the curves are flat. At most a sixty-fourth of the largest.
fn first_drawn(found: &Found) -> u64 {
    let serves = |line: &Line, at: &AtSize| {
        (at.read_hits + at.write_hits) as f64 > SERVES * (line.reads + line.writes) as f64
    };
    let lines = found.lines.iter().chain([&found.lru]);
    let first_serving =
        |line: &Line| line.points.iter().find(|(_, at)| serves(line, at)).map(|(blocks, _)| *blocks);
    let first = lines.filter_map(first_serving).min().unwrap_or(1);
    let largest = found.lru.points.last().map_or(1, |(blocks, _)| *blocks);
    (first / 2).min(largest / 64)
}

fn bytes(found: &Found, blocks: u64) -> f64 {
    found.bytes(blocks) as f64
}
