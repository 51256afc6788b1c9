//! `larder cache attach`: a running daemon uses its cache device again.

use std::time::Duration;

use larder_daemon::control_socket;
use larder_daemon::keeper::Attached;

use super::{Done, Outcome};
use crate::cli;
use crate::number::grouped;
use crate::problem::Problem;
use crate::status;

/// How long the daemon may take: it reads all of the cache's metadata, and writes it anew.
const PATIENCE: Duration = Duration::from_secs(300);

/// Ask for it, and tell what came of it.
pub fn run(daemon: &cli::Daemon) -> Done {
    let socket = status::socket(daemon)?;
    let answer = control_socket::ask_within(PATIENCE, &socket, "attach")?;
    let help = serde_json::from_str::<serde_json::Value>(&answer).ok();
    let help = help.and_then(|answer| answer["help"].as_str().map(str::to_owned)).unwrap_or_default();
    let attached: Attached = status::understood(&answer, &socket, |what| Problem::new(what, help.clone()))?;
    println!("the cache device is in use again, with {} dirty blocks", grouped(attached.dirty_blocks));
    if attached.lost_blocks == 0 {
        return Ok(Outcome::Well);
    }
    println!(
        "{} blocks that were written, and not flushed, before it failed are not there",
        grouped(attached.lost_blocks)
    );
    Ok(Outcome::NotWell)
}
