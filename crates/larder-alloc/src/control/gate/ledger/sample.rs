//! The blocks of a tenant whose lives are looked at, by their ages.
//!
//! Each age has a list of its blocks in the order in which they were accessed, so that only what grows older is touched when the lives under way are counted, not every block: prices
//! are found many times in the life of a block.
//!
//! Of a tenant with more blocks than [`SAMPLE`] a part is looked at, by age: where there are too many, of the age that has the most of them half are looked at no more, once they are of it, and so
//! many of older ones at most; of an age that has few by now it is twice as many again. How many of those that live end does not depend on how many are looked at; so what was
//! read once and never again (a scan of a whole disk) grows thin as it ages, and takes little place from blocks that are accessed all the time.

use larder_policy::doors::spread;
use larder_policy::index::{Index, hash};
use larder_policy::{Handle, List, Node};

use super::counts::Counts;
use super::lives::{AGES, age};

/// Blocks, at most.
pub(super) const SAMPLE: usize = 1 << 13;

/// The list of the lives that began since they were counted last.
const NEW: usize = AGES;

/// The lists, from the youngest on.
const LISTS: [usize; AGES + 1] = {
    let mut lists = [NEW; AGES + 1];
    let mut at = 0;
    while at < AGES {
        lists[at + 1] = at;
        at += 1;
    }
    lists
};

/// Of an age of which there are fewer blocks more are looked at from then on: half of what each would have if all had as many.
const FEW: usize = SAMPLE / (AGES + 1) / 2;

/// So is it of one that has less than such a part of the blocks of the age that has the most.
const LESS: usize = 4;

/// A block: the kind of its last access, and when that was.
#[derive(Clone, Copy, Debug)]
struct Block {
    key: u64,
    since: f64,
    kind: u16,
}

/// A life that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    /// The kind of the access that it began with.
    pub kind: usize,
    /// When that was.
    pub since: f64,
}

/// The blocks.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    blocks: Vec<Block>,
    /// Of each block; the tag is the number of its list.
    nodes: Vec<Node>,
    /// Places of blocks that are not looked at any more.
    free: Vec<Handle>,
    /// None before the first block: a host may have a thousand tenants that do nothing.
    index: Option<Index>,
    /// Blocks by the age that they had when they were counted last; and those that are new.
    lists: [List; AGES + 1],
    /// Blocks on each list.
    lens: [usize; AGES + 1],
    /// A block is looked at, once it is on the list, if its spread key is no higher. Of an older list this is no higher than of a younger one.
    limits: [u64; AGES + 1],
    /// Until when lives are counted.
    counted: f64,
    /// Seconds of the first age.
    unit: f64,
}

