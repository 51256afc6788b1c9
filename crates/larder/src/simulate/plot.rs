//! Hit ratio and SSD writes over cache size, as a picture.

use std::path::Path;

use larder_plot::{Axis, Chart, Panel, Series, Unit};
use larder_sim::RunResult;

use super::report::caching;
use crate::head::Head;
use crate::picture;
use crate::problem::Problem;

/// Draw to a file.
pub fn save(path: &Path, head: &Head<'_>, runs: &[RunResult]) -> Result<(), Problem> {
    chart(head, runs).save(path).map_err(|error| picture::problem(&error))
}

fn chart(head: &Head<'_>, runs: &[RunResult]) -> Chart {
    let written = |run: &RunResult| Some(run.totals.ssd_writes.total as f64 * f64::from(run.block_bytes));
    Chart::new("Hit ratio and SSD writes over cache size")
        .subtitle(head.subtitle())
        .panel(panel(Axis::new("Request hit ratio", Unit::Ratio).covering(0.0, 1.0), runs, |run| {
            run.totals.request_hit_ratio
        }))
        .panel(panel(Axis::new("SSD writes", Unit::Bytes).covering(0.0, 0.0), runs, written))
}

fn panel(y: Axis, runs: &[RunResult], value: impl Fn(&RunResult) -> Option<f64>) -> Panel {
    let several = runs.iter().any(|run| run.write_policy != runs[0].write_policy);
    let mut panel = Panel::new(Axis::new("Cache size", Unit::Bytes).log(), y);
    for (name, write) in lines(runs) {
        let of_line = runs.iter().filter(|run| caching(run) == name && run.write_policy == write);
        let series =
            Series::new(name.clone(), of_line.filter_map(|run| Some((run.cache_bytes as f64, value(run)?))));
        panel = panel.series(if several { series.variant(write) } else { series });
    }
    panel
}

/// The lines of the picture: policy and write policy, each once, in the order of the runs.
fn lines(runs: &[RunResult]) -> Vec<(String, &str)> {
    let mut lines = Vec::new();
    for run in runs {
        let line = (caching(run), run.write_policy.as_str());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_sim::{BlockSize, Plan, RunSpec, Summary, WritePolicy};

    fn run(policy: &str, write: WritePolicy, blocks: u64) -> RunSpec {
        RunSpec { caching: policy.parse().expect("a policy"), write, blocks }
    }

    fn drawn(runs: Vec<RunSpec>) -> String {
        let nothing = larder_sim::Requests(std::iter::empty());
        let results = larder_sim::simulate(nothing, &Plan::new(runs), None, |_| {}).expect("runs").runs;
        let summary = Summary { reads: 3, writes: 1, footprint_blocks: 256, ..Summary::default() };
        let head = Head { trace: "t<1>.csv", format: "msr", summary: &summary, block: BlockSize::DEFAULT };
        chart(&head, &results).svg()
    }

    #[test]
    fn every_policy_is_a_line() {
        let svg =
            drawn(vec![run("lru", WritePolicy::WriteBack, 10), run("arc+larc", WritePolicy::WriteBack, 10)]);
        for text in [
            "Request hit ratio",
            "SSD writes",
            "Cache size",
            ">lru<",
            ">arc+larc<",
            "t&lt;1&gt;.csv: 4 requests, 75.00 % reads, footprint 1 MiB",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(!svg.contains("lru, wb"));
    }

    #[test]
    fn the_two_kinds_of_larc_are_two_lines() {
        let kinds = ["larc", "larc+larc:when-full"];
        let svg = drawn(kinds.map(|kind| run(kind, WritePolicy::WriteBack, 10)).to_vec());
        assert!(kinds.iter().all(|kind| svg.contains(&format!(">{kind}<"))), "{svg}");
    }

    #[test]
    fn write_policies_are_told_where_there_are_several() {
        let svg = drawn(vec![run("lru", WritePolicy::WriteBack, 10), run("lru", WritePolicy::ReadOnly, 10)]);
        assert!(svg.contains(">lru, wb<") && svg.contains(">lru, ro<"), "{svg}");
    }
}
