//! Pictures of runs over tenants: partitions over time, and the latency of each tenant under each allocator.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use larder_daemon::units::HumanSize;
use larder_plot::{Axis, Bars, Chart, Panel, Series, Unit};
use larder_sim::tenants::{DecisionRow, TenantsResult};

use super::found::{Found, Group, bytes};
use crate::picture;
use crate::problem::Problem;

/// Where pictures go: `out.png` gives `out-eci-1GiB.png` and so on, a folder `eci-1GiB.svg` in it.
pub struct Place {
    folder: PathBuf,
    before: OsString,
    extension: OsString,
}

impl Place {
    /// What `--plot` names. A folder is made if it is not there.
    pub fn new(path: &Path) -> Result<Self, Problem> {
        if path.extension().is_some() && !path.is_dir() {
            picture::check(path)?;
            crate::output::check(path)?;
            let mut before = path.file_stem().unwrap_or_default().to_owned();
            before.push("-");
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            return Ok(Self { folder, before, extension: path.extension().unwrap_or_default().to_owned() });
        }
        std::fs::create_dir_all(path).map_err(|error| {
            Problem::new(
                format_args!("{}: {error}", path.display()),
                "name a folder for the pictures, or a file ending in .svg, .png or .html",
            )
        })?;
        Ok(Self { folder: path.to_owned(), before: OsString::new(), extension: "svg".into() })
    }

    fn file(&self, name: &str) -> PathBuf {
        let mut file = self.before.clone();
        file.push(format!("{name}."));
        file.push(&self.extension);
        self.folder.join(file)
    }
}

/// Draw all of them.
pub fn save(place: &Place, all: &[Found<'_>]) -> Result<(), Problem> {
    let draw =
        |name: String, chart: Chart| chart.save(place.file(&name)).map_err(|error| picture::problem(&error));
    for found in all {
        let scenario = found.workload.scenario.as_ref().map_or_else(String::new, |name| format!("{name}-"));
        for group in &found.groups {
            let size = HumanSize(group.cache_bytes).to_string().replace(' ', "");
            draw(format!("{scenario}latency-{size}"), latencies(found, group))?;
            for run in group.runs {
                draw(format!("{scenario}{}-{size}", run.allocator), partitions(found, run))?;
            }
        }
    }
    Ok(())
}

/// Sizes and what was held, as areas over time, and the latency that came of it. All are of intervals, from one decision to the next.
fn partitions(found: &Found<'_>, run: &TenantsResult) -> Chart {
    let area = |label: &str, blocks: fn(&DecisionRow) -> u32| {
        let of = |row: &DecisionRow| Some(bytes(run, blocks(row).into()) as f64);
        over_time(run, Axis::new(label, Unit::Bytes).covering(0.0, run.cache_bytes as f64), of, true)
            .stacked()
    };
    let latency = over_time(
        run,
        Axis::new("Mean latency from each decision to the next", Unit::Seconds).covering(0.0, 0.0),
        |row| row.achieved.latency,
        false,
    );
    let is_unlimited = run.decisions.iter().any(|row| row.unlimited);
    let size = if is_unlimited { "Size; without a limit, what is held" } else { "Size" };
    Chart::new(format!("Partitions under {}, cache of {}", run.allocator, HumanSize(run.cache_bytes)))
        .subtitle(format!("{}; a decision every {:.0} s", found.workload.title(), run.epoch_seconds))
        .panel(area(size, size_blocks))
        .panel(area("Held at the next decision", |row| row.occupied_blocks))
        .panel(latency)
}

/// What a tenant had for its own.
fn size_blocks(row: &DecisionRow) -> u32 {
    if row.unlimited { row.occupied_blocks } else { row.quota_blocks }
}

/// A panel over all of the run: the time axes of a picture are the same.
fn over_time(
    run: &TenantsResult,
    y: Axis,
    value: impl Fn(&DecisionRow) -> Option<f64>,
    steps: bool,
) -> Panel {
    let time = Axis::new("Time", Unit::Seconds).covering(0.0, run.seconds).tight();
    run.tenants.iter().enumerate().fold(Panel::new(time, y), |panel, (at, tenant)| {
        let rows = run.decisions.iter().filter(|row| row.tenant == at);
        let series = Series::new(&tenant.name, rows.filter_map(|row| Some((row.seconds, value(row)?))));
        panel.series(if steps { series.steps_until(run.seconds) } else { series })
    })
}

/// Bars for each tenant and for all, one for each allocator.
fn latencies(found: &Found<'_>, group: &Group<'_>) -> Chart {
    let title = format!("Mean latency, cache of {}", HumanSize(group.cache_bytes));
    let bars = |name: &str, value: &dyn Fn(&TenantsResult) -> Option<f64>| {
        let bars = Bars::new("Allocator", Axis::new(format!("{name}: mean latency"), Unit::Seconds));
        group
            .runs
            .iter()
            .filter_map(|run| Some((run, value(run)?)))
            .fold(bars, |bars, (run, latency)| bars.bar(&run.allocator, latency))
    };
    let chart = Chart::new(title)
        .subtitle(found.workload.title())
        .bars(bars("All tenants", &|run| Some(run.total.mean_latency)));
    found.workload.tenants.iter().enumerate().fold(chart, |chart, (at, tenant)| {
        chart.bars(bars(&tenant.name, &|run| run.tenants.get(at).map(|tenant| tenant.mean_latency)))
    })
}
