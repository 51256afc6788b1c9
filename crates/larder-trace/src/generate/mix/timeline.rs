//! Every block accessed so far in the order of its last access: an LRU stack in which any depth is found quickly.

/// What an access did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
}

/// Slots of a new timeline.
const SLOTS_MIN: usize = 1024;

/// Slots in the order of time, each holding a block at its last access or nothing, and a Fenwick tree over them
/// (Fenwick, "A new data structure for cumulative frequency tables", 1994) that counts blocks last read and last
/// written apart. An access takes a new slot; when all are taken, those that hold blocks move together.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// Node `i` (from 1) counts the slots `i - lowbit(i) .. i`, by kind. Node 0 is unused. A power of two and one long.
    tree: Vec<[u32; 2]>,
    slots: Vec<Option<(u32, Kind)>>,
    /// The first slot that was never taken.
    next: usize,
    /// Blocks, by kind.
    blocks: [u32; 2],
}

/// A block by its place among those of a kind, or among all, from the one not accessed for longest.
#[derive(Clone, Copy)]
enum Among {
    All,
    Kind(Kind),
}

impl Among {
    fn count(self, counts: [u32; 2]) -> u64 {
        match self {
            Self::All => u64::from(counts[0]) + u64::from(counts[1]),
            Self::Kind(kind) => counts[kind as usize].into(),
        }
    }
}

impl Timeline {
    /// Blocks in it.
    pub(super) fn len(&self) -> u64 {
        Among::All.count(self.blocks)
    }

    /// A block that is not in it is accessed.
    pub(super) fn push(&mut self, block: u32, kind: Kind) {
        if self.next == self.slots.len() {
            self.compact();
        }
        self.slots[self.next] = Some((block, kind));
        self.count(self.next, kind, 1);
        self.next += 1;
    }

    /// Remove the block nearest to depth `distance` (the last accessed has depth 0) among those whose last access was
    /// of the kind; of two as near the one accessed later. None if there is no such block.
    pub(super) fn take(&mut self, distance: u64, kind: Kind) -> Option<u32> {
        let wanted = Among::Kind(kind);
        if wanted.count(self.blocks) == 0 {
            return None;
        }
        // From the other end; too deep is the deepest.
        let place = (self.len() - 1).saturating_sub(distance);
        let at = self.select(place, Among::All);
        let slot = match self.slots[at] {
            Some((_, last)) if last == kind => at,
            _ => self.nearest(at, place, wanted),
        };
        let (block, _) = self.slots[slot].take()?;
        self.count(slot, kind, -1);
        Some(block)
    }

    /// The slot of the wanted block nearest to slot `at`, which holds another at `place` among all. There is one.
    fn nearest(&self, at: usize, place: u64, wanted: Among) -> usize {
        let older = wanted.count(self.before(at));
        let newest = wanted.count(self.blocks) - 1;
        // At an end of the timeline there is only one, and both are it.
        let neighbours = [older.min(newest), older.saturating_sub(1)].map(|rank| self.select(rank, wanted));
        let [newer_by, older_by] = neighbours.map(|slot| Among::All.count(self.before(slot)).abs_diff(place));
        neighbours[usize::from(older_by < newer_by)]
    }

    /// The slot of the block at `place` (from 0, and below the number of blocks counted).
    fn select(&self, place: u64, among: Among) -> usize {
        let (mut node, mut left) = (0, place);
        let mut step = self.slots.len();
        while step > 0 {
            let count = self.tree.get(node + step).map_or(u64::MAX, |&counts| among.count(counts));
            if count <= left {
                node += step;
                left -= count;
            }
            step /= 2;
        }
        node
    }

    /// Blocks in the slots before one, by kind.
    fn before(&self, slot: usize) -> [u32; 2] {
        let mut sum = [0; 2];
        let mut node = slot;
        while node > 0 {
            let counts = self.tree[node];
            sum = [sum[0] + counts[0], sum[1] + counts[1]];
            node &= node - 1;
        }
        sum
    }

