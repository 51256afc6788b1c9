//! Connecting again, in a thread of its own, since connecting blocks.

use super::connect::{Connection, NbdErrorKind, check_same};
use super::outage::longer;
use crate::mailbox::Waker;
use larder_nbd::Uri;
use larder_nbd::client::Connected;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The end of an attempt.
pub(super) type Attempt = Result<Connection, NbdErrorKind>;

/// How a helper's thread is started.
pub(super) type Spawn = fn(Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// Start a thread that nobody joins.
pub(super) fn spawn(body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name("nbd-reconnect".into()).spawn(body).map(drop)
}

/// A helper thread that connects. Dropping this ends it, at the latest after the attempt under way.
#[derive(Debug)]
pub(super) struct Reconnect {
    shared: Arc<Shared>,
    /// Before the first attempt.
    #[cfg(test)]
    pub pause: Duration,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    attempt: Option<Attempt>,
    stop: bool,
}

impl Shared {
    /// The state is whole between statements, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconnect {
    /// Try, after a pause, until a connection to the same disk is there. Every attempt's end wakes the reactor. Fails where there is no
    /// thread to be had.
    pub fn start(
        uri: Uri,
        was: Connected,
        pause: Duration,
        waker: Arc<Waker>,
        spawn: Spawn,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let helper = Arc::clone(&shared);
        spawn(Box::new(move || helper.keep_trying(&uri, &was, pause, &waker)))?;
        Ok(Self {
            shared,
            #[cfg(test)]
            pause,
        })
    }

    /// How the latest attempt ended, once.
    pub fn take(&self) -> Option<Attempt> {
        self.shared.lock().attempt.take()
    }
}

impl Drop for Reconnect {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn keep_trying(&self, uri: &Uri, was: &Connected, mut pause: Duration, waker: &Waker) {
        while !self.sleep(pause) {
            let attempt = try_once(uri, was);
            let connected = attempt.is_ok();
            self.lock().attempt = Some(attempt);
            waker.wake();
            if connected {
                return;
            }
            pause = longer(pause);
        }
    }

    /// True where the thread is to end.
    fn sleep(&self, pause: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), pause, |state| !state.stop);
        waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }
}

fn try_once(uri: &Uri, was: &Connected) -> Attempt {
    let connection = Connection::open(uri)?;
    check_same(&connection.agreed, was)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_nbd::{Address, BlockSizes};

    #[test]
    fn a_helper_pauses_first_and_ends_when_dropped() {
        let uri = Uri { address: Address::Unix("/nowhere/socket".into()), export: String::new() };
        let block = BlockSizes { min: 512, preferred: 4096, max: 1 << 20 };
        let was = Connected { size: 1 << 20, flags: 1, block, structured: true, base_allocation: None };
        let waker = Arc::new(Waker::new().unwrap());
        let start = |pause| Reconnect::start(uri.clone(), was, pause, Arc::clone(&waker), spawn).unwrap();
        let paused = start(Duration::from_secs(3600));
        let shared = Arc::clone(&paused.shared);
        drop(paused);
        while Arc::strong_count(&shared) > 1 {
            thread::yield_now();
        }
        assert!(shared.lock().attempt.is_none(), "it did not try");
        let tries = start(Duration::ZERO);
        while tries.shared.lock().attempt.is_none() {
            thread::yield_now();
        }
        assert!(matches!(tries.take(), Some(Err(NbdErrorKind::Connect(_)))));
    }
}
