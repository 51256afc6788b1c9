//! A partition that is filled in batches: Centaur's mover (sections IV and VII-C).
//!
//! A shadow cache without data decides at every access what ought to be resident; what is resident changes only when the mover comes: then it is what the
//! shadow holds. Writes go to the cache where their block is resident, and become dirty; else to the backing.

use larder_alloc::{Mode, WritePolicy};
use larder_policy::Cache;
use larder_policy::cache::Found;
use larder_policy::index::hash;
use larder_policy::replacement::fifo::Fifo;
use larder_policy::trial::{Action, Blocks, Outcome};

use super::store::{Part, part};
use super::traffic::Traffic;

/// Mark of a block that is as the backing has it, and of one that is not.
const CLEAN: u8 = 0;
const DIRTY: u8 = 1;

/// The partition.
pub(super) struct Batched {
    shadow: Part,
    /// What is resident, with a mark on what is dirty. Nothing is ever replaced in it: the mover decides.
    real: Cache<Fifo>,
    write: WritePolicy,
}

impl Batched {
    pub(super) fn new(mode: Mode, seed: u64) -> Self {
        // The shadow knows no dirty blocks: every access is as good as another there.
        let shadow = part(Mode { write: WritePolicy::WriteThrough, ..mode }, 0, seed);
        Self { shadow, real: Cache::new(u32::MAX, Fifo::new()), write: mode.write }
    }

    /// Where it is `closed`, nothing may be written to the SSD: what is written leaves.
    pub(super) fn access(
        &mut self,
        action: Action,
        blocks: &Blocks<'_>,
        closed: bool,
        traffic: &mut Traffic,
    ) {
        self.shadow.accesses(action, blocks, 0..blocks.keys.len(), &mut ());
        self.shadow.end_request(action);
        for (&key, &hash) in blocks.keys.iter().zip(blocks.hashes) {
            traffic.outcomes.push(self.one(action, key, hash, closed));
        }
    }

    fn one(&mut self, action: Action, key: u64, hash: u32, closed: bool) -> Outcome {
        let around = action == Action::Write && (closed || self.write == WritePolicy::ReadOnly);
        if around || action == Action::Discard {
            self.real.invalidate(key, hash);
            return Outcome::Passed;
        }
        let Found::Resident(handle) = self.real.find(key, hash) else { return Outcome::Passed };
        if action == Action::Write && self.write == WritePolicy::WriteBack {
            self.real.set_mark(handle, DIRTY);
        }
        Outcome::Hit
    }

    /// A block is written back, and stays: true if it was dirty.
    pub(super) fn clean_block(&mut self, key: u64) -> bool {
        let Found::Resident(handle) = self.real.find(key, hash(key)) else { return false };
        let dirty = self.real.mark(handle) == DIRTY;
        self.real.set_mark(handle, CLEAN);
        dirty
    }

    /// A mover epoch is over: at most so many blocks are brought.
    pub(super) fn move_in(&mut self, most: u64, traffic: &mut Traffic) {
        self.move_out(traffic);
        let real = &self.real;
        let absent = |key: &u64| !matches!(real.find(*key, hash(*key)), Found::Resident(_));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        traffic.brought.extend(self.shadow.cache().resident().filter(absent).take(most));
        // In the order of addresses, so that neighbours are read together.
        traffic.brought.sort_unstable();
        for &key in &traffic.brought {
            self.real.enter(key, hash(key), Found::Absent, CLEAN, |_, _| {});
        }
    }

    /// What the shadow does not hold any more leaves.
    fn move_out(&mut self, traffic: &mut Traffic) {
        let shadow = self.shadow.cache();
        let gone = |key: &u64| !matches!(shadow.find(*key, hash(*key)), Found::Resident(_));
        let gone: Vec<u64> = self.real.resident().filter(gone).collect();
        for key in gone {
            let mark = self.real.invalidate(key, hash(key));
            traffic.left.push((key, mark == Some(DIRTY)));
        }
    }

    pub(super) fn resize(&mut self, blocks: u32, traffic: &mut Traffic) {
        if self.quota() != blocks {
            self.shadow.set_capacity(blocks, &mut ());
            if self.resident() > blocks {
                self.move_out(traffic);
            }
        }
    }

    pub(super) fn set_write_policy(&mut self, write: WritePolicy, traffic: &mut Traffic) {
        if write != WritePolicy::WriteBack {
            self.real.remark(|key, mark| {
                if mark == DIRTY {
                    traffic.left.push((key, true));
                }
                CLEAN
            });
        }
        self.write = write;
    }

    pub(super) fn quota(&self) -> u32 {
        self.shadow.cache().capacity()
    }

    pub(super) fn resident(&self) -> u32 {
        self.real.len()
    }
}
