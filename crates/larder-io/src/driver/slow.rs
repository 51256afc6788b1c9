//! Is the cache device slower than a backing? Looked at once a second, by what reads have taken since the last look.
//!
//! A volume passes the cache by (`larder_engine`'s `slow`) after [`LOOKS`] looks in a row at which the cache device took more than [`TIMES_SLOWER`] times as
//! long as the backing, and uses it again after as many at which it took less. A look at which either had too few reads to tell says nothing; of the backing
//! what it took last is remembered, since a volume of which all is cached does not read it.

use super::{CACHE, Driver};
use crate::stats::DeviceStats;
use larder_engine::VolumeId;

/// Looks in a row that must agree.
const LOOKS: u32 = 3;
/// The cache device is slow if it takes so many times as long as the backing.
const TIMES_SLOWER: u64 = 2;
/// Reads between two looks from which their mean says something; probes of a cache that is passed by are few.
const READS_MIN: u64 = 16;
const PROBES_MIN: u64 = 1;

/// What a device had done at the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    reads: u64,
    read_ns: u64,
}

impl Last {
    /// Mean time of the reads since the last call in nanoseconds, if there were at least `least`.
    fn mean(&mut self, now: &DeviceStats, least: u64) -> Option<u64> {
        let (reads, ns) = (now.reads - self.reads, now.read_ns - self.read_ns);
        *self = Self { reads: now.reads, read_ns: now.read_ns };
        if reads >= least { ns.checked_div(reads) } else { None }
    }
}

/// What is known of a volume.
#[derive(Clone, Copy, Debug, Default)]
struct Backing {
    last: Last,
    /// What its reads took when that was last known.
    mean: Option<u64>,
    /// Looks in a row that spoke for a change.
    looks: u32,
    passes_by: bool,
}

impl Backing {
    /// Another look. The change that it brings about.
    fn look(&mut self, now: &DeviceStats, cache: Option<u64>) -> Option<bool> {
        self.mean = self.last.mean(now, READS_MIN).or(self.mean);
        let (cache, backing) = (cache?, self.mean?);
        let speaks_for_change = match self.passes_by {
            false => cache > backing.saturating_mul(TIMES_SLOWER),
            true => cache < backing,
        };
        self.looks = if speaks_for_change { self.looks + 1 } else { 0 };
        if self.looks < LOOKS {
            return None;
        }
        self.looks = 0;
        self.passes_by = !self.passes_by;
        Some(self.passes_by)
    }
}

/// What is known of all devices.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Nobody wants to know.
    off: bool,
    cache: Last,
    backings: Vec<Backing>,
}

impl Driver {
    /// Whether reads may pass a slow cache device by, as they do at the start.
    pub(crate) fn bypass_slow(&mut self, bypass: bool) {
        self.looks.off = !bypass;
    }

    /// Compare the cache device with each backing.
    pub(super) fn look_for_slowness(&mut self) {
        if self.looks.off {
            return;
        }
        let Self { looks, stats, engine, devices, .. } = self;
        looks.backings.resize_with(stats.len() - 1, Backing::default);
        let least =
            if looks.backings.iter().any(|backing| backing.passes_by) { PROBES_MIN } else { READS_MIN };
        let cache = looks.cache.mean(&stats[CACHE], least);
        for (index, (backing, now)) in looks.backings.iter_mut().zip(&stats[CACHE + 1..]).enumerate() {
            let Some(passes_by) = backing.look(now, cache) else { continue };
            engine.set_slow_cache(VolumeId(index as u16), passes_by);
            let name = devices[index + 1].name();
            match passes_by {
                true => tracing::warn!(
                    backing = name,
                    "the cache device is slower than the backing: reads pass it by"
                ),
                false => tracing::info!(
                    backing = name,
                    "the cache device is faster than the backing again: it is used"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at a backing whose reads take `backing` ns, beside a cache whose reads take `cache` ns.
    fn look(
        state: &mut Backing,
        total: &mut DeviceStats,
        (reads, ns): (u64, u64),
        cache: Option<u64>,
    ) -> Option<bool> {
        total.reads += reads;
        total.read_ns += reads * ns;
        state.look(total, cache)
    }

    #[test]
    fn three_looks_in_a_row_change_it_and_three_change_it_back() {
        let (mut state, mut total) = (Backing::default(), DeviceStats::default());
        let slow = |state: &mut Backing, total: &mut DeviceStats| look(state, total, (20, 100), Some(300));
        assert_eq!([(); 2].map(|()| slow(&mut state, &mut total)), [None; 2]);
        assert_eq!(look(&mut state, &mut total, (20, 100), Some(199)), None, "not twice as slow");
        assert_eq!([(); 3].map(|()| slow(&mut state, &mut total)), [None, None, Some(true)]);
        assert_eq!([(); 9].map(|()| slow(&mut state, &mut total)), [None; 9], "it stays so");
        // The backing takes longer now that it has all the reads.
        let fast = |state: &mut Backing, total: &mut DeviceStats| look(state, total, (20, 400), Some(300));
        assert_eq!([(); 3].map(|()| fast(&mut state, &mut total)), [None, None, Some(false)]);
    }

    #[test]
    fn what_nobody_reads_says_nothing() {
        let (mut state, mut total) = (Backing::default(), DeviceStats::default());
        assert_eq!([(); 9].map(|()| look(&mut state, &mut total, (3, 100), Some(9000))), [None; 9]);
        assert_eq!(look(&mut state, &mut total, (20, 100), None), None);
        // All hits from here on: what the backing took before is remembered.
        let hits = [(); 3].map(|()| look(&mut state, &mut total, (0, 0), Some(9000)));
        assert_eq!(hits, [None, None, Some(true)]);
    }
}
