//! What the tests of the command share: a daemon on temporary files, real client programs, a small NBD client.
//!
//! Everything that is started here ends with its owner, also when a test panics, and every wait has a limit.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod daemon;
pub mod disk;
pub mod failing;
pub mod files;
pub mod fio_runs;
pub mod fsck;
pub mod guest;
pub mod hostile;
pub mod http;
pub mod kills;
pub mod manager;
pub mod monitor;
pub mod nbd;
pub mod nbdkit;
pub mod pattern;
pub mod process;
pub mod request_log;
pub mod setup;
pub mod traffic;
pub mod writer;

use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long anything may take that is not told otherwise: far more than it needs on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Call `attempt` until it gives something.
///
/// # Panics
/// After [`LIMIT`], with what the last attempt said.
pub fn wait_for<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(_) if start.elapsed() < LIMIT => sleep(Duration::from_millis(10)),
            Err(last) => panic!("{what}: not after {LIMIT:?}: {last}"),
        }
    }
}
