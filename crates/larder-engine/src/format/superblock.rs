//! The superblock: what the cache is, where its regions lie, and how it was left. 4 KiB, in two copies.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..8 | `LARDERCD` |
//! | 8..12 | format version: 5 |
//! | 12..16, 16..20, 20..24 | bytes in a block; slots; bytes in a sector |
//! | 24..40 | UUID |
//! | 40..48 | generation: the higher valid one of the two copies counts; it lies in copy generation mod 2 |
//! | 48..52 | flags: 1 stopped cleanly, 2 may hold dirty blocks, 4 needs a check |
//! | 52..56 | bytes of one copy of the volume table |
//! | 56..64 | records of the journal's ring |
//! | 64..104 | offsets of the volume tables, the slot tables, the journal, the data; end of the device |
//! | 104..108 | blocks in a region |
//! | 112..120 | session |
//! | 120..128 | next: every record before this sequence was durable when this was written |
//! | 128..136 | tail: the sequence from which to replay if no later record exists |
//! | 136..144 | generation of the volume table when this was written |
//! | 144..148 | part: so many bytes of entries of the record `next` were durable, in a draft |
//! | 4092..4096 | CRC-32C of what is before, without salt |
//!
//! Magic, version and checksum lie where format 1 had them: each version knows the other's and leaves it alone.

use super::bytes::{array, is_blank, put, u32_at, u64_at};
use super::checksum::{Salt, Uuid, crc32c};
use super::layout::{Layout, Shape};
use super::record::record_room;
use super::{MediumError, MediumMut, SEQUENCE_MAX};

/// Bytes of one copy.
pub const SUPERBLOCK_BYTES: usize = 4096;

/// The format that this code writes.
pub const VERSION: u32 = 5;
/// The oldest that it goes on with: 3 has entries of the journal that 2 has not, 4 writes them in fewer bytes.
pub(super) const OLDEST: u32 = 2;

const MAGIC: &[u8; 8] = b"LARDERCD";
const CRC_AT: usize = SUPERBLOCK_BYTES - 4;
const OFFSETS_AT: usize = 64;
const CLEAN: u32 = 1;
const DIRTY: u32 = 2;
const NEEDS_CHECK: u32 = 4;

/// Blocks in a region when nothing else is asked for: 4 MiB of 4 KiB blocks, the extent of DRBD's activity log.
pub(super) const REGION_BLOCKS: u32 = 1024;

/// What a superblock says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The format in which it was written. The next one is written in [`VERSION`].
    pub format: u32,
    /// The cache's name.
    pub uuid: Uuid,
    /// Rises with every superblock written.
    pub generation: u64,
    /// Where everything lies.
    pub layout: Layout,
    /// Blocks that one mark covers: a power of two.
    pub region_blocks: u32,
    /// Nothing was written after this: every record is before `next`.
    pub clean_stop: bool,
    /// Some block may be newer than the backing's.
    pub may_hold_dirty: bool,
    /// Metadata could not be written: not to be used before a check.
    pub needs_check: bool,
    /// The generation of the superblock with which the writer of records from `next` on began.
    pub session: u64,
    /// Every record before this was durable; those from this one on are of this session or a later one.
    pub next: u64,
    /// Of that one so many bytes of entries were durable, in a draft; said where a session was given up.
    pub part: u32,
    /// Where replay begins if there is no record from `next` on.
    pub tail: u64,
    /// The volume table's generation: an older one is not the cache's.
    pub volumes_generation: u64,
}

/// Why a copy of the superblock cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nothing was ever written.
    #[error("is blank")]
    Blank,
    /// It is the header of format 1: a cache without durable state.
    #[error("is of format 1, which keeps nothing over a stop")]
    VersionOne,
    /// A later format, which this code does not know.
    #[error("was written by a newer version of Larder (format {0})")]
    Newer(u32),
    /// No Larder cache.
    #[error("holds something else")]
    Foreign,
    /// Torn, or damaged.
    #[error("fails its checksum")]
    Checksum,
    /// Whole, but the other copy's.
    #[error("belongs in the other copy's place")]
    Misplaced,
    /// Whole, but what it says cannot be.
    #[error("is whole but says what cannot be: {0}")]
    Impossible(&'static str),
    /// The device could not read it.
    #[error("cannot be read: {0}")]
    Unreadable(MediumError),
}

