//! Many histories, on as many threads as wanted; each runs on one.

use crate::fault::Counts;
use crate::play::{Options, Violation, play};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What came of it.
#[derive(Debug, Default)]
pub struct Soaked {
    /// What has happened, in the histories that came to their end.
    pub counts: Counts,
    /// The violation of the lowest seed among those found: no history is begun after one.
    pub violation: Option<Box<Violation>>,
}

/// Play the histories of these seeds.
pub fn soak(seeds: Range<u64>, threads: usize, options: Options) -> Soaked {
    let (next, soaked) = (AtomicU64::new(seeds.start), Mutex::new(Soaked::default()));
    let work = || {
        let mut mine = Soaked::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            match play(seed, options) {
                Ok(outcome) => mine.counts = mine.counts.and(outcome.counts),
                Err(violation) => {
                    next.store(seeds.end, Ordering::Relaxed);
                    mine.violation = Some(violation);
                }
            }
        }
        soaked.lock().expect("nothing panics while it is held").add(mine);
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    soaked.into_inner().expect("nothing panics while it is held")
}

impl Soaked {
    fn add(&mut self, other: Self) {
        self.counts = self.counts.and(other.counts);
        let both = [self.violation.take(), other.violation];
        self.violation = both.into_iter().flatten().min_by_key(|violation| violation.seed);
    }
}
