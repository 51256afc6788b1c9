//! How many clients use a volume now: counted where they connect, read by whoever must know that nobody is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The hypervisors that have a volume as a disk.
#[derive(Clone, Debug, Default)]
pub struct Users(Arc<AtomicUsize>);

impl Users {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// One more, until what is returned is dropped.
    pub(crate) fn take(&self) -> User {
        self.0.fetch_add(1, Ordering::SeqCst);
        User(self.clone())
    }
}

/// One of them.
#[derive(Debug)]
pub(crate) struct User(Users);

impl Drop for User {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
