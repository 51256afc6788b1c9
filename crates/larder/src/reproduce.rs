//! `larder reproduce`: the experiments of papers, run again with this code, beside what the papers claim.

mod bench;
mod best;
mod centaur;
mod claim;
mod common;
mod eci;
mod guests;
mod larc;
mod report;
mod scave;
mod sheet;
mod thesis;

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
    /// The container thesis: one cache for all containers against one divided among them (its tables 4.3, 4.4 and 4.5); generated, it takes no --traces.
    #[command(mut_arg("folder", |folder| folder.hide(true)))]
    Thesis(Box<Common>),
    /// S-CAVE: two VMs side by side, of strong and of weak locality, against one cache under CLOCK.
    Scave(Box<Common>),
    /// Centaur: wastage of shared caches, convex hulls against full curves, shares of latency, reservations.
    Centaur(Box<Common>),
    /// ECI-Cache against Centaur: latency, performance per cost, SSD writes, cache allotted.
    Eci(Box<Common>),
    /// All allocators on all scenarios at all cache sizes: is larder best of all, and under the others' SSD writes?
    Best(Box<best::Options>),
    /// All of these, one after the other.
    All(Box<Common>),
}

/// Run the experiment that the options name.
pub fn run(options: &Options) -> Result<(), Problem> {
    match &options.paper {
        Paper::Larc(options) => larc::run(options),
        Paper::Thesis(common) => told(common, || {
            thesis::check(common)?;
            thesis::find(common)
        }),
        Paper::Scave(common) => told(common, || {
            guests::check(common.folder.as_deref(), &scave::known())?;
            scave::find(common)
        }),
        Paper::Centaur(common) => told(common, || {
            guests::check(common.folder.as_deref(), &guests::EIGHT)?;
            centaur::find(common)
        }),
        Paper::Eci(common) => told(common, || {
            guests::check(common.folder.as_deref(), &guests::EIGHT)?;
            eci::find(common)
        }),
        Paper::Best(options) => told(&options.common, || best::find(options)),
        Paper::All(common) => all(common),
    }
}

/// Check where results go, find them, and tell them.
fn told(common: &Common, find: impl FnOnce() -> Result<Report, Problem>) -> Result<(), Problem> {
    common.check()?;
    let report = find()?;
    tell(common, &report.text(table::terminal_width()), &report.markdown(), &report.json())
}

/// One after the other, told together.
fn all(common: &Common) -> Result<(), Problem> {
    common.check()?;
    let (larc_text, larc_json) = larc::find(common)?;
    let larc_json: Value = serde_json::from_str(&larc_json)
        .map_err(|error| Problem::new(error, "tell the authors: results always fit JSON"))?;
    let best = || best::find(&best::Options::with(common));
    let reports = [
        ("thesis", thesis::find(common)?),
        ("scave", scave::find(common)?),
        ("centaur", centaur::find(common)?),
        ("eci", eci::find(common)?),
        ("best", best()?),
    ];
    let width = table::terminal_width();
    let text = reports.iter().map(|(_, report)| report.text(width));
    let text: Vec<_> = [larc_text.clone()].into_iter().chain(text).collect();
    let fenced = format!("```text\n{larc_text}```\n");
    let markdown = reports.iter().map(|(_, report)| report.markdown());
    let markdown: Vec<_> = [fenced].into_iter().chain(markdown).collect();
    let json = reports.iter().map(|(name, report)| ((*name).to_owned(), report.json()));
    let json = [("larc".to_owned(), larc_json)].into_iter().chain(json).collect();
    tell(common, &text.join("\n\n"), &markdown.join("\n\n"), &Value::Object(json))
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