    fn count(&mut self, slot: usize, kind: Kind, by: i32) {
        let kind = kind as usize;
        self.blocks[kind] = self.blocks[kind].wrapping_add_signed(by);
        let mut node = slot + 1;
        while let Some(counts) = self.tree.get_mut(node) {
            counts[kind] = counts[kind].wrapping_add_signed(by);
            node += node & node.wrapping_neg();
        }
    }

    /// Move the blocks together, in twice to four times as many slots: the next time is as many accesses away as there
    /// are blocks, so that an access pays for a few slots.
    fn compact(&mut self) {
        let len = (2 * self.len() as usize).next_power_of_two().max(SLOTS_MIN);
        self.slots.retain(Option::is_some);
        self.next = self.slots.len();
        self.slots.resize(len, None);
        self.tree.clear();
        self.tree.resize(len + 1, [0; 2]);
        for node in 1..=len {
            if let Some((_, kind)) = self.slots[node - 1] {
                self.tree[node][kind as usize] += 1;
            }
            let counts = self.tree[node];
            if let Some(parent) = self.tree.get_mut(node + (node & node.wrapping_neg())) {
                *parent = [parent[0] + counts[0], parent[1] + counts[1]];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Blocks from the last accessed on.
    #[derive(Default)]
    struct Slow(Vec<(u32, Kind)>);

    impl Slow {
        fn take(&mut self, distance: u64, kind: Kind) -> Option<u32> {
            let deepest = self.0.len().checked_sub(1)?;
            let depth = distance.min(deepest as u64) as usize;
            let of_kind = self.0.iter().enumerate().filter(|(_, block)| block.1 == kind);
            // The first of the nearest: the one accessed later.
            let (at, _) = of_kind.min_by_key(|(at, _)| at.abs_diff(depth))?;
            Some(self.0.remove(at).0)
        }
    }

    fn kind(write: bool) -> Kind {
        if write { Kind::Write } else { Kind::Read }
    }

    fn check(ops: &[(u64, bool, Option<bool>)]) -> Result<(), TestCaseError> {
        let (mut timeline, mut slow) = (Timeline::default(), Slow::default());
        let mut new = 0..;
        for &(distance, write, last) in ops {
            let block = match last {
                Some(last) => {
                    let block = timeline.take(distance, kind(last));
                    prop_assert_eq!(block, slow.take(distance, kind(last)));
                    block
                }
                None => new.next(),
            };
            if let Some(block) = block {
                timeline.push(block, kind(write));
                slow.0.insert(0, (block, kind(write)));
            }
            prop_assert_eq!(timeline.len(), slow.0.len() as u64);
        }
        Ok(())
    }

    #[test]
    fn an_empty_timeline_has_nothing_to_take() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.take(0, Kind::Read), None);
        timeline.push(7, Kind::Read);
        assert_eq!(timeline.take(0, Kind::Write), None);
        assert_eq!(timeline.take(u64::MAX, Kind::Read), Some(7));
        assert_eq!(timeline.len(), 0);
    }

    #[test]
    fn memory_follows_the_blocks_and_not_the_accesses() {
        let mut timeline = Timeline::default();
        (0..3000).for_each(|block| timeline.push(block, Kind::Read));
        for _ in 0..100_000 {
            let block = timeline.take(2999, Kind::Read).unwrap();
            timeline.push(block, Kind::Read);
        }
        assert_eq!((timeline.len(), timeline.slots.len()), (3000, 8192));
        assert_eq!(size_of::<Option<(u32, Kind)>>() + size_of::<[u32; 2]>(), 16);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_agrees_with_a_list(
            ops in proptest::collection::vec(
                (0u64..100, any::<bool>(), proptest::option::weighted(0.95, any::<bool>())), 0..4000,
            ),
        ) {
            check(&ops)?;
        }
    }
}
