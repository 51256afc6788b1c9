//! A harness for tests: a cache under a policy beside a slow model of that policy, compared after every step.

use super::Replacement;
use crate::Cache;
use crate::index::hash;
use proptest::prelude::*;
use std::fmt::Debug;

/// Keys that tests access.
const KEYS: u64 = 14;

/// A policy without ghosts, told as plainly as possible. Only resident blocks are named to it.
pub trait Model: Clone {
    /// The blocks that it holds, in any order.
    fn residents(&self) -> Vec<u64>;

    /// A resident block is used.
    fn hit(&mut self, key: u64);

    /// Another block enters.
    fn insert(&mut self, key: u64);

    /// A block leaves to make room; there is one.
    fn evict(&mut self) -> u64;

    /// A block is taken out.
    fn remove(&mut self, key: u64);
}

/// What happens to a cache.
#[derive(Clone, Debug)]
pub enum Op {
    /// A block is accessed.
    Access(u64),
    /// A block is not valid any more.
    Invalidate(u64),
    /// The cache holds as many blocks from now on.
    Resize(u32),
}

/// Some hundred of them, with small caches.
pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        40 => (0..KEYS).prop_map(Op::Access),
        4 => (0..KEYS).prop_map(Op::Invalidate),
        1 => (0..9u32).prop_map(Op::Resize),
    ];
    prop::collection::vec(op, 0..300)
}

/// Hit or not, and the blocks that left, the first to leave in front.
type Outcome = (bool, Vec<u64>);

fn on_cache<P: Replacement>(cache: &mut Cache<P>, op: &Op) -> Outcome {
    let mut left = Vec::new();
    let hit = match *op {
        Op::Access(key) => match cache.find(key, hash(key)) {
            crate::cache::Found::Resident(handle) => {
                cache.hit(handle);
                true
            }
            found => {
                cache.enter(key, hash(key), found, 0, |key, _| left.push(key));
                false
            }
        },
        Op::Invalidate(key) => cache.invalidate(key, hash(key)).is_some(),
        Op::Resize(capacity) => {
            cache.resize(capacity, |key, _| left.push(key));
            false
        }
    };
    (hit, left)
}

fn on_model(model: &mut impl Model, capacity: &mut usize, op: &Op) -> Outcome {
    let (mut room_for, mut hit) = (0, false);
    match *op {
        Op::Access(key) if model.residents().contains(&key) => {
            model.hit(key);
            hit = true;
        }
        Op::Access(_) => room_for = 1,
        Op::Invalidate(key) if model.residents().contains(&key) => {
            model.remove(key);
            hit = true;
        }
        Op::Invalidate(_) => {}
        Op::Resize(blocks) => *capacity = blocks as usize,
    }
    let mut left = Vec::new();
    while model.residents().len() > capacity.saturating_sub(room_for) {
        left.push(model.evict());
    }
    if let Op::Access(key) = *op
        && !hit
        && *capacity > 0
    {
        model.insert(key);
    }
    (hit, left)
}

/// Compare hits, residents, and the whole order in which the blocks would leave, after each step.
pub fn compare<P, M>(policy: P, model: M, ops: &[Op]) -> Result<(), TestCaseError>
where
    P: Replacement + Clone + Debug,
    M: Model,
{
    let (mut cache, mut model, mut capacity) = (Cache::new(4, policy), model, 4);
    for op in ops {
        prop_assert_eq!(on_cache(&mut cache, op), on_model(&mut model, &mut capacity, op), "{:?}", op);
        prop_assert_eq!(cache.len() as usize, model.residents().len());
        let all = &Op::Resize(0);
        let order = on_cache(&mut cache.clone(), all);
        prop_assert_eq!(
            order,
            on_model(&mut model.clone(), &mut capacity.clone(), all),
            "the order after {:?}",
            op
        );
    }
    Ok(())
}

/// Access these blocks in turn in a cache of `capacity` blocks: a `+` for each hit, a `.` for a block that enters, and the block that leaves for it.
pub fn played(policy: impl Replacement, capacity: u32, keys: &[u64]) -> String {
    let mut cache = Cache::new(capacity, policy);
    let mut told = String::new();
    for &key in keys {
        match on_cache(&mut cache, &Op::Access(key)) {
            (true, _) => told.push('+'),
            (false, left) if left.is_empty() => told.push('.'),
            (false, left) => left.iter().for_each(|key| told += &key.to_string()),
        }
    }
    told
}
