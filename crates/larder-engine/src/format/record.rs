//! Records of the journal: one sector each, at the place in the ring that its sequence says.
//!
//! A small commit does not use up a record. It makes a *draft*: the record as it is so far, in one of two sectors further on in the ring ([`place`]), in turn. The next commit makes
//! another, with its own entries behind those, and what fills the record is written to its place. So the newest durable draft is never written over.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..4 | CRC-32C of the rest of the sector, salted with the UUID |
//! | 4..8 | `LDRJ` |
//! | 8..16 | sequence: one more than that of the record before; it lies in sector sequence mod records of the ring, unless it is a draft |
//! | 16..24 | session of the writer |
//! | 24..32 | tail: where replay begins if this is the last record |
//! | 32..40 | durable: every record up to this one was durable when this one was made |
//! | 40..42 | entries |
//! | 42..44 | their bytes; 0 in a record of version 3 or 2, whose entries have 20 bytes each |
//! | 44..46 | before: so many of these bytes were in a draft that was durable when this one was made |
//! | 46..48 | 0 for a record in its place, 1 or 2 for a draft, 3 for a draft that a start has put in its record's place |
//! | 48.. | entries; zeroes after the last |
//!
//! A sector of zeroes was never written.

use super::SEQUENCE_MAX;
use super::bytes::{is_blank, put, u16_at, u32_at, u64_at};
use super::checksum::{Kind, Salt};
use super::entry::{ENTRY_BYTES, Entry};
use super::journal::reserve;
use super::layout::Layout;

const MAGIC: [u8; 4] = *b"LDRJ";
const HEADER_BYTES: usize = 48;

/// Sectors in which drafts of a record lie.
pub(super) const DRAFTS: u16 = 2;

/// Says in place of a draft's number that a start has put a draft in its record's place. What its session wrote behind it does not follow: it would have followed more than this.
pub(super) const PUT: u16 = 3;

/// In the place of which record this one lies: its own, or that of a draft. The second draft is as far off as the ring must have room for drafts to be made, the first one a few KiB nearer, so
/// that a bad sector of the SSD is not both. What is written before the record is durably in its place does not reach them ([`super::JournalWriter::draft`]).
pub(super) fn place(layout: &Layout, sequence: u64, draft: u16) -> u64 {
    let reserve = reserve(layout);
    match draft {
        0 | PUT => sequence,
        1 => sequence + 2 * reserve - 8.min(reserve - 2),
        _ => sequence + 2 * reserve,
    }
}

/// Bytes of entries that a record of one sector holds.
pub(super) const fn record_room(sector_bytes: u32) -> usize {
    (sector_bytes as usize).saturating_sub(HEADER_BYTES)
}

/// Entries that it holds, of whatever kinds.
pub(super) const fn record_entries(sector_bytes: u32) -> usize {
    record_room(sector_bytes) / ENTRY_BYTES
}

/// What a record says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its number; the first one is 1.
    pub sequence: u64,
    /// Which session wrote it.
    pub session: u64,
    /// Where replay begins if this is the last record.
    pub tail: u64,
    /// The last record that was durable when this one was made.
    pub durable: u64,
    /// Bytes of its entries that were durable then, in a draft.
    pub before: u16,
    /// 0 for a record in its place; 1 or 2 for a draft, by the place that it is in; 3 for a draft that a start has put in its record's place.
    pub draft: u16,
}

/// What a sector of the ring turned out to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sector<'s> {
    /// Never written.
    Blank,
    /// Torn, damaged, unreadable, or out of place.
    Broken,
    /// A whole record, of whatever sequence.
    Record(Header, Entries<'s>),
}

/// The entries of a whole record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries<'s> {
    bytes: &'s [u8],
    /// As version 3 wrote them.
    fixed: bool,
}

impl<'s> Entries<'s> {
    fn of(sector: &'s [u8]) -> Option<Self> {
        let (count, bytes) = (usize::from(u16_at(sector, 40)), usize::from(u16_at(sector, 42)));
        let fixed = bytes == 0;
        let bytes = sector[HEADER_BYTES..].get(..if fixed { count * ENTRY_BYTES } else { bytes })?;
        let entries = Self { bytes, fixed };
        let found = entries.walk().fold((0, 0), |(found, end), (_, len)| (found + 1, end + len));
        (found == (count, bytes.len())).then_some(entries)
    }