impl Sample {
    pub(super) fn new(unit: f64, now: f64) -> Self {
        Self {
            blocks: Vec::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            index: None,
            lists: [List::new(); AGES + 1],
            lens: [0; AGES + 1],
            limits: [u64::MAX; AGES + 1],
            counted: now,
            unit,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.index.as_ref().map_or(0, Index::len)
    }

    /// Until when lives are counted.
    pub(super) fn counted(&self) -> f64 {
        self.counted
    }

    /// A block with this key is looked at.
    #[inline]
    pub(super) fn has(&self, key: u64) -> bool {
        spread(key) <= self.limits[NEW]
    }

    /// A block that is looked at is accessed: a life begins, and the one before ends. Not before anything that was counted.
    pub(super) fn begin(&mut self, key: u64, kind: usize, now: f64, counts: &mut Counts) -> Option<Life> {
        let block = Block { key, since: now, kind: kind as u16 };
        let is_it = |handle: Handle| self.blocks[handle as usize].key == key;
        let Some(handle) = self.index.as_ref().and_then(|index| index.find(hash(key), is_it)) else {
            self.add(block);
            return None;
        };
        let before = std::mem::replace(&mut self.blocks[handle as usize], block);
        self.leave(handle, before.kind, counts);
        self.put(handle, NEW);
        Some(Life { kind: before.kind.into(), since: before.since })
    }

    fn add(&mut self, block: Block) {
        let node = Node::NEW;
        let handle = match self.free.pop() {
            Some(handle) => {
                (self.blocks[handle as usize], self.nodes[handle as usize]) = (block, node);
                handle
            }
            None => {
                self.blocks.push(block);
                self.nodes.push(node);
                // There are few more than are looked at.
                (self.blocks.len() - 1) as Handle
            }
        };
        self.index.get_or_insert_default().insert(hash(block.key), handle);
        self.put(handle, NEW);
    }

    fn put(&mut self, handle: Handle, list: usize) {
        self.lists[list].push_newest(&mut self.nodes, handle);
        self.nodes[handle as usize].tag = list as u32;
        self.lens[list] += 1;
    }

    /// A block that is of this kind leaves its list.
    fn leave(&mut self, handle: Handle, kind: u16, counts: &mut Counts) {
        let list = self.nodes[handle as usize].tag as usize;
        self.lists[list].remove(&mut self.nodes, handle);
        self.lens[list] -= 1;
        if list != NEW {
            counts.count(kind.into()).alive[list] -= 1;
        }
    }

    /// Look at fewer blocks, until they are no more than [`SAMPLE`].
    pub(super) fn thin(&mut self, now: f64, counts: &mut Counts) {
        while self.len() > SAMPLE {
            let most = (0..LISTS.len()).max_by_key(|&at| self.lens[LISTS[at]]).unwrap_or(0);
            let limit = self.limits[LISTS[most]] / 2;
            for &list in &LISTS[most..] {
                if self.limits[list] > limit {
                    self.limits[list] = limit;
                    self.give_up_over(list, now, counts);
                }
            }
        }
    }

    /// Look no more at the blocks of a list that are over its limit. Up to `now` they have lived.
    fn give_up_over(&mut self, list: usize, now: f64, counts: &mut Counts) {
        let mut next = self.lists[list].oldest();
        while let Some(handle) = next {
            next = List::newer(&self.nodes, handle);
            let Block { key, since, kind } = self.blocks[handle as usize];
            if spread(key) > self.limits[list] {
                self.leave(handle, kind, counts);
                counts.count(kind.into()).live_from(since, self.counted, now, self.unit);
                self.forget(handle, key);
            }
        }
    }

    /// A block that is on no list is not looked at any more.
    fn forget(&mut self, handle: Handle, key: u64) {
        if let Some(index) = &mut self.index {
            index.remove(hash(key), handle);
        }
        self.free.push(handle);
    }

    /// Look at more blocks where there are few: at young ages, of which so many came since that was looked at last, first.
    fn thicken(&mut self, came: usize) {
        let most = self.lens.iter().copied().max().unwrap_or(0);
        let few = FEW.max(most / LESS);
        let is_empty = self.len() < SAMPLE / 2;
        let mut younger = u64::MAX;
        for list in LISTS {
            let len = if list == NEW { came } else { self.lens[list] };
            let limit = &mut self.limits[list];
            if len < few || is_empty {
                *limit = limit.saturating_mul(2) | 1;
            }
            *limit = (*limit).min(younger);
            younger = *limit;
        }
    }

    /// Count the lives under way up to `now`, each at the age that it has by then.
    pub(super) fn count_until(&mut self, now: f64, counts: &mut Counts) {
        let came = self.lens[NEW];
        let mut older = Vec::new();
        for list in (0..AGES - 1).rev() {
            while let Some(handle) = self.lists[list].oldest() {
                let Block { since, kind, .. } = self.blocks[handle as usize];
                if age(since, now, self.unit) <= list {
                    break;
                }
                self.leave(handle, kind, counts);
                older.push(handle);
            }
        }
        while let Some(handle) = self.lists[NEW].oldest() {
            self.leave(handle, self.blocks[handle as usize].kind, counts);
            older.push(handle);
        }
        let passed = now - self.counted;
        counts.iter_mut().for_each(|count| count.live(passed));
        // The oldest first, as they are on each list.
        for handle in older {
            let Block { key, since, kind } = self.blocks[handle as usize];
            let (count, list) = (counts.count(kind.into()), age(since, now, self.unit));
            count.live_from(since, self.counted, now, self.unit);
            if spread(key) > self.limits[list] {
                self.forget(handle, key);
            } else {
                count.alive[list] += 1;
                self.put(handle, list);
            }
        }
        self.thicken(came);
        self.counted = now;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.free.capacity() * size_of::<Handle>()
            + self.index.as_ref().map_or(0, Index::memory_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Every block is looked at, each time that lives are counted.
    #[derive(Default)]
    struct Model {
        blocks: BTreeMap<u64, (usize, f64)>,
        lived: BTreeMap<(usize, usize), f64>,
        passed: BTreeMap<(usize, usize), f64>,
        counted: f64,
    }

    impl Model {
        fn count_until(&mut self, now: f64, unit: f64) {
            for &(kind, since) in self.blocks.values() {
                let lived = self.lived.entry((kind, age(since, now, unit))).or_default();
                *lived += now - since.max(self.counted);
                for passed in age(since, self.counted.max(since), unit)..age(since, now, unit) {
                    *self.passed.entry((kind, passed)).or_default() += 1.0;
                }
            }
            self.counted = now;
        }
    }

    #[test]
    fn lives_are_counted_as_if_every_block_were_looked_at() {
        let mut rng = larder_policy::Rng::new(7);
        let (mut sample, mut counts, mut model) =
            (Sample::new(0.5, 0.0), Counts::default(), Model::default());
        let mut now = 0.0;
        for step in 0..30_000u64 {
            // Now and then nothing happens for long.
            now += if step % 5000 == 4999 { 300.0 } else { 0.01 };
            let (key, kind) = (rng.below(1 + step / 10), rng.below(5) as usize);
            let life = sample.begin(key, kind, now, &mut counts);
            let before = model.blocks.insert(key, (kind, now));
            assert_eq!(life.map(|life| (life.kind, life.since)), before);
            if step % 97 == 0 {
                sample.count_until(now, &mut counts);
                model.count_until(now, 0.5);
            }
        }
        assert_eq!(sample.len(), model.blocks.len());
        for kind in 0..5 {
            for (at, life) in counts.count(kind).lives.iter().enumerate() {
                let expected = model.lived.get(&(kind, at)).copied().unwrap_or_default();
                assert!((life.lived - expected).abs() < 1e-6 * (1.0 + expected), "{kind} {at}");
                assert_eq!(life.passed, model.passed.get(&(kind, at)).copied().unwrap_or_default());
            }
        }
    }

    #[test]
    fn a_sample_that_is_thinned_counts_those_that_stay() {
        let (mut sample, mut counts) = (Sample::new(1.0, 0.0), Counts::default());
        for key in 0..40_000u64 {
            if sample.has(key) {
                sample.begin(key, 3, 0.0, &mut counts);
                sample.thin(0.0, &mut counts);
            }
            if key % 1000 == 0 {
                sample.count_until(0.0, &mut counts);
            }
        }
        assert!(sample.len() <= SAMPLE && sample.len() > SAMPLE / 4, "{}", sample.len());
        let looked_at = sample.len() as f64;
        sample.count_until(100.0, &mut counts);
        let count = counts.count(3);
        assert_eq!(count.alive.iter().map(|&alive| usize::from(alive)).sum::<usize>(), sample.len());
        let lived: f64 = count.lives.iter().map(|age| age.lived).sum();
        assert_eq!(lived, 100.0 * looked_at);
        assert!(sample.blocks.len() <= SAMPLE + 1);
    }

    /// Of a disk's blocks each is read once, at a thousand a second, beside hot ones; then those alone for a while. Blocks of the hot ones that are looked at, in the end.
    fn hot_looked_at_after(scanned: u64, seconds: u64) -> usize {
        const HOT: u64 = 2000;
        let (mut sample, mut counts) = (Sample::new(1.0, 0.0), Counts::default());
        let see = |sample: &mut Sample, counts: &mut Counts, key: u64, now: f64| {
            if sample.has(key) {
                sample.begin(key, 1, now, counts);
                sample.thin(now, counts);
            }
            assert!(sample.len() <= SAMPLE);
        };
        let mut now = 0.0;
        for second in 0..scanned / 1000 + seconds {
            now = second as f64;
            if second < scanned / 1000 {
                (0..1000).for_each(|at| see(&mut sample, &mut counts, 1 << 40 | (second * 1000 + at), now));
            }
            (0..HOT / 4).for_each(|at| see(&mut sample, &mut counts, (second % 4) * HOT / 4 + at, now));
            sample.count_until(now + 0.5, &mut counts);
        }
        sample.count_until(now + 1.0, &mut counts);
        assert_eq!(sample.lens.iter().sum::<usize>(), sample.len());
        let hot = |key| {
            sample
                .index
                .as_ref()
                .and_then(|it| it.find(hash(key), |at| sample.blocks[at as usize].key == key))
        };
        (0..HOT).filter(|&key| hot(key).is_some()).count()
    }

    #[test]
    fn a_scan_takes_no_place_from_what_is_accessed_all_the_time() {
        assert_eq!(hot_looked_at_after(0, 20), 2000);
        // Two million blocks beside them, of which the sample holds one in 250: as they end, a little later, and much later.
        let [during, after, later] = [0, 20, 4000].map(|seconds| hot_looked_at_after(2_000_000, seconds));
        assert!(during > 500 && after > 500 && later == 2000, "{during} {after} {later}");
    }

    /// Lives that all end as soon, in the mean: ends for each second lived, as a part of that.
    fn ends_per_second(blocks: u64, mean: f64, interval: f64) -> f64 {
        let (mut sample, mut counts) = (Sample::new(1.0, 0.0), Counts::default());
        let mut rng = larder_policy::Rng::new(3);
        let mut life = || (-mean * 1e6 * (1.0 - rng.below(1 << 30) as f64 / (1u64 << 30) as f64).ln()) as u64;
        let mut due: std::collections::BTreeSet<(u64, u64)> = (0..blocks).map(|key| (life(), key)).collect();
        let lived = |counts: &mut Counts| counts.count(1).lives.iter().map(|life| life.lived).sum::<f64>();
        let (mut ended, mut begun) = (0.0, 0.0);
        let (mut counted, until) = (0.0, mean * 6.0);
        while let Some((us, key)) = due.pop_first() {
            let now = us as f64 / 1e6;
            if now > until {
                break;
            }
            due.insert((us + life(), key));
            if now >= counted + interval {
                counted = now;
                sample.count_until(now, &mut counts);
                if now < until / 2.0 {
                    // Until then limits settle.
                    (ended, begun) = (0.0, lived(&mut counts));
                }
            }
            if sample.has(key) {
                if let Some(life) = sample.begin(key, 1, now, &mut counts) {
                    ended += 1.0;
                    counts.count(1).live_from(life.since, sample.counted(), now, 1.0);
                }
                sample.thin(now, &mut counts);
            }
            assert!(sample.limits.iter().all(|&limit| limit <= sample.limits[NEW]));
        }
        sample.count_until(until, &mut counts);
        ended * mean / (lived(&mut counts) - begun)
    }

    #[test]
    fn how_lives_end_is_found_as_well_of_a_part_of_them() {
        // All are looked at, or a part; counted often, or so seldom that more come meanwhile than can be looked at.
        for (blocks, interval) in [(8_000, 1.0), (100_000, 1.0), (100_000, 8.0)] {
            let rate = ends_per_second(blocks, 30.0, interval);
            assert!((rate - 1.0).abs() < 0.04, "{blocks} {interval}: {rate}");
        }
    }
}
