//! The end of a device when the daemon stops in order: removed, or left for the next daemon where somebody has it open.

use super::attach::{disk_name, disk_path, open_control};
use super::control::Control;
use super::in_use::is_in_use;
use super::link;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How long the reactor may take to close a device that was stopped.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// How a device ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It stays, for those who have it open.
    Left,
    /// It is gone.
    Removed,
}

/// Remove a device that nobody has open. `close` has the reactor close it once it is stopped; up to then the reactor serves it.
pub(super) fn detach(
    id: u32,
    name: &str,
    close: impl FnOnce(Duration) -> Result<(), RecvTimeoutError>,
) -> End {
    if is_in_use(&disk_name(id)) {
        return End::Left;
    }
    let Ok(mut control) = open_control() else { return End::Left };
    if let Err(error) = control.stop(id) {
        tracing::warn!(volume = name, %error, "cannot stop the ublk device");
        return End::Left;
    }
    match close(CLOSE_WITHIN) {
        Ok(()) => remove(&mut control, id, name),
        Err(_) => {
            tracing::warn!(volume = name, "the ublk device is not closed: it is removed at the next start")
        }
    }
    End::Removed
}

/// Remove a device that is stopped and closed, with its name.
pub(super) fn remove(control: &mut Control, id: u32, name: &str) {
    link::remove(Path::new(link::LINKS), name, &disk_path(id));
    if let Err(error) = control.delete(id) {
        tracing::warn!(volume = name, %error, "cannot remove the ublk device");
    }
}
