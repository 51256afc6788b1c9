//! Is the cache device slower than a backing? Looked at four times a second, by what reads have taken since the last look, and by how long those wait that have not ended.
//!
//! A volume passes the cache by (`larder_engine`'s `slow`) after [`LOOKS`] looks in a row at which the cache device took more than [`TIMES_SLOWER`] times as
//! long as the backing, and uses it again after as many at which it took less. A look at which either had too few reads to tell says nothing, unless guests waited long for these few; of the backing
//! what it took last is remembered, since a volume of which all is cached does not read it. Where that is not known, or was long ago, and the cache takes longer than an SSD should, some reads are
//! tried there.

use std::time::Duration;

use super::{CACHE, Driver};
use crate::command::CommandKind;
use crate::stats::DeviceStats;
use larder_engine::VolumeId;

/// Time between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks in a row that must agree.
const LOOKS: u32 = 3;
/// The cache device is slow if it takes so many times as long as the backing.
const TIMES_SLOWER: u64 = 2;
/// Reads between two looks from which their mean says something; probes are few.
const READS_MIN: u64 = 16;
const PROBES_MIN: u64 = 1;
/// Fewer reads say something, too, where they waited so long together, in nanoseconds.
const WAITED_MIN: u64 = 100_000_000;
/// No SSD should take as long for a read, in nanoseconds: is the backing faster?
const DOUBTFUL: u64 = 2_000_000;
/// What a backing took so many looks ago may have changed.
const STALE: u32 = 40;

/// Reads of a device that have not ended.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    reads: u64,
    /// The sum of the moments when they began.
    since_ns: u128,
}

impl Waiting {
    /// How long they have waited together.
    fn waited(&self, now_ns: u64) -> u64 {
        (u128::from(self.reads) * u128::from(now_ns)).saturating_sub(self.since_ns) as u64
    }
}

/// What a device had done at the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    reads: u64,
    read_ns: u64,
}

impl Last {
    /// Mean time of the reads since the last call, and of those that wait for so long together, in nanoseconds, if they say something.
    fn mean(&mut self, now: &DeviceStats, (waiting, waited): (u64, u64), least: u64) -> Option<u64> {
        let (ended, took) = (now.reads - self.reads, now.read_ns - self.read_ns);
        *self = Self { reads: now.reads, read_ns: now.read_ns };
        let (reads, ns) = (ended + waiting, took + waited);
        if ended >= least || ns >= WAITED_MIN { ns.checked_div(reads) } else { None }
    }
}

/// What is known of a volume.
#[derive(Clone, Copy, Debug, Default)]
struct Backing {
    last: Last,
    /// What its reads took when that was last known, and how many looks ago that was.
    mean: Option<(u64, u32)>,
    /// Looks in a row that spoke for a change.
    looks: u32,
    passes_by: bool,
    /// Some reads are tried there.
    probes: bool,
}

impl Backing {
    /// Another look. The change that it brings about.
    fn look(&mut self, now: &DeviceStats, waiting: (u64, u64), cache: Option<u64>) -> Option<bool> {
        let least = if self.probes { PROBES_MIN } else { READS_MIN };
        let mean = self.last.mean(now, waiting, least).map(|mean| (mean, 0));
        self.mean = mean.or(self.mean.map(|(mean, age)| (mean, age.saturating_add(1))));
        let (cache, (backing, _)) = (cache?, self.mean?);
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

    /// After a look: are reads to be tried there, if that changes?
    fn wants_probes(&mut self, cache: Option<u64>) -> Option<bool> {
        let cache = cache?;
        let is_unknown = self.mean.is_none_or(|(_, age)| age >= STALE);
        let wants = cache > DOUBTFUL && is_unknown && !self.passes_by;
        (std::mem::replace(&mut self.probes, wants) != wants).then_some(wants)
    }
}

/// What is known of all devices.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Nobody wants to know.
    off: bool,
    cache: Last,
    backings: Vec<Backing>,
    waiting: Vec<Waiting>,
}

impl Looks {
    /// An operation on a device begins.
    #[inline]
    pub(super) fn begins(&mut self, device: usize, kind: CommandKind, now_ns: u64) {
        if kind == CommandKind::Read {
            if device >= self.waiting.len() {
                self.waiting.resize_with(device + 1, Waiting::default);
            }
            let waiting = &mut self.waiting[device];
            waiting.reads += 1;
            waiting.since_ns += u128::from(now_ns);
        }
    }

