//! How often tests kill the daemon, and when: another time at each run, told so that a failure can be looked into.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::pattern::random;

/// How often: `LARDER_KILLS`, or else this many times.
pub fn times(otherwise: u64) -> u64 {
    std::env::var("LARDER_KILLS").map_or(otherwise, |text| text.parse().expect("LARDER_KILLS is a number"))
}

/// A start for random numbers, another one each time.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    eprintln!("seed {}", now.as_nanos() as u64);
    now.as_nanos() as u64
}

/// Some moment within `longest`.
pub fn a_while(state: &mut u64, longest: Duration) {
    sleep(Duration::from_millis(random(state, longest.as_millis() as u64)));
}
