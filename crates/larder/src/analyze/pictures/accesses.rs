//! Accesses over time, address and reuse distance.

use larder_daemon::units::HumanSize;
use larder_locality::ClassCounts;
use larder_plot::{Axis, Bars, Chart, Heat, Panel, Series, Unit};
use larder_sim::{Region, Window};

use super::along;
use crate::analyze::distances::Distances;
use crate::analyze::found::Found;
use crate::number::grouped;

/// A request class: its name, and how many accesses there are of it.
type Class = (&'static str, fn(&ClassCounts) -> u64);

/// What the request classes are called in pictures, from the top of the stack.
const CLASSES: [Class; 6] = [
    ("CR, first read", |classes| classes.cr),
    ("RAR, read after read", |classes| classes.rar),
    ("RAW, read after write", |classes| classes.raw),
    ("CW, first write", |classes| classes.cw),
    ("WAR, write after read", |classes| classes.war),
    ("WAW, write after write", |classes| classes.waw),
];

/// Request classes over time: block accesses in each window, and their shares.
pub fn classes(found: &Found) -> Chart {
    let accesses = Axis::new("Block accesses in a window", Unit::count("")).covering(0.0, 0.0);
    let shares = Axis::new("Share of block accesses", Unit::Ratio).covering(0.0, 1.0);
    let share = |count: u64, window: &Window| match window.classes.total() {
        0 => 0.0,
        total => count as f64 / total as f64,
    };
    Chart::new("Request classes over time")
        .panel(stacked(found, accesses, |count, _| count as f64))
        .panel(stacked(found, shares, share))
}

fn stacked(found: &Found, y: Axis, value: impl Fn(u64, &Window) -> f64) -> Panel {
    let panel = Panel::new(along(found), y).stacked();
    if found.windows.is_empty() {
        return panel;
    }
    CLASSES.into_iter().fold(panel, |panel, (name, count)| {
        let point = |window: &Window| (start(found, window), value(count(&window.classes), window));
        panel.series(Series::new(name, found.windows.iter().map(point)).steps_until(end(found)))
    })
}

fn start(found: &Found, window: &Window) -> f64 {
    if found.has_times() { window.start_ns as f64 / 1e9 } else { window.first_request as f64 }
}

/// Where the last window ends.
fn end(found: &Found) -> f64 {
    match found.windows.last() {
        Some(last) if found.has_times() => (last.start_ns + last.ns) as f64 / 1e9,
        _ => found.summary.requests() as f64,
    }
}

/// How many accesses need a cache of which size.
pub fn distances(found: &Found) -> Chart {
    let x = Axis::new("Cache that serves the access: reuse distance and one block", Unit::Bytes).log();
    let y = Axis::new("Block accesses", Unit::count("")).covering(0.0, 0.0);
    let kinds = [("all accesses (TRD)", &found.trd), ("reads (URD)", &found.urd)];
    let panel = kinds
        .into_iter()
        .filter(|(_, distances)| distances.count > 0)
        .fold(Panel::new(x, y), |panel, (name, distances)| panel.series(histogram(found, name, distances)));
    Chart::new("Reuse distances").panel(panel)
}

/// Each bin reaches to twice the size where it begins; the first is that of one block.
fn histogram(found: &Found, name: &str, distances: &Distances) -> Series {
    let block = f64::from(found.block.bytes());
    let bin = |&(end, count): &(u64, u64)| (end as f64 * block / 2.0, count as f64);
    let end = distances.octaves.last().map_or(1.0, |&(end, _)| end as f64);
    Series::new(name, distances.octaves.iter().map(bin)).steps_until(end * block).filled()
}

/// Where requests went, and when: reads and writes each.
pub fn map(found: &Found) -> Chart {
    let map = &found.map;
    let places = if map.volumes.len() > 1 { "Address, volumes one behind the other" } else { "Address" };
    let column = if found.has_times() { map.column_ns as f64 / 1e9 } else { map.column_requests as f64 };
    let x = (0.0, map.columns as f64 * column);
    let y = (0.0, map.rows as f64 * map.row_bytes as f64);
    let heat = |label: &str, counts: &[u64]| {
        let rows = counts.chunks(map.columns.max(1));
        let rows = rows.map(|row| row.iter().map(|&count| count as f64).collect());
        Heat::new(label, Unit::count(""), x, y, rows)
    };
    let chart = Chart::new("Accesses over time and address");
    let kinds = [("Blocks read", &map.reads), ("Blocks written", &map.writes)];
    kinds.into_iter().filter(|(_, counts)| counts.iter().any(|&count| count > 0)).fold(
        chart,
        |chart, (label, counts)| {
            chart.panel(Panel::new(along(found), Axis::new(places, Unit::Bytes)).heat(heat(label, counts)))
        },
    )
}

/// Where most of the accesses went.
pub fn hot(found: &Found) -> Chart {
    let bars = Bars::new("Region", Axis::new("Block accesses", Unit::count("")));
    let bars = found
        .hot
        .iter()
        .fold(bars, |bars, region| bars.bar(place(found, region), (region.reads + region.writes) as f64));
    Chart::new("Hot regions").bars(bars)
}

/// `web_0, 1 MiB at 2,064 MiB`: what a region is called. Regions begin at whole MiB.
fn place(found: &Found, region: &Region) -> String {
    let at = format!("{} at {} MiB", HumanSize(region.bytes), grouped(region.offset >> 20));
    match found.map.volumes.len() {
        ..=1 => at,
        _ => format!("{}, {at}", found.volume(region.volume)),
    }
}
