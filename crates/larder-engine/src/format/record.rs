//! Records of the journal: one sector each, at the place in the ring that its sequence says.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..4 | CRC-32C of the rest of the sector, salted with the UUID |
//! | 4..8 | `LDRJ` |
//! | 8..16 | sequence: one more than that of the record before; it lies in sector sequence mod records of the ring |
//! | 16..24 | session of the writer |
//! | 24..32 | tail: where replay begins if this is the last record |
//! | 32..40 | durable: every record up to this one was durable when this one was made |
//! | 40..42 | entries |
//! | 48.. | entries of 20 bytes each; zeroes after the last |
//!
//! A sector of zeroes was never written.

use super::SEQUENCE_MAX;
use super::bytes::{is_blank, put, u16_at, u32_at, u64_at};
use super::checksum::{Kind, Salt};
use super::entry::{ENTRY_BYTES, Entry};
use super::layout::Layout;

const MAGIC: [u8; 4] = *b"LDRJ";
const HEADER_BYTES: usize = 48;

/// Entries that a record of one sector holds.
pub(super) const fn record_entries(sector_bytes: u32) -> usize {
    (sector_bytes as usize).saturating_sub(HEADER_BYTES) / ENTRY_BYTES
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
pub(super) struct Entries<'s>(&'s [u8]);

impl Entries<'_> {
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.0.as_chunks::<ENTRY_BYTES>().0.iter().filter_map(|bytes| Entry::decode(bytes))
    }
}

/// Look at the sector where record `wanted`, and every `records`th before and after it, belongs.
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
    };
    let Some(entries) = sector[HEADER_BYTES..].get(..usize::from(u16_at(sector, 40)) * ENTRY_BYTES) else {
        return Sector::Broken;
    };
    let in_place = header.sequence % layout.records() == wanted % layout.records();
    let decodable =
        || entries.as_chunks::<ENTRY_BYTES>().0.iter().all(|bytes| Entry::decode(bytes).is_some());
    match in_place && header.is_possible() && decodable() {
        true => Sector::Record(header, Entries(entries)),
        false => Sector::Broken,
    }
}

impl Header {
    fn is_possible(&self) -> bool {
        Layout::is_sequence(self.sequence)
            && (1..=self.sequence).contains(&self.tail)
            && self.durable < self.sequence
            && self.session < SEQUENCE_MAX
    }

    /// Write a record with no more entries than fit.
    pub(super) fn encode(&self, into: &mut [u8], salt: Salt, entries: &[Entry]) {
        into.fill(0);
        put(into, 4, MAGIC);
        let numbers = [self.sequence, self.session, self.tail, self.durable];
        for (at, number) in numbers.into_iter().enumerate() {
            put(into, 8 + 8 * at, number.to_le_bytes());
        }
        // A sector of 4 KiB holds 202.
        put(into, 40, (entries.len() as u16).to_le_bytes());
        for (place, entry) in into[HEADER_BYTES..].as_chunks_mut::<ENTRY_BYTES>().0.iter_mut().zip(entries) {
            entry.encode(place);
        }
        let crc = salt.metadata(Kind::Record, &into[4..]);
        put(into, 0, crc.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Uuid;

    #[test]
    fn a_record_survives_in_its_place_only() {
        let layout = Layout::for_slots(4096, 512, 100).unwrap();
        let salt = Salt::new(Uuid([3; 16]));
        let header = Header { sequence: 130, session: 4, tail: 8, durable: 129 };
        let entries: Vec<_> = (0..23).map(|slot| Entry::Free { slot }).collect();
        assert_eq!(record_entries(512), entries.len());
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
    fn whole_records_that_cannot_be_are_broken() {
        let layout = Layout::for_slots(4096, 512, 100).unwrap();
        let salt = Salt::new(Uuid([3; 16]));
        let good = Header { sequence: 130, session: 4, tail: 8, durable: 129 };
        let wrong = [
            Header { tail: 0, ..good },
            Header { tail: 131, ..good },
            Header { durable: 130, ..good },
            Header { session: u64::MAX, ..good },
            Header { sequence: 2 + (1 << 62), ..good },
        ];
        for header in wrong {
            let mut sector = [0; 512];
            header.encode(&mut sector, salt, &[]);
            assert!(matches!(inspect(&sector, salt, &layout, header.sequence), Sector::Broken), "{header:?}");
        }
    }
}