    /// One that began then has ended.
    #[inline]
    pub(super) fn ended(&mut self, device: usize, kind: CommandKind, began_ns: u64) {
        if kind == CommandKind::Read
            && let Some(waiting) = self.waiting.get_mut(device)
        {
            waiting.reads = waiting.reads.saturating_sub(1);
            waiting.since_ns = waiting.since_ns.saturating_sub(u128::from(began_ns));
        }
    }

    /// Reads of a device that wait, and how long they have together.
    fn waiting(&self, device: usize, now_ns: u64) -> (u64, u64) {
        let waiting = self.waiting.get(device).copied().unwrap_or_default();
        (waiting.reads, waiting.waited(now_ns))
    }
}

impl Driver {
    /// Whether reads may pass a slow cache device by, as they do at the start.
    pub(crate) fn bypass_slow(&mut self, bypass: bool) {
        self.looks.off = !bypass;
    }

    /// Compare the cache device with each backing. To be called every [`LOOK_EVERY`].
    pub(crate) fn look_for_slowness(&mut self) {
        if self.looks.off {
            return;
        }
        let Self { looks, stats, engine, devices, now_ns, .. } = self;
        looks.backings.resize_with(stats.len() - 1, Backing::default);
        let least =
            if looks.backings.iter().any(|backing| backing.passes_by) { PROBES_MIN } else { READS_MIN };
        let waiting: Vec<_> = (0..stats.len()).map(|device| looks.waiting(device, *now_ns)).collect();
        let cache = looks.cache.mean(&stats[CACHE], waiting[CACHE], least);
        for (index, (backing, now)) in looks.backings.iter_mut().zip(&stats[CACHE + 1..]).enumerate() {
            let volume = VolumeId(index as u16);
            let change = backing.look(now, waiting[CACHE + 1 + index], cache);
            if let Some(probes) = backing.wants_probes(cache) {
                engine.probe_backing(volume, probes);
            }
            let Some(passes_by) = change else { continue };
            engine.set_slow_cache(volume, passes_by);
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
        state.look(total, (0, 0), cache)
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

    #[test]
    fn a_few_reads_that_take_long_say_something_and_so_does_one_that_does_not_end() {
        let (mut last, mut total) = (Last::default(), DeviceStats::default());
        (total.reads, total.read_ns) = (3, 90_000_000);
        assert_eq!(last.mean(&total, (0, 0), READS_MIN), None);
        (total.reads, total.read_ns) = (6, 240_000_000);
        assert_eq!(last.mean(&total, (0, 0), READS_MIN), Some(50_000_000));
        assert_eq!(last.mean(&total, (1, 90_000_000), READS_MIN), None);
        assert_eq!(last.mean(&total, (1, 250_000_000), READS_MIN), Some(250_000_000));
        assert_eq!(last.mean(&total, (0, 0), PROBES_MIN), None, "nobody reads");
    }

    #[test]
    fn how_long_reads_wait_is_known() {
        let mut looks = Looks::default();
        looks.begins(1, CommandKind::Read, 100);
        looks.begins(1, CommandKind::Read, 300);
        looks.begins(1, CommandKind::Write, 0);
        assert_eq!((looks.waiting(1, 1000), looks.waiting(0, 1000)), ((2, 1600), (0, 0)));
        looks.ended(1, CommandKind::Write, 0);
        looks.ended(1, CommandKind::Read, 100);
        assert_eq!(looks.waiting(1, 1000), (1, 700));
    }

    #[test]
    fn reads_are_tried_at_a_backing_that_nobody_knows_where_the_cache_is_slow() {
        let (mut state, mut total) = (Backing::default(), DeviceStats::default());
        let slow = Some(50_000_000);
        assert_eq!(look(&mut state, &mut total, (0, 0), slow), None);
        assert_eq!([state.wants_probes(Some(100_000)), state.wants_probes(None)], [None; 2], "it is fast");
        assert_eq!([state.wants_probes(slow), state.wants_probes(slow)], [Some(true), None]);
        // One is enough.
        assert_eq!(look(&mut state, &mut total, (1, 10_000_000), slow), None);
        assert_eq!(state.wants_probes(slow), Some(false));
        let hits = [(); 2].map(|()| look(&mut state, &mut total, (0, 0), slow));
        assert_eq!(hits, [None, Some(true)]);
        assert_eq!(state.wants_probes(slow), None, "it has the reads");
        // Where it is not that much faster it is looked at again some time.
        let mut state = Backing { mean: Some((40_000_000, 0)), ..Backing::default() };
        let asked: Vec<_> = (0..STALE)
            .map(|_| {
                assert_eq!(state.look(&total, (0, 0), slow), None);
                state.wants_probes(slow)
            })
            .collect();
        assert_eq!((asked.iter().flatten().count(), asked.last()), (1, Some(&Some(true))));
    }
}
