//! Random replacement: any block may leave, each as likely as the others. The yardstick below which a policy is of no use.

use super::{Evicted, PIN_REACH, Replacement};
use crate::random::Rng;
use crate::{Handle, Nodes};

/// Random replacement, seeded. A block's tag is its place in the table of residents.
#[derive(Clone, Debug)]
pub struct Random {
    residents: Vec<Handle>,
    rng: Rng,
}

impl Random {
    /// An empty policy; the same seed evicts the same blocks.
    pub const fn new(seed: u64) -> Self {
        Self { residents: Vec::new(), rng: Rng::new(seed) }
    }
}

impl Replacement for Random {
    #[inline]
    fn hit<N: Nodes>(&mut self, _nodes: &mut N, _handle: Handle) {}

    #[inline]
    fn miss<N: Nodes>(&mut self, _nodes: &mut N, _ghost: Option<Handle>) {}

    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let count = self.residents.len();
        if count == 0 {
            return None;
        }
        let first = self.rng.below(count as u64) as usize;
        let mut candidates = (0..count.min(PIN_REACH)).map(|step| self.residents[(first + step) % count]);
        let handle = candidates.find(|&handle| !pinned(nodes, handle))?;
        self.remove(nodes, handle, false);
        Some(Evicted { handle, ghost: false })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        nodes.node_mut(handle).tag = self.residents.len() as u32;
        self.residents.push(handle);
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, _ghost: bool) {
        let place = nodes.node(handle).tag as usize;
        self.residents.swap_remove(place);
        if let Some(&moved) = self.residents.get(place) {
            nodes.node_mut(moved).tag = place as u32;
        }
    }

    fn resize(&mut self, _capacity: u32) {}

    fn resident(&self) -> u32 {
        self.residents.len() as u32
    }
}
