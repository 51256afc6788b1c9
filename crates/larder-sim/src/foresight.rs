//! Belady's policy in a simulation: it knows the trace, and is told where in it each access is.

use std::cell::Cell;
use std::sync::Arc;

use larder_policy::belady::{Belady, NextUses, NextUsesBuilder, TooLong};
use larder_policy::replacement::{Evicted, Replacement};
use larder_policy::spec::CachingSpec;
use larder_policy::trial::Candidate;
use larder_policy::{Handle, Nodes};
use larder_trace::RequestKind;

use crate::WritePolicy;
use crate::batch::Batch;

/// Which futures runs need to know. Under `ro` a write ends a block's stay, otherwise it is a use: two different futures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Futures {
    plain: bool,
    invalidating: bool,
}

impl Futures {
    /// That of a run with these policies is needed too.
    pub fn need(&mut self, caching: CachingSpec, write: WritePolicy) {
        if !caching.policy().is_online() {
            let future = if write.invalidates() { &mut self.invalidating } else { &mut self.plain };
            *future = true;
        }
    }

    /// True where none is needed.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// The futures of a trace, as far as they were asked for: 4 bytes an access each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Foresight {
    plain: Option<Arc<NextUses>>,
    invalidating: Option<Arc<NextUses>>,
}

impl Foresight {
    pub(crate) fn of(&self, write: WritePolicy) -> Option<Arc<NextUses>> {
        if write.invalidates() { self.invalidating.clone() } else { self.plain.clone() }
    }
}

/// Gathers futures batch by batch.
pub(crate) struct Foreseer {
    plain: Option<NextUsesBuilder>,
    invalidating: Option<NextUsesBuilder>,
}

impl Foreseer {
    pub(crate) fn new(futures: Futures) -> Self {
        let builder = |needed: bool| needed.then(NextUsesBuilder::default);
        Self { plain: builder(futures.plain), invalidating: builder(futures.invalidating) }
    }

    pub(crate) fn take(&mut self, batch: &Batch) -> Result<(), TooLong> {
        let mut begin = 0;
        for piece in &batch.pieces {
            let keys = &batch.keys[begin..piece.end as usize];
            begin = piece.end as usize;
            let (discard, write) = (piece.kind == RequestKind::Discard, piece.kind == RequestKind::Write);
            push(&mut self.plain, keys, discard)?;
            push(&mut self.invalidating, keys, discard || write)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Foresight {
        let finish = |builder: Option<NextUsesBuilder>| builder.map(|builder| Arc::new(builder.finish()));
        Foresight { plain: finish(self.plain), invalidating: finish(self.invalidating) }
    }
}

fn push(builder: &mut Option<NextUsesBuilder>, keys: &[u64], invalidates: bool) -> Result<(), TooLong> {
    match builder {
        Some(builder) => keys.iter().try_for_each(|&key| builder.push(key, invalidates)),
        None => Ok(()),
    }
}

/// Belady's policy, told where it is before every access, also those that do not reach a policy.
#[derive(Clone)]
pub(crate) struct Foreseeing {
    policy: Belady,
    position: Cell<usize>,
}

impl Foreseeing {
    pub(crate) fn new(uses: Arc<NextUses>) -> Self {
        Self { policy: Belady::new(uses), position: Cell::new(0) }
    }
}

impl Candidate for Foreseeing {
    #[inline]
    fn at(&self, position: u64) {
        self.position.set(position as usize);
    }
}

impl Replacement for Foreseeing {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        self.policy.at(self.position.get());
        self.policy.hit(nodes, handle);
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>) {
        self.policy.miss(nodes, ghost);
    }

    #[inline]
    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        self.policy.evict(nodes, pinned)
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        self.policy.at(self.position.get());
        self.policy.insert(nodes, handle, ghost);
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        self.policy.remove(nodes, handle, ghost);
    }

    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        self.policy.rename(nodes, old, new);
    }

    fn resize(&mut self, capacity: u32) {
        self.policy.resize(capacity);
    }

    fn resident(&self) -> u32 {
        self.policy.resident()
    }
}
