//! Garbage, and the offline tools: check, dump, restore, repair, and ways to break what they get.

use super::arrivals::Rig;
use super::disk::{Cut, Disk};
use super::images::{format_on, formatted, image, layout, lived};
use super::model::{BLOCKS, VOLUME};
use crate::format::*;
use larder_policy::Rng;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn blocks(recovered: &Recovered) -> BTreeMap<u32, Contents> {
    recovered.blocks().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn garbage_is_no_cache(bytes in prop::collection::vec(any::<u8>(), 16_384), start in 0usize..4) {
        let mut disk = Disk::new(&layout(32));
        disk.bytes[start * 4096..start * 4096 + bytes.len()].copy_from_slice(&bytes);
        let found = recover(&mut disk);
        let refused = matches!(found, Err(RecoverError::NoSuperblock { .. }));
        prop_assert!(refused);
    }

    /// Whatever is overwritten, nothing panics; a repair, where one is possible, keeps what was, invents nothing, and
    /// names what it gives up.
    #[test]
    fn random_damage_is_repaired_or_refused(
        seed: u64,
        clean_stop: bool,
        wounds in prop::collection::vec((any::<u64>(), 1usize..6000, 0u8..3), 1..6),
    ) {
        let model = lived(layout(32), seed, clean_stop);
        let mut disk = model.disk.clone();
        let before = recover(&mut disk).unwrap();
        let (mut rng, mut end_gone) = (Rng::new(seed), false);
        let end = before.superblock().layout.record_offset(before.last_place()) as usize;
        for (at, len, kind) in wounds {
            // The superblocks have to stay for anything to be repaired.
            let start = 8192 + (at % (disk.bytes.len() as u64 - 8192)) as usize;
            // A record that nothing follows may as well never have been durable.
            end_gone |= !clean_stop && start < end + 512 && end < start + len;
            let end = (start + len).min(disk.bytes.len());
            match kind {
                0 => disk.bytes[start..end].fill(0),
                1 => disk.bytes[start..end].iter_mut().for_each(|byte| *byte = rng.next_u64() as u8),
                _ => disk.unreadable.push(start as u64..end as u64),
            }
        }
        let damaged = recover(&mut disk).unwrap();
        let _ = (Dump::new(&damaged), check(&mut disk, true).unwrap());
        let refused = damaged.open().is_err();
        if !refused && !end_gone {
            // A session goes on with all that was durable, but for blocks that the backing has.
            prop_assert_eq!(damaged.next(), before.next());
            prop_assert_eq!(dirty(&damaged), dirty(&before));
            prop_assert!(damaged.slots().all(|(_, state)| state != SlotState::Unknown));
        }
        let repaired = repair(&mut disk).unwrap();
        disk.unreadable.clear();
        prop_assert_eq!(check(&mut disk, false).unwrap(), []);
        let after = recover(&mut disk).unwrap();
        prop_assert_eq!(after.blocks().count() as u64, repaired.kept);
        if !end_gone {
            compare(&before, &blocks(&after), &repaired, refused)?;
            let stale = after.blocks().find(|(_, contents)| model.is_overtaken(contents));
            prop_assert_eq!(stale, None);
        }
    }

    /// A repair that is cut short is repaired by the next one.
    #[test]
    fn a_repair_survives_a_crash(seed: u64, page in 0u32..3, writes in 1usize..12) {
        let mut disk = image(32, seed, false);
        Harm::Page(page).inflict(&mut disk).unwrap();
        let once = { let mut disk = disk.clone(); repair(&mut disk).unwrap(); recover(&mut disk).unwrap() };
        let mut cut = Cut { disk, left: writes };
        if repair(&mut cut).is_err() {
            cut.disk.crash(&mut Rng::new(seed));
        }
        let mut disk = cut.disk;
        repair(&mut disk).unwrap();
        prop_assert_eq!(check(&mut disk, false).unwrap(), []);
        prop_assert_eq!(blocks(&recover(&mut disk).unwrap()), blocks(&once));
    }

    #[test]
    fn a_dump_is_restored_to_the_same(seed: u64, clean_stop: bool) {
        let mut disk = image(32, seed, clean_stop);
        let recovered = recover(&mut disk).unwrap();
        let dump = Dump::new(&recovered);
        let mut other = Disk::new(&recovered.superblock().layout);
        restore(&mut other, &dump).unwrap();
        prop_assert_eq!(check(&mut other, false).unwrap(), []);
        let again = recover(&mut other).unwrap();
        prop_assert_eq!(Dump::new(&again), dump);
        let session = again.open().unwrap();
        prop_assert_eq!(session.superblock.next, 2);
    }
}

