//! Whole images: an empty cache, or one as a dump tells it.

use super::dump::{Dump, DumpError};
use super::page::{self, Contents, PAGE_BYTES};
use super::superblock::{SUPERBLOCK_BYTES, Superblock};
use super::volumes::VolumeTable;
use super::{MediumError, MediumMut, STEP_BYTES};

/// Make an empty cache. What the device held is gone from the first moment on: a crash on the way leaves no cache.
pub fn format(target: &mut impl MediumMut, superblock: &Superblock) -> Result<(), MediumError> {
    wipe(target, superblock)?;
    finish(target, superblock)
}

/// Make a cache that holds what the dump says; the data of its blocks must be in their slots, which are not touched.
pub fn restore(target: &mut impl MediumMut, dump: &Dump) -> Result<(), DumpError> {
    let (superblock, volumes, blocks) = dump.decode()?;
    let table = VolumeTable { generation: 1, volumes }.encode(&superblock.layout, superblock.salt())?;
    wipe(target, &superblock)?;
    // One record's worth of history, which has left the journal.
    let superblock = Superblock { next: 2, tail: 2, volumes_generation: 1, ..superblock };
    target.write(superblock.layout.volume_table_offset(1), &table)?;
    let find = |slot| blocks.binary_search_by_key(&slot, |block| block.0).ok().map(|at| blocks[at].1);
    write_pages(target, &superblock, 1, |_| 0, find)?;
    target.flush()?;
    Ok(finish(target, &superblock)?)
}

/// Write every page, each to the copy that `copy` says.
pub(super) fn write_pages(
    target: &mut impl MediumMut,
    superblock: &Superblock,
    upto: u64,
    copy: impl Fn(u32) -> u8,
    slots: impl Fn(u32) -> Option<Contents>,
) -> Result<(), MediumError> {
    let (layout, salt) = (superblock.layout, superblock.salt());
    let mut bytes = Vec::with_capacity(STEP_BYTES);
    let mut start = 0;
    for number in 0..layout.pages() {
        let offset = layout.page_offset(number, copy(number));
        let goes_on = offset == start + bytes.len() as u64 && bytes.len() < STEP_BYTES;
        if !goes_on {
            if !bytes.is_empty() {
                target.write(start, &bytes)?;
            }
            bytes.clear();
            start = offset;
        }
        let at = bytes.len();
        bytes.resize(at + PAGE_BYTES, 0);
        page::encode(
            &mut bytes[at..],
            salt,
            (number, copy(number)),
            upto,
            layout.page_slots(number).map(&slots),
        );
    }
    target.write(start, &bytes)
}

/// Nothing is a cache until the superblock says so: they go first, then all metadata.
fn wipe(target: &mut impl MediumMut, superblock: &Superblock) -> Result<(), MediumError> {
    let superblocks = 2 * SUPERBLOCK_BYTES as u64;
    target.zero(0, superblocks)?;
    target.flush()?;
    target.zero(superblocks, superblock.layout.data_offset() - superblocks)?;
    target.flush()
}

/// Both copies of the superblock, one after the other.
fn finish(target: &mut impl MediumMut, superblock: &Superblock) -> Result<(), MediumError> {
    superblock.store(target)?;
    superblock.successor().store(target)
}