impl Superblock {
    /// The first superblock of a cache: empty, and stopped cleanly.
    pub fn new(uuid: Uuid, layout: Layout) -> Self {
        Self {
            format: VERSION,
            uuid,
            generation: 1,
            layout,
            region_blocks: REGION_BLOCKS,
            clean_stop: true,
            may_hold_dirty: false,
            needs_check: false,
            session: 1,
            next: 1,
            part: 0,
            tail: 1,
            volumes_generation: 0,
        }
    }

    /// What salts this cache's checksums.
    pub fn salt(&self) -> Salt {
        Salt::new(self.uuid)
    }

    /// Which copy this generation is written to.
    pub fn copy(&self) -> u8 {
        (self.generation % 2) as u8
    }

    /// Where this generation is written to, in bytes.
    pub fn offset(&self) -> u64 {
        u64::from(self.copy()) * SUPERBLOCK_BYTES as u64
    }

    /// The same with the next generation, which goes to the other copy.
    pub fn successor(&self) -> Self {
        Self { generation: self.generation + 1, ..self.clone() }
    }

    /// The 4 KiB for [`Superblock::offset`].
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; SUPERBLOCK_BYTES];
        let shape = self.layout.shape();
        put(&mut page, 0, *MAGIC);
        put(&mut page, 24, self.uuid.0);
        let words = [(8, VERSION), (12, shape.block_bytes), (16, shape.slots), (20, shape.sector_bytes)];
        let more = [(48, self.flags()), (52, shape.volume_table_bytes), (104, self.region_blocks)];
        for (at, value) in words.into_iter().chain(more).chain([(144, self.part)]) {
            put(&mut page, at, value.to_le_bytes());
        }
        let longs = [(40, self.generation), (56, shape.records), (112, self.session), (120, self.next)];
        for (at, value) in longs.into_iter().chain([(128, self.tail), (136, self.volumes_generation)]) {
            put(&mut page, at, value.to_le_bytes());
        }
        for (at, offset) in self.layout.offsets().into_iter().enumerate() {
            put(&mut page, OFFSETS_AT + 8 * at, offset.to_le_bytes());
        }
        seal(&mut page);
        page
    }

    /// Read a copy (0 or 1).
    pub fn decode(page: &[u8], copy: u8) -> Result<Self, Unusable> {
        let page = page.get(..SUPERBLOCK_BYTES).ok_or(Unusable::Foreign)?;
        if is_blank(page) {
            return Err(Unusable::Blank);
        }
        let whole = u32_at(page, CRC_AT) == crc32c(&page[..CRC_AT]);
        match (page[..8] == MAGIC[..], whole) {
            (true, true) => {}
            (true, false) => return Err(Unusable::Checksum),
            (false, _) => return Err(Unusable::Foreign),
        }
        match u32_at(page, 8) {
            OLDEST..=VERSION => {}
            1 => return Err(Unusable::VersionOne),
            version => return Err(Unusable::Newer(version)),
        }
        let superblock = Self::decode_whole(page)?;
        if superblock.copy() == copy { Ok(superblock) } else { Err(Unusable::Misplaced) }
    }

    fn decode_whole(page: &[u8]) -> Result<Self, Unusable> {
        let shape = Shape {
            block_bytes: u32_at(page, 12),
            slots: u32_at(page, 16),
            sector_bytes: u32_at(page, 20),
            volume_table_bytes: u32_at(page, 52),
            records: u64_at(page, 56),
        };
        let layout = Layout::new(shape).map_err(|_| Unusable::Impossible("the sizes"))?;
        if (0..).zip(layout.offsets()).any(|(at, offset)| u64_at(page, OFFSETS_AT + 8 * at) != offset) {
            return Err(Unusable::Impossible("the offsets of the regions"));
        }
        let flags = u32_at(page, 48);
        let superblock = Self {
            format: u32_at(page, 8),
            uuid: Uuid(array(page, 24)),
            generation: u64_at(page, 40),
            layout,
            region_blocks: u32_at(page, 104),
            clean_stop: flags & CLEAN != 0,
            may_hold_dirty: flags & DIRTY != 0,
            needs_check: flags & NEEDS_CHECK != 0,
            session: u64_at(page, 112),
            next: u64_at(page, 120),
            part: u32_at(page, 144),
            tail: u64_at(page, 128),
            volumes_generation: u64_at(page, 136),
        };
        superblock.check_numbers(flags)
    }

    fn check_numbers(self, flags: u32) -> Result<Self, Unusable> {
        let known_flags = flags & !(CLEAN | DIRTY | NEEDS_CHECK) == 0;
        let sequences = Layout::is_sequence(self.next)
            && (1..=self.next).contains(&self.tail)
            && self.part as usize <= record_room(self.layout.shape().sector_bytes);
        let sessions = (1..=self.generation).contains(&self.session) && self.generation < SEQUENCE_MAX;
        let volumes = self.volumes_generation < SEQUENCE_MAX;
        match (known_flags, self.region_blocks.is_power_of_two(), sequences, sessions && volumes) {
            (true, true, true, true) => Ok(self),
            (false, ..) => Err(Unusable::Impossible("the flags")),
            (_, false, ..) => Err(Unusable::Impossible("the blocks in a region")),
            (_, _, false, _) => Err(Unusable::Impossible("the sequences of the journal")),
            (_, _, _, false) => Err(Unusable::Impossible("the generations")),
        }
    }

    fn flags(&self) -> u32 {
        let flag = |set, bit| if set { bit } else { 0 };
        flag(self.clean_stop, CLEAN) | flag(self.may_hold_dirty, DIRTY) | flag(self.needs_check, NEEDS_CHECK)
    }

    /// Write it, durably.
    pub(super) fn store(&self, target: &mut impl MediumMut) -> Result<(), MediumError> {
        target.write(self.offset(), &self.encode())?;
        target.flush()
    }
}