fn compare(
    before: &Recovered,
    after: &BTreeMap<u32, Contents>,
    repaired: &Repaired,
    refused: bool,
) -> Result<(), TestCaseError> {
    // Where records are gone, what is left may be an older state; that was said, too.
    let cut = repaired.findings.iter().any(|finding| matches!(finding, Finding::RecordLost { .. }));
    let outdated = |slot: u32| repaired.outdated.iter().any(|&(_, outdated)| outdated == slot);
    let lost = |slot: u32, contents: &Contents| {
        repaired.lost.iter().any(|lost| match lost {
            Lost::Dirty { block, .. } => *block == contents.block,
            Lost::Unknown { slots } => slots.contains(&slot),
        })
    };
    for (slot, contents) in before.blocks().filter(|(_, contents)| contents.dirty) {
        let kept = after.get(&slot) == Some(&contents) || (cut && refused);
        prop_assert!(
            kept || (refused && lost(slot, &contents)),
            "slot {slot} ({contents:?}) is lost in silence: {repaired:?}"
        );
    }
    for (&slot, &contents) in after.iter().filter(|one| !outdated(*one.0)) {
        // More of the journal may be replayed, and a clean block be trusted that was not.
        let same = match before.slot(slot) {
            SlotState::Used(held) => held == contents,
            SlotState::Dropped(held) => held == contents && !held.dirty,
            _ => false,
        };
        prop_assert!(same, "slot {slot} is invented");
    }
    Ok(())
}

fn dirty(recovered: &Recovered) -> Vec<(u32, Contents)> {
    recovered.blocks().filter(|(_, contents)| contents.dirty).collect()
}

/// Each named harm leads to the finding that is its own.
#[test]
fn every_harm_has_its_finding() {
    let words = |name: &str, number: u64| {
        let mut disk = image(32, 5, true);
        Harm::named(name, number).expect("a name").inflict(&mut disk).unwrap();
        match check(&mut disk, false) {
            Ok(findings) => findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => error.to_string(),
        }
    };
    let last = recover(&mut image(32, 5, true)).unwrap().next() - 1;
    let recovered = recover(&mut image(32, 5, true)).unwrap();
    // Of different epochs there may be several.
    let used = recovered.blocks().find(|(_, contents)| contents.epoch == Epoch::NONE).unwrap().0;
    let expected = [
        ("bit", 8 * 3000, "superblock A fails its checksum"),
        ("superblock", 1, "superblock B holds something else"),
        ("superblocks", 0, "no usable superblock"),
        ("volume-table", 0, "copy 0 of the volume table is torn"),
        ("volume-tables", 0, "cannot be told to belong"),
        ("page-newest", 1, "page 1 of the slot table (slots 340 to 679) is lost"),
        ("page-oldest", 1, "of page 1 of the slot table is torn or damaged; the other one"),
        ("page", 2, "page 2 of the slot table (slots 680 to 959) is lost"),
        ("record", last, "is lost, and with it all changes"),
        ("duplicate", u64::from(used), "is in several slots"),
        ("beyond-end", 0, "is past the volume's end"),
        ("no-such-slot", 0, "names slot 4294967295"),
        ("misfit", 0, "does not fit what slot"),
    ];
    for (name, number, part) in expected {
        let words = words(name, number);
        assert!(words.contains(part), "{name}: {words}");
    }
    assert_eq!(expected.len() + 1, Harm::NAMES.len(), "data has a test of its own");
    assert!(Harm::NAMES.iter().all(|(name, _)| Harm::named(name, 0).is_some()));
    assert_eq!((Harm::named("superblock", 2), Harm::named("fire", 0)), (None, None));
}

#[test]
fn a_block_that_is_not_its_own_is_found() {
    let layout = layout(32);
    let mut disk = Disk::with_data(&layout);
    format_on(&mut disk, layout);
    let Session { superblock, mut journal, .. } = recover(&mut disk).unwrap().open().unwrap();
    let last = BLOCKS - 1;
    for (slot, block) in [(0, 0), (1, last)] {
        let block = BlockId { volume: VOLUME, block };
        let crc = superblock.salt().block(block, &[7; 4096]);
        disk.write(layout.slot_offset(slot), &[7; 4096]).unwrap();
        journal
            .push(Entry::Map { block, dirty: slot == 0, epoch: Epoch::NONE, slot, crc, old: None })
            .unwrap();
    }
    journal.seal().iter().for_each(|piece| disk.write(piece.offset, &piece.bytes).unwrap());
    assert_eq!(check(&mut disk, true).unwrap(), []);
    Harm::Data(0).inflict(&mut disk).unwrap();
    let block = BlockId { volume: VOLUME, block: 0 };
    assert_eq!(check(&mut disk, true).unwrap(), [Finding::Data { block, slot: 0, dirty: true }]);
    assert_eq!(check(&mut disk, false).unwrap(), []);
}

