//! LIRS against a slow model of it: two plain vectors, written down from the paper's section 3.3.

use std::collections::BTreeMap;

use larder_policy::index::hash;
use larder_policy::replacement::lirs::{DEMOTED_MAX, Lirs, Status};
use larder_policy::{Cache, Nodes};
use proptest::prelude::*;

/// The paper's words: a stack S and a queue Q of blocks, and the status of each block that is known.
#[derive(Default)]
struct Model {
    capacity: usize,
    /// From the bottom to the top.
    stack: Vec<u64>,
    /// From the front to the end.
    queue: Vec<u64>,
    status: BTreeMap<u64, Status>,
}

fn without(list: &mut Vec<u64>, key: u64) {
    list.retain(|&other| other != key);
}

impl Model {
    fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    fn queue_size(&self) -> usize {
        (self.capacity / 100).max(1)
    }

    fn lir_size(&self) -> usize {
        self.capacity.saturating_sub(self.queue_size())
    }

    fn lirs(&self) -> usize {
        self.status.values().filter(|&&status| status == Status::Lir).count()
    }

    fn resident(&self) -> usize {
        self.lirs() + self.queue.len()
    }

    fn is_resident(&self, key: u64) -> bool {
        self.status.get(&key).is_some_and(|&status| status != Status::NonResidentHir)
    }

    fn put_on_top(&mut self, key: u64) {
        without(&mut self.stack, key);
        self.stack.push(key);
    }

    fn put_at_end(&mut self, key: u64) {
        without(&mut self.queue, key);
        self.queue.push(key);
    }

    fn access(&mut self, key: u64) -> bool {
        let hit = self.is_resident(key);
        let in_stack = self.stack.contains(&key);
        if !hit && self.capacity == 0 {
            return false;
        }
        match self.status.get(&key) {
            // Case 1.
            Some(Status::Lir) => self.put_on_top(key),
            // Case 2.
            Some(Status::ResidentHir) => {
                self.put_on_top(key);
                if in_stack {
                    without(&mut self.queue, key);
                    self.status.insert(key, Status::Lir);
                } else {
                    self.put_at_end(key);
                }
            }
            // Case 3, and a cache that is not full yet.
            _ => {
                self.make_room();
                let warming = self.lirs() < self.lir_size();
                self.put_on_top(key);
                if in_stack || warming {
                    self.status.insert(key, Status::Lir);
                } else {
                    self.status.insert(key, Status::ResidentHir);
                    self.put_at_end(key);
                }
            }
        }
        self.settle();
        hit
    }

    /// The front of Q leaves, or else the bottom of S.
    fn make_room(&mut self) {
        while self.resident() >= self.capacity {
            self.evict();
        }
    }

    fn evict(&mut self) {
        if self.queue.is_empty() {
            let bottom = self.stack[0];
            return self.drop_block(bottom);
        }
        let front = self.queue.remove(0);
        if self.stack.contains(&front) {
            self.status.insert(front, Status::NonResidentHir);
        } else {
            self.status.remove(&front);
        }
    }

    /// LIR blocks at the bottom of S go to the end of Q if there are more than may be, the stack is pruned, and its ghosts bounded.
    fn settle(&mut self) {
        self.prune();
        for _ in 0..self.lirs().saturating_sub(self.lir_size()).min(DEMOTED_MAX as usize) {
            let bottom = self.stack.remove(0);
            self.status.insert(bottom, Status::ResidentHir);
            self.put_at_end(bottom);
            self.prune();
        }
        self.bound();
    }

    fn prune(&mut self) {
        while self.stack.first().is_some_and(|bottom| self.status[bottom] != Status::Lir) {
            let bottom = self.stack.remove(0);
            if self.status[&bottom] == Status::NonResidentHir {
                self.status.remove(&bottom);
            }
        }
    }

    fn bound(&mut self) {
        let is_ghost = |key: &u64| self.status[key] == Status::NonResidentHir;
        let ghosts: Vec<u64> = self.stack.iter().copied().filter(is_ghost).collect();
        for &ghost in &ghosts[..ghosts.len().saturating_sub(self.capacity)] {
            self.drop_block(ghost);
        }
    }

    fn drop_block(&mut self, key: u64) {
        without(&mut self.stack, key);
        without(&mut self.queue, key);
        self.status.remove(&key);
        self.prune();
    }

    fn invalidate(&mut self, key: u64) {
        if self.is_resident(key) {
            self.drop_block(key);
        }
    }

    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.resident() > capacity {
            self.evict();
        }
        self.bound();
    }
}

#[derive(Clone, Debug)]
enum Op {
    Access(u64),
    Invalidate(u64),
    Resize(u32),
}

fn op(keys: u64) -> impl Strategy<Value = Op> {
    prop_oneof![
        30 => (0..keys).prop_map(Op::Access),
        2 => (0..keys).prop_map(Op::Invalidate),
        1 => (0..9u32).prop_map(Op::Resize),
    ]
}

fn apply(op: &Op, cache: &mut Cache<Lirs>, model: &mut Model) {
    match *op {
        Op::Access(key) => assert_eq!(cache.access(key), model.access(key), "hit or miss of {key}"),
        Op::Invalidate(key) => {
            cache.invalidate(key, hash(key));
            model.invalidate(key);
        }
        Op::Resize(capacity) => {
            cache.resize(capacity, |_, _| {});
            model.resize(capacity as usize);
        }
    }
}

fn assert_same(cache: &Cache<Lirs>, model: &Model) {
    let nodes = cache.nodes();
    let stack = cache.policy().stack(nodes).into_iter().map(|(handle, status)| (nodes.key(handle), status));
    assert!(stack.eq(model.stack.iter().map(|&key| (key, model.status[&key]))));
    let queue: Vec<_> =
        cache.policy().queue().iter_oldest_first(nodes).map(|handle| nodes.key(handle)).collect();
    assert_eq!(queue, model.queue);
    assert_eq!(cache.len() as usize, model.resident());
}

proptest! {
    #[test]
    fn equals_the_model(capacity in 0..9u32, ops in prop::collection::vec(op(14), 1..250)) {
        let (mut cache, mut model) = (Cache::new(capacity, Lirs::new()), Model::new(capacity as usize));
        for op in &ops {
            apply(op, &mut cache, &mut model);
            assert_same(&cache, &model);
        }
    }

    /// Large enough for a queue of two and three blocks, and made larger or smaller halfway.
    #[test]
    fn equals_the_model_with_a_longer_queue(
        capacity in 200..301u32,
        seeds in prop::collection::vec(0..1000u64, 1200..1201),
        resized in 100..400u32,
    ) {
        let (mut cache, mut model) = (Cache::new(capacity, Lirs::new()), Model::new(capacity as usize));
        for (step, seed) in seeds.into_iter().enumerate() {
            if step == 600 {
                apply(&Op::Resize(resized), &mut cache, &mut model);
            }
            // Some blocks often, most seldom.
            let key = if seed % 3 == 0 { seed % 500 } else { seed % 180 };
            assert_eq!(cache.access(key), model.access(key));
        }
        assert_same(&cache, &model);
    }
}
