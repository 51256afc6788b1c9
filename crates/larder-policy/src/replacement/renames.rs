//! A test of all policies: blocks that get other handles leave as they would have with the old ones.

use super::{Evicted, Replacement};
use crate::any::AnyReplacement;
use crate::belady::{Belady, NextUsesBuilder};
use crate::spec::PolicySpec;
use crate::{Handle, Links, Node, Nodes};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that are accessed.
const KEYS: u64 = 24;

/// Where nothing is any more: whoever follows this is out of bounds.
const GONE: Node = Node { links: Links { newer: 1 << 30, older: 1 << 30 }, tag: 1 << 30 };

/// Nodes with the keys of their blocks.
#[derive(Default)]
struct Blocks(Vec<(u64, Node)>);

impl Nodes for Blocks {
    fn links(&self, handle: Handle) -> &Links {
        &self.0[handle as usize].1.links
    }

    fn links_mut(&mut self, handle: Handle) -> &mut Links {
        &mut self.0[handle as usize].1.links
    }

    fn tag(&self, handle: Handle) -> u32 {
        self.0[handle as usize].1.tag
    }

    fn tag_mut(&mut self, handle: Handle) -> &mut u32 {
        &mut self.0[handle as usize].1.tag
    }

    fn key(&self, handle: Handle) -> u64 {
        self.0[handle as usize].0
    }
}

#[derive(Clone, Debug)]
enum Op {
    Access(u64),
    Invalidate(u64),
    Resize(u32),
    Rename(u64),
}

/// A cache as the engine has it. One that `renames` gives another handle to a block that is to be renamed, and to each that becomes a ghost, or comes back.
struct User<P> {
    policy: P,
    blocks: Blocks,
    /// By key, with whether it is a ghost.
    handles: BTreeMap<u64, (Handle, bool)>,
    capacity: u32,
    renames: bool,
    /// The blocks that left, and those that were forgotten.
    left: Vec<(u64, bool)>,
}

impl<P: Replacement> User<P> {
    fn new(mut policy: P, capacity: u32, renames: bool) -> Self {
        policy.resize(capacity);
        let (blocks, handles) = (Blocks::default(), BTreeMap::new());
        Self { policy, blocks, handles, capacity, renames, left: Vec::new() }
    }

    /// Move a block's node; no policy is told.
    fn move_node(&mut self, key: u64) -> (Handle, Handle) {
        let entry = self.handles.get_mut(&key).expect("it is known");
        let (old, new) = (entry.0, self.blocks.0.len() as Handle);
        let node = std::mem::replace(&mut self.blocks.0[old as usize].1, GONE);
        self.blocks.0.push((key, node));
        entry.0 = new;
        (old, new)
    }

    fn rename(&mut self, key: u64) {
        if self.renames && self.handles.contains_key(&key) {
            let (old, new) = self.move_node(key);
            self.policy.rename(&mut self.blocks, old, new);
        }
    }

    fn evict(&mut self) {
        let Evicted { handle, ghost } =
            self.policy.evict(&mut self.blocks, |_, _| false).expect("one is there");
        let key = self.blocks.key(handle);
        self.left.push((key, ghost));
        match ghost {
            true => {
                self.handles.insert(key, (handle, true));
                self.rename(key);
            }
            false => drop(self.handles.remove(&key)),
        }
    }

    fn forget(&mut self) {
        while let Some(ghost) = self.policy.forget(&mut self.blocks) {
            let key = self.blocks.key(ghost);
            self.left.push((key, true));
            self.handles.remove(&key);
        }
    }

    fn access(&mut self, key: u64) {
        let known = self.handles.get(&key).copied();
        if let Some((handle, false)) = known {
            return self.policy.hit(&mut self.blocks, handle);
        }
        self.policy.miss(&mut self.blocks, known.map(|(handle, _)| handle));
        while self.policy.resident() >= self.capacity {
            self.evict();
        }
        let handle = match known {
            Some(_) if self.renames => self.move_node(key).1,
            Some((handle, _)) => handle,
            None => {
                self.blocks.0.push((key, Node::NEW));
                (self.blocks.0.len() - 1) as Handle
            }
        };
        self.handles.insert(key, (handle, false));
        self.policy.insert(&mut self.blocks, handle, known.is_some());
        self.forget();
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Access(key) => self.access(key),
            Op::Invalidate(key) => {
                if let Some((handle, ghost)) = self.handles.remove(&key) {
                    self.policy.remove(&mut self.blocks, handle, ghost);
                }
            }
            Op::Resize(capacity) => {
                self.capacity = capacity;
                self.policy.resize(capacity);
                while self.policy.resident() > capacity {
                    self.evict();
                }
                self.forget();
            }
            Op::Rename(key) => self.rename(key),
        }
    }
}

/// What leaves, in order, with renames and without.
fn compare<P: Replacement>(policy: impl Fn() -> P, ops: &[Op], what: &str) -> Result<(), TestCaseError> {
    let [mut renamed, mut other] = [true, false].map(|renames| User::new(policy(), 6, renames));
    for op in ops.iter().chain([&Op::Resize(0)]) {
        renamed.apply(op);
        other.apply(op);
        prop_assert_eq!(&renamed.left, &other.left, "{}: {:?}", what, op);
        prop_assert_eq!(renamed.policy.resident(), other.policy.resident(), "{}: {:?}", what, op);
    }
    Ok(())
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        20 => (0..KEYS).prop_map(Op::Access),
        20 => (0..KEYS / 3).prop_map(Op::Access),
        2 => (0..KEYS).prop_map(Op::Invalidate),
        1 => (1..12u32).prop_map(Op::Resize),
        20 => (0..KEYS).prop_map(Op::Rename),
    ];
    prop::collection::vec(op, 0..400)
}

proptest! {
    #[test]
    fn a_rename_changes_nothing_about_what_leaves(ops in ops(), seed: u64) {
        for spec in PolicySpec::online().iter().chain([&PolicySpec::Clock { bits: 1 }]) {
            compare(|| AnyReplacement::new(spec, 6, seed), &ops, &spec.to_string())?;
        }
    }

    #[test]
    fn nor_does_it_under_belady(ops in ops()) {
        let ops: Vec<Op> = ops.into_iter().filter(|op| matches!(op, Op::Access(_) | Op::Rename(_))).collect();
        let mut builder = NextUsesBuilder::default();
        for op in &ops {
            if let Op::Access(key) = op {
                builder.push(*key, false).expect("it is short");
            }
        }
        let uses = Arc::new(builder.finish());
        compare(|| Belady::new(uses.clone()), &ops, "belady")?;
    }
}
