//! A device that fails now and then: a file behind `nbdkit`'s error filter, for a backing or below a cache device.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::kills::a_while;
use super::nbdkit::nbdkit;
use super::pattern::random;
use super::process::Background;
use super::setup::Setup;

/// A file of a setup behind the filter. Its reads, writes, trims and zeroes fail at a rate, while it is told to.
pub struct Failing {
    _nbdkit: Background,
    /// Where it is served.
    pub uri: String,
    trigger: PathBuf,
}

impl Failing {
    /// A new file of this size, `NAME.image`, as the setup names it. It does not fail yet.
    pub fn new(setup: &Setup, name: &str, bytes: u64, rate: &str) -> Self {
        let image = setup.sparse_file(&format!("{name}.image"), bytes);
        let trigger = setup.path(&format!("{name}.fail"));
        let arguments = [
            format!("file={image}"),
            "error=EIO".into(),
            format!("error-rate={rate}"),
            format!("error-file={}", trigger.display()),
        ];
        let mut all = vec!["--filter=error", "file"];
        all.extend(arguments.iter().map(String::as_str));
        let (nbdkit, uri) = nbdkit(setup, name, &all);
        Self { _nbdkit: nbdkit, uri, trigger }
    }

    /// From now on it fails.
    pub fn fail(&self) {
        File::create(&self.trigger).expect("the trigger of the errors");
    }

    /// It does not, whether it did or not.
    pub fn heal(&self) {
        let _ = fs::remove_file(&self.trigger);
        assert!(!self.trigger.exists(), "the trigger of the errors stays");
    }

    /// For some time it fails and works in turn, each for a while. It is left as it happens to be.
    pub fn now_and_then(&self, state: &mut u64, longest: Duration) {
        let time = Duration::from_millis(random(state, longest.as_millis() as u64));
        let start = Instant::now();
        let mut fails = random(state, 2) == 0;
        while start.elapsed() < time {
            fails = !fails;
            match fails {
                true => self.fail(),
                false => self.heal(),
            }
            a_while(state, Duration::from_millis(200).min(time));
        }
    }
}
