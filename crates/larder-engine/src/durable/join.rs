//! Volumes come and go while the engine works.
//!
//! One that comes gets an identity that none had before it, and, where the cache is kept, a number that nothing on the device has; it is served once the
//! volume table with its name is durable ([`super::retable`]). One that goes has been drained and forgotten ([`crate::Engine::forget_volume`]): nothing of it
//! can come back, so nothing needs to be said of its going. Its name leaves the table with the next one that is written. What it was it never is again in this
//! session, should it come back: somebody may have written to its backing meanwhile.

use super::retable::Then;
use super::{Durable, Planted};
use crate::format::{Volume, VolumeTable, VolumeTableError};
use crate::store::State;
use crate::{Drain, Engine, SECTOR_BYTES, TenantId, VolumeId};
use std::collections::BTreeMap;

/// A volume cannot join.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// Its size is no multiple of a sector, or more than an index can address.
    #[error(
        "{bytes} bytes are not whole sectors, or more than the {max} bytes that a volume may have with blocks of this size"
    )]
    Size {
        /// Its size.
        bytes: u64,
        /// The largest.
        max: u64,
    },
    /// Every identity was used.
    #[error("65,535 volumes have been here since the start: no other can come before the next")]
    TooMany,
    /// The table has no room for it.
    #[error(transparent)]
    Table(#[from] VolumeTableError),
    /// One at a time.
    #[error("another volume is growing, or joining")]
    Busy,
    /// The cache is being stopped.
    #[error("the cache is being stopped")]
    Stopping,
}

impl Engine {
    /// Add a volume to a tenant while the engine works. `known` is what a cache that is kept is to know it by; its `id` is chosen here. It may be served
    /// once [`Engine::is_joined`] says so. Follow with [`Engine::next_action`] until it is empty.
    ///
    /// # Errors
    /// Where it cannot be: nothing has changed then.
    ///
    /// # Panics
    /// If there is no such tenant.
    pub fn join_volume(
        &mut self,
        tenant: TenantId,
        known: Volume,
        ordered: bool,
    ) -> Result<VolumeId, JoinError> {
        let (bytes, max) = (known.bytes, self.volume_bytes_max());
        if !bytes.is_multiple_of(SECTOR_BYTES) || bytes > max {
            return Err(JoinError::Size { bytes, max });
        }
        if self.volumes.len() >= usize::from(u16::MAX) {
            return Err(JoinError::TooMany);
        }
        let new = self.durable.as_ref().map(|durable| durable.with(known)).transpose()?;
        let volume = self.add_volume(tenant, bytes);
        self.volume_mut(volume).order = ordered.then(Box::default);
        self.ordered.extend(ordered.then_some(volume));
        let untold = self.is_planted(Planted::JoinUntold);
        if let (Some(durable), Some((number, table))) = (&mut self.durable, new) {
            durable.numbers.push(number);
            durable.taken.insert(number);
            durable.volumes.insert(number, volume);
            durable.regions.add_volume(number);
            if !durable.is_latched() && !untold {
                durable.retable(table, Then::Joined(volume));
            }
            self.flush_backing(volume);
        }
        self.pump();
        Ok(volume)
    }

    /// True once a volume that joins may be served. If the cache device fails before, its backing serves alone.
    pub fn is_joined(&self, volume: VolumeId) -> bool {
        self.cache_failed || self.durable.as_ref().is_none_or(|durable| !durable.is_joining(volume))
    }

