//! A user of a replacement policy, as the live engine is one, that believes nothing: it keeps its own book of all handles and fails at the first
//! breach of the contract of [`Replacement`].

use larder_policy::{Handle, Links, Node, Nodes, Replacement};
use std::collections::BTreeMap;

/// What the user knows of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Given to nobody; the policy must not ask for its node.
    Free,
    Resident {
        pinned: bool,
    },
    Ghost,
    /// Announced by `miss`, not yet inserted.
    Entering,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    node: Node,
    state: State,
}

/// The nodes: only those of handles in use can be had.
#[derive(Default)]
struct Slots(Vec<Slot>);

impl Slots {
    fn slot(&self, handle: Handle) -> &Slot {
        let slot = &self.0[handle as usize];
        assert_ne!(slot.state, State::Free, "handle {handle} is out of use, and the policy asks for it");
        slot
    }

    fn is_pinned(&self, handle: Handle) -> bool {
        self.slot(handle).state == State::Resident { pinned: true }
    }

    fn count(&self, is_it: impl Fn(State) -> bool) -> u32 {
        self.0.iter().filter(|slot| is_it(slot.state)).count() as u32
    }
}

impl Nodes for Slots {
    fn links(&self, handle: Handle) -> &Links {
        &self.slot(handle).node.links
    }

    fn links_mut(&mut self, handle: Handle) -> &mut Links {
        self.slot(handle);
        &mut self.0[handle as usize].node.links
    }

    fn tag(&self, handle: Handle) -> u32 {
        self.slot(handle).node.tag
    }

    fn tag_mut(&mut self, handle: Handle) -> &mut u32 {
        self.slot(handle);
        &mut self.0[handle as usize].node.tag
    }

    fn key(&self, handle: Handle) -> u64 {
        self.slot(handle).key
    }
}

/// Ghosts that a policy may remember, with this capacity and so many resident blocks.
pub type GhostsMax = fn(capacity: u32, resident: u32) -> u32;

/// The user: one partition of `capacity` blocks.
pub struct User<P> {
    policy: P,
    capacity: u32,
    slots: Slots,
    handles: BTreeMap<u64, Handle>,
    ghosts_max: GhostsMax,
}

impl<P: Replacement> User<P> {
    /// A partition without blocks.
    pub fn new(capacity: u32, mut policy: P, ghosts_max: GhostsMax) -> Self {
        policy.resize(capacity);
        Self { policy, capacity, slots: Slots::default(), handles: BTreeMap::new(), ghosts_max }
    }

    /// Use a block; if it is absent it enters, unless all that could make room is pinned.
    pub fn access(&mut self, key: u64) {
        self.use_block(key, false);
    }

    /// The same; if it enters it is to leave before others.
    pub fn visit(&mut self, key: u64) {
        self.use_block(key, true);
    }

    fn use_block(&mut self, key: u64, leaves_first: bool) {
        let known = self.handles.get(&key).copied();
        match known.map(|handle| (handle, self.slots.slot(handle).state)) {
            Some((handle, State::Resident { .. })) => self.policy.hit(&mut self.slots, handle),
            _ if self.capacity == 0 => {}
            _ => self.enter(key, known, leaves_first),
        }
        self.check();
    }

    fn enter(&mut self, key: u64, ghost: Option<Handle>, leaves_first: bool) {
        self.policy.miss(&mut self.slots, ghost);
        let handle = ghost.unwrap_or_else(|| self.assign(key));
        self.slots.0[handle as usize].state = State::Entering;
        while self.policy.resident() >= self.capacity {
            if !self.evict() {
                self.release(handle);
                return;
            }
        }
        match leaves_first {
            true => self.policy.insert_to_leave_first(&mut self.slots, handle, ghost.is_some()),
            false => self.policy.insert(&mut self.slots, handle, ghost.is_some()),
        }
        self.slots.0[handle as usize].state = State::Resident { pinned: false };
        self.forget_all();
    }

    /// Evict a block, if one is not pinned: true.
    fn evict(&mut self) -> bool {
        let unpinned = self.slots.count(|state| state == State::Resident { pinned: false });
        let out = self.policy.evict(&mut self.slots, Slots::is_pinned);
        assert_eq!(out.is_some(), unpinned > 0, "{unpinned} blocks are not pinned, within reach");
        let Some(out) = out else { return false };
        let state = self.slots.slot(out.handle).state;
        assert_eq!(state, State::Resident { pinned: false }, "only such a block may be evicted");
        if out.ghost {
            self.slots.0[out.handle as usize].state = State::Ghost;
        } else {
            self.release(out.handle);
        }
        true
    }

    fn forget_all(&mut self) {
        while let Some(handle) = self.policy.forget(&mut self.slots) {
            assert_eq!(self.slots.slot(handle).state, State::Ghost, "only a ghost may be forgotten");
            self.release(handle);
        }
    }

    /// A handle for a key: the lowest that is free, so that handles are used again as soon as possible.
    fn assign(&mut self, key: u64) -> Handle {
        let slot = Slot { key, node: Node::NEW, state: State::Entering };
        let free = self.slots.0.iter().position(|slot| slot.state == State::Free);
        let at = free.unwrap_or(self.slots.0.len());
        if at == self.slots.0.len() {
            self.slots.0.push(slot);
        } else {
            self.slots.0[at] = slot;
        }
        self.handles.insert(key, at as Handle);
        at as Handle
    }

    fn release(&mut self, handle: Handle) {
        let slot = &mut self.slots.0[handle as usize];
        slot.state = State::Free;
        assert_eq!(self.handles.remove(&slot.key), Some(handle), "a handle is released once");
    }

    /// Pin a resident block, or let it go again.
    pub fn pin(&mut self, key: u64, pinned: bool) {
        let Some(&handle) = self.handles.get(&key) else { return };
        if let State::Resident { pinned: before } = &mut self.slots.0[handle as usize].state {
            *before = pinned;
        }
        self.shrink();
    }

    /// Take a block out, resident (and not pinned) or ghost.
    pub fn remove(&mut self, key: u64) {
        let Some(&handle) = self.handles.get(&key) else { return };
        if !self.slots.is_pinned(handle) {
            let ghost = self.slots.slot(handle).state == State::Ghost;
            self.policy.remove(&mut self.slots, handle, ghost);
            self.release(handle);
            self.check();
        }
    }

    /// Change the capacity. Pinned blocks may stay above it until they are let go.
    pub fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.policy.resize(capacity);
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.policy.resident() > self.capacity && self.evict() {}
        self.forget_all();
        self.check();
    }

    /// Let all pins go, then take all blocks out: the policy must know of none at the end.
    pub fn finish(mut self) {
        let keys: Vec<u64> = self.handles.keys().copied().collect();
        for &key in &keys {
            self.pin(key, false);
            self.remove(key);
        }
        assert_eq!(self.policy.resident(), 0);
        assert_eq!(self.policy.evict(&mut self.slots, Slots::is_pinned), None);
        assert_eq!(self.policy.forget(&mut self.slots), None);
    }

    fn check(&self) {
        let resident = self.slots.count(|state| matches!(state, State::Resident { .. }));
        let pinned = self.slots.count(|state| state == State::Resident { pinned: true });
        let ghosts = self.slots.count(|state| state == State::Ghost);
        assert_eq!(self.policy.resident(), resident, "the policy counts as its user does");
        assert!(resident <= self.capacity.max(pinned), "{resident} blocks in a cache of {}", self.capacity);
        assert!(ghosts <= (self.ghosts_max)(self.capacity, resident), "{ghosts} ghosts, {resident} blocks");
    }
}
