//! Writes under `wb` that wait until there are slots for their blocks.
//!
//! A slot that is freed can be used when the journal durably says so, a few milliseconds later. A burst of writes may need more of them than were freed ahead: to write to the
//! backing instead takes longer, on a disk many times, and leaves the blocks uncached. So such a write frees what it lacks and waits for the journal, for some rounds at
//! most: where what it could have is dirty, it goes on with the slots that there are, and passes the cache by for the rest. Writes to ordered volumes wait in their own
//! way (`order`).

use crate::locks::Owner;
use crate::{Engine, VolumeId};

/// Rounds of the journal that a write waits for slots at most.
const ROUNDS_MAX: u8 = 16;

/// Of a partition one write frees at most this part at a time.
const SHARE_MAX: u32 = 4;

impl Engine {
    /// A part has its lock, and is to write to the cache alone. True if it waits for slots; it is granted again after a round.
    pub(crate) fn waits_for_slots(&mut self, part_id: u32) -> bool {
        let part = self.parts[part_id as usize];
        let waits_otherwise = self.is_ordered(part.volume) || self.goes_past_cache(part.volume);
        if self.durable.is_none() || waits_otherwise || part.asked.closed || part.rounds >= ROUNDS_MAX {
            return false;
        }
        let blocks = self.blocks_of(part.start, part.end);
        let needed = usize::try_from(blocks.end - blocks.start).unwrap_or(usize::MAX);
        if self.free_slots.len() >= needed || self.has_slots(part.volume, needed) {
            return false;
        }
        self.parts[part_id as usize].rounds += 1;
        self.short_of_slots.push(part_id);
        if let Some(durable) = &mut self.durable {
            durable.want_soon();
        }
        self.pump();
        true
    }

    /// True if there are so many free slots, or no more can be had by waiting. Else what is missing is on its way.
    fn has_slots(&mut self, volume: VolumeId, needed: usize) -> bool {
        let tenant = self.tenant_of(volume);
        let home = self.home(tenant);
        let quota = self.partitions[home].quota;
        let needed = needed.min((quota / SHARE_MAX) as usize);
        let missing = needed.saturating_sub(self.free_slots.len());
        if missing > 0 {
            self.take_from_pool(missing);
        }
        let missing = needed.saturating_sub(self.free_slots.len());
        if missing == 0 || self.is_too_dirty(volume) {
            return true;
        }
        let coming = self.durable.as_ref().map_or(0, |durable| durable.freeing());
        let mut more = missing.saturating_sub(coming);
        while more > 0 && self.give_one(home) {
            more -= 1;
        }
        self.durable.as_ref().is_none_or(|durable| durable.freeing() == 0)
    }

    /// A round of the journal is over, or the cache is not used any more: those who wait try again.
    pub(crate) fn look_for_slots(&mut self) {
        let waiting = std::mem::take(&mut self.short_of_slots);
        self.granted.extend(waiting.into_iter().map(Owner::Part));
    }
}