/// Put the checksum at the end.
pub(super) fn seal(page: &mut [u8]) {
    let crc = crc32c(&page[..CRC_AT]);
    put(page, CRC_AT, crc.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock() -> Superblock {
        let layout = Layout::for_slots(8192, 512, 5000).unwrap();
        Superblock { next: 77, tail: 70, ..Superblock::new(Uuid([9; 16]), layout) }
    }

    #[test]
    fn it_survives_and_alternates() {
        let first = superblock();
        let second =
            Superblock { may_hold_dirty: true, clean_stop: false, needs_check: true, ..first.successor() };
        assert_eq!((first.offset(), second.offset()), (4096, 0));
        assert_eq!(Superblock::decode(&first.encode(), 1), Ok(first.clone()));
        assert_eq!(Superblock::decode(&second.encode(), 0), Ok(second));
        assert_eq!(Superblock::decode(&first.encode(), 0), Err(Unusable::Misplaced));
    }

    #[test]
    fn other_contents_are_told_apart() {
        let page = superblock().encode();
        let decode = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut page = page.clone();
            change(&mut page);
            let crc = crc32c(&page[..CRC_AT]);
            put(&mut page, CRC_AT, crc.to_le_bytes());
            Superblock::decode(&page, 1).unwrap_err()
        };
        assert_eq!(Superblock::decode(&[0; 4096], 0), Err(Unusable::Blank));
        assert_eq!(Superblock::decode(&page[..4095], 1), Err(Unusable::Foreign));
        assert_eq!(decode(&|page| page[8] = 1), Unusable::VersionOne);
        assert_eq!(decode(&|page| page[8] = 6), Unusable::Newer(6));
        assert_eq!(decode(&|page| page[0] = 0), Unusable::Foreign);
        assert_eq!(decode(&|page| page[48] = 8), Unusable::Impossible("the flags"));
        assert_eq!(decode(&|page| page[16] = 1), Unusable::Impossible("the offsets of the regions"));
        assert_eq!(decode(&|page| page[13] = 0), Unusable::Impossible("the sizes"));
        assert_eq!(decode(&|page| page[128] = 78), Unusable::Impossible("the sequences of the journal"));
        let mut older = page.clone();
        older[8] = 2;
        seal(&mut older);
        let all = Superblock { format: 2, ..superblock() };
        assert_eq!(Superblock::decode(&older, 1), Ok(all), "all of format 2 is in 3");
        let mut torn = page.clone();
        torn[3000] ^= 1;
        assert_eq!(Superblock::decode(&torn, 1), Err(Unusable::Checksum));
    }
}
