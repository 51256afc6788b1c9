//! Damage to the metadata of a cache that is not in use: it is found or harmless, and wrong data is served in no case.
//!
//! What nobody can tell is left alone: a record at the end of the journal that nothing confirms yet may be one that a power cut
//! tore.

use super::World;
use super::swap::dirty_in;
use crate::fault::Fault;
use crate::script::Harm;
use larder_engine::format::{PAGE_BYTES, SUPERBLOCK_BYTES, recover, recover_after};
use larder_io::sim::{FaultKind, Rng};

/// A part of the metadata that has one checksum.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    bytes: u64,
    /// Every bit of it means something.
    full: bool,
}

impl World {
    /// Do this to a part of the metadata that the number chooses.
    pub(crate) fn harm(&mut self, harm: Harm, at: u64) {
        let mut rng = Rng::new(at);
        let Some(place) = self.place(&mut rng) else { return };
        self.tell(|| format!("{harm:?} of {place:?}"));
        let found = match &self.loss {
            Some(loss) => recover_after(self.host.cache(), loss.mark),
            None => recover(self.host.cache()),
        };
        self.truth = found.ok().map(|recovered| dirty_in(&recovered));
        self.count(Fault::Metadata);
        self.excuses.harmed = true;
        let changed = match harm {
            Harm::Rot => self.rot(place, &mut rng),
            Harm::Lost => {
                let old = self.before[place.offset as usize..][..place.bytes as usize].to_vec();
                self.host.cache().content_mut().write(place.offset, &old);
                false
            }
            Harm::Misdirected => self.misdirect(place, &mut rng),
            Harm::Unreadable => {
                self.host.cache().fail_range(FaultKind::Read, place.offset..place.offset + place.bytes);
                true
            }
        };
        if changed && place.full {
            let found = recover(self.host.cache());
            assert!(
                found.is_err() || found.is_ok_and(|found| !found.findings().is_empty()),
                "{harm:?} of {place:?} is not found"
            );
        }
    }

    fn rot(&mut self, place: Place, rng: &mut Rng) -> bool {
        let mut bytes = self.bytes_of(place);
        bytes[rng.below(place.bytes) as usize] ^= 1 << rng.below(8);
        self.host.cache().content_mut().write(place.offset, &bytes);
        true
    }

    /// What belongs in another place of the same size is here. True if that makes a difference.
    fn misdirect(&mut self, place: Place, rng: &mut Rng) -> bool {
        let Some(from) = self.place(rng).filter(|from| from.bytes == place.bytes) else { return false };
        let bytes = self.bytes_of(from);
        let changed = bytes != self.bytes_of(place) && bytes.iter().any(|&byte| byte != 0);
        self.host.cache().content_mut().write(place.offset, &bytes);
        changed
    }

    fn bytes_of(&mut self, place: Place) -> Vec<u8> {
        let mut bytes = vec![0; place.bytes as usize];
        self.host.cache().content().read(place.offset, &mut bytes);
        bytes
    }

    /// All of the metadata.
    pub(super) fn metadata(&mut self) -> Vec<u8> {
        self.bytes_of(Place { offset: 0, bytes: self.layout.data_offset(), full: false })
    }

    fn place(&mut self, rng: &mut Rng) -> Option<Place> {
        let layout = self.layout;
        let copy = rng.below(2) as u8;
        let (offset, bytes, full) = match rng.below(5) {
            0 => (u64::from(copy) * SUPERBLOCK_BYTES as u64, SUPERBLOCK_BYTES as u64, true),
            1 => (layout.volume_table_offset(copy), layout.volume_table_bytes() as u64, false),
            2 => {
                let page = rng.below(u64::from(layout.pages())) as u32;
                (layout.page_offset(page, copy), PAGE_BYTES as u64, true)
            }
            _ => (self.confirmed(rng)?, layout.sector_bytes() as u64, true),
        };
        Some(Place { offset, bytes, full })
    }

    /// A record of the ring that a later one calls durable.
    fn confirmed(&mut self, rng: &mut Rng) -> Option<u64> {
        let layout = self.layout;
        let (sector, records) = (layout.sector_bytes(), layout.records());
        let ring = Place { offset: layout.record_offset(0), bytes: records * sector as u64, full: false };
        let ring = self.bytes_of(ring);
        let number =
            |sector: &[u8], at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("8 bytes"));
        // One that is torn may begin like a whole one, and confirms nothing.
        let end = recover(self.host.cache()).ok()?.next();
        let record = |sector: &&[u8]| &sector[4..8] == b"LDRJ" && number(sector, 8) < end;
        let durable = ring.chunks(sector).filter(record).map(|record| number(record, 32)).max()?;
        let confirmed: Vec<u64> = (ring.chunks(sector).filter(record))
            .map(|record| number(record, 8))
            .filter(|&sequence| sequence <= durable)
            .collect();
        let sequence = confirmed.get(rng.below(confirmed.len() as u64) as usize)?;
        Some(layout.record_offset(*sequence))
    }
}
