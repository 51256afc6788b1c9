//! `larder reproduce`: the experiments of papers, run again with this code, beside what the papers claim.

mod larc;

use clap::{Args, Subcommand};

use crate::problem::Problem;

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
}

/// Run the experiment that the options name.
pub fn run(options: &Options) -> Result<(), Problem> {
    match &options.paper {
        Paper::Larc(options) => larc::run(options),
    }
}
