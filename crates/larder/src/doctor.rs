//! `larder doctor`: look at what a configuration needs of this host, and say what to mend.
//!
//! It reads and tries; it writes nothing and starts nothing. What a running daemon holds is left to its own word. Where none runs, and all looks well so far,
//! it ends with the check that `larder serve --check` makes, for which sockets are made and removed.

mod backings;
mod cache;
mod daemon;
mod findings;
mod kernel;
mod permissions;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use larder_daemon::block_device::Host;
use larder_daemon::config::{Config, DEFAULT_CONFIG_PATH};
use larder_daemon::server;

use crate::output;
use crate::problem::Problem;
use findings::Findings;

const EXIT_CODES: &str = "\
Exit code: 0 where there is no problem (warnings may be), 1 where there is.";

/// Options of `larder doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Options {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_CONFIG_PATH)]
    pub config: PathBuf,
    /// Print JSON: the findings, and how many there are of each level.
    #[arg(long)]
    pub json: bool,
}

/// Look, and print what was found.
pub fn run(options: &Options) -> Result<ExitCode, Problem> {
    let mut findings = Findings::default();
    look(options, &mut findings);
    output::print(&if options.json { output::json(&findings.report()) } else { findings.text() })?;
    Ok(if findings.has_problem() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn look(options: &Options, findings: &mut Findings) {
    let host = Host::default();
    let config = Config::load(&options.config);
    kernel::look(config.as_ref().ok(), findings);
    findings.begin("configuration");
    let file = options.config.display();
    let config = match config {
        Ok(config) => config,
        Err(error) => return findings.problem(file, &error, error.help()),
    };
    let (tenants, volumes) = (config.tenants.len(), config.volumes().count());
    findings.ok(file, format_args!("valid; tenants: {tenants}, volumes: {volumes}"));
    // Its devices are its own while it runs.
    let runs = daemon::look(&config, findings);
    cache::look(&config, &host, runs, findings);
    backings::look(&config, &host, runs, findings);
    permissions::look(&config, runs, findings);
    if !runs && !findings.has_problem() {
        findings.begin("daemon");
        start(&config, findings);
    }
}

/// What a start would say: it judges together what was looked at one by one.
fn start(config: &Config, findings: &mut Findings) {
    match server::check(config) {
        Ok(()) => findings.ok("larder serve", "would start: all that is configured can be served"),
        Err(error) => findings.problem("larder serve", &error, error.help()),
    }
}
