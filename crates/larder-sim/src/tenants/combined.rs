//! Parts for each tenant in front of a part for all: what leaves a tenant's own part enters the common one, and comes back when it is used (the container
//! thesis, section 2.4.4).

use std::ops::Range;

use larder_alloc::Mode;
use larder_policy::cache::Found;
use larder_policy::trial::{Action, Blocks, Outcome, Watch};

use super::store::{Part, part};
use super::traffic::Traffic;

/// The parts.
pub(super) struct Combined {
    own: Vec<Part>,
    common: Part,
    /// Blocks of each tenant in the common part, by the upper halves of their keys.
    in_common: Vec<u32>,
    owner_of: Vec<usize>,
}

/// Told what becomes of blocks in a tenant's own part; what leaves it is kept for the common one.
struct Spill<'a> {
    traffic: &'a mut Traffic,
    spilled: Vec<(u64, bool)>,
}

impl Watch for Spill<'_> {
    fn saw(&mut self, _at: usize, outcome: Outcome) {
        self.traffic.outcomes.push(outcome);
    }

    fn evicted(&mut self, key: u64, dirty: bool) {
        self.spilled.push((key, dirty));
    }
}

impl Combined {
    pub(super) fn new(mode: Mode, common_blocks: u32, tenants: usize, seed: u64) -> Self {
        Self {
            own: (0..tenants).map(|_| part(mode, 0, seed)).collect(),
            common: part(mode, common_blocks, seed),
            in_common: vec![0; tenants],
            owner_of: Vec::new(),
        }
    }

    /// Blocks of a tenant with these keys stay.
    pub(super) fn pin(&mut self, tenant: usize, keys: &Range<u64>) {
        self.own[tenant].pin(keys.clone());
        self.common.pin(keys.clone());
    }

    /// Nothing leaves for what the tenant misses, or it does ([`Part::set_stuck`]).
    pub(super) fn set_stuck(&mut self, tenant: usize, stuck: bool) {
        self.own[tenant].set_stuck(stuck);
        self.common.set_stuck(stuck);
    }

    pub(super) fn access(
        &mut self,
        tenant: usize,
        action: Action,
        blocks: &Blocks<'_>,
        closed: bool,
        traffic: &mut Traffic,
    ) {
        for at in 0..blocks.keys.len() {
            self.own_segment(blocks.keys[at], tenant);
            self.one(tenant, action, blocks, at, closed, traffic);
        }
    }

    fn one(
        &mut self,
        tenant: usize,
        action: Action,
        blocks: &Blocks<'_>,
        at: usize,
        closed: bool,
        traffic: &mut Traffic,
    ) {
        let (key, hash) = (blocks.keys[at], blocks.hashes[at]);
        let own = &mut self.own[tenant];
        let mut spill = Spill { traffic, spilled: Vec::new() };
        let is_own = matches!(own.cache().find(key, hash), Found::Resident(_));
        if !is_own && let Some(dirty) = self.common.take(key) {
            self.in_common[tenant] -= 1;
            match own.cache().capacity() {
                // There is nothing of its own to move into.
                0 => self.keep(key, dirty, spill.traffic),
                _ => self.own[tenant].adopt(key, dirty, &mut spill),
            }
        }
        let part = match self.own[tenant].cache().capacity() {
            0 => &mut self.common,
            _ => &mut self.own[tenant],
        };
        part.set_closed(closed);
        let before = part.resident_blocks();
        part.accesses(action, blocks, at..at + 1, &mut spill);
        part.end_request(action);
        let (after, spilled) = (part.resident_blocks(), spill.spilled);
        if self.own[tenant].cache().capacity() == 0 {
            // The common part itself was accessed: what left it is gone.
            for &(key, dirty) in &spilled {
                self.in_common[self.owner_of[(key >> 32) as usize]] -= 1;
                traffic.left.push((key, dirty));
            }
            let entered = i64::from(after) - i64::from(before) + spilled.len() as i64;
            self.in_common[tenant] = (i64::from(self.in_common[tenant]) + entered) as u32;
        } else {
            spilled.into_iter().for_each(|(key, dirty)| self.keep(key, dirty, traffic));
        }
    }

    /// A block of a tenant is written back, and stays: true if it was dirty.
    pub(super) fn clean_block(&mut self, tenant: usize, key: u64) -> bool {
        self.own[tenant].clean_block(key) || self.common.clean_block(key)
    }

    /// A block enters the common part, or leaves the cache for good.
    fn keep(&mut self, key: u64, dirty: bool, traffic: &mut Traffic) {
        if self.common.cache().capacity() == 0 {
            traffic.left.push((key, dirty));
            return;
        }
        let before = traffic.left.len();
        self.common.adopt(key, dirty, traffic);
        self.in_common[self.owner_of[(key >> 32) as usize]] += 1;
        for &(gone, _) in &traffic.left[before..] {
            self.in_common[self.owner_of[(gone >> 32) as usize]] -= 1;
        }
    }

    pub(super) fn resize(&mut self, tenant: usize, blocks: u32, traffic: &mut Traffic) {
        if self.own[tenant].cache().capacity() == blocks {
            return;
        }
        let mut spill = Spill { traffic, spilled: Vec::new() };
        self.own[tenant].set_capacity(blocks, &mut spill);
        let spilled = spill.spilled;
        spilled.into_iter().for_each(|(key, dirty)| self.keep(key, dirty, traffic));
    }

    /// A tenant's blocks leave.
    pub(super) fn drop_all(&mut self, tenant: usize, owners: &[usize], traffic: &mut Traffic) {
        self.own[tenant].set_capacity(0, traffic);
        let gone: Vec<u64> =
            self.common.cache().resident().filter(|key| owners[(key >> 32) as usize] == tenant).collect();
        for key in gone {
            let dirty = self.common.take(key).unwrap_or(false);
            traffic.left.push((key, dirty));
        }
        self.in_common[tenant] = 0;
    }

    pub(super) fn quota(&self, tenant: usize) -> u32 {
        self.own[tenant].cache().capacity()
    }

    pub(super) fn resident(&self, tenant: usize) -> u32 {
        self.own[tenant].resident_blocks() + self.in_common[tenant]
    }

    fn own_segment(&mut self, key: u64, tenant: usize) {
        let segment = (key >> 32) as usize;
        if segment >= self.owner_of.len() {
            self.owner_of.resize(segment + 1, tenant);
        }
        self.owner_of[segment] = tenant;
    }
}
