//! Waiting for the signals that end the daemon, or have it read its configuration again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator;

use super::ServeError;

/// How often to look whether everything still runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Exit code of a daemon that was told twice to end.
const IMPATIENT: i32 = 1;

/// SIGTERM, SIGINT and SIGHUP, caught from [`Signals::catch`] on.
#[derive(Debug)]
pub(super) struct Signals {
    caught: Receiver<i32>,
    /// Once set, the next signal ends the process.
    ending: Arc<AtomicBool>,
}

impl Signals {
    /// Catch them from now on; one that comes before [`Signals::wait`] is not lost.
    pub fn catch() -> Result<Self, ServeError> {
        Self::try_catch().map_err(|source| ServeError::Os { action: "catch signals", source })
    }

    fn try_catch() -> io::Result<Self> {
        let ending = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            flag::register_conditional_shutdown(signal, IMPATIENT, Arc::clone(&ending))?;
        }
        let mut signals = iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let (tell, caught) = channel();
        let forward = move || signals.forever().try_for_each(|signal| tell.send(signal));
        // Ends with the process, or with the first signal after nobody waits any more.
        thread::Builder::new().name("signals".into()).spawn(forward)?;
        Ok(Self { caught, ending })
    }

    /// Wait for a signal that ends the daemon, or until `alive` says no. Its last answer. `reload` is called with each SIGHUP.
    pub fn wait(&self, alive: impl Fn() -> bool, reload: impl Fn()) -> bool {
        loop {
            match self.caught.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) if alive() => {}
                Err(_) => return false,
                Ok(SIGHUP) => reload(),
                Ok(signal) => {
                    tracing::info!(signal, "stopping; a second signal ends at once");
                    self.ending.store(true, Ordering::Relaxed);
                    return true;
                }
            }
        }
    }
}
