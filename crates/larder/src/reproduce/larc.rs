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

use super::common::Common;
use crate::output;
use crate::problem::Problem;
use crate::table;
pub use claims::Verdict;
pub use options::Options;
pub use percent::{percent, short};
use report::Report;
pub use stream::BelowPageCache;
use study::{Lab, Study};

/// Run the experiment, and tell what was found.
pub fn run(options: &Options) -> Result<(), Problem> {
    check_outputs(options)?;
    tell(options, &studies(options)?)
}

/// Run the experiment with the defaults; what was found as text, and as JSON.
pub fn find(common: &Common) -> Result<(String, String), Problem> {
    let options = Options::with(common)?;
    let studies = studies(&options)?;
    let report = report(&options, &studies);
    Ok((report.render(table::terminal_width()), json::render(&report)))
}

fn studies(options: &Options) -> Result<Vec<Study>, Problem> {
    let workloads = workload::choose(options)?;
    let lab = Lab::new(options);
    workloads.into_iter().map(|workload| lab.study(workload)).collect()
}

fn report<'a>(options: &Options, studies: &'a [Study]) -> Report<'a> {
    Report { studies, larc: options.larc(), claims: claims::judge(studies) }
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
    let report = report(options, studies);
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
