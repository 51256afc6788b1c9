//! `larder reproduce larc`: workloads, the simulations over them, the paper's claims, and the report.

mod change;
mod claims;
mod evidence;
mod json;
mod options;
mod percent;
mod plot;
mod report;
mod stream;
mod study;
mod workload;

use std::path::PathBuf;

use crate::output;
use crate::problem::Problem;
use crate::table;
pub use options::Options;
use report::Report;
pub use claims::Verdict;
pub use percent::short;
use study::{Lab, Study};

/// Run the experiment, and tell what was found.
pub fn run(options: &Options) -> Result<(), Problem> {
    check_outputs(options)?;
    let workloads = workload::choose(options)?;
    let lab = Lab::new(options);
    let studies = workloads.into_iter().map(|workload| lab.study(workload)).collect::<Result<Vec<_>, _>>()?;
    tell(options, &studies)
}

/// A name of a file that cannot be is told before the work, not after it.
fn check_outputs(options: &Options) -> Result<(), Problem> {
    if let Some(path) = &options.plot {
        crate::picture::check(path)?;
    }
    let files = options.plot.iter().chain(options.json.iter().flatten());
    files.map(PathBuf::as_path).try_for_each(output::check)
}

fn tell(options: &Options, studies: &[Study]) -> Result<(), Problem> {
    let report = Report { studies, larc: options.larc(), claims: claims::judge(studies) };
    if let Some(path) = &options.plot {
        plot::save(path, studies)?;
    }
    match &options.json {
        Some(None) => return output::print(&json::render(&report)),
        Some(Some(file)) => output::save(file, &json::render(&report))?,
        None => {}
    }
    output::print(&report.render(table::terminal_width()))
}
