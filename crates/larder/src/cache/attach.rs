//! `larder cache attach`: a running daemon uses its cache device again.

use larder_daemon::keeper::Attached;

use super::{Done, Outcome};
use crate::cli;
use crate::number::grouped;
use crate::status;

/// Ask for it, and tell what came of it.
pub fn run(daemon: &cli::Daemon) -> Done {
    let socket = status::socket(daemon)?;
    let attached: Attached = status::obeyed(&socket, "attach")?;
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