#[test]
fn a_device_that_is_too_short_or_another_version_is_refused() {
    let layout = layout(32);
    let mut disk = formatted(layout);
    let short = Layout::for_slots(4096, 512, 100).unwrap();
    let mut other = Disk::new(&short);
    let len = disk.bytes.len().min(other.bytes.len());
    other.bytes[..len].copy_from_slice(&disk.bytes[..len]);
    let (needed, bytes) = (layout.device_bytes(), short.device_bytes());
    assert_eq!(recover(&mut other).unwrap_err(), RecoverError::TooShort { needed, bytes });
    disk.bytes[..8192].fill(0);
    let blank = RecoverError::NoSuperblock { a: Unusable::Blank, b: Unusable::Blank };
    assert_eq!(recover(&mut disk).unwrap_err(), blank);
}

#[test]
fn a_cache_without_dirty_blocks_loses_only_what_the_backing_has() {
    let mut disk = formatted(layout(32));
    let Session { superblock, mut journal, .. } = recover(&mut disk).unwrap().open().unwrap();
    superblock.store(&mut disk).unwrap();
    for (block, slot) in [(1, 0), (2, 400)] {
        let block = BlockId { volume: VOLUME, block };
        journal
            .push(Entry::Map { block, dirty: false, epoch: Epoch::NONE, slot, crc: 1, old: None })
            .unwrap();
    }
    journal.seal().iter().for_each(|piece| disk.write(piece.offset, &piece.bytes).unwrap());
    // Afterwards nothing is in the journal any more.
    repair(&mut disk).unwrap();
    Harm::Page(0).inflict(&mut disk).unwrap();
    let recovered = recover(&mut disk).unwrap();
    assert_eq!(recovered.severity(), Some(Severity::Clean), "{:?}", recovered.findings());
    assert!(matches!(recovered.open(), Err(RecoverError::RepairFirst(Finding::PageLost { .. }))));
    assert_eq!(blocks(&recovered).into_keys().collect::<Vec<_>>(), [400]);
    // One superblock less: nobody knows what the other one said.
    let mut other = disk.clone();
    Harm::Superblock(0).inflict(&mut other).unwrap();
    assert!(matches!(recover(&mut other).unwrap().open(), Err(RecoverError::MayLoseDirty(_))));
    repair(&mut disk).unwrap();
    assert_eq!(check(&mut disk, false).unwrap(), []);
    let repaired = recover(&mut disk).unwrap();
    assert_eq!((blocks(&repaired), repaired.open().is_ok()), (blocks(&recovered), true));
}

/// Guests have written past what is clean, and the superblock that was to say so lies where nothing can be read.
#[test]
fn a_repair_of_a_cache_that_was_given_up_keeps_nothing_clean() {
    for copy in 0..2 {
        let mut rig = Rig::committed();
        rig.data(1, 2);
        let block = BlockId { volume: VOLUME, block: 9 };
        let crc = rig.session.superblock.salt().block(block, &[2; 4096]);
        rig.records(&[Entry::Map { block, dirty: false, epoch: Epoch::NONE, slot: 1, crc, old: None }]);
        rig.flush();
        let Superblock { uuid, session, .. } = rig.session.superblock;
        let mark = crate::SessionMark { uuid, session, record: 2, part: 0 };
        let mut disk = rig.disk;
        disk.unreadable.push(copy * 4096..(copy + 1) * 4096);
        let told = recover(&mut disk).unwrap().superblock().clone();
        let next = Superblock { needs_check: true, clean_stop: false, ..told.successor() };
        disk.write(next.offset(), &next.encode()).unwrap();
        let repaired = repair_after(&mut disk, mark).unwrap();
        assert_eq!((repaired.kept, repaired.clean_dropped, repaired.lost), (1, 1, vec![]));
        let kept = recover(&mut disk).unwrap();
        assert_eq!(blocks(&kept).into_keys().collect::<Vec<_>>(), [0], "what is dirty");
        assert!(kept.open().is_ok());
    }
}

/// A copy of the volume table lies where nothing can be read any more: the newest one must not be there.
#[test]
fn a_repair_ends_with_a_volume_table_that_can_be_read() {
    for copy in 0..2 {
        for mut disk in [formatted(layout(32)), lived(layout(32), 7, true).disk] {
            let first = layout(32).volume_table_offset(copy);
            disk.unreadable.push(first..first + 4096);
            for _ in 0..3 {
                repair(&mut disk).unwrap();
                let recovered = recover(&mut disk).unwrap();
                assert_eq!(recovered.findings(), [Finding::VolumeTable { copy, other_is_good: true }]);
                assert!(recovered.open().is_ok());
            }
        }
    }
}
