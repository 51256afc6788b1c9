//! ARC beside a slow model, written from Figure 4 of its paper with plain queues of keys: all four lists and `p` agree after every step.

use larder_policy::index::hash;
use larder_policy::replacement::arc::Arc;
use larder_policy::{Cache, Nodes};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Figure 4. Queues run from the LRU to the MRU end.
#[derive(Debug, Default, PartialEq)]
struct Model {
    c: usize,
    p: f64,
    t1: VecDeque<u64>,
    t2: VecDeque<u64>,
    b1: VecDeque<u64>,
    b2: VecDeque<u64>,
}

fn take(queue: &mut VecDeque<u64>, x: u64) -> bool {
    let at = queue.iter().position(|&key| key == x);
    at.and_then(|at| queue.remove(at)).is_some()
}

impl Model {
    fn access(&mut self, x: u64) -> bool {
        // The paper's cache is full whenever there are ghosts. Ours may have holes, where blocks were invalidated: then nothing is replaced.
        let full = self.t1.len() + self.t2.len() == self.c;
        if self.c == 0 {
            return false;
        }
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push_back(x);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&x) {
            let delta = if b1 >= b2 { 1.0 } else { b2 / b1 };
            self.p = (self.p + delta).min(self.c as f64);
            if full {
                self.replace(x);
            }
            take(&mut self.b1, x);
            self.t2.push_back(x);
        } else if self.b2.contains(&x) {
            let delta = if b2 >= b1 { 1.0 } else { b1 / b2 };
            self.p = (self.p - delta).max(0.0);
            if full {
                self.replace(x);
            }
            take(&mut self.b2, x);
            self.t2.push_back(x);
        } else {
            self.case_four(x, full);
            self.t1.push_back(x);
        }
        false
    }

    fn case_four(&mut self, x: u64, full: bool) {
        let total = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
        if self.t1.len() + self.b1.len() == self.c {
            if self.t1.len() < self.c {
                self.b1.pop_front();
                if full {
                    self.replace(x);
                }
            } else {
                self.t1.pop_front();
            }
        } else if total >= self.c {
            if total == 2 * self.c {
                self.b2.pop_front();
            }
            if full {
                self.replace(x);
            }
        }
    }

    fn replace(&mut self, x: u64) {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && (t1 > self.p || (self.b2.contains(&x) && t1 == self.p)) {
            self.b1.extend(self.t1.pop_front());
        } else {
            self.b2.extend(self.t2.pop_front());
        }
    }

    fn invalidate(&mut self, x: u64) {
        let _ = take(&mut self.t1, x) || take(&mut self.t2, x);
    }

    fn resize(&mut self, c: usize) {
        self.c = c;
        self.p = self.p.min(c as f64);
        while self.t1.len() + self.t2.len() > c {
            self.replace(u64::MAX);
        }
        while self.t1.len() + self.b1.len() > c {
            self.b1.pop_front();
        }
        while self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len() > 2 * c {
            self.b2.pop_front();
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Access(u64),
    Invalidate(u64),
    Resize(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => (0..20u64).prop_map(Op::Access),
        20 => (0..8u64).prop_map(Op::Access),
        1 => (0..20u64).prop_map(Op::Invalidate),
        1 => (0..9u32).prop_map(Op::Resize),
    ]
}

/// What the policy knows, in the model's words.
fn seen(cache: &Cache<Arc>) -> Model {
    let nodes = cache.nodes();
    let arc = cache.policy();
    let [t1, t2, b1, b2] = [arc.t1(), arc.t2(), arc.b1(), arc.b2()]
        .map(|list| list.iter_oldest_first(nodes).map(|handle| nodes.key(handle)).collect());
    Model { c: cache.capacity() as usize, p: arc.target(), t1, t2, b1, b2 }
}

proptest! {
    #[test]
    fn equals_the_model(c in 1..9u32, ops in prop::collection::vec(op(), 0..300)) {
        let mut cache = Cache::new(c, Arc::new());
        let mut model = Model { c: c as usize, ..Model::default() };
        for op in ops {
            match op {
                Op::Access(key) => prop_assert_eq!(cache.access(key), model.access(key)),
                Op::Invalidate(key) => {
                    cache.invalidate(key, hash(key));
                    model.invalidate(key);
                }
                Op::Resize(c) => {
                    cache.resize(c, |_, _| {});
                    model.resize(c as usize);
                }
            }
            prop_assert_eq!(&seen(&cache), &model);
        }
    }
}
