//! LIRS: the blocks that came back soon after their last use stay, whenever that was; the others pass through a short queue.
//!
//! Jiang, Zhang: "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy to Improve Buffer Cache Performance", SIGMETRICS 2002, section 3.3. Resident
//! blocks are LIR (low inter-reference recency) or HIR. The stack S holds, by recency, the LIR blocks and those HIR blocks, resident or
//! not, that are more recent than the least recent LIR block: one that is used again while in S changes places with the LIR block at
//! the bottom. The queue Q holds the resident HIR blocks; its front leaves.
//!
//! S is not a list here. Each block has a stamp, the time when it was last put on top of S, and an HIR block is in S as long as its stamp is above that of the
//! bottom, the oldest LIR block. So the paper's *stack pruning*, which may take millions of blocks off the bottom at once, takes no step at all, and what it would have
//! forgotten is given up a few blocks at a time ([`Replacement::forget`]).
//!
//! Parameters: Q has 1 % of the capacity, at least one block; the rest is for LIR blocks. What the paper leaves open:
//!
//! * No more non-resident blocks are remembered than the capacity; the one furthest down in S goes first.
//! * While there are fewer LIR blocks than there may be, also after some were taken out, an entering block becomes LIR; but not one that is to leave first.
//! * A cache that shrinks gives up Q first, then the bottom of S; LIR blocks that are too many then become HIR [`DEMOTED_MAX`] at an access.
//!
//! Differences from libCacheSim; the miss ratios differ by less than 0.0002 on `cloudPhysicsIO` and on Zipf(1.0):
//!
//! * **`hit-in-queue`**: there, a hit on a resident HIR block that is not in S also moves the LIR block at the bottom of S to Q, and the
//!   front of Q leaves for it, so that the next absent block becomes LIR at once. In the paper (case 2 b), and here, that hit changes no other block's status.
//! * **`stack-bound`**: there, S holds twice the capacity at most, resident blocks included; as some of Q may not be in S, that is up to 1 % more blocks remembered.
//! * **`one-block`**: with a capacity of one there is no room for LIR blocks; libCacheSim then admits nothing, here Q alone is the cache.

use super::{Evicted, PIN_REACH, Replacement};
use crate::words::Words;
use crate::{Handle, List, Nodes};

/// Blocks of capacity per block of Q.
const CAPACITY_PER_QUEUE: u32 = 100;

/// LIR blocks that become HIR at one access: one for a block that became LIR, and what a smaller cache has too many.
pub const DEMOTED_MAX: u32 = 2;

/// What LIRS thinks of a block that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Low inter-reference recency: resident, in S.
    Lir,
    /// High inter-reference recency: resident, in Q, perhaps in S.
    ResidentHir,
    /// High inter-reference recency: remembered in S.
    NonResidentHir,
}

/// A block's word: its stamp above its status.
const STATUS_BITS: u32 = 2;

impl Status {
    #[inline]
    fn of(word: u64) -> Self {
        match word & ((1 << STATUS_BITS) - 1) {
            0 => Self::Lir,
            1 => Self::ResidentHir,
            _ => Self::NonResidentHir,
        }
    }
}

/// The policy LIRS. A block's tag is the place of its word.
#[derive(Clone, Debug, Default)]
pub struct Lirs {
    capacity: u32,
    lir_max: u32,
    /// The LIR blocks. The oldest is the bottom of S.
    lirs: List,
    /// Q, the front at the oldest end.
    queue: List,
    /// The blocks remembered, the furthest down in S at the oldest end. What has left S since is still among them.
    ghosts: List,
    words: Words,
    /// Stamps given.
    stamps: u64,
    /// True if the block that was announced by `miss` is in S.
    returning: bool,
}

impl Lirs {
    /// An empty policy.
    pub const fn new() -> Self {
        Self {
            capacity: 0,
            lir_max: 0,
            lirs: List::new(),
            queue: List::new(),
            ghosts: List::new(),
            words: Words::new(),
            stamps: 0,
            returning: false,
        }
    }

