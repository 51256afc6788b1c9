//! Partitions that lend each other what they do not use.
//!
//! A tenant grows as long as there are free blocks, whatever its quota. When there are none, one that is below its quota takes blocks from the one that is
//! most above its own. One that is not takes from whose blocks lie idle (`larder_policy::residents`), as those of one that has paused do. All others make do with what they have. No tenant ever holds more than its maximum, free blocks or not. So nothing leaves the cache because of a decision alone, but only when somebody wants its place.

use std::ops::Range;

use larder_alloc::Mode;
use larder_policy::borrows::{BATCH, Borrows};
use larder_policy::residents::{Residents, lends};
use larder_policy::trial::{Action, Blocks, Outcome};

use super::store::{Part, part};
use super::traffic::Traffic;

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
    /// How long what each holds is idle.
    residents: Vec<Residents>,
    /// Whom each borrows from.
    borrows: Vec<Borrows<usize>>,
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
            residents: vec![Residents::default(); tenants],
            borrows: vec![Borrows::default(); tenants],
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
            let (left, saw) = (traffic.left.len(), traffic.outcomes.len());
            part.accesses(action, blocks, first..first + step, traffic);
            self.held = self.held - before + part.resident_blocks();
            self.note(tenant, action, &blocks.keys[first..first + step], leaves_first, (left, saw), traffic);
        }
        self.parts[tenant].set_leaves_first(false);
        self.parts[tenant].end_request(action);
    }

    /// Of these blocks it was told what became of them, from the outcome `saw` on, and what left for them, from `left` on.
    fn note(
        &mut self,
        tenant: usize,
        action: Action,
        keys: &[u64],
        leaves_first: bool,
        (left, saw): (usize, usize),
        traffic: &Traffic,
    ) {
        let (residents, now_ns) = (&mut self.residents[tenant], self.now_ns);
        let held = self.parts[tenant].resident_blocks();
        for (&key, outcome) in keys.iter().zip(&traffic.outcomes[saw..]) {
            match outcome {
                Outcome::Hit => residents.hit(key, action == Action::Read, now_ns),
                Outcome::Entered if leaves_first => {}
                Outcome::Entered => residents.entered(key, held, now_ns),
                Outcome::Passed => residents.left(key),
            }
        }
        if action == Action::Discard {
            keys.iter().for_each(|&key| residents.left(key));
        }
        traffic.left[left..].iter().for_each(|&(key, _)| residents.left(key));
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

    /// Who holds what has been idle for long gives a block up for each of those that are missing and have no room.
    fn take_unused(&mut self, tenant: usize, missing: u32, traffic: &mut Traffic) {
        for _ in self.free()..missing {
            if self.borrows[tenant].wants_one() {
                let from = self.idlest(tenant).map(|from| (from, self.residents[from].used()));
                self.borrows[tenant].found(from);
            }
            let residents = &self.residents;
            let Some(from) = self.borrows[tenant].lender(|from| residents[from].used()) else { continue };
            let lends = self.lends_at_most(from) > 0;
            if lends {
                self.set_capacity(from, self.parts[from].resident_blocks() - 1, traffic);
            }
            self.borrows[tenant].lent(lends);
        }
    }

    /// Who holds what has been idle for the longest time, if it is worth more to this tenant.
    fn idlest(&mut self, tenant: usize) -> Option<usize> {
        let turn = self.residents[tenant].turn(self.resident(tenant), self.now_ns);
        if turn.hits <= 0.0 || turn.seconds.is_infinite() {
            return None;
        }
        let mut found: Option<(usize, f64)> = None;
        for at in (0..self.parts.len()).filter(|&at| at != tenant) {
            if self.lends_at_most(at) > 0 {
                let held = self.resident(at);
                let idle = self.residents[at].idle(held, self.now_ns);
                if lends(idle, turn) && found.is_none_or(|(_, most)| idle.seconds > most) {
                    found = Some((at, idle.seconds));
                }
            }
        }
        found.map(|(at, _)| at)
    }

    fn lends_at_most(&self, at: usize) -> u32 {
        self.parts[at].resident_blocks().saturating_sub(self.least[at].min(self.quotas[at]))
    }

    fn set_capacity(&mut self, tenant: usize, blocks: u32, traffic: &mut Traffic) {
        let before = self.parts[tenant].resident_blocks();
        let left = traffic.left.len();
        self.parts[tenant].set_capacity(blocks, traffic);
        let residents = &mut self.residents[tenant];
        traffic.left[left..].iter().for_each(|&(key, _)| residents.left(key));
        self.held = self.held - before + self.parts[tenant].resident_blocks();
    }

    fn free(&self) -> u32 {
        self.cache_blocks - self.held
    }

    /// Another quota: nothing leaves for it, but what is above the most that the tenant may hold.
    pub(super) fn resize(&mut self, tenant: usize, quota: u32, traffic: &mut Traffic) {
        if self.quotas[tenant] == 0 && self.resident(tenant) == 0 {
            self.residents[tenant] = Residents::new(self.now_ns);
        }
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

        /// Each two blocks so many times in turn, a millisecond each.
        fn read(&mut self, tenant: usize, blocks: Range<u64>, times: usize) {
            let end = blocks.end;
            let pairs =
                blocks.step_by(2).flat_map(|first| std::iter::repeat_n(first..end.min(first + 2), times));
            for key in pairs.flatten().map(|block| (tenant as u64) << 32 | block) {
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
        // Who hits nothing takes nothing, whoever pauses; nor who reads each block in two pieces.
        rig.read(1, 0..15_000, 1);
        (15_000..16_000).for_each(|block| rig.read(1, block..block + 1, 2));
        assert_eq!(rig.held(), [500, 500]);
        rig.read(1, 16_000..18_000, 2);
        let [lender, borrower] = rig.held();
        assert!(lender < 200 && lender + borrower > 930, "{lender} {borrower}");
        rig.read(0, 0..600, 1);
        let [lender, borrower] = rig.held();
        assert!(lender >= 500 && borrower <= 500, "it has its quota again: {lender} {borrower}");
        // What both hit as often stays where it is.
        for pair in (18_000..19_000).step_by(2) {
            (0..2).for_each(|tenant| rig.read(tenant, pair..pair + 2, 2));
        }
        let [one, other] = rig.held();
        assert!(one.min(other) > 430, "{one} {other}");
        // A part that it keeps, however seldom it hits it; no more than is the most for the other.
        rig.lending.set_bounds(vec![400, 0], vec![u32::MAX; 2]);
        rig.read(1, 19_000..29_000, 2);
        assert_eq!(rig.held()[0], 400);
        rig.lending.set_bounds(vec![0, 0], vec![u32::MAX, 600]);
        rig.read(1, 29_000..39_000, 2);
        assert_eq!(rig.held(), [400, 600]);
    }

    #[test]
    fn who_uses_what_it_holds_keeps_it_beside_one_that_hits_a_few_blocks_far_more_often() {
        let mut rig = Rig::new();
        rig.read(0, 0..500, 1);
        for round in 0..4000 {
            // Of ten blocks nine are hit, and one is never read again; the other tenant reads one of its own meanwhile.
            rig.read(1, round % 20 * 9..round % 20 * 9 + 9, 1);
            rig.read(1, 1000 + round..1001 + round, 1);
            rig.read(0, round % 500..round % 500 + 1, 1);
        }
        assert_eq!(rig.held(), [500, 500]);
    }

    #[test]
    fn who_reads_all_that_it_holds_seldom_keeps_it_beside_a_scan_with_a_few_hot_blocks_until_it_pauses() {
        let mut rig = Rig::new();
        rig.read(0, 0..500, 1);
        let burst = |rig: &mut Rig, rounds: Range<u64>, reads: bool| {
            for round in rounds {
                // What it reads is older than eight times as long as the other takes to turn its own over.
                let scan = 1000 + round * 60;
                rig.read(1, 0..10, 2);
                rig.read(1, scan..scan + 60, 1);
                if reads {
                    rig.read(0, round % 500..round % 500 + 1, 1);
                }
            }
        };
        burst(&mut rig, 0..1000, true);
        assert_eq!(rig.held(), [500, 500]);
        burst(&mut rig, 1000..2000, false);
        assert!(rig.held()[0] < 200, "{:?}", rig.held());
    }
}
