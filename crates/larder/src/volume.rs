//! `larder volume`: how a volume is reached, and what can be done to it while it is served.

mod migrate;
mod quiet;
mod resize;
mod show;

use std::process::ExitCode;

use crate::cli;
use crate::problem::Problem;

/// Carry out one of the commands.
pub fn run(command: &cli::Volume) -> Result<ExitCode, Problem> {
    match command {
        cli::Volume::Show(options) => show::show(options)?,
        cli::Volume::Resize(options) => resize::resize(options)?,
        cli::Volume::Quiesce(options) => quiet::quiesce(options)?,
        cli::Volume::Thaw(options) => quiet::thaw(options)?,
        cli::Volume::Migrate(step) => migrate::step(step)?,
    }
    Ok(ExitCode::SUCCESS)
}
