//! `larder reproduce best`: every scenario at every size of the cache under every allocator, and whether `larder` is best of all.
//!
//! Three questions for each scenario and size: has `larder`, without a budget of SSD writes, the lowest mean latency; with
//! a budget of what ECI-Cache wrote, a lower one than ECI-Cache; with 35 % of what Centaur wrote, none above Centaur's.

mod rows;
mod scenarios;
mod tables;
mod verdicts;

use std::path::PathBuf;

use clap::Args;

use super::bench::Bench;
use super::common::Common;
use super::report::Report;
use crate::problem::Problem;
use rows::Setting;

/// The allocators that are compared, in the order of the table.
const ALLOCATORS: [&str; 8] = ["larder", "unified", "static", "wss", "scave", "combined", "centaur", "eci"];

/// References that are shown with `--more`; they take no part in the verdicts.
const MORE: [&str; 2] = ["optimal", "convex-hull"];

/// The file of scenarios in a folder of traces.
const SCENARIOS: &str = "scenarios.toml";

/// Options of `larder reproduce best`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Options {
    /// The scenarios (TOML): all of the file, or the one named; may be given again [default: scenarios.toml in the folder of --traces].
    #[arg(long, value_name = "FILE[#NAME]")]
    pub scenarios: Vec<String>,
    /// Also run optimal and convex-hull, which take no part in the verdicts: references, and optimal takes long for many tenants.
    #[arg(long)]
    pub more: bool,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_HELP: &str = "\
Block and epoch of a scenario hold for all allocators; scave keeps its windows of 1 s. Cache sizes are the scenario's.
Without --scenarios and --traces, scenarios of generated workloads are run, and the report says so.

Examples:
  larder reproduce best --scenarios scenarios.toml --markdown=best.md
  larder reproduce best --scenarios scenarios.toml#two-strong --more --json
  larder reproduce best --traces traces --backing hdd-10k --quick";

impl Options {
    /// The defaults, with what is common to all experiments; generated scenarios where the folder of traces has no file of them.
    pub fn with(common: &Common) -> Self {
        let has_scenarios = |folder: &PathBuf| folder.join(SCENARIOS).exists();
        let folder = common.folder.clone().filter(has_scenarios);
        Self { common: Common { folder, ..common.clone() }, ..Self::default() }
    }

    fn allocators(&self) -> Vec<&'static str> {
        let more = MORE.into_iter().filter(|_| self.more);
        ALLOCATORS.into_iter().chain(more).collect()
    }

    /// The files to read scenarios from; none for generated ones.
    fn files(&self) -> Vec<String> {
        if !self.scenarios.is_empty() {
            return self.scenarios.clone();
        }
        let in_folder = |folder: &PathBuf| folder.join(SCENARIOS).display().to_string();
        self.common.folder.iter().map(in_folder).collect()
    }
}

/// Run everything, and judge it.
pub fn find(options: &Options) -> Result<Report, Problem> {
    let (workloads, generated) = scenarios::choose(&options.files(), options.common.limit())?;
    let allocators = options.allocators();
    let setting = Setting { common: &options.common, allocators: &allocators };
    let rows = rows::find(&mut Bench::new(&options.common), setting, &workloads)?;
    Ok(tables::report(&rows, &options.common, generated))
}