    pub fn iter(&self) -> impl Iterator<Item = Entry> + use<'s> {
        self.walk().map(|(entry, _)| entry)
    }

    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Entries, and the bytes before each.
    pub fn places(&self) -> impl Iterator<Item = (Entry, usize)> + use<'s> {
        self.walk().scan(0, |end, (entry, len)| {
            *end += len;
            Some((entry, *end - len))
        })
    }

    /// Entries and their lengths, up to the first that is none.
    fn walk(&self) -> impl Iterator<Item = (Entry, usize)> + use<'s> {
        let Self { mut bytes, fixed } = *self;
        std::iter::from_fn(move || {
            let (entry, len) = match fixed {
                true => (Entry::decode_fixed(bytes.first_chunk()?)?, ENTRY_BYTES),
                false => Entry::decode(bytes)?,
            };
            bytes = &bytes[len..];
            Some((entry, len))
        })
    }
}

/// Look at the sector where record `wanted`, and every `records`th before and after it, belongs. There may be a draft of one that is a little older.
pub(super) fn inspect<'s>(sector: &'s [u8], salt: Salt, layout: &Layout, wanted: u64) -> Sector<'s> {
    if is_blank(sector) {
        return Sector::Blank;
    }
    if u32_at(sector, 0) != salt.metadata(Kind::Record, &sector[4..]) || sector[4..8] != MAGIC {
        return Sector::Broken;
    }
    let header = Header {
        sequence: u64_at(sector, 8),
        session: u64_at(sector, 16),
        tail: u64_at(sector, 24),
        durable: u64_at(sector, 32),
        before: u16_at(sector, 44),
        draft: u16_at(sector, 46),
    };
    let is_here =
        header.is_possible() && header.place(layout) % layout.records() == wanted % layout.records();
    let known = |entries: &Entries| usize::from(header.before) <= entries.bytes();
    match Entries::of(sector).filter(|entries| is_here && known(entries)) {
        Some(entries) => Sector::Record(header, entries),
        None => Sector::Broken,
    }
}

impl Header {
    fn is_possible(&self) -> bool {
        Layout::is_sequence(self.sequence)
            && (1..=self.sequence).contains(&self.tail)
            && self.durable < self.sequence
            && self.session < SEQUENCE_MAX
            && self.draft <= PUT
    }

    /// In the place of which record it lies.
    pub(super) fn place(&self, layout: &Layout) -> u64 {
        place(layout, self.sequence, self.draft)
    }

