//! Descriptors that the service manager started this process with (`LISTEN_FDS`): the sockets of units, and what an earlier process left in its store.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Take them, each with the name that the manager gives it; none where there are none, or where they were taken before. They are closed on exec from now on.
///
/// To be called before this process opens anything: a manager that announces more than it passes would else name descriptors of ours.
///
/// # Errors
/// When the manager's variables contradict each other, or name descriptors that are not open.
pub fn inherited_descriptors() -> io::Result<Vec<(String, OwnedFd)>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    let named = sd_notify::listen_fds_with_names()?;
    // SAFETY: the descriptors are open, which was found out just now, and by the protocol this process's alone: nobody else here knows of them, and nobody gets
    // them a second time.
    Ok(named.map(|(fd, name)| (name, unsafe { OwnedFd::from_raw_fd(fd) })).collect())
}
