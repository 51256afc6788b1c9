//! The invariants of the engine, checked in full: slow, for tests to call after each step.

use crate::store::{EntryId, State};
use crate::{Engine, Sharing, Tenant, TenantId, VolumeId};
use larder_policy::Replacement;
use std::collections::BTreeMap;

impl Engine {
    /// Check every invariant.
    ///
    /// # Panics
    /// With what is wrong, if one does not hold.
    pub fn self_check(&self) {
        self.check_slots();
        for volume in &self.volumes {
            volume.locks.self_check();
        }
        let staged: u64 = self.stages.iter().map(|(_, &bytes)| u64::from(bytes)).sum();
        assert_eq!(staged, self.stage_bytes, "staging bytes are counted");
        assert_eq!(self.parts.iter().filter(|(_, part)| part.guest.is_none()).count(), self.alone);
        assert_eq!(self.volumes.iter().map(|v| v.fills.len()).sum::<usize>(), self.fills.len());
        self.check_dirty();
        self.check_cleaned();
        for Tenant { allowance, stats, .. } in &self.tenants {
            allowance.self_check(stats.ssd_fill_bytes + stats.ssd_guest_write_bytes);
        }
        let spent: u64 = self.tenants.iter().map(|tenant| tenant.allowance.spent()).sum();
        assert_eq!(spent, self.spent_bytes, "what each has spent adds up");
        if !self.has_guests() && self.fills.is_empty() && !self.is_cleaning() {
            self.check_idle();
        }
    }

    /// Every slot has one owner, every entry is in the index, and policies know as many blocks as there are.
    fn check_slots(&self) {
        let mut owned = vec![false; self.config.cache_blocks as usize];
        let mut own = |slot: u32| {
            let seen = std::mem::replace(&mut owned[slot as usize], true);
            assert!(!seen, "slot {slot} has two owners");
        };
        self.free_slots.iter().copied().for_each(&mut own);
        let (mut live, mut dead, mut held) = (BTreeMap::new(), BTreeMap::new(), vec![0; self.tenants.len()]);
        for entry in 0..self.store.numbers() {
            let Some(key) = self.store.key_of_number(entry) else { continue };
            let TenantId(tenant) = self.volume(key.volume).tenant;
            let at = self.partition_of(entry);
            self.check_place(entry);
            match self.store.state(entry) {
                State::Ghost => {
                    assert_eq!(self.store.find_ghost(key), Some(entry), "{key:?} is found by its key")
                }
                state => {
                    assert_eq!(self.store.find(key), Some(entry), "{key:?} is found by its key");
                    own(self.store.slot(entry));
                    let counted = if state == State::Dead { &mut dead } else { &mut live };
                    *counted.entry(at).or_insert(0) += 1;
                    held[tenant as usize] += 1;
                }
            }
        }
        for at in self.partitions.ids() {
            let (partition, counted) = (&self.partitions[at], |of: &BTreeMap<_, u32>| of.get(&at).copied());
            let (live, dead) = (counted(&live).unwrap_or(0), counted(&dead).unwrap_or(0));
            assert_eq!(partition.replacement.resident(), live, "the policy of {at:?} knows its blocks");
            assert_eq!(partition.dead.len(), dead, "the dead blocks of {at:?} are on its list");
        }
        for (at, tenant) in self.tenants.iter().enumerate() {
            assert_eq!(tenant.held, held[at], "tenant {at}'s slots are counted");
        }
        assert_eq!(self.held_blocks, held.iter().sum::<u32>(), "the slots of all tenants are counted");
    }

    /// An entry is in a partition that is in use.
    fn check_place(&self, entry: EntryId) {
        match self.sharing {
            Sharing::Off => {
                assert!(!self.store.is_common(entry), "nobody shares, but entry {entry} is common")
            }
            Sharing::All { .. } => assert!(self.store.is_common(entry), "all share, but not entry {entry}"),
            Sharing::Spill { .. } => {}
        }
    }

    /// Dirty blocks are counted, and wait to be written back.
    fn check_dirty(&self) {
        let mut dirty = vec![0; self.volumes.len()];
        for entry in 0..self.store.numbers() {
            let Some(key) = self.store.key_of_number(entry) else { continue };
            dirty[usize::from(key.volume.0)] += u32::from(self.store.state(entry) == State::Dirty);
        }
        for (volume, (at, dirty)) in self.volumes.iter().zip((0..).zip(dirty)) {
            let kept = self.kept_versions(VolumeId(at));
            assert_eq!(volume.dirty, dirty + kept, "dirty blocks are counted");
            self.check_order(VolumeId(at));
        }
        let of = |tenant| self.volumes.iter().filter(move |volume| usize::from(volume.tenant.0) == tenant);
        for (at, tenant) in self.tenants.iter().enumerate() {
            assert_eq!(
                tenant.dirty,
                of(at).map(|volume| volume.dirty).sum::<u32>(),
                "tenant {at}'s dirty blocks"
            );
        }
        assert_eq!(
            self.dirty,
            self.tenants.iter().map(|tenant| tenant.dirty).sum::<u32>(),
            "all dirty blocks"
        );
    }

    fn check_idle(&self) {
        let metadata = self.durable.as_ref().map_or(0, |durable| durable.writes_in_flight());
        let metadata = metadata + self.questions_in_flight();
        assert!(self.parts.is_empty() && self.stages.len() == metadata && self.granted.is_empty());
        assert!(self.merges.is_empty() && self.outs.is_empty());
        assert!(self.volumes.iter().all(|v| v.locks.is_idle()), "locks outlive their owners");
        for entry in 0..self.store.numbers() {
            if let Some(key) = self.store.key_of_number(entry) {
                let state = self.store.state(entry);
                let settled = matches!(state, State::Valid | State::Dead | State::Ghost | State::Dirty);
                assert!(settled, "{key:?} is {state:?} though nothing runs");
            }
        }
    }
}
