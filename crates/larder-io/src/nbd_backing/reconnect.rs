//! Connecting again, in a thread of its own, since connecting blocks.

use super::connect::{Connection, NbdErrorKind};
use crate::mailbox::Waker;
use larder_nbd::Uri;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Before the second attempt; it doubles from attempt to attempt.
const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Between attempts at most.
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// The end of an attempt.
pub(super) type Attempt = Result<Connection, NbdErrorKind>;

/// A helper thread that connects. Dropping this ends it, at the latest after the attempt under way.
#[derive(Debug)]
pub(super) struct Reconnect {
    shared: Arc<Shared>,
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
    /// Try until a connection to the same disk (by its size) is there. Every attempt's end wakes the reactor.
    pub fn start(uri: Uri, bytes: u64, waker: Arc<Waker>) -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let helper = Arc::clone(&shared);
        let body = move || helper.keep_trying(&uri, bytes, &waker);
        if let Err(error) = thread::Builder::new().name("nbd-reconnect".into()).spawn(body) {
            shared.lock().attempt = Some(Err(NbdErrorKind::Connect(error)));
        }
        Self { shared }
    }

    /// One that does not try.
    pub fn idle() -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }) }
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
    fn keep_trying(&self, uri: &Uri, bytes: u64, waker: &Waker) {
        let mut pause = BACKOFF_MIN;
        loop {
            let attempt = try_once(uri, bytes);
            let connected = attempt.is_ok();
            self.lock().attempt = Some(attempt);
            waker.wake();
            if connected || self.sleep(pause) {
                return;
            }
            pause = (pause * 2).min(BACKOFF_MAX);
        }
    }

    /// True where the thread is to end.
    fn sleep(&self, pause: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), pause, |state| !state.stop);
        waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }
}

fn try_once(uri: &Uri, bytes: u64) -> Attempt {
    let connection = Connection::open(uri)?;
    match connection.agreed.size {
        now if now != bytes => Err(NbdErrorKind::Resized { was: bytes, now }),
        _ => Ok(connection),
    }
}
