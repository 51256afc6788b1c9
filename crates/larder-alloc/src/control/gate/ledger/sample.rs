//! The blocks of a tenant whose lives are looked at, by their ages.
//!
//! Each age has a list of its blocks in the order in which they were accessed, so that only what grows older is touched when the lives under way are counted, not every block: prices
//! are found many times in the life of a block.

use larder_policy::doors::spread;
use larder_policy::index::{Index, hash};
use larder_policy::{Handle, List, Node};

use super::counts::Counts;
use super::lives::{AGES, age};

/// Blocks, at most.
pub(super) const SAMPLE: usize = 1 << 13;

/// The list of the lives that began since they were counted last.
const NEW: usize = AGES;

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
    /// A block is looked at if its spread key is no higher.
    limit: u64,
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
            limit: u64::MAX,
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
        spread(key) <= self.limit
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
        self.lists[NEW].push_newest(&mut self.nodes, handle);
        self.nodes[handle as usize].tag = NEW as u32;
        Some(Life { kind: before.kind.into(), since: before.since })
    }

    fn add(&mut self, block: Block) {
        let node = Node { tag: NEW as u32, ..Node::NEW };
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
        self.lists[NEW].push_newest(&mut self.nodes, handle);
    }

    /// A block that is of this kind leaves its list.
    fn leave(&mut self, handle: Handle, kind: u16, counts: &mut Counts) {
        let list = self.nodes[handle as usize].tag as usize;
        self.lists[list].remove(&mut self.nodes, handle);
        if list != NEW {
            counts.count(kind.into()).alive[list] -= 1;
        }
    }

    /// Look at fewer blocks, until they are no more than [`SAMPLE`].
    pub(super) fn thin(&mut self, counts: &mut Counts) {
        while self.len() > SAMPLE {
            self.limit /= 2;
            for list in 0..=NEW {
                let mut next = self.lists[list].oldest();
                while let Some(handle) = next {
                    let Block { key, kind, .. } = self.blocks[handle as usize];
                    next = List::newer(&self.nodes, handle);
                    if spread(key) > self.limit {
                        self.leave(handle, kind, counts);
                        if let Some(index) = &mut self.index {
                            index.remove(hash(key), handle);
                        }
                        self.free.push(handle);
                    }
                }
            }
        }
    }

    /// Count the lives under way up to `now`, each at the age that it has then.
    pub(super) fn count_until(&mut self, now: f64, counts: &mut Counts) {
        for list in 0..AGES - 1 {
            while let Some(handle) = self.lists[list].oldest() {
                let Block { since, kind, .. } = self.blocks[handle as usize];
                if age(since, now, self.unit) <= list {
                    break;
                }
                let alive = &mut counts.count(kind.into()).alive;
                alive[list] -= 1;
                alive[list + 1] += 1;
                self.change_list(handle, list, list + 1);
            }
        }
        let passed = now - self.counted;
        counts.iter_mut().for_each(|count| count.live(passed));
        while let Some(handle) = self.lists[NEW].oldest() {
            let Block { since, kind, .. } = self.blocks[handle as usize];
            let (age, count) = (age(since, now, self.unit), counts.count(kind.into()));
            count.lived = true;
            count.lives[age].lived += now - since;
            count.alive[age] += 1;
            self.change_list(handle, NEW, age);
        }
        self.counted = now;
    }

    fn change_list(&mut self, handle: Handle, from: usize, to: usize) {
        self.lists[from].remove(&mut self.nodes, handle);
        self.lists[to].push_newest(&mut self.nodes, handle);
        self.nodes[handle as usize].tag = to as u32;
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
        counted: f64,
    }

    impl Model {
        fn count_until(&mut self, now: f64, unit: f64) {
            for &(kind, since) in self.blocks.values() {
                let lived = self.lived.entry((kind, age(since, now, unit))).or_default();
                *lived += now - since.max(self.counted);
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
            }
        }
    }

    #[test]
    fn a_sample_that_is_thinned_counts_those_that_stay() {
        let (mut sample, mut counts) = (Sample::new(1.0, 0.0), Counts::default());
        for key in 0..40_000u64 {
            if sample.has(key) {
                sample.begin(key, 3, 0.0, &mut counts);
                sample.thin(&mut counts);
            }
            if key % 1000 == 0 {
                sample.count_until(0.0, &mut counts);
            }
        }
        assert!(sample.len() <= SAMPLE && sample.len() > SAMPLE / 4, "{}", sample.len());
        sample.count_until(100.0, &mut counts);
        let count = counts.count(3);
        assert_eq!(count.alive.iter().map(|&alive| usize::from(alive)).sum::<usize>(), sample.len());
        let lived: f64 = count.lives.iter().map(|age| age.lived).sum();
        assert_eq!(lived, 100.0 * sample.len() as f64);
        assert!(sample.blocks.len() <= SAMPLE + 1);
    }
}