    /// Let go of a volume that is drained, that [`Engine::forget_volume`] was called for, and of which nobody asks anything any more. False while something of
    /// it is under way, or could come back: ask again when something has ended. Follow with [`Engine::next_action`]. Once it is gone, every request of it is invalid.
    pub fn leave_volume(&mut self, volume: VolumeId) -> bool {
        if self.is_gone(volume) {
            return true;
        }
        let drained = self.cache_failed || self.draining(volume) == Drain::Done;
        // Of a volume that has failed the device may bring back what is dirty.
        let drained = drained && !self.is_failed(volume);
        if !drained || self.volume(volume).dirty > 0 || !self.is_forgotten(volume) || self.is_awaited(volume)
        {
            return false;
        }
        if self.volume(volume).unflushed {
            self.flush_backing(volume);
            return false;
        }
        debug_assert!(self.keeps_nothing_of(volume), "it would be there again after a crash");
        self.drain(volume, false);
        self.ordered.retain(|&other| other != volume);
        self.volume_mut(volume).gone = true;
        if let Some(durable) = &mut self.durable {
            let number = durable.numbers[usize::from(volume.0)];
            durable.volumes.remove(&number);
        }
        true
    }

    /// True if a volume has left.
    pub fn is_gone(&self, volume: VolumeId) -> bool {
        self.volume(volume).gone
    }

    /// Nothing is cached of a volume, and nothing can come back. Slow: it looks at all that there is.
    fn keeps_nothing_of(&self, volume: VolumeId) -> bool {
        let lives = |entry: u32| {
            let of_it = self.store.key_of_number(entry).is_some_and(|key| key.volume == volume);
            of_it && self.store.state(entry) != State::Ghost
        };
        let durable = self.durable.as_deref().filter(|durable| !durable.is_over());
        let maps = |durable: &Durable| {
            let number = durable.numbers[usize::from(volume.0)];
            durable.slots.mapped().any(|slot| durable.block(&self.store, slot).volume == number)
        };
        !(0..self.store.numbers()).any(lives) && !durable.is_some_and(maps)
    }

    /// True while a flush of a volume is under way, or something is to be said of it.
    fn is_awaited(&self, volume: VolumeId) -> bool {
        let state = self.volume(volume);
        let waits = |durable: &Durable| {
            let told = !durable.is_joining(volume)
                && !durable.says_clean(volume)
                && !durable.news.has_waiter_of(volume);
            !durable.is_over() && !told
        };
        state.flushes.is_busy()
            || state.flushes.in_flight() > 0
            || state.order.as_ref().is_some_and(|order| order.is_waited_for())
            || self.durable.as_deref().is_some_and(waits)
    }
}

impl Durable {
    /// A number for another volume, and the table with it; without those of which nothing is left.
    fn with(&self, known: Volume) -> Result<(u16, VolumeTable), JoinError> {
        if self.stopping {
            return Err(JoinError::Stopping);
        }
        if self.retabling.is_some() {
            return Err(JoinError::Busy);
        }
        let number = (0..=u16::MAX).find(|number| !self.taken.contains(number)).ok_or(JoinError::TooMany)?;
        let mut table: BTreeMap<u16, Volume> =
            self.volume_table.volumes.iter().map(|volume| (volume.id, volume.clone())).collect();
        enter(&mut table, number, known);
        table.retain(|id, _| *id == number || self.volumes.contains_key(id) || self.mentions(*id));
        let generation = self.volume_table.generation + 1;
        let table = VolumeTable { generation, volumes: table.into_values().collect() };
        table.encode(&self.superblock.layout, self.superblock.salt())?;
        Ok((number, table))
    }

    /// True if the journal may still say something of a volume that is not here.
    fn mentions(&self, number: u16) -> bool {
        self.frees_anything_numbered(number) || self.owes(number) || self.regions.knows_region_of(number)
    }
}

/// Put a volume into a table. What it was with another size, or before somebody else could write to its backing, it never is again: guests write past what is
/// still mapped of that.
pub(super) fn enter(table: &mut BTreeMap<u16, Volume>, id: u16, volume: Volume) {
    let was = |other: &Volume| (&other.name, &other.identity) == (&volume.name, &volume.identity);
    let former = table.iter_mut().filter(|(other, known)| **other != id && was(known));
    former.for_each(|(_, known)| known.identity.clear());
    let bytes = volume.bytes;
    // One that has grown has its new size from here on.
    table.entry(id).or_insert(Volume { id, ..volume }).bytes = bytes;
}
