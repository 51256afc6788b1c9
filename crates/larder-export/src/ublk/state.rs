//! What others are told of a volume's device: the status, and a start that waits for it.

use super::attach::{self, UblkError};
use super::in_use::is_in_use;
use larder_engine::SECTOR_BYTES;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A device that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UblkPlace {
    /// The driver's number for it.
    pub(super) id: u32,
    /// The kernel's name for it, such as `/dev/ublkb0`.
    pub device: PathBuf,
    /// The name that it keeps, such as `/dev/larder/root`; `None` where that could not be made.
    pub link: Option<PathBuf>,
}

impl UblkPlace {
    /// Tell the host of another size of the volume, in bytes. It takes a moment: not for a reactor's thread.
    ///
    /// # Errors
    /// Where the kernel cannot (before Linux 6.16), or does not.
    pub fn resize(&self, bytes: u64) -> Result<(), UblkError> {
        attach::resize(self.id, bytes / SECTOR_BYTES)
    }

    /// True where somebody has the device open, or it cannot be found out. It takes a moment.
    pub fn is_in_use(&self) -> bool {
        self.device.file_name().and_then(|name| name.to_str()).is_none_or(is_in_use)
    }

    /// The best name that there is.
    pub fn path(&self) -> &PathBuf {
        self.link.as_ref().unwrap_or(&self.device)
    }
}

/// How far a volume's device is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UblkStanding {
    /// It is being made, or found.
    #[default]
    Starting,
    /// It is there.
    Served(UblkPlace),
    /// It is not there, for this reason.
    Absent(String),
}

/// The standing of one volume's device, shared.
#[derive(Clone, Debug, Default)]
pub struct UblkState(Arc<(Mutex<UblkStanding>, Condvar)>);

impl UblkState {
    /// How it stands now.
    pub fn get(&self) -> UblkStanding {
        self.lock().clone()
    }

    /// Wait until it is known whether there is a device, but not beyond `until`.
    pub fn wait(&self, until: Instant) -> UblkStanding {
        let mut standing = self.lock();
        while *standing == UblkStanding::Starting {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break;
            }
            standing = self.0.1.wait_timeout(standing, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        standing.clone()
    }

    pub(super) fn set(&self, standing: UblkStanding) {
        *self.lock() = standing;
        self.0.1.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, UblkStanding> {
        // Nothing can panic while it is held.
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told() {
        let state = UblkState::default();
        assert_eq!(state.wait(Instant::now()), UblkStanding::Starting);
        let other = state.clone();
        let absent = UblkStanding::Absent("no driver".into());
        let told = absent.clone();
        let thread = std::thread::spawn(move || other.set(told));
        assert_eq!(state.wait(Instant::now() + Duration::from_secs(60)), absent);
        thread.join().unwrap();
        assert_eq!(state.get(), absent);
    }
}
