//! The regions of volumes that the backing may not durably hold as it was last written, and those that are marked.
//!
//! A region is *quiet* when no write to it is under way, and a flush of the backing has ended that began after the last one
//! had ended. Only then may the journal say of one of its blocks that it is clean (rule C), and only then may its mark go
//! (rule U). While a region is marked nothing in it is mapped: so each mapping is older than the mark, and the mark covers it.

use crate::format::Region;
use std::collections::BTreeMap;

/// How far a mark is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Not asked for.
    #[default]
    None,
    /// Asked for; perhaps pushed, but not durable.
    Wanted,
    /// In force: writes may go past the region's clean blocks.
    Durable,
}

#[derive(Debug, Default)]
struct State {
    /// Writes under way, or waiting for the mark.
    writes: u32,
    /// A write has ended that no flush covers.
    unflushed: bool,
    /// The flush that covers the others is running.
    flushing: bool,
    /// Written since the last look of [`Regions::idle`].
    touched: bool,
    /// Blocks are cached that the journal does not map.
    deferred: bool,
    mark: Mark,
    /// Parts that wait for the mark.
    waiting: Vec<u32>,
}

impl State {
    fn is_quiet(&self) -> bool {
        self.writes == 0 && !self.unflushed && !self.flushing
    }
}

/// What is to be known of a volume.
#[derive(Debug, Default)]
struct Volume {
    /// Regions written since the last flush began.
    written: Vec<Region>,
    /// Those that the running flush covers.
    covered: Vec<Region>,
    /// A flush has ended well since the start: what an earlier life wrote is durable.
    flushed: bool,
    /// A flush has failed: what is durable will not be known before the next start.
    tainted: bool,
}

/// A region to which a write will go.
pub(crate) struct Begun<'r> {
    state: &'r mut State,
    marked: &'r mut usize,
}

impl Begun<'_> {
    /// The write needs the mark, which is to be asked for: true once.
    pub fn want_mark(&mut self) -> bool {
        let first = self.state.mark == Mark::None;
        if first {
            self.state.mark = Mark::Wanted;
            *self.marked += 1;
        }
        first
    }

    /// The write needs the mark. True if it has to wait.
    pub fn wait(&mut self, part: u32) -> bool {
        let waits = self.state.mark != Mark::Durable;
        if waits {
            self.state.waiting.push(part);
        }
        waits
    }
}

/// The regions that are not quiet, and those that are marked.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// By their regions as numbers, which are compared faster.
    states: BTreeMap<u64, State>,
    /// Those that are marked, or will be.
    marked: usize,
    volumes: BTreeMap<u16, Volume>,
}

impl Regions {
    /// A volume is there; its backing was not flushed yet.
    pub fn add_volume(&mut self, volume: u16) {
        self.volumes.entry(volume).or_default();
    }

    /// A region that recovery found marked.
    pub fn restore_mark(&mut self, region: Region) {
        let state = self.states.entry(region.pack()).or_default();
        self.marked += usize::from(state.mark == Mark::None);
        state.mark = Mark::Durable;
    }

    /// Regions that are marked, or will be.
    pub fn marks(&self) -> usize {
        self.marked
    }

    /// True if the region is marked, or will be.
    pub fn has_mark(&self, region: Region) -> bool {
        self.states.get(&region.pack()).is_some_and(|state| state.mark != Mark::None)
    }

    /// True if anything is known of a volume's regions: one is marked, or not quiet.
    pub fn knows_region_of(&self, volume: u16) -> bool {
        let first = Region { volume, region: 0 };
        self.states
            .range(first.pack()..)
            .next()
            .is_some_and(|(&found, _)| Region::unpack(found).volume == volume)
    }

