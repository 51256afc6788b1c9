//! `larder status`: ask the daemon, print its answer.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use larder_daemon::config::{Config, DEFAULT_CONFIG_PATH, DEFAULT_CONTROL_SOCKET};
use larder_daemon::control_socket;
use larder_daemon::loss::VolumeLoss;
use larder_daemon::status::Status;

use crate::cli;
use crate::indent::indented;
use crate::problem::Problem;
use crate::table;

/// How long the daemon may take for what it is asked to do: to use a cache device again it reads all of the metadata, and writes it anew.
const PATIENCE: Duration = Duration::from_secs(300);

/// Print the status of the daemon that the options name.
pub fn show(options: &cli::Status) -> Result<(), Problem> {
    let socket = socket(&options.daemon)?;
    let text = if let Some(volume) = &options.lost {
        lost(&socket, volume, options.json)?
    } else if options.json {
        pretty(&control_socket::ask(&socket, "status")?, &socket)?
    } else {
        table::render(&asked(&socket)?, table::terminal_width())
    };
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough (`larder status | head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| {
            Problem::new(format_args!("cannot write the status: {error}"), "check where stdout goes")
        }),
    }
}

/// The ranges that a volume lacks.
fn lost(socket: &Path, volume: &str, json: bool) -> Result<String, Problem> {
    let answer = control_socket::ask(socket, &format!("lost {volume}"))?;
    let refused = |what: &str| Problem::new(what, "`larder status` lists the volumes");
    if json {
        let value: serde_json::Value = understood(&answer, socket, refused)?;
        return Ok(format!("{value:#}\n"));
    }
    let lost: VolumeLoss = understood(&answer, socket, refused)?;
    Ok(lost.ranges.iter().map(|range| format!("{} {}\n", range.offset, range.len)).collect())
}

/// The control socket to ask.
pub fn socket(daemon: &cli::Daemon) -> Result<PathBuf, Problem> {
    if let Some(socket) = &daemon.socket {
        return Ok(socket.clone());
    }
    let default = Path::new(DEFAULT_CONFIG_PATH);
    match &daemon.config {
        Some(config) => Ok(Config::control_socket(config)?),
        None if default.exists() => Ok(Config::control_socket(default)?),
        None => Ok(DEFAULT_CONTROL_SOCKET.into()),
    }
}

/// The status of the daemon behind a control socket.
pub fn asked(socket: &Path) -> Result<Status, Problem> {
    let answer = control_socket::ask(socket, "status")?;
    // Nothing is a status and a refusal: a long answer is read once.
    serde_json::from_str(&answer).or_else(|_| understood(&answer, socket, |error| untold(error, socket)))
}

/// The answer as indented JSON, whatever keys it has.
fn pretty(answer: &str, socket: &Path) -> Result<String, Problem> {
    granted(answer, socket, |error| untold(error, socket))?;
    Ok(indented(answer) + "\n")
}

/// What came of something that the daemon was asked to do; its own help where it refuses.
pub fn obeyed<T: serde::de::DeserializeOwned>(socket: &Path, request: &str) -> Result<T, Problem> {
    let answer = control_socket::ask_within(PATIENCE, socket, request)?;
    let help = serde_json::from_str::<serde_json::Value>(&answer).ok();
    let help = help.and_then(|answer| answer["help"].as_str().map(str::to_owned)).unwrap_or_default();
    understood(&answer, socket, |what| Problem::new(what, help.clone()))
}

/// What says of an answer that it is a refusal.
#[derive(serde::Deserialize)]
struct Refused {
    error: Option<serde_json::Value>,
}

/// An answer, unless it is a refusal: `refused` makes a problem of its words.
pub fn understood<T: serde::de::DeserializeOwned>(
    answer: &str,
    socket: &Path,
    refused: impl Fn(&str) -> Problem,
) -> Result<T, Problem> {
    granted(answer, socket, refused)?;
    serde_json::from_str(answer).map_err(|error| garbled(&error, socket))
}

/// An error where an answer is a refusal, or no JSON.
fn granted(answer: &str, socket: &Path, refused: impl Fn(&str) -> Problem) -> Result<(), Problem> {
    let Refused { error } = serde_json::from_str(answer).map_err(|error| garbled(&error, socket))?;
    error.map_or(Ok(()), |error| Err(refused(error.as_str().unwrap_or("it does not say why"))))
}

fn untold(error: &str, socket: &Path) -> Problem {
    let what = format!("the daemon cannot tell its status: {}: {error}", socket.display());
    Problem::new(what, "try again; if it stays so, look at the daemon's log")
}

/// The daemon said something else than we understand.
fn garbled(error: &dyn std::fmt::Display, socket: &Path) -> Problem {
    let what = format!("the daemon's answer is not understood: {}: {error}", socket.display());
    Problem::new(what, "use the `larder` of the daemon's version, or --json")
}
