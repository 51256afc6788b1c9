//! LIRS: the blocks that came back soon after their last use stay, whenever that was; the others pass through a short queue.
//!
//! Jiang, Zhang: "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy to Improve Buffer Cache Performance", SIGMETRICS 2002, section 3.3. Resident
//! blocks are LIR (low inter-reference recency) or HIR. The stack S holds, by recency, the LIR blocks and those HIR blocks, resident or
//! not, that are more recent than the least recent LIR block: one that is used again while in S changes places with the LIR block at
//! the bottom. The queue Q holds the resident HIR blocks; its front leaves. Pruning keeps an LIR block at the bottom of S.
//!
//! Parameters: Q has 1 % of the capacity, at least one block; the rest is for LIR blocks. What the paper leaves open:
//!
//! * S is bounded: when it holds more than twice the capacity, the non-resident block furthest down leaves it (as in libCacheSim, which takes the one evicted
//!   first: the same block). So no more than twice the capacity is remembered, beside what is resident.
//! * While there are fewer LIR blocks than there may be, also after some were taken out, an entering block becomes LIR.
//! * A cache that shrinks gives up Q first, then the bottom of S.
//!
//! **Difference from libCacheSim: `hit-in-queue`.** There, a hit on a resident HIR block that is not in S also moves the LIR block at the bottom of S to Q, and the
//! front of Q leaves for it, so that the next absent block becomes LIR at once. In the paper (case 2 b), and here, that hit changes no other block's status.
//! The miss ratios differ by less than 0.0001 on `cloudPhysicsIO` and on Zipf(1.0).
//! **`one-block`**: with a capacity of one there is no room for LIR blocks; libCacheSim then admits nothing, here Q alone is the cache.

use super::{Evicted, PIN_REACH, Replacement};
use crate::{Chunked, Handle, List, Node, Nodes};

/// Blocks of capacity per block of Q.
const CAPACITY_PER_QUEUE: u32 = 100;

/// S holds at most this many blocks per block of capacity.
const STACK_PER_CAPACITY: u64 = 2;

// The tags of blocks. Zero: not known to the policy.
const LIR: u32 = 1;
/// Resident HIR, in S and Q.
const HIR_STACKED: u32 = 2;
/// Resident HIR, in Q alone.
const HIR: u32 = 3;
/// Non-resident HIR, in S.
const GHOST: u32 = 4;
/// A ghost that left S; its user has not been told yet.
const FORGOTTEN: u32 = 5;
/// A ghost of S that is about to be resident again.
const RETURNING: u32 = 6;

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

/// The policy LIRS. The nodes' links are those of S; a block's tag is its status.
#[derive(Debug, Default)]
pub struct Lirs {
    capacity: u32,
    lir_max: u32,
    lirs: u32,
    /// S, the bottom at the oldest end.
    stack: List,
    /// Q, the front at the oldest end.
    queue: List,
    /// The non-resident blocks of S, from its bottom to its top.
    ghosts: List,
    /// Ghosts that left S since the user last asked.
    forgotten: List,
    /// The links of `queue`, `ghosts` and `forgotten`: a block is on one of them at most.
    links: Links,
}

/// A second pair of links for each block.
#[derive(Debug, Default)]
struct Links(Chunked<Node>);

impl Links {
    fn grow_to(&mut self, handle: Handle) {
        while self.0.len() <= handle as usize {
            self.0.push(Node::NEW);
        }
    }
}

impl Nodes for Links {
    #[inline]
    fn node(&self, handle: Handle) -> &Node {
        &self.0[handle as usize]
    }

    #[inline]
    fn node_mut(&mut self, handle: Handle) -> &mut Node {
        &mut self.0[handle as usize]
    }

    fn key(&self, handle: Handle) -> u64 {
        u64::from(handle)
    }
}

impl Lirs {
    /// An empty policy.
    pub const fn new() -> Self {
        Self {
            capacity: 0,
            lir_max: 0,
            lirs: 0,
            stack: List::new(),
            queue: List::new(),
            ghosts: List::new(),
            forgotten: List::new(),
            links: Links(Chunked::new()),
        }
    }

