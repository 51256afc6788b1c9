//! The invariants of the engine, checked in full: slow, for tests to call after each step.

use crate::store::State;
use crate::{Engine, TenantId};

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
        assert_eq!(self.volumes.iter().map(|v| v.fills.len()).sum::<usize>(), self.fills.len());
        if self.guests.is_empty() && self.fills.is_empty() {
            self.check_idle();
        }
    }

    /// Every slot has one owner, and every entry is on its tenant's list and in the index.
    fn check_slots(&self) {
        let mut owned = vec![false; self.config.cache_blocks as usize];
        let mut own = |slot: u32| {
            let seen = std::mem::replace(&mut owned[slot as usize], true);
            assert!(!seen, "slot {slot} has two owners");
        };
        self.free_slots.iter().copied().for_each(&mut own);
        let mut entries = 0;
        for (at, tenant) in self.tenants.iter().enumerate() {
            for entry in tenant.lru.iter_oldest_first(&self.links) {
                let key = self.store.key(entry);
                assert_eq!(self.store.find(key), Some(entry), "{key:?} is found by its key");
                assert_eq!(self.volume(key.volume).tenant, TenantId(at as u16), "{key:?} is its tenant's");
                own(self.store.slot(entry));
                entries += 1;
            }
        }
        assert_eq!(entries, self.store.len(), "every entry is on a list");
    }

    fn check_idle(&self) {
        assert!(self.parts.is_empty() && self.stages.is_empty() && self.granted.is_empty());
        assert!(self.volumes.iter().all(|v| v.locks.is_idle()), "locks outlive their owners");
        for tenant in &self.tenants {
            for entry in tenant.lru.iter_oldest_first(&self.links) {
                let (key, state) = (self.store.key(entry), self.store.state(entry));
                assert!(
                    matches!(state, State::Valid | State::Dead),
                    "{key:?} is {state:?} though nothing runs"
                );
            }
        }
    }
}