    /// A write will go to the region, and keeps it from being unmarked.
    pub fn begin(&mut self, region: Region) -> Begun<'_> {
        let state = self.states.entry(region.pack()).or_default();
        state.writes += 1;
        state.touched = true;
        Begun { state, marked: &mut self.marked }
    }

    /// The mark is durable: the parts that waited.
    pub fn marked(&mut self, region: Region) -> Vec<u32> {
        let Some(state) = self.states.get_mut(&region.pack()) else { return Vec::new() };
        state.mark = Mark::Durable;
        std::mem::take(&mut state.waiting)
    }

    /// A write has ended.
    pub fn end(&mut self, region: Region) {
        let Some(state) = self.states.get_mut(&region.pack()) else { return };
        state.writes -= 1;
        state.deferred = true;
        if !state.unflushed {
            state.unflushed = true;
            self.volumes.entry(region.volume).or_default().written.push(region);
        }
    }

    /// A flush of the backing begins.
    pub fn flush_begins(&mut self, volume: u16) {
        let Some(volume) = self.volumes.get_mut(&volume) else { return };
        volume.covered.append(&mut volume.written);
        for region in &volume.covered {
            if let Some(state) = self.states.get_mut(&region.pack()) {
                (state.unflushed, state.flushing) = (false, true);
            }
        }
    }

    /// It has ended: regions that are quiet now, with blocks that may be mapped.
    pub fn flush_ends(&mut self, volume: u16, ok: bool) -> Vec<Region> {
        let Some(volume) = self.volumes.get_mut(&volume) else { return Vec::new() };
        volume.flushed |= ok;
        volume.tainted |= !ok;
        let covered = std::mem::take(&mut volume.covered);
        if volume.tainted {
            return Vec::new();
        }
        let mut ready = Vec::new();
        for region in covered {
            let Some(state) = self.states.get_mut(&region.pack()) else { continue };
            state.flushing = false;
            if state.is_quiet() && state.mark == Mark::None {
                if state.deferred {
                    ready.push(region);
                }
                self.states.remove(&region.pack());
            }
        }
        ready
    }

    /// Regions of a volume may be unmarked, and their blocks mapped: its backing keeps what it is given.
    pub fn is_trusted(&self, volume: u16) -> bool {
        self.volumes.get(&volume).is_some_and(|volume| volume.flushed && !volume.tainted)
    }

    /// A flush of the volume's backing would make regions quiet.
    pub fn wants_flush(&self, volume: u16) -> bool {
        let wants = |volume: &Volume| !volume.tainted && (!volume.flushed || !volume.written.is_empty());
        self.volumes.get(&volume).is_some_and(wants)
    }

    /// True if nothing is known against the region: its blocks may be mapped. Else they are when it is quiet.
    pub fn may_map(&mut self, region: Region) -> bool {
        match self.states.get_mut(&region.pack()) {
            Some(state) => {
                state.deferred = true;
                false
            }
            None => true,
        }
    }

    /// True if the region's mark may go; `hasty` (a planted bug) does not wait for flushes.
    pub fn may_unmark(&self, region: Region, hasty: bool) -> bool {
        let quiet =
            |state: &State| (hasty || state.is_quiet()) && state.writes == 0 && state.mark == Mark::Durable;
        self.states.get(&region.pack()).is_some_and(quiet)
    }

    /// True if the region's mark may go once the journal maps nothing there: what is durable of it will not be known before the next start.
    pub fn may_forget(&self, region: Region) -> bool {
        let tainted = self.volumes.get(&region.volume).is_some_and(|volume| volume.tainted);
        let rests = |state: &State| state.writes == 0 && state.mark == Mark::Durable;
        tainted && self.states.get(&region.pack()).is_some_and(rests)
    }

    /// Such regions, up to `count`.
    pub fn forgettable(&self, count: usize) -> Vec<Region> {
        self.states
            .keys()
            .map(|&region| Region::unpack(region))
            .filter(|&region| self.may_forget(region))
            .take(count)
            .collect()
    }

    /// The mark is gone.
    pub fn unmarked(&mut self, region: Region) {
        let had = self.states.remove(&region.pack()).is_some_and(|state| state.mark != Mark::None);
        self.marked -= usize::from(had);
    }

    /// Quiet marked regions that were not written since the last call.
    pub fn idle(&mut self, hasty: bool) -> Vec<Region> {
        let mut idle = Vec::new();
        for (&region, state) in &mut self.states {
            if !std::mem::take(&mut state.touched)
                && (hasty || state.is_quiet())
                && state.mark == Mark::Durable
            {
                idle.push(Region::unpack(region));
            }
        }
        idle
    }

    /// Quiet marked regions, up to `count`.
    pub fn quiet(&self, count: usize) -> Vec<Region> {
        let quiet = self.states.iter().filter(|(_, state)| state.is_quiet() && state.mark == Mark::Durable);
        quiet.map(|(&region, _)| Region::unpack(region)).take(count).collect()
    }

    /// Nobody will be told of marks any more: all parts that wait.
    pub fn give_up(&mut self) -> Vec<u32> {
        self.states.values_mut().flat_map(|state| std::mem::take(&mut state.waiting)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: Region = Region { volume: 1, region: 5 };

    fn regions() -> Regions {
        let mut regions = Regions::default();
        regions.add_volume(1);
        regions.flush_begins(1);
        assert!(regions.flush_ends(1, true).is_empty());
        regions
    }

    #[test]
    fn only_a_flush_that_began_after_the_write_makes_a_region_quiet() {
        let mut regions = regions();
        regions.begin(REGION);
        regions.flush_begins(1);
        regions.end(REGION);
        assert!(regions.flush_ends(1, true).is_empty() && !regions.may_map(REGION));
        regions.flush_begins(1);
        regions.begin(REGION);
        assert!(regions.flush_ends(1, true).is_empty(), "another write is under way");
        regions.end(REGION);
        regions.flush_begins(1);
        assert_eq!(regions.flush_ends(1, true), [REGION]);
        assert!(regions.may_map(REGION));
    }

    #[test]
    fn a_mark_is_asked_for_once_and_wakes_all() {
        let mut regions = regions();
        let mut begun = regions.begin(REGION);
        assert!(begun.want_mark() && !begun.want_mark() && begun.wait(3));
        let mut begun = regions.begin(REGION);
        assert!(!begun.want_mark() && begun.wait(4));
        assert_eq!((regions.marks(), regions.marked(REGION)), (1, vec![3, 4]));
        assert!(!regions.begin(REGION).wait(5) && !regions.may_unmark(REGION, false));
        (0..3).for_each(|_| regions.end(REGION));
        regions.flush_begins(1);
        assert!(!regions.may_unmark(REGION, false), "the flush has not ended");
        assert!(regions.flush_ends(1, true).is_empty(), "marked regions are unmarked first");
        assert!(regions.idle(false).is_empty(), "it was written since");
        assert_eq!((regions.idle(false), regions.quiet(9)), (vec![REGION], vec![REGION]));
        assert!(regions.may_unmark(REGION, false));
    }

    #[test]
    fn nothing_is_known_after_a_flush_that_failed() {
        let mut regions = regions();
        regions.begin(REGION);
        regions.end(REGION);
        regions.flush_begins(1);
        assert!(regions.flush_ends(1, false).is_empty());
        regions.flush_begins(1);
        assert!(regions.flush_ends(1, true).is_empty());
        assert!(!regions.is_trusted(1) && !regions.wants_flush(1) && !regions.may_map(REGION));
    }
}
