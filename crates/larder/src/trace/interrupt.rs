//! Signals that end a command which writes files: it stops between requests, so that what is half-written is removed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::problem::Problem;

/// Tells whether to stop.
pub struct Interrupt {
    stop: Arc<AtomicBool>,
}

impl Interrupt {
    /// For commands that leave nothing behind: signals end them as ever.
    pub fn never() -> Self {
        Self { stop: Arc::default() }
    }

    /// Listen to SIGINT, SIGTERM and SIGHUP. A second one ends the process at once, should it be stuck in a read.
    pub fn listen() -> Result<Self, Problem> {
        let stop = Arc::new(AtomicBool::new(false));
        let register = |signal| -> io::Result<()> {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            flag::register(signal, Arc::clone(&stop)).map(drop)
        };
        [SIGINT, SIGTERM, SIGHUP].into_iter().try_for_each(register).map_err(|error| {
            Problem::new(
                format_args!("cannot listen to signals: {error}"),
                "try again; this should not happen",
            )
        })?;
        Ok(Self { stop })
    }

    /// True once there was a signal.
    pub fn is_set(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// An error once there was a signal.
    pub fn check(&self) -> Result<(), Problem> {
        match self.is_set() {
            true => Err(Problem::new("interrupted by a signal", "nothing was written; run it again")),
            false => Ok(()),
        }
    }
}
