//! The wear of the SSD under the cache: what the disk tells of itself, how much its maker lets be written, and the day it will be worn out.
//!
//! [`smart`] understands `smartctl`, [`endurance`] what is configured, [`forecast`] puts them together. The [`Watcher`] is a thread that asks the disk rarely: at the start, and then
//! every ten minutes. Nothing else waits for it, and a disk that tells nothing is no error.

pub mod budget;
pub mod endurance;
pub mod forecast;
pub mod smart;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::block_device::Host;
use smart::DiskWear;

/// Between two looks at the disk.
const LOOK_EVERY: Duration = Duration::from_secs(600);

/// What is known of the disks under the cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Each of them, as last seen.
    pub disks: Vec<DiskWear>,
    /// Bytes written to all of them since they were first seen, and how long that was at the last look.
    pub since_first: Option<(u64, Duration)>,
    /// Why there is nothing, or not all.
    pub problem: Option<String>,
}

impl Known {
    /// Bytes written to all of them in their lives, where each tells.
    pub fn written_bytes(&self) -> Option<u64> {
        let written: Option<u64> = self.disks.iter().map(|disk| disk.written_bytes).sum();
        written.filter(|_| !self.disks.is_empty())
    }
}

/// What is known, shared.
#[derive(Clone, Debug, Default)]
pub struct SharedWear(Arc<Mutex<Known>>);

impl SharedWear {
    /// A copy of what is there.
    pub fn get(&self) -> Known {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, known: Known) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

/// The thread that asks. It ends when it is told to; one that waits for a disk's answer is left alone.
pub struct Watcher {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watcher {
    /// Look at the disks under the cache at `path` from now on.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(path: PathBuf, wear: SharedWear) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let run = move || {
            let mut first = None;
            loop {
                wear.set(look(&path, &mut first));
                match stopped.recv_timeout(LOOK_EVERY) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = thread::Builder::new().name("wear".into()).spawn(run)?;
        Ok(Self { stop, thread })
    }

    /// Have it end, without waiting for it.
    pub fn stop(self) {
        // It may have ended already, which only a panic can cause.
        if self.stop.send(()).is_err() && self.thread.join().is_err() {
            tracing::error!("the thread that looks at the SSD's wear panicked");
        }
    }
}

/// `first`: when the disks were first seen, and what had been written then.
fn look(path: &std::path::Path, first: &mut Option<(Instant, u64)>) -> Known {
    let host = Host::default();
    let Some(device) = host.device_of(path) else {
        return Known { problem: Some("the cache lies on no disk of this host".into()), ..Known::default() };
    };
    let mut known = Known::default();
    for disk in host.disks(&device) {
        match smart::ask(&disk.path()) {
            Ok(wear) => known.disks.push(wear),
            Err(error) => {
                tracing::debug!(disk = %disk.path().display(), %error, "the disk does not tell of its wear");
                known.problem = Some(error.to_string());
            }
        }
    }
    // A part of the disks says nothing of the whole.
    if let Some(written) = known.written_bytes().filter(|_| known.problem.is_none()) {
        let (since, before) = *first.get_or_insert((Instant::now(), written));
        known.since_first = Some((written.saturating_sub(before), since.elapsed()));
    }
    known
}
