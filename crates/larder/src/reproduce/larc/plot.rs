//! Pictures as the paper's figures 4 to 8: one file for each workload.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use larder_daemon::units::HumanSize;
use larder_plot::{Axis, Chart, Panel, Series, Unit};

use super::change::Change;
use super::percent::percent;
use super::report::title;
use super::study::{BLOCK, Study, Tally};
use crate::number::grouped;
use crate::picture::problem;
use crate::problem::Problem;

/// Draw all of them.
pub fn save(path: &Path, studies: &[Study]) -> Result<(), Problem> {
    studies.iter().try_for_each(|study| {
        let path = named(path, &study.workload.name);
        chart(study).save(path).map_err(|error| problem(&error))
    })
}

/// `dir/larc.svg` for `web`: `dir/larc-web.svg`.
fn named(path: &Path, name: &str) -> PathBuf {
    let mut file = path.file_stem().map_or_else(OsString::new, ToOwned::to_owned);
    file.push(format!("-{name}."));
    file.push(path.extension().unwrap_or_default());
    path.with_file_name(file)
}

fn chart(study: &Study) -> Chart {
    let written = |tally: &Tally| (tally.ssd_writes() * u64::from(BLOCK.bytes())) as f64;
    let chart = Chart::new(format!("{}: hit ratio and SSD writes over cache size", study.workload.name))
        .subtitle(subtitle(study))
        .panel(over_size(study, Axis::new("Hit ratio (blocks)", Unit::Ratio), Tally::hit_ratio))
        .panel(over_size(study, Axis::new("SSD writes", Unit::Bytes), written));
    match &study.change {
        None => chart,
        Some(change) => chart
            .panel(over_time(change, &format!("Hit ratio, cache of {}", size(change)), Tally::hit_ratio))
            .panel(over_time(
                change,
                &format!("Replacement rate, cache of {}", size(change)),
                Tally::replacement_rate,
            )),
    }
}

fn size(change: &Change) -> HumanSize {
    HumanSize(change.cache_blocks.saturating_mul(BLOCK.bytes().into()))
}

fn subtitle(study: &Study) -> String {
    let footprint = HumanSize(study.summary.footprint_blocks.saturating_mul(BLOCK.bytes().into()));
    let origin = if study.workload.is_generated() { "generated" } else { "a trace" };
    let accesses = grouped(study.summary.block_accesses);
    format!(
        "{origin}: {accesses} block accesses, {} reads, footprint {footprint}, write-back",
        percent(study.read_share)
    )
}

fn over_size(study: &Study, y: Axis, value: impl Fn(&Tally) -> f64) -> Panel {
    let x = Axis::new("Cache size", Unit::Bytes).log();
    let Some(first) = study.whole.first() else { return Panel::new(x, y) };
    let curve = |policy| {
        let bytes = |blocks: u64| blocks as f64 * f64::from(BLOCK.bytes());
        study.whole.iter().map(move |point| (bytes(point.cache_blocks), point.of(policy)))
    };
    first.outcomes.iter().fold(Panel::new(x, y.covering(0.0, 0.0)), |panel, outcome| {
        let points = curve(outcome.policy).map(|(bytes, tally)| (bytes, value(&tally)));
        panel.series(Series::new(title(outcome.policy), points))
    })
}

fn over_time(change: &Change, label: &str, value: impl Fn(&Tally) -> f64) -> Panel {
    let axes = Panel::new(
        Axis::new("Accesses", Unit::count("blocks")),
        Axis::new(label, Unit::Ratio).covering(0.0, 0.0),
    );
    change.series.iter().fold(axes, |panel, (policy, series)| {
        let end = |at: usize| (at as u64 + 1) as f64 * change.every as f64;
        let points = series.iter().enumerate().map(|(at, tally)| (end(at), value(tally)));
        panel.series(Series::new(title(*policy), points))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workload_has_a_file() {
        assert_eq!(named(Path::new("a/larc.svg"), "web_1"), Path::new("a/larc-web_1.svg"));
        assert_eq!(named(Path::new("larc.v2.PNG"), "a.b"), Path::new("larc.v2-a.b.PNG"));
    }
}