    /// Write a record with no more entries than fit.
    pub(super) fn encode(&self, into: &mut [u8], salt: Salt, entries: &[Entry]) {
        into.fill(0);
        put(into, 4, MAGIC);
        let numbers = [self.sequence, self.session, self.tail, self.durable];
        for (at, number) in numbers.into_iter().enumerate() {
            put(into, 8 + 8 * at, number.to_le_bytes());
        }
        let mut end = HEADER_BYTES;
        for entry in entries {
            let bytes = entry.bytes();
            entry.encode(&mut into[end..end + bytes]);
            end += bytes;
        }
        // A sector has 4 KiB at most.
        put(into, 40, (entries.len() as u16).to_le_bytes());
        put(into, 42, ((end - HEADER_BYTES) as u16).to_le_bytes());
        put(into, 44, self.before.to_le_bytes());
        put(into, 46, self.draft.to_le_bytes());
        let crc = salt.metadata(Kind::Record, &into[4..]);
        put(into, 0, crc.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{BlockId, Epoch, Uuid};

    #[test]
    fn a_record_survives_in_its_place_only() {
        let layout = Layout::for_slots(4096, 512, 100).unwrap();
        let salt = Salt::new(Uuid([3; 16]));
        let header = Header { sequence: 130, session: 4, tail: 8, durable: 129, before: 0, draft: 0 };
        let block = BlockId { volume: 1, block: 7 };
        let map = |slot, old| Entry::Map { block, dirty: true, epoch: Epoch::NONE, slot, crc: 1, old };
        let free = |slot| Entry::Free { slot };
        let mut entries: Vec<_> = (0..22).map(|slot| map(slot, Some(slot))).collect();
        entries.extend([free(0), map(22, None)]);
        assert_eq!(entries.iter().map(Entry::bytes).sum::<usize>() + 3, record_room(512));
        let mut sector = [0xff; 512];
        header.encode(&mut sector, salt, &entries);
        let found = |wanted| match inspect(&sector, salt, &layout, wanted) {
            Sector::Record(header, entries) => Some((header, entries.iter().collect::<Vec<_>>())),
            _ => None,
        };
        assert_eq!(found(130), Some((header, entries.clone())));
        assert_eq!((found(2), found(131)), (Some((header, entries)), None));
        assert!(matches!(inspect(&sector, Salt::new(Uuid([4; 16])), &layout, 130), Sector::Broken));
        assert!(matches!(inspect(&[0; 512], salt, &layout, 130), Sector::Blank));
    }

    #[test]
    fn a_draft_lies_as_far_off_as_the_ring_must_have_room() {
        let layout = Layout::for_slots(4096, 512, 100).unwrap();
        let salt = Salt::new(Uuid([3; 16]));
        for draft in 0..5 {
            let header = Header { sequence: 126, session: 4, tail: 8, durable: 125, before: 5, draft };
            let mut sector = [0; 512];
            header.encode(&mut sector, salt, &[Entry::Free { slot: 9 }, Entry::Clean { slot: 7 }]);
            let places: Vec<u64> = (0..layout.records())
                .filter(|&at| matches!(inspect(&sector, salt, &layout, at), Sector::Record(found, _) if found == header))
                .collect();
            // 126 + 10 and 126 + 16, in a ring of 128.
            let expected = [vec![126], vec![8], vec![14], vec![126], vec![]];
            assert_eq!((layout.records(), &places), (128, &expected[usize::from(draft)]));
        }
    }

    /// Records that version 3 wrote, with entries of 20 bytes and nothing that says how many bytes there are.
    #[test]
    fn a_record_of_version_3_is_read() {
        let layout = Layout::for_slots(4096, 512, 100).unwrap();
        let salt = Salt::new(Uuid([3; 16]));
        let header = Header { sequence: 130, session: 4, tail: 8, durable: 129, before: 0, draft: 0 };
        let mut sector = [0; 512];
        header.encode(&mut sector, salt, &[]);
        put(&mut sector, 40, 2u16.to_le_bytes());
        let free = |slot: u8| [[0; 7].as_slice(), &[3, slot], &[0; 11]].concat();
        sector[48..88].copy_from_slice(&[free(9), free(7)].concat());
        let crc = salt.metadata(Kind::Record, &sector[4..]);
        put(&mut sector, 0, crc.to_le_bytes());
        let Sector::Record(found, entries) = inspect(&sector, salt, &layout, 130) else {
            panic!("a whole record")
        };
        assert_eq!(found, header);
        assert_eq!(entries.iter().collect::<Vec<_>>(), [Entry::Free { slot: 9 }, Entry::Free { slot: 7 }]);
    }

    #[test]
    fn what_is_not_as_many_entries_as_it_says_is_broken() {
        let layout = Layout::for_slots(4096, 512, 100).unwrap();
        let salt = Salt::new(Uuid([3; 16]));
        let header = Header { sequence: 130, session: 4, tail: 8, durable: 129, before: 0, draft: 0 };
        for (count, bytes) in [(2, 10), (2, 11), (2, 9), (1, 10), (3, 10), (2, 500), (0, 10), (2, 0), (24, 0)]
        {
            let mut sector = [0; 512];
            header.encode(&mut sector, salt, &[Entry::Free { slot: 9 }, Entry::Clean { slot: 7 }]);
            put(&mut sector, 40, u16::to_le_bytes(count));
            put(&mut sector, 42, u16::to_le_bytes(bytes));
            let crc = salt.metadata(Kind::Record, &sector[4..]);
            put(&mut sector, 0, crc.to_le_bytes());
            let is_whole = matches!(inspect(&sector, salt, &layout, 130), Sector::Record(..));
            assert_eq!(is_whole, (count, bytes) == (2, 10), "{count} entries, {bytes} bytes");
        }
    }

    #[test]
    fn whole_records_that_cannot_be_are_broken() {
        let layout = Layout::for_slots(4096, 512, 100).unwrap();
        let salt = Salt::new(Uuid([3; 16]));
        let good = Header { sequence: 130, session: 4, tail: 8, durable: 129, before: 0, draft: 0 };
        let wrong = [
            Header { tail: 0, ..good },
            Header { tail: 131, ..good },
            Header { durable: 130, ..good },
            Header { session: u64::MAX, ..good },
            Header { sequence: 2 + (1 << 62), ..good },
            Header { draft: 1, ..good },
            Header { before: 1, ..good },
        ];
        for header in wrong {
            let mut sector = [0; 512];
            header.encode(&mut sector, salt, &[]);
            assert!(matches!(inspect(&sector, salt, &layout, header.sequence), Sector::Broken), "{header:?}");
        }
    }
}
