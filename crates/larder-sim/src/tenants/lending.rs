//! Partitions that lend each other what they do not use.
//!
//! A tenant grows as long as there are free blocks, whatever its quota. When there are none, one that is below its quota takes blocks from the one that is
//! most above its own. One that is not takes from who hits what it holds next to never beside it (`larder_policy::turnover`), as one that has paused. All others make do with what they have. No tenant ever holds more than its maximum, free blocks or not. So nothing leaves the cache because of a decision alone, but only when somebody wants its place.

use std::ops::Range;

use larder_alloc::Mode;
use larder_policy::trial::{Action, Blocks};
use larder_policy::turnover::{Turnover, Used, lends};

use super::store::{Part, part};
use super::traffic::Traffic;

/// Blocks that change hands together.
const BATCH: u32 = 64;

/// Free blocks that one tenant may enter before it is looked at again.
const AHEAD: u32 = 1024;

/// The partitions.
pub(super) struct Lending {
    parts: Vec<Part>,
    quotas: Vec<u32>,
    /// Who lends nothing below this, if it has it.
    least: Vec<u32>,
    /// What each may hold at most, or its quota where that is more.
    most: Vec<u32>,
    /// What each used, and when.
    turnovers: Vec<Turnover>,
    /// Blocks that entered.
    entered: Vec<u64>,
    /// Blocks for which each had no room since somebody was looked for who lends it some.
    wanted: Vec<u32>,
    /// Who lends each a block for one that enters, and how many more.
    loans: Vec<Option<(usize, u32)>>,
    now_ns: u64,
    cache_blocks: u32,
    held: u32,
    by_block: bool,
}

impl Lending {
    pub(super) fn new(mode: Mode, cache_blocks: u32, tenants: usize, seed: u64) -> Self {
        let parts = (0..tenants).map(|_| part(mode, 0, seed)).collect();
        Self {
            parts,
            quotas: vec![0; tenants],
            least: vec![0; tenants],
            most: vec![u32::MAX; tenants],
            turnovers: vec![Turnover::default(); tenants],
            entered: vec![0; tenants],
            wanted: vec![0; tenants],
            loans: vec![None; tenants],
            now_ns: 0,
            cache_blocks,
            held: 0,
            by_block: false,
        }
    }

    /// Room is made for each block as it enters, as in the daemon, rather than for whole requests beforehand.
    pub(super) fn set_by_block(&mut self, by_block: bool) {
        self.by_block = by_block;
    }

    /// Each tenant holds no more than the `most`, however many blocks are free; and lends nothing below the `least`, however seldom it hits that.
    pub(super) fn set_bounds(&mut self, least: Vec<u32>, most: Vec<u32>) {
        (self.least, self.most) = (least, most);
    }

