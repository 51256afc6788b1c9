//! What a live cache pays for its policy: no call takes long, however large the cache is and whatever happened before, and a policy's memory is that of its own
//! blocks, though its user gives handles to the blocks of many.

use larder_policy::any::AnyReplacement;
use larder_policy::replacement::SPARED_MAX;
use larder_policy::spec::PolicySpec;
use larder_policy::{Handle, Links, Node, Nodes, Replacement};
use std::cell::Cell;

/// Nodes that count how often they are asked for.
struct Counted {
    nodes: Vec<Node>,
    asked: Cell<u64>,
}

impl Nodes for Counted {
    fn links(&self, handle: Handle) -> &Links {
        self.asked.set(self.asked.get() + 1);
        &self.nodes[handle as usize].links
    }

    fn links_mut(&mut self, handle: Handle) -> &mut Links {
        self.asked.set(self.asked.get() + 1);
        &mut self.nodes[handle as usize].links
    }

    fn tag(&self, handle: Handle) -> u32 {
        self.asked.set(self.asked.get() + 1);
        self.nodes[handle as usize].tag
    }

    fn tag_mut(&mut self, handle: Handle) -> &mut u32 {
        self.asked.set(self.asked.get() + 1);
        &mut self.nodes[handle as usize].tag
    }

    fn key(&self, handle: Handle) -> u64 {
        u64::from(handle)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Resident,
    Ghost,
}

/// A partition as the live engine has it: it forgets a few ghosts per block that enters. Block `b` has the handle `b * spacing`.
struct User {
    policy: AnyReplacement,
    capacity: u32,
    nodes: Counted,
    states: Vec<State>,
    spacing: u32,
    /// Most nodes asked for in one call.
    most: u64,
}

impl User {
    fn new(spec: &PolicySpec, capacity: u32, blocks: u32, spacing: u32) -> Self {
        let nodes = Counted { nodes: vec![Node::NEW; (blocks * spacing) as usize], asked: Cell::new(0) };
        let policy = AnyReplacement::new(spec, capacity, 1);
        Self { policy, capacity, nodes, states: vec![State::Absent; blocks as usize], spacing, most: 0 }
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut AnyReplacement, &mut Counted) -> T) -> T {
        self.nodes.asked.set(0);
        let result = call(&mut self.policy, &mut self.nodes);
        self.most = self.most.max(self.nodes.asked.get());
        result
    }

    fn state(&mut self, handle: Handle) -> &mut State {
        &mut self.states[(handle / self.spacing) as usize]
    }

    fn access(&mut self, block: u32) {
        let handle = block * self.spacing;
        let state = *self.state(handle);
        if state == State::Resident {
            return self.call(|policy, nodes| policy.hit(nodes, handle));
        }
        let ghost = (state == State::Ghost).then_some(handle);
        self.call(|policy, nodes| policy.miss(nodes, ghost));
        while self.policy.resident() >= self.capacity {
            self.evict();
        }
        if ghost.is_none() {
            self.nodes.nodes[handle as usize] = Node::NEW;
        }
        self.call(|policy, nodes| policy.insert(nodes, handle, ghost.is_some()));
        *self.state(handle) = State::Resident;
        (0..4).for_each(|_| _ = self.forget());
    }

    fn evict(&mut self) {
        let out = self.call(|policy, nodes| policy.evict(nodes, |_, _| false)).expect("no block is pinned");
        *self.state(out.handle) = if out.ghost { State::Ghost } else { State::Absent };
    }

    fn forget(&mut self) -> bool {
        let ghost = self.call(AnyReplacement::forget);
        if let Some(handle) = ghost {
            *self.state(handle) = State::Absent;
        }
        ghost.is_some()
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.call(|policy, _| policy.resize(capacity));
    }

    /// What the engine does in the background after that.
    fn trim(&mut self) {
        while self.policy.resident() > self.capacity {
            self.evict();
        }
        while self.forget() {}
    }
}

/// Some nodes per block that is spared; less than a pass over a cache of [`LARGE`] blocks takes.
const ASKED_MAX: u64 = 16 * SPARED_MAX;
const LARGE: u32 = 100_000;

fn hits(user: &mut User, blocks: std::ops::Range<u32>, times: u32) {
    (0..times).for_each(|_| blocks.clone().for_each(|block| user.access(block)));
}

/// All that makes a policy put work off.
fn live_long(user: &mut User) {
    // All blocks were used often, when others come.
    hits(user, 0..LARGE, 6);
    hits(user, LARGE..2 * LARGE, 1);
    // Blocks that came long ago come back, the oldest first, and the rest again.
    hits(user, 0..LARGE, 2);
    hits(user, LARGE..3 * LARGE, 2);
    // A smaller cache goes on before it is trimmed, and after.
    user.resize(LARGE / 10);
    let resident: Vec<u32> =
        (0..3 * LARGE).filter(|&block| user.states[block as usize] == State::Resident).collect();
    resident.iter().for_each(|&block| user.access(block));
    user.trim();
    hits(user, 0..LARGE / 5, 3);
    // None, and a large one again.
    user.resize(0);
    user.trim();
    user.resize(LARGE);
    hits(user, 0..2 * LARGE, 2);
}

#[test]
fn no_call_takes_long() {
    for spec in PolicySpec::online() {
        let mut user = User::new(spec, LARGE, 3 * LARGE, 1);
        live_long(&mut user);
        assert!(user.most <= ASKED_MAX, "{spec}: {} nodes in one call", user.most);
    }
}

/// A small cache, whose policy has seen so many blocks. Its memory in bytes.
fn memory(spec: &PolicySpec, seen: u32, spacing: u32) -> usize {
    let mut user = User::new(spec, 5000, 50_000, spacing);
    (0..seen).for_each(|step| user.access(step % 7 * 1000 + step % 43_000));
    user.policy.memory_bytes()
}

#[test]
fn memory_is_that_of_the_policys_own_blocks() {
    for spec in PolicySpec::online() {
        let dense = memory(spec, 100_000, 1);
        assert_eq!(memory(spec, 100_000, 64), dense, "{spec}: handles far apart");
        // LFU has a few words per use count that occurs.
        assert!(memory(spec, 400_000, 1) <= dense + 4096, "{spec}: accesses without end");
        // 64 bytes for each block that the cache holds, and what memory is taken by at a time.
        assert!(dense <= 5000 * 64 + 256 * 1024, "{spec}: {dense}");
    }
}