    /// The stack S from its bottom to its top: to look at, for it takes as long as it takes to sort it.
    pub fn stack<N: Nodes>(&self, nodes: &N) -> Vec<(Handle, Status)> {
        let bottom = self.bottom(nodes);
        let all = [self.lirs, self.queue, self.ghosts];
        let all = all.iter().flat_map(|list| list.iter_oldest_first(nodes));
        let words = all.map(|handle| (self.word(nodes, handle), handle));
        let in_stack = |word: u64| Status::of(word) == Status::Lir || word >> STATUS_BITS > bottom;
        let mut stack: Vec<_> = words.filter(|&(word, _)| in_stack(word)).collect();
        stack.sort_unstable();
        stack.into_iter().map(|(word, handle)| (handle, Status::of(word))).collect()
    }

    /// The queue Q, whose oldest block leaves next.
    pub fn queue(&self) -> &List {
        &self.queue
    }

    #[inline]
    fn word<N: Nodes>(&self, nodes: &N, handle: Handle) -> u64 {
        self.words.get(nodes.tag(handle))
    }

    /// The stamp of the block at the bottom of S; where there is none, nothing is above it.
    #[inline]
    fn bottom<N: Nodes>(&self, nodes: &N) -> u64 {
        self.lirs.oldest().map_or(u64::MAX, |bottom| self.word(nodes, bottom) >> STATUS_BITS)
    }

    /// True if a block that is not LIR is in S.
    #[inline]
    fn is_stacked<N: Nodes>(&self, nodes: &N, handle: Handle) -> bool {
        self.word(nodes, handle) >> STATUS_BITS > self.bottom(nodes)
    }

    /// The word of a block that is put on top of S.
    #[inline]
    fn on_top(&mut self, status: Status) -> u64 {
        self.stamps += 1;
        self.stamps << STATUS_BITS | status as u64
    }

    #[inline]
    fn put_on_top<N: Nodes>(&mut self, nodes: &N, handle: Handle, status: Status) {
        let word = self.on_top(status);
        self.words.set(nodes.tag(handle), word);
    }

    /// A used HIR block goes on top of S. If it was there it has come back sooner than the LIR block at the bottom, and becomes LIR; else it goes to the end of Q.
    #[inline]
    fn use_hir<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        if self.is_stacked(nodes, handle) {
            self.queue.remove(nodes, handle);
            self.lirs.push_newest(nodes, handle);
            self.put_on_top(nodes, handle, Status::Lir);
        } else {
            self.queue.to_newest(nodes, handle);
            self.put_on_top(nodes, handle, Status::ResidentHir);
        }
    }

    #[inline]
    fn enter<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, is_lir: bool) {
        let (list, status) = match is_lir {
            true => (&mut self.lirs, Status::Lir),
            false => (&mut self.queue, Status::ResidentHir),
        };
        list.push_newest(nodes, handle);
        let word = self.on_top(status);
        *nodes.tag_mut(handle) = self.words.add(word);
        self.demote_surplus(nodes);
    }

    /// LIR blocks at the bottom of S that are too many go to the end of Q, and with the bottom they leave S.
    #[inline]
    fn demote_surplus<N: Nodes>(&mut self, nodes: &mut N) {
        let surplus = self.lirs.len().saturating_sub(self.lir_max);
        for _ in 0..surplus.min(DEMOTED_MAX) {
            let Some(bottom) = self.lirs.pop_oldest(nodes) else { return };
            self.set_status(nodes, bottom, Status::ResidentHir);
            self.queue.push_newest(nodes, bottom);
        }
    }

    /// A block keeps its stamp.
    #[inline]
    fn set_status<N: Nodes>(&mut self, nodes: &N, handle: Handle, status: Status) {
        let stamp = self.word(nodes, handle) >> STATUS_BITS;
        self.words.set(nodes.tag(handle), stamp << STATUS_BITS | status as u64);
    }
}