    /// It is so late.
    pub(super) fn set_clock(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    pub(super) fn access(
        &mut self,
        tenant: usize,
        action: Action,
        blocks: &Blocks<'_>,
        (closed, leaves_first): (bool, bool),
        traffic: &mut Traffic,
    ) {
        let count = blocks.keys.len();
        let step = if self.by_block { 1 } else { count.max(1) };
        self.parts[tenant].set_closed(closed);
        self.parts[tenant].set_leaves_first(leaves_first);
        for first in (0..count).step_by(step) {
            let missing = self.missing(tenant, action, blocks, first..first + step);
            // A block that is there, or passes by, needs no room.
            if !self.by_block || missing > 0 {
                // No request has more blocks than 32 bits count.
                self.make_room(tenant, step as u32, missing, leaves_first, traffic);
            }
            let part = &mut self.parts[tenant];
            let before = part.resident_blocks();
            let entered = part.counters().entered();
            part.accesses(action, blocks, first..first + step, traffic);
            self.entered[tenant] += if leaves_first { 0 } else { part.counters().entered() - entered };
            self.held = self.held - before + part.resident_blocks();
        }
        self.parts[tenant].set_leaves_first(false);
        self.parts[tenant].end_request(action);
    }

    /// Blocks that would enter. None where whoever wants room for them has nobody to take it from.
    fn missing(&self, tenant: usize, action: Action, blocks: &Blocks<'_>, range: Range<usize>) -> u32 {
        if !self.by_block && (self.parts.len() == 1 || self.free() as usize >= range.len()) {
            return 0;
        }
        let enters = |at: &usize| self.parts[tenant].may_enter(action, blocks.keys[*at], blocks.hashes[*at]);
        range.filter(enters).count() as u32
    }

    /// Before so many blocks of a request, of which some are missing: what the tenant may hold. For those that are to leave first nobody gives any back.
    fn make_room(
        &mut self,
        tenant: usize,
        needed: u32,
        missing: u32,
        leaves_first: bool,
        traffic: &mut Traffic,
    ) {
        let resident = self.parts[tenant].resident_blocks();
        let wanted = resident.saturating_add(needed).min(self.quotas[tenant]);
        let lacks = |it: &Self| !leaves_first && it.free() < wanted.saturating_sub(resident);
        while lacks(self) && self.take_back(tenant, traffic) {}
        let most = self.most[tenant].max(self.quotas[tenant]);
        if !leaves_first && resident >= self.quotas[tenant] && resident < most && self.free() < missing {
            self.take_unused(tenant, missing.min(most - resident), traffic);
        }
        let free = self.free().min(most.saturating_sub(resident));
        let capacity = self.parts[tenant].cache().capacity();
        let may = resident + free;
        if capacity > may || (capacity < resident.saturating_add(needed) && capacity < may) {
            let ahead = free.min(AHEAD.max(needed));
            self.set_capacity(tenant, resident + ahead, traffic);
        }
    }

    /// The tenant that is most above its quota gives blocks back; false if nobody is.
    fn take_back(&mut self, but: usize, traffic: &mut Traffic) -> bool {
        let above = |at: usize| self.parts[at].resident_blocks().saturating_sub(self.quotas[at]);
        let Some(most) = (0..self.parts.len()).filter(|&at| at != but).max_by_key(|&at| above(at)) else {
            return false;
        };
        let blocks = above(most).min(BATCH);
        let left = self.parts[most].resident_blocks() - blocks;
        if blocks > 0 {
            self.set_capacity(most, left, traffic);
        }
        blocks > 0
    }

    /// Who hits what it holds next to never beside this tenant gives a block up for each that is missing. Somebody is looked for once for each batch of them.
    fn take_unused(&mut self, tenant: usize, missing: u32, traffic: &mut Traffic) {
        self.wanted[tenant] = self.wanted[tenant].saturating_add(missing);
        if self.wanted[tenant] >= BATCH {
            self.wanted[tenant] = 0;
            self.loans[tenant] = self.unused(tenant).map(|lender| (lender, BATCH));
        }
        let Some((lender, left)) = self.loans[tenant] else { return };
        let held = self.parts[lender].resident_blocks();
        let takes = missing.saturating_sub(self.free()).min(left).min(self.lends_at_most(lender));
        self.set_capacity(lender, held - takes, traffic);
        let left = if takes > 0 { left - takes } else { 0 };
        self.loans[tenant] = (left > 0).then_some((lender, left));
    }

    fn unused(&mut self, tenant: usize) -> Option<usize> {
        (0..self.parts.len()).for_each(|at| self.note_used(at));
        let held = |at: usize| self.parts[at].resident_blocks();
        let own = self.turnovers[tenant].hits_at_least(self.used(tenant), held(tenant));
        let others = (0..self.parts.len()).filter(|&at| at != tenant && self.lends_at_most(at) > 0);
        let others = others.map(|at| (at, self.turnovers[at].hits_at_most(self.used(at), held(at))));
        let lenders = others.filter(|&(_, turn)| lends(turn, own));
        lenders.min_by(|a, b| a.1.hits.total_cmp(&b.1.hits)).map(|(lender, _)| lender)
    }

    fn lends_at_most(&self, at: usize) -> u32 {
        self.parts[at].resident_blocks().saturating_sub(self.least[at].min(self.quotas[at]))
    }

    fn used(&self, at: usize) -> Used {
        let counters = self.parts[at].counters();
        let hits = counters.read_hits + counters.write_hits;
        Used { ns: self.now_ns, blocks: self.entered[at] + hits, hits, read_hits: counters.read_hits }
    }

    fn note_used(&mut self, at: usize) {
        let used = self.used(at);
        self.turnovers[at].note(used);
    }

    fn set_capacity(&mut self, tenant: usize, blocks: u32, traffic: &mut Traffic) {
        let before = self.parts[tenant].resident_blocks();
        self.parts[tenant].set_capacity(blocks, traffic);
        self.held = self.held - before + self.parts[tenant].resident_blocks();
    }

    fn free(&self) -> u32 {
        self.cache_blocks - self.held
    }

    /// Another quota: nothing leaves for it, but what is above the most that the tenant may hold.
    pub(super) fn resize(&mut self, tenant: usize, quota: u32, traffic: &mut Traffic) {
        self.note_used(tenant);
        self.quotas[tenant] = quota;
        self.parts[tenant].set_reach(quota);
        let most = self.most[tenant].max(quota);
        if self.parts[tenant].resident_blocks() > most {
            self.set_capacity(tenant, most, traffic);
        }
    }

    /// The tenant is gone: its blocks are free.
    pub(super) fn drop_all(&mut self, tenant: usize, traffic: &mut Traffic) {
        self.resize(tenant, 0, traffic);
        self.set_capacity(tenant, 0, traffic);
    }

    pub(super) fn part_mut(&mut self, tenant: usize) -> &mut Part {
        &mut self.parts[tenant]
    }

    pub(super) fn quota(&self, tenant: usize) -> u32 {
        self.quotas[tenant]
    }

    pub(super) fn resident(&self, tenant: usize) -> u32 {
        self.parts[tenant].resident_blocks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_alloc::WritePolicy;
    use larder_policy::index::hash;
    use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};

    struct Rig {
        lending: Lending,
        now_ns: u64,
    }

    impl Rig {
        fn new() -> Self {
            let caching = CachingSpec::new(PolicySpec::Lru, AdmissionSpec::Always).expect("is one");
            let mut lending = Lending::new(Mode { caching, write: WritePolicy::WriteBack }, 1000, 2, 0);
            (0..2).for_each(|tenant| lending.resize(tenant, 500, &mut Traffic::default()));
            Self { lending, now_ns: 0 }
        }

        /// Each block so many times in turn, a millisecond each.
        fn read(&mut self, tenant: usize, blocks: Range<u64>, times: usize) {
            for key in blocks.flat_map(|block| std::iter::repeat_n((tenant as u64) << 32 | block, times)) {
                self.now_ns += 1_000_000;
                self.lending.set_clock(self.now_ns);
                let blocks = Blocks { keys: &[key], hashes: &[hash(key)], first: 0 };
                self.lending.access(tenant, Action::Read, &blocks, (false, false), &mut Traffic::default());
            }
        }

        fn held(&self) -> [u32; 2] {
            [0, 1].map(|tenant| self.lending.resident(tenant))
        }
    }

    #[test]
    fn who_has_paused_lends_to_who_hits_what_it_reads_and_gets_it_back() {
        let mut rig = Rig::new();
        rig.read(0, 0..500, 1);
        // Who hits nothing takes nothing, whoever pauses.
        rig.read(1, 0..5000, 1);
        assert_eq!(rig.held(), [500, 500]);
        rig.read(1, 5000..6000, 2);
        let [lender, borrower] = rig.held();
        assert!(lender < 200 && lender + borrower > 930, "{lender} {borrower}");
        rig.read(0, 0..600, 1);
        let [lender, borrower] = rig.held();
        assert!(lender >= 500 && borrower <= 500, "it has its quota again: {lender} {borrower}");
        // What both hit as often stays where it is.
        for block in 6000..7000 {
            (0..2).for_each(|tenant| rig.read(tenant, block..block + 1, 2));
        }
        let [one, other] = rig.held();
        assert!(one.min(other) > 430, "{one} {other}");
        // A part that it keeps, however seldom it hits it; no more than is the most for the other.
        rig.lending.set_bounds(vec![400, 0], vec![u32::MAX; 2]);
        rig.read(1, 7000..12_000, 2);
        assert_eq!(rig.held()[0], 400);
        rig.lending.set_bounds(vec![0, 0], vec![u32::MAX, 600]);
        rig.read(1, 12_000..17_000, 2);
        assert_eq!(rig.held(), [400, 600]);
    }
}
