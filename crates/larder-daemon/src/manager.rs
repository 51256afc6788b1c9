//! What is told to the service manager (systemd's `sd_notify`): how far the daemon is, that it lives, and descriptors that it is to keep for the next process.
//!
//! Without a manager (no `NOTIFY_SOCKET`) all of this does nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use sd_notify::NotifyState;

/// Descriptors in one message: the kernel takes 253.
const DESCRIPTORS_PER_MESSAGE: usize = 200;
/// How long the manager may take to look at everything that it was told.
const BARRIER_WITHIN: Duration = Duration::from_secs(5);

/// Tell the manager; that it cannot be told is said in the log, and changes nothing.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot tell the service manager: {states:?}");
    }
}

/// The daemon serves.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// What it is about, in a line for people.
pub fn status(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// The configuration is being read again: [`ready`] tells the end of it.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => {
            tell(&[NotifyState::Reloading, now, NotifyState::Status("reading the configuration again")]);
        }
        Err(error) => tracing::warn!(%error, "cannot tell the time to the service manager"),
    }
}

/// The daemon is about to end.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// The daemon lives.
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How often the manager wants to hear that, at the least.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero())
}

/// How many descriptors the manager keeps for the next process (`FDSTORE`, set by systemd 254 or the unit); none where nobody does.
pub fn store_size() -> usize {
    let is_managed = std::env::var_os("NOTIFY_SOCKET").is_some();
    let size = std::env::var("FDSTORE").ok().filter(|_| is_managed);
    size.and_then(|size| size.parse().ok()).unwrap_or(0)
}

/// Have descriptors kept under a name until the next process has them.
///
/// # Errors
/// Where the manager cannot be told; some of them may be kept.
pub fn store(name: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let states = [NotifyState::FdStore, NotifyState::FdName(name), NotifyState::Custom("FDPOLL=0")];
    let mut batches = descriptors.chunks(DESCRIPTORS_PER_MESSAGE);
    batches.try_for_each(|batch| sd_notify::notify_with_fds(&states, batch))
}

/// Have nothing kept under this name any more.
pub fn forget(name: &str) {
    tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)]);
}

/// Wait until the manager has looked at everything that it was told: who ends before that may not be heard.
///
/// # Errors
/// Where it does not in time.
pub fn barrier() -> io::Result<()> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    sd_notify::notify_with_fds(&[NotifyState::Custom("BARRIER=1")], &[theirs.as_fd()])?;
    drop(theirs);
    let mut hung_up = [PollFd::new(&ours, PollFlags::HUP)];
    let within = Timespec { tv_sec: BARRIER_WITHIN.as_secs() as i64, tv_nsec: 0 };
    match poll(&mut hung_up, Some(&within))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}