impl Replacement for Lirs {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        if Status::of(self.word(nodes, handle)) == Status::Lir {
            self.lirs.to_newest(nodes, handle);
            self.put_on_top(nodes, handle, Status::Lir);
        } else {
            self.use_hir(nodes, handle);
        }
        self.demote_surplus(nodes);
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>) {
        self.returning = ghost.is_some_and(|handle| self.is_stacked(nodes, handle));
        if let Some(handle) = ghost {
            self.remove(nodes, handle, true);
        }
    }

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let front = self.queue.oldest_unpinned(nodes, PIN_REACH, &pinned);
        if let Some(handle) = front.filter(|&handle| self.is_stacked(nodes, handle)) {
            self.queue.remove(nodes, handle);
            self.set_status(nodes, handle, Status::NonResidentHir);
            self.ghosts.push_newest(nodes, handle);
            return Some(Evicted { handle, ghost: true });
        }
        let handle = front.or_else(|| self.lirs.oldest_unpinned(nodes, PIN_REACH, pinned))?;
        self.remove(nodes, handle, false);
        Some(Evicted { handle, ghost: false })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let is_lir = std::mem::take(&mut self.returning) || self.lirs.len() < self.lir_max;
        self.enter(nodes, handle, is_lir);
    }

    /// To Q, whether LIR blocks are wanted or not.
    #[inline]
    fn insert_to_leave_first<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let is_lir = std::mem::take(&mut self.returning);
        self.enter(nodes, handle, is_lir);
    }

    #[inline]
    fn forget<N: Nodes>(&mut self, nodes: &mut N) -> Option<Handle> {
        let oldest = self.ghosts.oldest()?;
        if self.ghosts.len() <= self.capacity && self.is_stacked(nodes, oldest) {
            return None;
        }
        self.remove(nodes, oldest, true);
        Some(oldest)
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let list = match Status::of(self.word(nodes, handle)) {
            Status::Lir => &mut self.lirs,
            Status::ResidentHir => &mut self.queue,
            Status::NonResidentHir => &mut self.ghosts,
        };
        list.remove(nodes, handle);
        self.words.remove(nodes.tag(handle));
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        List::rename([&mut self.lirs, &mut self.queue, &mut self.ghosts], nodes, old, new);
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.lir_max = capacity.saturating_sub((capacity / CAPACITY_PER_QUEUE).max(1));
    }

    #[inline]
    fn resident(&self) -> u32 {
        self.lirs.len() + self.queue.len()
    }

    fn memory_bytes(&self) -> usize {
        self.words.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cache, Node};

    type Contents = (Vec<(u64, Status)>, Vec<u64>);

    fn contents(cache: &Cache<Lirs>) -> Contents {
        let (nodes, policy) = (cache.nodes(), cache.policy());
        let stack = policy.stack(nodes).into_iter().map(|(handle, status)| (nodes.key(handle), status));
        let queue = policy.queue().iter_oldest_first(nodes).map(|handle| nodes.key(handle));
        (stack.collect(), queue.collect())
    }

    /// The paper's example (table 1 and figure 2): LIR blocks A and B, and one block for HIR, after time 10; then each of the cases.
    #[test]
    fn a_sequence_worked_out_by_hand() {
        use Status::{Lir as L, NonResidentHir as N, ResidentHir as H};
        let mut cache = Cache::new(3, Lirs::new());
        let steps: [(u64, Contents); 10] = [
            (1, (vec![(1, L)], vec![])),
            (2, (vec![(1, L), (2, L)], vec![])),
            (3, (vec![(1, L), (2, L), (3, H)], vec![3])),
            // 3 leaves and is remembered.
            (4, (vec![(1, L), (2, L), (3, N), (4, H)], vec![4])),
            // An LIR block that was at the bottom.
            (1, (vec![(2, L), (3, N), (4, H), (1, L)], vec![4])),
            // A remembered block: it becomes LIR, 2 goes to Q, and what was above 2 is pruned.
            (3, (vec![(1, L), (3, L)], vec![2])),
            // A block that is in Q alone.
            (2, (vec![(1, L), (3, L), (2, H)], vec![2])),
            // And now in both: it becomes LIR, 1 goes to Q.
            (2, (vec![(3, L), (2, L)], vec![1])),
            // 1 leaves without being remembered.
            (5, (vec![(3, L), (2, L), (5, H)], vec![5])),
            (3, (vec![(2, L), (5, H), (3, L)], vec![5])),
        ];
        for (step, (key, expected)) in steps.into_iter().enumerate() {
            cache.access(key);
            assert_eq!(contents(&cache), expected, "step {step}, block {key}");
        }
    }

    #[test]
    fn the_stack_is_bounded() {
        let mut cache = Cache::new(10, Lirs::new());
        for key in 0..1000 {
            cache.access(key);
        }
        let (stack, queue) = contents(&cache);
        assert_eq!((stack.len(), queue), (20, vec![999]));
        assert_eq!(
            stack[9],
            (989, Status::NonResidentHir),
            "the nine LIR blocks, then the last ten that left"
        );
    }

    /// 2 is still known when it comes back, but what was below the bottom of S is not in it.
    #[test]
    fn a_ghost_that_left_the_stack_is_as_good_as_forgotten() {
        for used in [0..1, 0..2] {
            let (mut nodes, mut lirs) = (vec![Node::NEW; 4], Lirs::new());
            lirs.resize(3);
            (0..3).for_each(|handle| lirs.insert(&mut nodes, handle, false));
            assert_eq!(lirs.evict(&mut nodes, |_, _| false), Some(Evicted { handle: 2, ghost: true }));
            lirs.insert(&mut nodes, 3, false);
            // With 0 and 1 used the bottom is above 2; with 0 alone it is 1, and below it.
            used.clone().for_each(|handle| lirs.hit(&mut nodes, handle));
            let in_stack = used.end == 1;
            lirs.miss(&mut nodes, Some(2));
            lirs.evict(&mut nodes, |_, _| false);
            lirs.insert(&mut nodes, 2, true);
            assert_eq!(Status::of(lirs.word(&nodes, 2)) == Status::Lir, in_stack);
        }
    }

    #[test]
    fn a_cache_made_much_smaller_demotes_a_few_blocks_at_each_access() {
        let mut cache = Cache::new(500, Lirs::new());
        (0..500).for_each(|key| assert!(!cache.access(key)));
        cache.resize(400, |_, _| {});
        let lirs = |cache: &Cache<Lirs>| cache.len() - cache.policy().queue().len();
        assert_eq!((lirs(&cache), cache.len()), (400, 400), "Q gave up all it had, and S 95");
        assert!(cache.access(450));
        assert_eq!(lirs(&cache), 398);
        assert!(cache.access(451) && cache.access(452));
        assert_eq!((lirs(&cache), cache.len()), (396, 400));
    }

    #[test]
    fn a_pinned_queue_makes_an_lir_block_leave() {
        let mut nodes = vec![Node::NEW; 5];
        let mut lirs = Lirs::new();
        lirs.resize(5);
        (0..5).for_each(|handle| lirs.insert(&mut nodes, handle, false));
        let out = lirs.evict(&mut nodes, |_, handle| handle == 4 || handle == 0);
        assert_eq!(out, Some(Evicted { handle: 1, ghost: false }));
        assert_eq!(lirs.evict(&mut nodes, |_, _| true), None);
        assert_eq!(lirs.resident(), 4);
    }

    #[test]
    fn a_cache_of_one_block_and_of_none() {
        let mut cache = Cache::new(1, Lirs::new());
        assert_eq!([1, 1, 2, 1, 1].map(|key| cache.access(key)), [false, true, false, false, true]);
        cache.resize(0, |_, _| {});
        assert!(!cache.access(1));
        assert_eq!((cache.len(), contents(&cache)), (0, (vec![], vec![])));
    }
}
