//! MQ beside a slow model, written from the pseudocode of its paper with plain queues of keys: all queues, use counts and ghosts agree after every step.

use larder_policy::index::hash;
use larder_policy::replacement::mq::{Mq, QUEUES};
use larder_policy::{Cache, List, Nodes};
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Block {
    key: u64,
    reference: u32,
    expire_time: u64,
}

/// The paper's pseudocode. Queues run from the next victim to the latest.
#[derive(Debug)]
struct Model {
    size: usize,
    life_time: Option<u64>,
    current_time: u64,
    queues: Vec<VecDeque<Block>>,
    qout: VecDeque<Block>,
}

impl Model {
    fn new(size: u32, life_time: Option<u32>) -> Self {
        Self {
            size: size as usize,
            life_time: life_time.map(u64::from),
            current_time: 0,
            queues: vec![VecDeque::new(); QUEUES],
            qout: VecDeque::new(),
        }
    }

    fn life_time(&self) -> u64 {
        self.life_time.unwrap_or(4 * self.size as u64)
    }

    fn take_resident(&mut self, key: u64) -> Option<Block> {
        self.queues.iter_mut().find_map(|queue| take(queue, key))
    }

    fn access(&mut self, key: u64) -> bool {
        if self.size == 0 {
            return false;
        }
        let resident = self.take_resident(key);
        let mut block = resident.unwrap_or_else(|| {
            // Before the victim enters Qout: the difference to the paper that the policy names.
            let remembered = take(&mut self.qout, key);
            self.make_room(self.size - 1);
            remembered.unwrap_or(Block { key, reference: 0, expire_time: 0 })
        });
        block.reference += 1;
        let queue = (f64::from(block.reference).log2() as usize).min(QUEUES - 1);
        block.expire_time = self.current_time + self.life_time();
        self.queues[queue].push_back(block);
        self.adjust();
        resident.is_some()
    }

    fn make_room(&mut self, most: usize) {
        while self.queues.iter().map(VecDeque::len).sum::<usize>() > most {
            let lowest = self.queues.iter_mut().find(|queue| !queue.is_empty()).expect("blocks are resident");
            self.qout.extend(lowest.pop_front());
        }
        while self.qout.len() > 4 * self.size {
            self.qout.pop_front();
        }
    }

    fn adjust(&mut self) {
        self.current_time += 1;
        let expire_time = self.current_time + self.life_time();
        for queue in 1..QUEUES {
            if self.queues[queue].front().is_some_and(|head| head.expire_time < self.current_time) {
                let head = self.queues[queue].pop_front().expect("it was looked at");
                self.queues[queue - 1].push_back(Block { expire_time, ..head });
            }
        }
    }

    fn resize(&mut self, size: u32) {
        self.size = size as usize;
        self.make_room(self.size);
    }
}

fn take(queue: &mut VecDeque<Block>, key: u64) -> Option<Block> {
    let at = queue.iter().position(|block| block.key == key)?;
    queue.remove(at)
}

#[derive(Clone, Debug)]
enum Op {
    Access(u64),
    /// Many accesses to one block, for the higher queues.
    Burst(u64, u32),
    Invalidate(u64),
    Resize(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => (0..40u64).prop_map(Op::Access),
        40 => (0..8u64).prop_map(Op::Access),
        3 => (0..40u64, 2..140u32).prop_map(|(key, times)| Op::Burst(key, times)),
        2 => (0..40u64).prop_map(Op::Invalidate),
        2 => (0..9u32).prop_map(Op::Resize),
    ]
}

fn step(cache: &mut Cache<Mq>, model: &mut Model, op: &Op) {
    match *op {
        Op::Access(key) => assert_eq!(cache.access(key), model.access(key), "hit of {key}"),
        Op::Burst(key, times) => {
            (0..times).for_each(|_| assert_eq!(cache.access(key), model.access(key), "hit of {key}"));
        }
        Op::Invalidate(key) => {
            let marked = cache.invalidate(key, hash(key));
            assert_eq!(marked.is_some(), model.take_resident(key).is_some());
        }
        Op::Resize(size) => {
            cache.resize(size, |_, _| {});
            model.resize(size);
        }
    }
}

/// Keys and use counts on a list, that of the ghosts or another; the policy counts to 128.
fn seen(cache: &Cache<Mq>, list: &List, ghosts: bool) -> Vec<(u64, u32)> {
    let (nodes, policy) = (cache.nodes(), cache.policy());
    let handles = list.iter_oldest_first(nodes);
    handles.map(|handle| (nodes.key(handle), policy.uses(nodes, handle, ghosts))).collect()
}

fn expected(queue: &VecDeque<Block>) -> Vec<(u64, u32)> {
    queue.iter().map(|block| (block.key, block.reference.min(128))).collect()
}

proptest! {
    #[test]
    fn equals_the_model(
        size in 1..9u32,
        life_time in prop::option::of(0..40u32),
        ops in prop::collection::vec(op(), 0..250),
    ) {
        let policy = life_time.map_or_else(Mq::new, Mq::with_life_time);
        let (mut cache, mut model) = (Cache::new(size, policy), Model::new(size, life_time));
        for op in &ops {
            step(&mut cache, &mut model, op);
            for (number, queue) in model.queues.iter().enumerate() {
                let list = cache.policy().queue(number);
                prop_assert_eq!(seen(&cache, list, false), expected(queue), "queue {}", number);
            }
            prop_assert_eq!(seen(&cache, cache.policy().ghosts(), true), expected(&model.qout));
        }
    }
}
