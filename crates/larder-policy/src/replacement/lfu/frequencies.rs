//! Blocks in the order of how often they were used, in constant time per use.
//!
//! Blocks with the same count share a *bucket*, a queue through the nodes; the buckets are linked from the lowest count to the highest. A use moves a block to
//! the bucket above. A block's tag is the number of its bucket.
//!
//! Halving all counts ([`Frequencies::halve`]) touches buckets, not blocks: the blocks keep their order, and where two counts became one, two queues become one. The
//! bucket that was merged into another stays behind as a signpost until the last block that still names it was used or left. A count is halved at
//! most 32 times before it is 1, so no block ever follows more signposts than that.

use crate::replacement::PIN_REACH;
use crate::{Handle, Links, NONE, Nodes};

/// A bucket's number; [`NONE`] for no bucket.
type Slot = u32;

/// A queue of blocks with the same count, or a signpost.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    newest: Handle,
    oldest: Handle,
    count: u32,
    /// The buckets with the next counts; `higher` of an unused bucket is the next unused one.
    higher: Slot,
    lower: Slot,
    /// Blocks and signposts that name this bucket. A bucket that nobody names has no blocks either, and is taken back.
    names: u32,
    /// [`NONE`], or where this signpost leads.
    merged_into: Slot,
}

/// Resident blocks by their counts.
#[derive(Clone, Debug)]
pub(crate) struct Frequencies {
    buckets: Vec<Bucket>,
    lowest: Slot,
    unused: Slot,
    blocks: u32,
}

impl Default for Frequencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Frequencies {
    pub(crate) const fn new() -> Self {
        Self { buckets: Vec::new(), lowest: NONE, unused: NONE, blocks: 0 }
    }

