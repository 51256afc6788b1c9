//! Which epoch the journal gives each slot that it maps dirty, or will, of volumes with ordered write-back ([`crate::order`]): until it durably says
//! otherwise. So it is known which numbers of epochs are still in use.

use crate::format::Epoch;
use std::collections::BTreeMap;

/// Slots, and their volumes' numbers and epochs.
#[derive(Debug, Default)]
pub(super) struct Versions {
    of: BTreeMap<u32, (u16, u64)>,
    /// How many slots of a volume have an epoch.
    counts: BTreeMap<(u16, u64), u32>,
}

impl Versions {
    pub fn add(&mut self, slot: u32, volume: u16, epoch: u64) {
        debug_assert!(
            !self.of.contains_key(&slot),
            "a slot is used again when the journal has durably freed it"
        );
        self.of.insert(slot, (volume, epoch));
        *self.counts.entry((volume, epoch)).or_default() += 1;
    }

    /// Nothing if the slot has none.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        if self.of.is_empty() {
            return;
        }
        let Some(of) = self.of.remove(&slot) else { return };
        if let Some(count) = self.counts.get_mut(&of) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&of);
            }
        }
    }

    /// As it is written.
    #[inline]
    pub fn epoch(&self, slot: u32) -> Epoch {
        self.of.get(&slot).map_or(Epoch::NONE, |&(_, epoch)| Epoch::of(epoch))
    }

    /// The oldest epoch of a volume that has a slot.
    pub fn oldest(&self, volume: u16) -> Option<u64> {
        self.counts.range((volume, 0)..=(volume, u64::MAX)).next().map(|(&(_, epoch), _)| epoch)
    }
}
