//! Writes to a backing, kept behind the marks that they need (rule W).
//!
//! A write that touches no block which the journal maps needs none. Else the write waits until the block's region is marked
//! durably: after a crash nobody trusts what is mapped there. Whether it waits or not, the region is not quiet from here
//! until a flush of the backing that begins after the write's end.
//!
//! The journal carries so many marks and no more. A write that would need one more waits at the *gate*, before it is announced to any region, and
//! behind it all that touch marked regions: so those become quiet, and their marks go. A write that is announced gets all its marks.

use super::{After, Durable, Phase, Planted};
use crate::format::Region;
use crate::request::Part;
use crate::store::BlockKey;
use crate::{Engine, VolumeId};

impl Engine {
    /// A part that writes has its lock. True if it has to wait for marks; it is granted again when they are durable.
    pub(crate) fn waits_for_marks(&mut self, part_id: u32) -> bool {
        let part = self.parts[part_id as usize];
        let Some(durable) = &mut self.durable else { return false };
        if part.guarded || durable.phase == Phase::Latched {
            return false;
        }
        if durable.phase == Phase::Busy(After::Latch) {
            durable.held.push(part_id);
            self.parts[part_id as usize].marks = 1;
            self.parts[part_id as usize].guarded = true;
            return true;
        }
        if self.waits_at_gate(part_id, &part) {
            self.parts[part_id as usize].marks = 1;
            self.pump();
            return true;
        }
        self.parts[part_id as usize].guarded = true;
        let waits = self.guard(part_id, &part);
        self.parts[part_id as usize].marks = waits;
        self.pump();
        waits > 0 && !self.is_planted(Planted::MarkNotAwaited)
    }

    /// Bytes that one part may write at most: it never needs more marks than there may be.
    pub(crate) fn markable_bytes(&self) -> u64 {
        self.durable.as_ref().map_or(u64::MAX, |durable| {
            let regions = (durable.journal.marks_max() as u64 / 2).max(1);
            regions * u64::from(durable.superblock.region_blocks) * self.block_bytes()
        })
    }

    /// True if there may not be as many marks as the part needs.
    fn waits_at_gate(&mut self, part_id: u32, part: &Part) -> bool {
        let Some(durable) = &self.durable else { return false };
        let (marks, most) = (durable.regions.marks(), durable.journal.marks_max());
        let blocks = self.blocks_of(part.start, part.end);
        // Mostly there is room for all that the part could touch.
        let touched = (blocks.end - blocks.start) / u64::from(durable.superblock.region_blocks) + 2;
        let has_room = durable.gate.is_empty() && marks + touched as usize <= most;
        if has_room || self.is_planted(Planted::MarkSkipped) {
            return false;
        }
        let regions = self.regions_of(part);
        let (marked, others): (Vec<_>, Vec<_>) =
            regions.partition(|&region| durable.regions.has_mark(region));
        let more = others.into_iter().filter(|&region| self.maps_any(part, region)).count();
        let concerned = more > 0 || !marked.is_empty();
        let waits = concerned && (!durable.gate.is_empty() || marks + more > most);
        if let Some(durable) = self.durable.as_mut().filter(|_| waits) {
            durable.gate.push_back(part_id);
            durable.want(1);
        }
        waits
    }

    /// There may be more marks now: let those at the gate try again, in their order.
    pub(super) fn open_gate(&mut self) {
        let most = self.durable.as_ref().map_or(0, |durable| durable.journal.marks_max());
        if let Some(durable) = self.durable.as_mut().filter(|durable| durable.regions.marks() < most) {
            let parts = durable.gate.drain(..).collect();
            self.resume(parts);
        }
    }

    /// Announce the write to its regions. The number of marks that it waits for.
    fn guard(&mut self, part_id: u32, part: &Part) -> u32 {
        let skip = self.is_planted(Planted::MarkSkipped);
        let no_wait = self.is_planted(Planted::MarkNotAwaited);
        let mut waits = 0;
        for region in self.regions_of(part) {
            let needed = !skip && self.maps_any(part, region);
            let Some(durable) = self.durable.as_deref_mut() else { return waits };
            let mut begun = durable.regions.begin(region);
            if !needed {
                continue;
            }
            let first = begun.want_mark();
            if !no_wait && begun.wait(part_id) {
                waits += 1;
            }
            if first {
                durable.marks.push_back(region);
                durable.want(1);
            }
        }
        waits
    }

    /// A part that was guarded has ended.
    pub(crate) fn unguard(&mut self, part: &Part) {
        let regions = self.regions_of(part);
        if let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_latched()) {
            regions.for_each(|region| durable.regions.end(region));
            if !durable.gate.is_empty() {
                durable.want(1);
            }
        }
    }

    fn regions_of(&self, part: &Part) -> impl Iterator<Item = Region> + use<> {
        let blocks = self.blocks_of(part.start, part.end);
        let ends = self.durable.as_ref().map(|durable| {
            let of = |block| durable.region_of(durable.block_id(BlockKey { volume: part.volume, block }));
            (of(blocks.start), of(blocks.end - 1))
        });
        let between = |(first, last): (Region, Region)| {
            (first.region..=last.region).map(move |region| Region { region, ..first })
        };
        ends.into_iter().flat_map(between)
    }

    /// True if the journal may map a block of this region that the part touches, now or after a crash.
    fn maps_any(&self, part: &Part, region: Region) -> bool {
        let Some(durable) = &self.durable else { return false };
        let (touched, size) =
            (self.blocks_of(part.start, part.end), u64::from(durable.superblock.region_blocks));
        let first = touched.start.max(region.region * size);
        let end = touched.end.min((region.region + 1) * size);
        (first..end).any(|block| self.is_mapped(durable, BlockKey { volume: part.volume, block }))
    }

    fn is_mapped(&self, durable: &Durable, key: BlockKey) -> bool {
        let block = durable.block_id(key);
        let in_limbo = durable.limbo.of(block).next().is_some();
        in_limbo || self.store.find(key).is_some_and(|entry| durable.slots.is_used(self.store.slot(entry)))
    }

    /// A flush of a volume's backing begins.
    pub(crate) fn note_flush_begins(&mut self, volume: VolumeId) {
        if let Some(durable) = &mut self.durable {
            let number = durable.numbers[volume.0 as usize];
            durable.regions.flush_begins(number);
            durable.cover_owed(number);
        }
        self.cover_cleaned(volume);
    }

    /// It has ended: what it covers may be mapped, unless something is known against the volume.
    pub(crate) fn note_flush_ends(&mut self, volume: VolumeId, ok: bool) {
        let forgotten = self.is_planted(Planted::FailedFlushForgotten);
        let Some(durable) = &mut self.durable else { return };
        let number = durable.numbers[volume.0 as usize];
        let ready = durable.regions.flush_ends(number, ok || forgotten);
        durable.pay_owed(number, ok);
        if !durable.marks.is_empty() || !durable.gate.is_empty() {
            durable.want(1);
        }
        ready.into_iter().for_each(|region| self.wish_region(region));
        self.end_cleaned(volume, ok);
        self.pump();
    }
}
