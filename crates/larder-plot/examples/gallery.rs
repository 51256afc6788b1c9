//! Draws charts of all sorts into a folder, to be looked at: `cargo run -p larder-plot --example gallery -- FOLDER`.

use std::path::Path;

use larder_plot::{Axis, Chart, Error, Panel, Series, Unit};

const POLICIES: [&str; 15] = [
    "FIFO",
    "LRU",
    "CLOCK",
    "LFU",
    "aging-LFU",
    "ARC",
    "MQ",
    "2Q",
    "LIRS",
    "LARC",
    "S3-FIFO",
    "SIEVE",
    "W-TinyLFU",
    "random",
    "Belady",
];
const GIB: f64 = (1u64 << 30) as f64;

fn sizes() -> impl Iterator<Item = f64> {
    (-2..6).map(|power| GIB * 2f64.powi(power))
}

/// Something like a hit-ratio curve; `skill` from 0 to 1 lifts it.
fn hit_ratio(size: f64, skill: f64) -> f64 {
    let share = size / (size + (6.0 - 4.0 * skill) * GIB);
    (0.05 + 0.88 * share).min(0.95)
}

fn simulation(title: &str, names: &[&str], variants: &[&str]) -> Chart {
    let x = || Axis::new("Cache size", Unit::Bytes).log();
    let mut hits = Panel::new(x(), Axis::new("Hit ratio", Unit::Ratio));
    let mut writes = Panel::new(x(), Axis::new("SSD writes", Unit::count("blocks")));
    for (at, name) in names.iter().enumerate() {
        for (number, variant) in variants.iter().enumerate() {
            let skill = at as f64 / names.len() as f64 - 0.2 * number as f64;
            let curve = |y: &dyn Fn(f64) -> f64| {
                Series::new(*name, sizes().map(|size| (size, y(size)))).variant(*variant)
            };
            hits = hits.series(curve(&|size| hit_ratio(size, skill)));
            writes = writes.series(curve(&|size| 3e7 * (1.1 - hit_ratio(size, skill)) * (1.0 - 0.5 * skill)));
        }
    }
    Chart::new(title).subtitle("made-up curves: no trace was replayed").panel(hits).panel(writes)
}

fn decades() -> Chart {
    let x = Axis::new("Cache size", Unit::Bytes).log();
    let points = |scale: f64| (10..44).map(move |power| (2f64.powi(power), scale * 3e9 * 0.6f64.powi(power)));
    let panel = Panel::new(x, Axis::new("SSD writes", Unit::count("blocks")).log())
        .series(Series::new("LRU", points(1.0)))
        .series(Series::new("LARC", points(0.02).chain([(1e9, 0.0), (2e9, f64::NAN)])));
    Chart::new("Values over decades").panel(panel)
}

fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let long = [
        "LRU <with> & \"quotes\"",
        "a policy whose name goes on and on, far beyond what anyone would call a policy",
        "X",
    ];
    let title = "A title that goes on: hit ratio and SSD writes of policies with long names over the size of the cache, and more";
    let one = Panel::new(Axis::new("Cache size", Unit::Bytes).log(), Axis::new("Hit ratio", Unit::Ratio));
    for (name, chart) in [
        (
            "four",
            simulation("Hit ratio and SSD writes over cache size", &["LRU", "ARC", "LARC", "Belady"], &[""]),
        ),
        ("fifteen", simulation("Hit ratio and SSD writes over cache size", &POLICIES, &[""])),
        ("variants", simulation("Three write policies", &POLICIES[..5], &["wb", "wt", "ro"])),
        ("many", simulation("Fifteen policies, four write policies", &POLICIES, &["wb", "wt", "ro", "wo"])),
        ("long", simulation(title, &long, &[""])),
        ("one", Chart::new("One point").panel(one.clone().series(Series::new("LRU", [(GIB, 0.4)])))),
        ("empty", Chart::new("Nothing").panel(one)),
        ("decades", decades()),
    ] {
        for extension in ["svg", "png", "html"] {
            chart.save(Path::new(&folder).join(name).with_extension(extension))?;
        }
    }
    Ok(())
}
