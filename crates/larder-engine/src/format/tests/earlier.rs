//! Caches of an earlier version: gone on with, whatever their journal says.

use super::disk::Disk;
use super::images::live;
use super::model::Model;
use crate::format::bytes::put;
use crate::format::checksum::{Kind, crc32c};
use crate::format::record::{self, Sector};
use crate::format::*;
use larder_policy::Rng;
use proptest::prelude::*;

/// Entries of 20 bytes, as version 3 wrote them: kind and key in the first eight, then slot and checksum, then the old slot.
fn encode_fixed(entry: Entry) -> [u8; 20] {
    let dirty = |epoch: Epoch| if epoch.is_some() { 64 + u64::from(epoch.bits()) } else { 2 };
    let slot_and = |slot: u32, crc: u32| u64::from(crc) << 32 | u64::from(slot);
    let old_or = |old: Option<u32>| old.unwrap_or(u32::MAX);
    let (kind, key, middle, last) = match entry {
        Entry::Map { block, dirty: false, slot, crc, old, .. } => {
            (1, block.pack(), slot_and(slot, crc), old_or(old))
        }
        Entry::Map { block, epoch, slot, crc, old, .. } => {
            (dirty(epoch), block.pack(), slot_and(slot, crc), old_or(old))
        }
        Entry::Write { block, epoch, slot, crc, old } => {
            (128 + dirty(epoch), block.pack(), slot_and(slot, crc), old_or(old))
        }
        Entry::Free { slot } => (3, 0, slot.into(), 0),
        Entry::Clean { slot } => (4, 0, slot.into(), 0),
        Entry::Mark { region, since } => (5, region.pack(), since, 0),
        Entry::Unmark { region } => (6, region.pack(), 0, 0),
    };
    let mut bytes = [0; 20];
    put(&mut bytes, 0, (kind << 56 | key).to_le_bytes());
    put(&mut bytes, 8, middle.to_le_bytes());
    put(&mut bytes, 16, last.to_le_bytes());
    bytes
}

/// Make a device what version 3 would have left.
pub fn as_version_3(disk: &mut Disk) {
    let superblock = recover(disk).unwrap().superblock().clone();
    let (layout, salt) = (superblock.layout, superblock.salt());
    for sequence in 0..layout.records() {
        let at = layout.record_offset(sequence) as usize;
        let mut sector = disk.bytes[at..][..layout.sector_bytes()].to_vec();
        let Sector::Record(_, entries) = record::inspect(&sector, salt, &layout, sequence) else { continue };
        let entries: Vec<Entry> = entries.iter().collect();
        if entries.len() > record::record_entries(layout.shape().sector_bytes) {
            continue;
        }
        sector[40..].fill(0);
        put(&mut sector, 40, (entries.len() as u16).to_le_bytes());
        for (entry, at) in entries.into_iter().zip((48..).step_by(20)) {
            put(&mut sector, at, encode_fixed(entry));
        }
        let crc = salt.metadata(Kind::Record, &sector[4..]);
        put(&mut sector, 0, crc.to_le_bytes());
        disk.replace(at, &sector);
    }
    for at in [0, SUPERBLOCK_BYTES] {
        let mut page = disk.bytes[at..][..SUPERBLOCK_BYTES].to_vec();
        if crc32c(&page[..4092]).to_le_bytes() == page[4092..] {
            put(&mut page, 8, 3u32.to_le_bytes());
            let crc = crc32c(&page[..4092]);
            put(&mut page, 4092, crc.to_le_bytes());
            disk.replace(at, &page);
        }
    }
}

proptest! {
    #[test]
    fn what_version_3_left_is_the_same_cache(seed: u64, clean_stop: bool) {
        let mut model = Model::new(32);
        model.earlier = true;
        let mut disk = live(model, seed, clean_stop).disk;
        let now = recover(&mut disk).unwrap();
        as_version_3(&mut disk);
        let earlier = recover(&mut disk).unwrap();
        prop_assert_eq!((earlier.superblock().format, now.superblock().format), (3, VERSION));
        prop_assert!(earlier.slots().eq(now.slots()));
        prop_assert_eq!(earlier.findings(), now.findings());
        prop_assert_eq!(earlier.next(), now.next());
        prop_assert_eq!(check(&mut disk, false).unwrap(), []);
        let session = earlier.open().unwrap();
        session.superblock.store(&mut disk).unwrap();
        prop_assert_eq!(recover(&mut disk).unwrap().superblock().format, VERSION);
    }
}

/// Sessions that go on where version 3 ended, with records of both in the ring.
#[test]
fn histories_go_on_from_version_3() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut model = Model::new(32 + seed % 5);
        model.earlier = true;
        for _ in 0..2000 {
            model.step(rng.below(24) as u8, rng.next_u64());
            if rng.below(60) == 0 {
                model.step(25, rng.next_u64());
            }
        }
        assert!(model.crashes > 10, "{} crashes", model.crashes);
    }
}
