//! `larder reproduce`: the experiments of papers, run again with this code, beside what the papers claim.

mod bench;
mod best;
mod claim;
mod common;
mod larc;
mod report;
mod sheet;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::problem::Problem;
use crate::{output, table};
use common::Common;
use report::Report;

/// Options of `larder reproduce`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Options {
    /// The paper.
    #[command(subcommand)]
    pub paper: Paper,
}

/// The papers whose experiments can be run again.
#[derive(Debug, Subcommand)]
pub enum Paper {
    /// LARC against LRU, LFU, MQ and ARC: hit ratios and SSD writes over cache sizes, and what a sudden change of popularity does.
    ///
    /// After sections IV-B and IV-C of Huang, Wei, Chen, Chen, Feng: "Improving Flash-based Disk Cache with Lazy Adaptive Replacement", MSST 2013. The
    /// paper's own traces are not at hand: its claims are held against other traces, and the verdicts are computed from what these give.
    Larc(Box<larc::Options>),
    /// All allocators on all scenarios at all cache sizes: is larder best of all, and under the others' SSD writes?
    Best(Box<best::Options>),
}

/// Run the experiment that the options name.
pub fn run(options: &Options) -> Result<(), Problem> {
    match &options.paper {
        Paper::Larc(options) => larc::run(options),
        Paper::Best(options) => told(&options.common, || best::find(options)),
    }
}

/// Check where results go, find them, and tell them.
fn told(common: &Common, find: impl FnOnce() -> Result<Report, Problem>) -> Result<(), Problem> {
    common.check()?;
    let report = find()?;
    tell(common, &report.text(table::terminal_width()), &report.markdown(), &report.json())
}

fn tell(common: &Common, text: &str, markdown: &str, json: &Value) -> Result<(), Problem> {
    let json = format!("{json:#}\n");
    match &common.json {
        Some(None) => return output::print(&json),
        Some(Some(file)) => output::save(file, &json)?,
        None => {}
    }
    match &common.markdown {
        Some(None) => return output::print(markdown),
        Some(Some(file)) => output::save(file, markdown)?,
        None => {}
    }
    output::print(text)
}
