//! The command `larder`: serve a cache, show what it does, mend it, look into traces.

mod amount;
mod analyze;
mod block;
mod budget;
mod cache;
mod cli;
mod columns;
mod decisions;
mod doctor;
mod drain;
mod explore;
mod generate;
mod head;
mod indent;
mod input;
mod metered;
mod number;
mod output;
mod picture;
mod plan;
mod problem;
mod progress;
mod reload;
mod replay;
mod reproduce;
mod settings;
mod simulate;
mod status;
mod table;
mod top;
mod trace;
mod volume;
mod wear;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use larder_daemon::config::Config;
use tracing_subscriber::EnvFilter;

use cli::{Cli, Command};
use problem::Problem;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode, Problem> {
    match &cli.command {
        Command::Serve(options) => serve(options),
        Command::Status(options) => status::show(options),
        Command::Top(options) => top::run(options),
        Command::Doctor(options) => return doctor::run(options),
        Command::Flush(options) => return drain::flush(options),
        Command::Drain(options) => return drain::drain(options),
        Command::Reload(options) => reload::reload(options),
        Command::Set(options) => settings::set(options),
        Command::Decisions(options) => decisions::show(options),
        Command::Curves(options) => explore::curves(options),
        Command::WhatIf(options) => explore::what_if(options),
        Command::Config(cli::ConfigCommand::Diff(options)) => settings::diff(options),
        Command::Volume(command) => return volume::run(command),
        Command::Cache(options) => return Ok(cache::run(&options.command)),
        Command::Trace(options) => trace::run(&options.command),
        Command::Simulate(options) => simulate::run(options),
        Command::Analyze(options) => analyze::run(options),
        Command::Plan(options) => plan::run(options),
        Command::Replay(options) => {
            log_to_stderr("warn")?;
            replay::run(options)
        }
        Command::Record(options) => trace::record::run(options),
        Command::Reproduce(options) => reproduce::run(options),
        Command::Generate(options) => generate::generate(options),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn serve(options: &cli::Serve) -> Result<(), Problem> {
    log_to_stderr("info")?;
    let config = Config::load(&options.config)?;
    if options.check {
        larder_daemon::server::check(&config)?;
        println!("{} is valid, and everything it names can be served", options.config.display());
        return Ok(());
    }
    Ok(larder_daemon::server::serve(&config, &options.config)?)
}

/// What this library says of a guest's queues, guests could have it say without end. The daemon tells of them itself, in bounds.
const UNBOUNDED: &str = "virtio_queue=off";

/// Send the log to stderr: this level and above, unless RUST_LOG says otherwise.
fn log_to_stderr(level: &str) -> Result<(), Problem> {
    let wanted = std::env::var("RUST_LOG").unwrap_or_else(|_| level.into());
    // What comes later in the list counts more.
    let filter = EnvFilter::try_new(format!("{UNBOUNDED},{wanted}")).map_err(|error| {
        Problem::new(format_args!("cannot understand RUST_LOG: {error}"), "use RUST_LOG=info")
    })?;
    let stderr = std::io::stderr();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(stderr.is_terminal())
        .with_writer(std::io::stderr)
        .init();
    Ok(())
}
