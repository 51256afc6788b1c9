//! Repair: a consistent cache out of what is left, and the truth about what is not.

use super::build::write_pages;
use super::entry::BlockId;
use super::page::Contents;
use super::recover::{RecoverError, Recovered, SlotState, check_room, recover, recover_after};
use super::superblock::Superblock;
use super::volumes::VolumeTable;
use super::{Finding, MediumError, MediumMut, SESSION_RECORDS};
use crate::SessionMark;
use std::ops::Range;

/// What a repair had to give up that no backing may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A dirty block that contradicts other metadata.
    Dirty {
        /// Which block.
        block: BlockId,
        /// Where its data still is, until something else is put there.
        slot: u32,
    },
    /// Slots of which nothing is known: each may have held a block, and if the cache held dirty blocks, a dirty one.
    Unknown {
        /// The slots.
        slots: Range<u32>,
    },
}

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What was wrong. What lost records of the journal told is lost, too, and only they could have named it.
    pub findings: Vec<Finding>,
    /// What is lost.
    pub lost: Vec<Lost>,
    /// Clean blocks that were given up; their backings have them.
    pub clean_dropped: u64,
    /// Dirty blocks that remain, with their slots, but may be out of date: a record that is lost may have told of
    /// newer data.
    pub outdated: Vec<(BlockId, u32)>,
    /// Blocks that remain.
    pub kept: u64,
}

/// Make a consistent cache of what is left; afterwards [`super::check`] finds nothing but what is wrong with data.
///
/// New state goes beside the old first, and counts when its superblock does: a repair that is cut short leaves a
/// cache that is still damaged, and can be repaired again.
pub fn repair(medium: &mut impl MediumMut) -> Result<Repaired, RecoverError> {
    let recovered = recover(medium)?;
    repair_to(medium, &recovered, true)
}

/// The same for a cache that was given up with this session: none of what is known to have been durable is taken for what a power cut left, and no clean block
/// is kept, for guests have written past them since. (The superblock may say so, too; but its copy may be one that cannot be read.)
pub fn repair_after(medium: &mut impl MediumMut, mark: SessionMark) -> Result<Repaired, RecoverError> {
    let recovered = recover_after(medium, mark)?;
    repair_to(medium, &recovered, false)
}

fn repair_to(
    medium: &mut impl MediumMut,
    recovered: &Recovered,
    keeps_clean: bool,
) -> Result<Repaired, RecoverError> {
    let keeps = |contents: Contents| contents.dirty || keeps_clean;
    let repaired = summary(recovered, keeps);
    // Further than any session could be. Until the superblock says so, too, such a page does not count.
    let upto = recovered.highest() + SESSION_RECORDS;
    let volumes = next_volumes(recovered);
    let keep = |slot| match recovered.slot(slot) {
        SlotState::Used(contents) if keeps(contents) => Some(contents),
        _ => None,
    };
    let generation = recovered.next_generation();
    check_room(upto, generation.max(volumes.generation))?;
    let superblock = Superblock {
        generation,
        session: generation,
        clean_stop: true,
        may_hold_dirty: recovered.blocks().any(|(_, contents)| contents.dirty),
        needs_check: false,
        next: upto + 1,
        part: 0,
        tail: upto + 1,
        volumes_generation: volumes.generation,
        ..recovered.superblock().clone()
    };
    let current = |page: u32| recovered.pages()[page as usize].copy;
    write_half(medium, &superblock, &volumes, |page| 1 - current(page), keep)?;
    let volumes = VolumeTable { generation: volumes.generation + 1, ..volumes };
    let superblock = Superblock { volumes_generation: volumes.generation, ..superblock.successor() };
    let layout = superblock.layout;
    medium.zero(layout.record_offset(0), layout.records() * layout.sector_bytes() as u64)?;
    write_half(medium, &superblock, &volumes, current, keep)?;
    if !is_readable(medium, &superblock, &volumes) {
        // The newest table must not lie where it cannot be read, however often that is written.
        let volumes = VolumeTable { generation: volumes.generation + 1, ..volumes };
        let superblock = Superblock { volumes_generation: volumes.generation, ..superblock.successor() };
        write_volumes(medium, &superblock, &volumes)?;
        superblock.store(medium)?;
    }
    Ok(repaired)
}

/// True if this table is found where it was written.
fn is_readable(medium: &mut impl MediumMut, superblock: &Superblock, volumes: &VolumeTable) -> bool {
    let layout = superblock.layout;
    let mut bytes = vec![0; layout.volume_table_bytes()];
    let read = medium.read(layout.volume_table_offset(volumes.copy()), &mut bytes);
    read.is_ok() && VolumeTable::decode(&bytes, superblock.salt(), volumes.copy()).as_ref() == Some(volumes)
}

/// One copy of everything; the superblock when the rest is durable.
fn write_half(
    medium: &mut impl MediumMut,
    superblock: &Superblock,
    volumes: &VolumeTable,
    copy: impl Fn(u32) -> u8,
    slots: impl Fn(u32) -> Option<Contents>,
) -> Result<(), MediumError> {
    write_pages(medium, superblock, superblock.next - 1, copy, slots)?;
    write_volumes(medium, superblock, volumes)?;
    superblock.store(medium)
}

fn write_volumes(
    medium: &mut impl MediumMut,
    superblock: &Superblock,
    volumes: &VolumeTable,
) -> Result<(), MediumError> {
    let layout = superblock.layout;
    // It was read from a table of this size.
    let table = volumes.encode(&layout, superblock.salt()).map_err(|error| MediumError {
        offset: layout.volume_table_offset(volumes.copy()),
        reason: error.to_string(),
    })?;
    medium.write(layout.volume_table_offset(volumes.copy()), &table)?;
    medium.flush()
}

/// The volumes under a generation that goes beside the table that was found, which may be the only good one.
fn next_volumes(recovered: &Recovered) -> VolumeTable {
    let found = recovered.volumes();
    let above = found.generation.max(recovered.superblock().volumes_generation) + 1;
    let generation = above + u64::from((above - found.generation).is_multiple_of(2));
    VolumeTable { generation, volumes: found.volumes.clone() }
}

fn summary(recovered: &Recovered, keeps: impl Fn(Contents) -> bool) -> Repaired {
    let findings = recovered.findings().to_vec();
    let mut repaired =
        Repaired { findings, lost: Vec::new(), clean_dropped: 0, outdated: Vec::new(), kept: 0 };
    for (slot, state) in recovered.slots() {
        match state {
            SlotState::Free => {}
            SlotState::Used(contents) if !keeps(contents) => repaired.clean_dropped += 1,
            SlotState::Used(contents) => {
                repaired.kept += 1;
                if contents.dirty && recovered.may_be_outdated(slot) {
                    repaired.outdated.push((contents.block, slot));
                }
            }
            SlotState::Dropped(Contents { dirty: false, .. }) => repaired.clean_dropped += 1,
            SlotState::Dropped(Contents { block, .. }) => repaired.lost.push(Lost::Dirty { block, slot }),
            SlotState::Unknown => repaired.lose_unknown(slot),
        }
    }
    repaired
}

impl Repaired {
    fn lose_unknown(&mut self, slot: u32) {
        match self.lost.last_mut() {
            Some(Lost::Unknown { slots }) if slots.end == slot => slots.end += 1,
            _ => self.lost.push(Lost::Unknown { slots: slot..slot + 1 }),
        }
    }
}