    /// The stack S from its bottom to its top.
    pub fn stack<'a, N: Nodes>(&self, nodes: &'a N) -> impl Iterator<Item = (Handle, Status)> + use<'a, N> {
        self.stack.iter_oldest_first(nodes).map(|handle| {
            let status = match nodes.node(handle).tag {
                LIR => Status::Lir,
                GHOST => Status::NonResidentHir,
                _ => Status::ResidentHir,
            };
            (handle, status)
        })
    }

    /// The queue Q from its front, which leaves next.
    pub fn queue(&self) -> impl Iterator<Item = Handle> + '_ {
        self.queue.iter_oldest_first(&self.links)
    }

    /// Bytes of memory held beyond the nodes.
    pub fn memory_bytes(&self) -> usize {
        self.links.0.memory_bytes()
    }

    /// A used LIR block goes to the top of S.
    #[inline]
    fn use_lir<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        let was_bottom = self.stack.oldest() == Some(handle);
        self.stack.to_newest(nodes, handle);
        if was_bottom {
            self.prune(nodes);
        }
    }

    /// A used HIR block of S has come back sooner than the LIR block at the bottom: they change places.
    fn promote<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        self.stack.to_newest(nodes, handle);
        self.queue.remove(&mut self.links, handle);
        nodes.node_mut(handle).tag = LIR;
        self.lirs += 1;
    }

    /// A used HIR block that is in Q alone goes to its end, and on top of S.
    fn queue_again<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        self.queue.to_newest(&mut self.links, handle);
        self.stack_hir(nodes, handle);
    }

    /// LIR blocks at the bottom of S that are too many go to the end of Q: more than one only after the cache has shrunk, and then at most as many as Q has room
    /// for.
    #[inline]
    fn demote_surplus<N: Nodes>(&mut self, nodes: &mut N) {
        while self.lirs > self.lir_max {
            let bottom = self.stack.oldest().expect("LIR blocks are in S");
            self.take_lir(nodes, bottom);
            nodes.node_mut(bottom).tag = HIR;
            self.queue.push_newest(&mut self.links, bottom);
        }
    }

    /// An HIR block of Q enters S, if there is an LIR block below which it could stand.
    fn stack_hir<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        if self.lirs > 0 {
            self.stack.push_newest(nodes, handle);
            nodes.node_mut(handle).tag = HIR_STACKED;
        } else {
            nodes.node_mut(handle).tag = HIR;
        }
    }

    /// An LIR block leaves S.
    fn take_lir<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        self.stack.remove(nodes, handle);
        self.lirs -= 1;
        self.prune(nodes);
    }

    /// Take HIR blocks off the bottom of S until an LIR block is there.
    fn prune<N: Nodes>(&mut self, nodes: &mut N) {
        while let Some(bottom) = self.stack.oldest() {
            match nodes.node(bottom).tag {
                LIR => return,
                GHOST => self.forget_ghost(nodes, bottom),
                _ => {
                    self.stack.remove(nodes, bottom);
                    nodes.node_mut(bottom).tag = HIR;
                }
            }
        }
    }

    #[inline]
    fn stack_is_full(&self) -> bool {
        u64::from(self.stack.len()) > STACK_PER_CAPACITY * u64::from(self.capacity)
    }

    fn forget_lowest_ghost<N: Nodes>(&mut self, nodes: &mut N) {
        if let Some(ghost) = self.ghosts.oldest() {
            self.forget_ghost(nodes, ghost);
        }
    }

    fn forget_ghost<N: Nodes>(&mut self, nodes: &mut N, ghost: Handle) {
        self.stack.remove(nodes, ghost);
        self.ghosts.remove(&mut self.links, ghost);
        self.forgotten.push_newest(&mut self.links, ghost);
        nodes.node_mut(ghost).tag = FORGOTTEN;
    }

    /// The front of Q leaves; it is remembered if it is in S.
    fn evict_hir<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) -> Evicted {
        self.queue.remove(&mut self.links, handle);
        let ghost = nodes.node(handle).tag == HIR_STACKED;
        if ghost {
            nodes.node_mut(handle).tag = GHOST;
            self.ghosts.push_newest(&mut self.links, handle);
        }
        Evicted { handle, ghost }
    }

    /// The lowest LIR block that is not pinned, for when Q has none to give.
    fn lir_unpinned<N: Nodes>(&self, nodes: &N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Handle> {
        let lowest = self.stack.iter_oldest_first(nodes).take(PIN_REACH);
        lowest.filter(|&handle| nodes.node(handle).tag == LIR).find(|&handle| !pinned(nodes, handle))
    }
}

impl Replacement for Lirs {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        match nodes.node(handle).tag {
            LIR => self.use_lir(nodes, handle),
            HIR_STACKED => self.promote(nodes, handle),
            _ => self.queue_again(nodes, handle),
        }
        self.demote_surplus(nodes);
        if self.stack_is_full() {
            self.forget_lowest_ghost(nodes);
        }
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>) {
        let Some(handle) = ghost else { return };
        let was_in_stack = nodes.node(handle).tag == GHOST;
        self.remove(nodes, handle, true);
        nodes.node_mut(handle).tag = if was_in_stack { RETURNING } else { 0 };
    }

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        if let Some(handle) = self.queue.oldest_unpinned(&self.links, PIN_REACH, |_, h| pinned(nodes, h)) {
            return Some(self.evict_hir(nodes, handle));
        }
        let handle = self.lir_unpinned(nodes, pinned)?;
        self.take_lir(nodes, handle);
        Some(Evicted { handle, ghost: false })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        self.links.grow_to(handle);
        let returning = ghost && nodes.node(handle).tag == RETURNING;
        if returning || self.lirs < self.lir_max {
            self.stack.push_newest(nodes, handle);
            nodes.node_mut(handle).tag = LIR;
            self.lirs += 1;
        } else {
            self.stack_hir(nodes, handle);
            self.queue.push_newest(&mut self.links, handle);
        }
        self.demote_surplus(nodes);
    }

    fn forget<N: Nodes>(&mut self, nodes: &mut N) -> Option<Handle> {
        if self.forgotten.is_empty() && self.stack_is_full() {
            self.forget_lowest_ghost(nodes);
        }
        self.forgotten.pop_oldest(&mut self.links)
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        match nodes.node(handle).tag {
            LIR => self.take_lir(nodes, handle),
            HIR => self.queue.remove(&mut self.links, handle),
            HIR_STACKED => {
                self.stack.remove(nodes, handle);
                self.queue.remove(&mut self.links, handle);
            }
            GHOST => {
                self.stack.remove(nodes, handle);
                self.ghosts.remove(&mut self.links, handle);
            }
            FORGOTTEN => self.forgotten.remove(&mut self.links, handle),
            _ => {}
        }
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.lir_max = capacity.saturating_sub((capacity / CAPACITY_PER_QUEUE).max(1));
    }

    fn resident(&self) -> u32 {
        self.lirs + self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;

    type Contents = (Vec<(u64, Status)>, Vec<u64>);

    fn contents(cache: &Cache<Lirs>) -> Contents {
        let nodes = cache.nodes();
        let stack = cache.policy().stack(nodes).map(|(handle, status)| (nodes.key(handle), status));
        (stack.collect(), cache.policy().queue().map(|handle| nodes.key(handle)).collect())
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
