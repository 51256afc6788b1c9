//! `larder status`: ask the daemon, print its answer.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use larder_daemon::config::{Config, DEFAULT_CONFIG_PATH, DEFAULT_CONTROL_SOCKET};
use larder_daemon::control_socket;
use larder_daemon::status::Status;

use crate::cli;
use crate::problem::Problem;
use crate::table;

/// Print the status of the daemon that the options name.
pub fn show(options: &cli::Status) -> Result<(), Problem> {
    let socket = socket(options)?;
    let answer = control_socket::ask(&socket, "status")?;
    let text = if options.json {
        pretty(&answer, &socket)?
    } else {
        table::render(&parse(&answer, &socket)?, table::terminal_width())
    };
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough (`larder status | head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| {
            Problem::new(format_args!("cannot write the status: {error}"), "check where stdout goes")
        }),
    }
}

/// The control socket to ask.
fn socket(options: &cli::Status) -> Result<PathBuf, Problem> {
    if let Some(socket) = &options.socket {
        return Ok(socket.clone());
    }
    let default = Path::new(DEFAULT_CONFIG_PATH);
    match &options.config {
        Some(config) => Ok(Config::load(config)?.control.socket),
        None if default.exists() => Ok(Config::load(default)?.control.socket),
        None => Ok(DEFAULT_CONTROL_SOCKET.into()),
    }
}

/// The answer as indented JSON, whatever keys it has.
fn pretty(answer: &str, socket: &Path) -> Result<String, Problem> {
    let value: serde_json::Value = serde_json::from_str(answer).map_err(|error| garbled(&error, socket))?;
    if let Some(error) = value.get("error") {
        let what = format!("the daemon cannot tell its status: {}: {error}", socket.display());
        return Err(Problem::new(what, "try again; if it stays so, look at the daemon's log"));
    }
    Ok(format!("{value:#}\n"))
}

fn parse(answer: &str, socket: &Path) -> Result<Status, Problem> {
    pretty(answer, socket)?;
    serde_json::from_str(answer).map_err(|error| garbled(&error, socket))
}

/// The daemon said something else than we understand.
fn garbled(error: &dyn std::fmt::Display, socket: &Path) -> Problem {
    let what = format!("the daemon's answer is not understood: {}: {error}", socket.display());
    Problem::new(what, "use the `larder` of the daemon's version, or --json")
}
