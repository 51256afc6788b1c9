//! `larder volume quiesce` and `thaw`: nothing changes a volume while a snapshot is taken of its backing.

use std::time::Duration;

use larder_daemon::control::Request;
use larder_daemon::volumes::{Done, Thawed};
use larder_io::DrainCommand;

use crate::cli;
use crate::drain;
use crate::output::tell;
use crate::problem::Problem;
use crate::status;

/// Write back what is dirty while guests go on, then have writes wait.
pub fn quiesce(options: &cli::Quiesce) -> Result<(), Problem> {
    let cli::OneVolume { name, daemon } = &options.volume;
    let socket = status::socket(daemon)?;
    drain::ask_volume(&socket, &status::asked(&socket)?, name, DrainCommand::Once)?;
    drain::watch(&socket, std::slice::from_ref(name))?;
    let line = Request::quiesce_line(name, Duration::from_secs(options.hold));
    let Done {} = status::obeyed(&socket, &line)?;
    tell(format_args!(
        "{name}: quiet for {} s at most; take the snapshot of its backing, then `larder volume thaw {name}`",
        options.hold
    ))
}

/// Let it go on; an error where it had gone on already.
pub fn thaw(options: &cli::OneVolume) -> Result<(), Problem> {
    let socket = status::socket(&options.daemon)?;
    let name = &options.name;
    let Thawed { was_quiet } = status::obeyed(&socket, &format!("thaw {name}"))?;
    match was_quiet {
        true => tell(format_args!("{name}: writes go on; it was quiet until now")),
        false => Err(Problem::new(
            format_args!("{name} was not quiet any more: a snapshot that was taken may be torn"),
            "discard it, and try again with a longer --hold",
        )),
    }
}