    pub(crate) fn len(&self) -> u32 {
        self.blocks
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    /// The blocks with their counts, the lowest and longest there first.
    pub(crate) fn iter<'a, N: Nodes>(&'a self, nodes: &'a N) -> impl Iterator<Item = (Handle, u32)> + 'a {
        let first = self.buckets.get(self.lowest as usize).map(|bucket| (self.lowest, bucket.oldest));
        let places = std::iter::successors(first, |&(slot, handle)| match nodes.links(handle).newer {
            NONE => match self.at(slot).higher {
                NONE => None,
                higher => Some((higher, self.at(higher).oldest)),
            },
            newer => Some((slot, newer)),
        });
        places.map(|(slot, handle)| (handle, self.at(slot).count))
    }

    /// The first block in that order that is not pinned, among the first [`PIN_REACH`].
    #[inline]
    pub(crate) fn lowest_unpinned<N: Nodes>(
        &self,
        nodes: &N,
        pinned: impl Fn(&N, Handle) -> bool,
    ) -> Option<Handle> {
        self.iter(nodes).take(PIN_REACH).map(|(handle, _)| handle).find(|&handle| !pinned(nodes, handle))
    }

    /// A block enters, with a count of one.
    #[inline]
    pub(crate) fn insert(&mut self, nodes: &mut impl Nodes, handle: Handle) {
        let slot = match self.lowest {
            NONE => self.new_bucket(1, NONE, NONE),
            lowest if self.at(lowest).count == 1 => lowest,
            lowest => self.new_bucket(1, NONE, lowest),
        };
        self.push(nodes, handle, slot);
        self.blocks += 1;
    }

    /// A block was used once more.
    #[inline]
    pub(crate) fn count_use(&mut self, nodes: &mut impl Nodes, handle: Handle) {
        let slot = self.bucket_of(nodes, handle);
        let Bucket { count, newest, oldest, higher, .. } = *self.at(slot);
        if count == u32::MAX {
            return;
        }
        let named = nodes.tag(handle);
        let above = higher != NONE && self.at(higher).count == count + 1;
        if newest == oldest && !above {
            // Alone, and nobody in the way: the bucket itself moves up.
            self.at_mut(slot).count += 1;
            self.at_mut(slot).names += 1;
            *nodes.tag_mut(handle) = slot;
        } else {
            let to = if above { higher } else { self.new_bucket(count + 1, slot, higher) };
            self.unlink(nodes, handle, slot);
            self.push(nodes, handle, to);
        }
        self.release(named);
    }

    /// A block leaves.
    #[inline]
    pub(crate) fn remove(&mut self, nodes: &mut impl Nodes, handle: Handle) {
        let slot = self.bucket_of(nodes, handle);
        self.blocks -= 1;
        self.unlink(nodes, handle, slot);
        self.release(nodes.tag(handle));
    }

    /// A block has another handle now, and the node that it had.
    pub(crate) fn rename(&mut self, nodes: &mut impl Nodes, new: Handle) {
        let slot = self.bucket_of(nodes, new);
        let Links { newer, older } = *nodes.links(new);
        match newer {
            NONE => self.at_mut(slot).newest = new,
            newer => nodes.links_mut(newer).older = new,
        }
        match older {
            NONE => self.at_mut(slot).oldest = new,
            older => nodes.links_mut(older).newer = new,
        }
    }

    /// Halve all counts, rounded up, in as many steps as there are different counts.
    pub(crate) fn halve(&mut self, nodes: &mut impl Nodes) {
        let mut slot = self.lowest;
        while slot != NONE {
            let halved = self.at(slot).count.div_ceil(2);
            self.at_mut(slot).count = halved;
            let higher = self.at(slot).higher;
            if higher != NONE && self.at(higher).count.div_ceil(2) == halved {
                self.merge(nodes, slot, higher);
            }
            slot = self.at(slot).higher;
        }
    }

    #[inline]
    fn at(&self, slot: Slot) -> &Bucket {
        &self.buckets[slot as usize]
    }

    #[inline]
    fn at_mut(&mut self, slot: Slot) -> &mut Bucket {
        &mut self.buckets[slot as usize]
    }

    /// The bucket that holds a block.
    #[inline]
    fn bucket_of(&self, nodes: &impl Nodes, handle: Handle) -> Slot {
        let mut slot = nodes.tag(handle);
        while self.at(slot).merged_into != NONE {
            slot = self.at(slot).merged_into;
        }
        slot
    }

    #[inline]
    fn push(&mut self, nodes: &mut impl Nodes, handle: Handle, slot: Slot) {
        let bucket = self.at_mut(slot);
        let older = std::mem::replace(&mut bucket.newest, handle);
        bucket.names += 1;
        if older == NONE {
            bucket.oldest = handle;
        } else {
            nodes.links_mut(older).newer = handle;
        }
        *nodes.links_mut(handle) = Links { newer: NONE, older };
        *nodes.tag_mut(handle) = slot;
    }

    /// Take a block out of the queue of its bucket; it still names a bucket.
    #[inline]
    fn unlink(&mut self, nodes: &mut impl Nodes, handle: Handle, slot: Slot) {
        let Links { newer, older } = *nodes.links(handle);
        let bucket = self.at_mut(slot);
        match newer {
            NONE => bucket.newest = older,
            newer => nodes.links_mut(newer).older = older,
        }
        match older {
            NONE => bucket.oldest = newer,
            older => nodes.links_mut(older).newer = newer,
        }
    }

    /// One block or signpost names this bucket no more.
    #[inline]
    fn release(&mut self, mut slot: Slot) {
        while slot != NONE {
            let bucket = self.at_mut(slot);
            bucket.names -= 1;
            if bucket.names > 0 {
                return;
            }
            let next = bucket.merged_into;
            if next == NONE {
                self.leave_order(slot);
            }
            self.at_mut(slot).higher = self.unused;
            self.unused = slot;
            slot = next;
        }
    }

    /// A bucket without blocks between two others.
    fn new_bucket(&mut self, count: u32, lower: Slot, higher: Slot) -> Slot {
        let bucket = Bucket { newest: NONE, oldest: NONE, count, higher, lower, names: 0, merged_into: NONE };
        let slot = match self.unused {
            NONE => {
                self.buckets.push(bucket);
                (self.buckets.len() - 1) as Slot
            }
            slot => {
                self.unused = self.at(slot).higher;
                *self.at_mut(slot) = bucket;
                slot
            }
        };
        self.join(lower, slot);
        self.join(slot, higher);
        slot
    }

    fn leave_order(&mut self, slot: Slot) {
        let Bucket { higher, lower, .. } = *self.at(slot);
        self.join(lower, higher);
    }

    /// Make two buckets neighbours; below the lowest and above the highest is [`NONE`].
    fn join(&mut self, lower: Slot, higher: Slot) {
        match lower {
            NONE => self.lowest = higher,
            slot => self.at_mut(slot).higher = higher,
        }
        if higher != NONE {
            self.at_mut(higher).lower = lower;
        }
    }

    /// The blocks of a bucket come behind those of its lower neighbour; it becomes a signpost.
    fn merge(&mut self, nodes: &mut impl Nodes, lower: Slot, higher: Slot) {
        let Bucket { newest, oldest, .. } = *self.at(higher);
        let bucket = self.at_mut(lower);
        let joint = std::mem::replace(&mut bucket.newest, newest);
        bucket.names += 1;
        nodes.links_mut(joint).newer = oldest;
        nodes.links_mut(oldest).older = joint;
        self.leave_order(higher);
        self.at_mut(higher).merged_into = lower;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u32),
        Use(usize),
        Remove(usize),
        Halve,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => (0..12u32).prop_map(Op::Insert),
            9 => any::<usize>().prop_map(Op::Use),
            1 => any::<usize>().prop_map(Op::Remove),
            1 => Just(Op::Halve),
        ]
    }

    /// The blocks with their counts in order: what the buckets are an index of.
    fn apply(op: &Op, nodes: &mut Vec<Node>, blocks: &mut Frequencies, model: &mut Vec<(u32, u32)>) {
        match *op {
            Op::Insert(h) if model.iter().all(|&(other, _)| other != h) => {
                blocks.insert(nodes, h);
                place(model, h, 1);
            }
            Op::Use(i) if !model.is_empty() => {
                let (h, count) = model.remove(i % model.len());
                blocks.count_use(nodes, h);
                place(model, h, count + 1);
            }
            Op::Remove(i) if !model.is_empty() => {
                blocks.remove(nodes, model.remove(i % model.len()).0);
            }
            Op::Halve => {
                blocks.halve(nodes);
                model.iter_mut().for_each(|(_, count)| *count = count.div_ceil(2));
            }
            _ => {}
        }
    }

    fn place(model: &mut Vec<(u32, u32)>, handle: u32, count: u32) {
        model.insert(model.partition_point(|&(_, other)| other <= count), (handle, count));
    }

    /// Every bucket is in order, a signpost or unused; what names a bucket is counted.
    fn check_buckets(nodes: &Vec<Node>, blocks: &Frequencies) {
        let all = 0..blocks.buckets.len() as Slot;
        let mut kinds = vec![0; blocks.buckets.len()];
        for (mut at, kind) in [(blocks.lowest, 1), (blocks.unused, 2)] {
            while at != NONE {
                assert_eq!(std::mem::replace(&mut kinds[at as usize], kind), 0);
                at = blocks.at(at).higher;
            }
        }
        for slot in all.clone().filter(|&slot| kinds[slot as usize] != 2) {
            assert_eq!(blocks.at(slot).merged_into != NONE, kinds[slot as usize] == 0);
            let signposts =
                all.clone().filter(|&s| kinds[s as usize] == 0 && blocks.at(s).merged_into == slot);
            let named = blocks.iter(nodes).filter(|&(handle, _)| nodes[handle as usize].tag == slot);
            assert_eq!(blocks.at(slot).names as usize, signposts.count() + named.count());
            assert!(blocks.at(slot).names > 0);
        }
    }

    proptest! {
        #[test]
        fn equals_a_sorted_vector(ops in prop::collection::vec(op(), 0..200)) {
            let (mut nodes, mut blocks, mut model) = (vec![Node::NEW; 12], Frequencies::new(), Vec::new());
            for op in &ops {
                apply(op, &mut nodes, &mut blocks, &mut model);
                prop_assert_eq!(blocks.iter(&nodes).collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(blocks.len() as usize, model.len());
                check_buckets(&nodes, &blocks);
            }
        }
    }

    #[test]
    fn a_count_that_is_full_stays() {
        let (mut nodes, mut blocks) = (vec![Node::NEW; 2], Frequencies::new());
        blocks.insert(&mut nodes, 0);
        blocks.buckets[0].count = u32::MAX - 1;
        (0..3).for_each(|_| blocks.count_use(&mut nodes, 0));
        assert_eq!(blocks.iter(&nodes).collect::<Vec<_>>(), [(0, u32::MAX)]);
        blocks.remove(&mut nodes, 0);
        assert_eq!((blocks.lowest, blocks.len()), (NONE, 0));
    }

    #[test]
    fn buckets_are_used_again() {
        let (mut nodes, mut blocks) = (vec![Node::NEW; 3], Frequencies::new());
        for round in 0..1000 {
            let handle = round % 3;
            blocks.insert(&mut nodes, handle);
            (0..round % 7).for_each(|_| blocks.count_use(&mut nodes, handle));
            if round % 3 == 2 {
                blocks.halve(&mut nodes);
                (0..3).for_each(|h| blocks.remove(&mut nodes, h));
            }
        }
        assert!(blocks.buckets.len() <= 8, "{}", blocks.buckets.len());
    }
}
