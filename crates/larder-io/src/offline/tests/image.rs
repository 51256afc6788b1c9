//! Caches to try the offline tools on, made with the format's own writers.

use larder_engine::format::*;
use std::collections::BTreeMap;

/// A cache that is being used.
pub struct Maker<'m, M> {
    medium: &'m mut M,
    session: Session,
    volumes: Vec<Volume>,
    slots: BTreeMap<u32, Contents>,
    /// Of what is put in dirty.
    pub epoch: Epoch,
    /// Small commits make drafts of a record. (Without, the ring turns sooner.)
    pub drafts: bool,
}

impl<'m, M: MediumMut> Maker<'m, M> {
    /// Make an empty cache with these volumes, and begin a session that may hold dirty blocks.
    pub fn new(medium: &'m mut M, layout: Layout, volumes: Vec<Volume>) -> Self {
        let superblock = Superblock { region_blocks: 8, ..Superblock::new(Uuid([0x5a; 16]), layout) };
        format(medium, &superblock).expect("a device without faults");
        let table = VolumeTable { generation: 1, volumes: volumes.clone() };
        let bytes = table.encode(&layout, superblock.salt()).expect("short names");
        medium.write(layout.volume_table_offset(table.copy()), &bytes).expect("a device without faults");
        medium.flush().expect("a device without faults");
        let session =
            recover(medium).expect("a device without faults").open().expect("a device without faults");
        let superblock =
            Superblock { may_hold_dirty: true, volumes_generation: 1, ..session.superblock.clone() };
        let (slots, epoch) = (BTreeMap::new(), Epoch::NONE);
        let mut maker = Self { medium, session, volumes, slots, epoch, drafts: false };
        maker.store(superblock);
        maker
    }

    fn store(&mut self, superblock: Superblock) {
        self.medium.write(superblock.offset(), &superblock.encode()).expect("a device without faults");
        self.medium.flush().expect("a device without faults");
        self.session.superblock = superblock;
    }

    /// Bytes of a block that lie within its volume.
    pub fn covered(&self, volume: u16, block: u64) -> usize {
        let bytes = self.volumes.iter().find(|one| one.id == volume).expect("a volume").bytes;
        let block_bytes = u64::from(self.session.superblock.layout.block_bytes());
        (bytes - block * block_bytes).min(block_bytes) as usize
    }

    /// Put a block's data, all that lies within its volume, into a free slot; from `old`, if it was there.
    pub fn put(
        &mut self,
        (volume, block): (u16, u64),
        data: &[u8],
        dirty: bool,
        slot: u32,
        old: Option<u32>,
    ) {
        assert_eq!(data.len(), self.covered(volume, block));
        assert!(!self.slots.contains_key(&slot));
        let Superblock { layout, .. } = self.session.superblock;
        let block = BlockId { volume, block };
        let crc = self.session.superblock.salt().block(block, data);
        let mut padded = data.to_vec();
        padded.resize(data.len().next_multiple_of(layout.sector_bytes()), 0xee);
        self.medium.write(layout.slot_offset(slot), &padded).expect("a device without faults");
        let epoch = if dirty { self.epoch } else { Epoch::NONE };
        self.push(Entry::Map { block, dirty, epoch, slot, crc, old });
        old.map(|old| self.slots.remove(&old).expect("it was there"));
        self.slots.insert(slot, Contents { block, dirty, epoch, crc });
    }

    /// Writes may go past the cache in a region of eight blocks.
    pub fn mark(&mut self, volume: u16, block: u64) {
        self.push(Entry::mark(Region::of(BlockId { volume, block }, 8)));
    }

    fn push(&mut self, entry: Entry) {
        if self.session.journal.push(entry).is_err() {
            self.commit();
            self.pages();
            self.commit();
            self.session.journal.push(entry).expect("room");
        }
    }

    /// Make it durable.
    pub fn commit(&mut self) {
        self.write();
        self.medium.flush().expect("a device without faults");
        let Session { journal, table, .. } = &mut self.session;
        journal.flushed(journal.sealed());
        let mut page = vec![0; PAGE_BYTES];
        let mut written = None;
        while let Some(due) = table.write_due(journal, |slot| self.slots.get(&slot).copied(), &mut page) {
            self.medium.write(due.offset, &page).expect("a device without faults");
            written = Some(due.ticket);
        }
        self.covered_pages(written);
    }

    /// Write the records, or the draft of one, and no more: what a process leaves that is killed before its flush.
    pub fn write(&mut self) {
        let Session { journal, table, .. } = &mut self.session;
        let whole = !self.drafts || table.is_due(journal);
        let pieces = if whole { journal.seal() } else { journal.draft() };
        self.write_all(pieces);
    }

    fn write_all(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            self.medium.write(piece.offset, &piece.bytes).expect("a device without faults");
        }
    }

    fn pages(&mut self) {
        let pieces = self.session.journal.seal();
        self.write_all(pieces);
        self.medium.flush().expect("a device without faults");
        self.session.journal.flushed(self.session.journal.sealed());
        let Session { journal, table, .. } = &mut self.session;
        let mut page = vec![0; PAGE_BYTES];
        let mut written = None;
        while let Some(next) = table.write_next(journal, |slot| self.slots.get(&slot).copied(), &mut page) {
            self.medium.write(next.offset, &page).expect("a device without faults");
            written = Some(next.ticket);
        }
        self.covered_pages(written);
    }

    fn covered_pages(&mut self, written: Option<Ticket>) {
        let Some(ticket) = written else { return };
        self.medium.flush().expect("a device without faults");
        self.session.table.flushed(ticket);
        self.session.journal.checkpointed(self.session.table.tail());
    }

    /// A clean stop, dirty blocks and all.
    pub fn stop(mut self) {
        self.commit();
        self.pages();
        let journal = &self.session.journal;
        let (next, tail) = (journal.sealed() + 1, journal.tail());
        let last = self.session.superblock.successor();
        self.store(Superblock { clean_stop: true, next, tail, ..last });
    }
}

/// Data that tells block, volume and version.
pub fn data(volume: u16, block: u64, version: u8, len: usize) -> Vec<u8> {
    let mut word = u64::from(volume) << 48 ^ block << 8 ^ u64::from(version) ^ 0x9e37_79b9_7f4a_7c15;
    let next = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word.to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(next).take(len.div_ceil(8)).flatten().collect();
    bytes.truncate(len);
    bytes
}

/// A volume of this size on this backing.
pub fn volume(id: u16, name: &str, bytes: u64, identity: &str) -> Volume {
    Volume { id, name: name.into(), uuid: Uuid([id as u8; 16]), bytes, identity: identity.into() }
}
