//! `larder cache`: make, look at, repair and empty a cache that no daemon has open; and have a daemon use one again.
//!
//! Exit codes: 0 when all is well, 1 when it is not (`check` has findings; `repair` was not told that it may; dirty blocks
//! remain after `writeback`), 2 when nothing could be done.

mod attach;
mod bar;
mod check;
mod damage;
mod dump;
mod format;
mod guard;
mod info;
pub mod options;
mod repair;
mod restore;
pub mod state;
mod target;
mod trouble;
mod words;
mod writeback;

use std::process::ExitCode;

use crate::problem::Problem;
use options::CacheCommand;

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Well,
    NotWell,
}

/// Nothing could be done.
const TROUBLE: u8 = 2;

/// Do what the options say.
pub fn run(command: &CacheCommand) -> ExitCode {
    let outcome = match command {
        CacheCommand::Attach(daemon) => attach::run(daemon),
        CacheCommand::Format(options) => format::run(options),
        CacheCommand::Info(options) => info::run(options),
        CacheCommand::Check(options) => check::run(options),
        CacheCommand::Dump(options) => dump::run(options),
        CacheCommand::Restore(options) => restore::run(options),
        CacheCommand::Repair(options) => repair::run(options),
        CacheCommand::Writeback(options) => writeback::run(options),
        CacheCommand::Damage(options) => damage::run(options),
    };
    match outcome {
        Ok(Outcome::Well) => ExitCode::SUCCESS,
        Ok(Outcome::NotWell) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(TROUBLE)
        }
    }
}

/// What a command comes to.
type Done = Result<Outcome, Problem>;
