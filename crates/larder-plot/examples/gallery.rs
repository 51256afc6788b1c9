//! Draws charts of all sorts into a folder, to be looked at: `cargo run -p larder-plot --example gallery -- FOLDER`.

use std::path::Path;

use larder_plot::{Axis, Bars, Chart, Error, Heat, Page, Panel, Section, Series, Table, Unit};

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

fn locality() -> [(&'static str, Chart); 5] {
    [
        ("steps", miss_ratio()),
        ("distances", distances()),
        ("classes", classes()),
        ("map", map()),
        ("regions", regions()),
    ]
}

/// A curve of every block, and the same for reads of blocks seen before.
fn miss_ratio() -> Chart {
    let x = Axis::new("Cache size", Unit::Bytes).log();
    let curve = |knee: f64| {
        (0..60).map(move |at| {
            let size = 4096.0 * 1.3f64.powi(at);
            (size, 0.97 / (1.0 + (size / knee).powf(0.7)) + if size > knee { 0.0 } else { 0.03 })
        })
    };
    let panel = Panel::new(x, Axis::new("Miss ratio", Unit::Ratio).covering(0.0, 1.0))
        .series(Series::new("All accesses (TRD)", curve(GIB)).steps())
        .series(Series::new("Reads of blocks seen before (URD)", curve(0.05 * GIB)).steps());
    Chart::new("Miss ratio over cache size").subtitle("made-up curves: no trace was replayed").panel(panel)
}

fn distances() -> Chart {
    let bins = |scale: f64, peak: f64| {
        let count = move |at: f64| scale * (-(at - peak).powi(2) / 18.0).exp() + scale * 0.2 / (at + 1.0);
        (0..24).map(move |at| (2f64.powi(at), count(f64::from(at)).round()))
    };
    let panel = Panel::new(
        Axis::new("Reuse distance", Unit::count("blocks")).log(),
        Axis::new("Accesses", Unit::count("blocks")),
    )
    .series(Series::new("All accesses (TRD)", bins(1e6, 14.0)).steps_until(2f64.powi(24)).filled())
    .series(
        Series::new("Reads of blocks seen before (URD)", bins(4e5, 11.0)).steps_until(2f64.powi(24)).filled(),
    );
    Chart::new("How far apart the accesses to a block are").subtitle("made-up counts").panel(panel)
}

fn classes() -> Chart {
    const WEEK: f64 = 7.0 * 86400.0;
    let panel = |y: Axis, of_whole: bool| {
        let amount = move |class: usize, window: usize| {
            let phase = window as f64 / 168.0 * 44.0 + class as f64;
            (1.0 + phase.sin()) * [3.0, 1.0, 5.0, 0.5, 0.3, 2.0][class]
                + 0.2 * [8.0, 3.0, 0.0, 1.0, 0.0, 2.0][class]
        };
        let names = ["CR", "CW", "RAR", "RAW", "WAR", "WAW"].into_iter().enumerate();
        names.fold(Panel::new(Axis::new("Time", Unit::Seconds), y).stacked(), |panel, (class, name)| {
            let points = (0..168).map(|window| {
                let whole: f64 = (0..6).map(|class| amount(class, window)).sum();
                let share = amount(class, window) / if of_whole { whole } else { 1e-4 };
                (window as f64 * 3600.0, share)
            });
            panel.series(Series::new(name, points).steps_until(WEEK))
        })
    };
    Chart::new("Request classes over time")
        .subtitle("made-up counts")
        .panel(panel(Axis::new("Share of block accesses", Unit::Ratio), true))
        .panel(panel(Axis::new("Block accesses in an hour", Unit::count("blocks")), false))
}

fn map() -> Chart {
    let cell = |row: usize, column: usize| {
        let scan = (column * 3 % 128).abs_diff(row) < 2;
        let hot = (20..26).contains(&row) || row == 90;
        let noise = (row * 7919 + column * 104_729) % 97;
        match (scan, hot) {
            (true, _) => 400.0,
            (_, true) => 20_000.0 * (1.0 + (column as f64 / 9.0).sin()) + noise as f64,
            _ if noise < 8 && row < 100 => noise as f64,
            _ => 0.0,
        }
    };
    let cells = (0..128).map(|row| (0..128).map(|column| cell(row, column)).collect());
    let heat = Heat::new("Accesses", Unit::count("blocks"), (0.0, 6.6 * 86400.0), (0.0, 37.0 * GIB), cells);
    let panel = Panel::new(Axis::new("Time", Unit::Seconds), Axis::new("Address", Unit::Bytes));
    Chart::new("Addresses over time").subtitle("made-up counts").panel(panel.heat(heat))
}

fn regions() -> Chart {
    let bars = (0..10u32)
        .fold(Bars::new("Region", Axis::new("Accesses", Unit::count("blocks"))), |bars, at| {
            bars.bar(format!("volume {}, {} GiB + 64 MiB", at % 3, at * 7), 3e6 / f64::from(at + 1))
        });
    Chart::new("The hottest regions").subtitle("made-up counts").bars(bars)
}

/// All pictures of an analysis, on a page of their own.
fn report() -> Page {
    let sizes =
        Table::new("What some sizes would bring", ["Cache size", "Hit ratio", "SSD writes", "Write policy"])
            .row(["1 GiB", "31.00 %", "12.5 GiB", "write-back"])
            .row(["4 GiB", "52.00 %", "9.1 GiB", "write-through"])
            .row(["footprint: 37 GiB", "61.90 %", "–", "read-only"]);
    let page = Page::new("Locality of made-up.csv")
        .paragraph("12,345,678 requests over 6.6 days, 4 KiB blocks; everything on this page is made up.")
        .list([
            "This workload can use 4 GiB of cache: beyond that, the curve is flat.",
            "It would serve 52 % of the reads.",
            "It would cost 9.1 GiB of SSD writes a day.",
        ])
        .table(sizes);
    ["first.csv", "second.csv"].iter().fold(page, |page, trace| {
        let [(_, steps), (_, distances), (_, classes), (_, map), (_, regions)] = locality();
        page.section(
            Section::new(*trace)
                .paragraph("A section for each trace.")
                .section(Section::new("What a cache would bring").chart(&steps))
                .section(Section::new("Reuse").paragraph("How soon blocks come back.").chart(&distances))
                .section(Section::new("Request classes").chart(&classes))
                .section(Section::new("Where and when").chart(&map).chart(&regions)),
        )
    })
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
    let simulations = [
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
    ];
    for (name, chart) in simulations.into_iter().chain(locality()) {
        for extension in ["svg", "png", "html"] {
            chart.save(Path::new(&folder).join(name).with_extension(extension))?;
        }
    }
    report().save(Path::new(&folder).join("report.html"))?;
    Ok(())
}
