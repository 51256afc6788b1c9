//! Lost records, lost pages, and repairs that are cut short: what a session must not be put on top of.

use super::disk::{Cut, Disk};
use super::images::{formatted, image, layout};
use super::model::VOLUME;
use crate::format::*;

/// A session that flushes every record at once, or none.
struct Rig {
    disk: Disk,
    session: Session,
}

impl Rig {
    fn new() -> Self {
        Self::on(formatted(layout(64)))
    }

    fn on(mut disk: Disk) -> Self {
        let session = recover(&mut disk).unwrap().open().unwrap();
        session.superblock.store(&mut disk).unwrap();
        Self { disk, session }
    }

    fn write(&mut self, entry: Entry) {
        let journal = &mut self.session.journal;
        journal.push(entry).unwrap();
        journal.seal().iter().for_each(|piece| self.disk.write(piece.offset, &piece.bytes).unwrap());
    }

    fn record(&mut self, entry: Entry) {
        self.write(entry);
        let journal = &mut self.session.journal;
        self.disk.flush().unwrap();
        journal.flushed(journal.sealed());
    }

    /// All pages, up to the last record.
    fn pages(&mut self, slots: impl Fn(u32) -> Option<Contents>) {
        let Session { journal, table, .. } = &mut self.session;
        let mut bytes = vec![0; PAGE_BYTES];
        while let Some(write) = table.write_next(journal, &slots, &mut bytes) {
            self.disk.write(write.offset, &bytes).unwrap();
        }
        self.disk.flush().unwrap();
        table.flushed(table.issued());
        journal.checkpointed(table.tail());
    }

    /// A superblock that calls all records durable.
    fn superblock(&mut self, may_hold_dirty: bool) {
        let Session { journal, superblock, .. } = &mut self.session;
        let (next, tail) = (journal.sealed() + 1, journal.tail());
        *superblock = Superblock { may_hold_dirty, next, tail, ..superblock.successor() };
        superblock.store(&mut self.disk).unwrap();
    }
}

fn block(block: u64) -> BlockId {
    BlockId { volume: VOLUME, block }
}

fn map(number: u64, dirty: bool, slot: u32) -> Entry {
    Entry::Map { block: block(number), dirty, epoch: Epoch::NONE, slot, crc: 7, old: None }
}

/// Record 1 made block 5 dirty, and all pages say so; then record 3 cleaned it.
fn with_a_cleaned_block(may_hold_dirty: bool) -> Disk {
    let mut rig = Rig::new();
    let contents = Contents { block: block(5), dirty: true, epoch: Epoch::NONE, crc: 7 };
    rig.record(map(5, true, 0));
    rig.pages(|slot| (slot == 0).then_some(contents));
    for entry in [map(6, false, 1), Entry::Clean { slot: 0 }, map(7, false, 2)] {
        rig.record(entry);
    }
    rig.superblock(may_hold_dirty);
    assert_eq!(recover(&mut rig.disk).unwrap().blocks().count(), 3);
    rig.disk
}

#[test]
fn a_block_that_was_cleaned_in_a_lost_record_is_not_dirty_again() {
    let mut disk = with_a_cleaned_block(false);
    Harm::Record(2).inflict(&mut disk).unwrap();
    let recovered = recover(&mut disk).unwrap();
    let found = Finding::NotDirty { block: block(5), slot: 0, cleaned: true };
    assert!(recovered.findings().contains(&found), "{:?}", recovered.findings());
    assert_eq!((recovered.blocks().count(), recovered.severity()), (0, Some(Severity::Clean)));
    let hole = Finding::RecordLost { sequence: 2, durable: 4, dirty: false };
    assert_eq!(recovered.open().unwrap_err(), RecoverError::RepairFirst(hole));
    let repaired = repair(&mut disk).unwrap();
    assert_eq!((repaired.lost, repaired.outdated, repaired.clean_dropped), (vec![], vec![], 1));
    assert!(recover(&mut disk).unwrap().open().is_ok());
}

#[test]
fn a_repair_names_dirty_blocks_that_a_lost_record_may_have_been_about() {
    let mut disk = with_a_cleaned_block(true);
    Harm::Record(2).inflict(&mut disk).unwrap();
    assert!(matches!(recover(&mut disk).unwrap().open(), Err(RecoverError::MayLoseDirty(_))));
    let repaired = repair(&mut disk).unwrap();
    assert_eq!((repaired.kept, repaired.outdated), (1, vec![(block(5), 0)]));
}

#[test]
fn a_dirty_block_that_nothing_explains_is_not_given_up_in_silence() {
    let mut rig = Rig::new();
    rig.record(map(5, true, 0));
    rig.superblock(false);
    let recovered = recover(&mut rig.disk).unwrap();
    let found = Finding::NotDirty { block: block(5), slot: 0, cleaned: false };
    assert_eq!(recovered.findings(), std::slice::from_ref(&found));
    assert_eq!(recovered.open().unwrap_err(), RecoverError::MayLoseDirty(found));
    let lost = repair(&mut rig.disk).unwrap().lost;
    assert_eq!(lost, [Lost::Dirty { block: block(5), slot: 0 }]);
}

/// A whole record of an older session, in the place of a newer one whose write never reached the medium.
#[test]
fn a_session_that_falls_is_a_lost_record() {
    let mut old = Rig::new();
    (0..4).for_each(|n| old.write(map(n, true, n as u32)));
    let layout = layout(64);
    let place = |sequence| {
        let at = layout.record_offset(sequence) as usize;
        at..at + layout.sector_bytes()
    };
    let third = old.disk.bytes[place(3)].to_vec();
    // Record 2 never was: the next session begins with it.
    old.disk.bytes[place(2)].fill(0);
    let mut rig = Rig::on(old.disk);
    assert_eq!(rig.session.journal.sealed(), 1);
    (11..14).for_each(|n| rig.record(map(n, true, n as u32)));
    rig.superblock(true);
    rig.disk.bytes[place(3)].copy_from_slice(&third);
    let recovered = recover(&mut rig.disk).unwrap();
    let hole = Finding::RecordLost { sequence: 3, durable: 4, dirty: true };
    assert!(recovered.findings().contains(&hole), "{:?}", recovered.findings());
    assert_eq!(recovered.blocks().map(|(slot, _)| slot).collect::<Vec<_>>(), [0, 11]);
}

/// The newest records are gone, and behind them lies what an older session wrote behind a hole.
#[test]
fn an_older_session_does_not_go_on_behind_lost_records() {
    let mut old = Rig::new();
    (0..6).for_each(|n| old.write(map(n, true, n as u32)));
    let layout = layout(64);
    let at = layout.record_offset(2) as usize;
    old.disk.bytes[at..at + layout.sector_bytes()].fill(0);
    let mut rig = Rig::on(old.disk);
    (11..13).for_each(|n| rig.record(map(n, true, n as u32)));
    rig.pages(|_| None);
    [2, 3].into_iter().for_each(|sequence| Harm::Record(sequence).inflict(&mut rig.disk).unwrap());
    assert_eq!(recover(&mut rig.disk).unwrap().next(), 4);
}

#[test]
fn a_slot_that_was_freed_before_its_free_is_no_damage() {
    let mut rig = Rig::new();
    rig.record(map(5, false, 0));
    rig.pages(|_| None);
    rig.record(Entry::Free { slot: 0 });
    let recovered = recover(&mut rig.disk).unwrap();
    assert_eq!(recovered.findings(), [Finding::FreedTwice { sequence: 2, slot: 0 }]);
    assert_eq!((recovered.severity(), recovered.open().is_ok()), (Some(Severity::Note), true));
}

/// Wherever a repair is cut, the next one finds the same, or that it was done.
#[test]
fn a_repair_that_is_cut_anywhere_loses_no_more() {
    for harm in [Harm::Page(0), Harm::PageNewest(1), Harm::Record(1), Harm::VolumeTable(1)] {
        let mut disk = image(32, 3, false);
        let harm = match harm {
            Harm::Record(_) => Harm::Record(recover(&mut disk).unwrap().next() - 3),
            other => other,
        };
        harm.inflict(&mut disk).unwrap();
        let next = recover(&mut disk).unwrap().superblock().next;
        let mut whole = disk.clone();
        let repaired = repair(&mut whole).unwrap();
        let kept: Vec<_> = recover(&mut whole).unwrap().blocks().collect();
        let mut cuts = 0;
        loop {
            let mut cut = Cut { disk: disk.clone(), left: cuts };
            if repair(&mut cut).is_ok() {
                break;
            }
            let counts = recover(&mut cut.disk).unwrap().superblock().next > next;
            let again = repair(&mut cut.disk).unwrap();
            assert_eq!(check(&mut cut.disk, false).unwrap(), []);
            assert!(recover(&mut cut.disk).unwrap().blocks().eq(kept.iter().copied()), "{harm:?}, {cuts}");
            let lost = |repaired: &Repaired| (repaired.lost.clone(), repaired.outdated.clone());
            assert!(counts || lost(&again) == lost(&repaired), "{harm:?}, {cuts}: {again:?}");
            cuts += 1;
        }
        assert!(cuts > 6, "{cuts} places to be cut at");
    }
}

/// A cache whose superblock asks for volume table 2.
fn with_two_tables(names_it: bool) -> Disk {
    let mut disk = formatted(layout(32));
    let recovered = recover(&mut disk).unwrap();
    let superblock = recovered.superblock();
    let table = VolumeTable { generation: 2, volumes: recovered.volumes().volumes.clone() };
    let bytes = table.encode(&superblock.layout, superblock.salt()).unwrap();
    disk.write(superblock.layout.volume_table_offset(0), &bytes).unwrap();
    disk.flush().unwrap();
    let volumes_generation = if names_it { 2 } else { 1 };
    Superblock { volumes_generation, ..superblock.successor() }.store(&mut disk).unwrap();
    disk
}

#[test]
fn a_repair_writes_beside_the_only_good_volume_table() {
    let mut disk = with_two_tables(true);
    Harm::VolumeTable(0).inflict(&mut disk).unwrap();
    for writes in 0.. {
        let mut cut = Cut { disk: disk.clone(), left: writes };
        let ended = repair(&mut cut).is_ok();
        assert_eq!(recover(&mut cut.disk).unwrap().volumes().volumes.len(), 1, "after {writes} writes");
        if ended {
            break;
        }
    }
}

#[test]
fn a_session_names_the_volume_table_that_it_uses() {
    let mut disk = with_two_tables(false);
    let session = recover(&mut disk).unwrap().open().unwrap();
    assert_eq!(session.superblock.volumes_generation, 2);
}

#[test]
fn sequences_that_are_used_up_are_refused() {
    let mut disk = formatted(layout(32));
    let superblock = recover(&mut disk).unwrap().superblock().successor();
    let next = SEQUENCE_MAX - 10;
    for superblock in [superblock.clone(), superblock.successor()] {
        Superblock { next, tail: next, ..superblock }.store(&mut disk).unwrap();
    }
    assert_eq!(repair(&mut disk).unwrap_err(), RecoverError::UsedUp);
}

#[test]
fn a_session_has_room_for_its_sequences() {
    let mut disk = formatted(layout(32));
    let superblock = recover(&mut disk).unwrap().superblock().successor();
    let generation = SEQUENCE_MAX - 10;
    for superblock in
        [superblock, Superblock { generation, ..recover(&mut disk).unwrap().superblock().clone() }]
    {
        superblock.store(&mut disk).unwrap();
    }
    assert_eq!(recover(&mut disk).unwrap().open().unwrap_err(), RecoverError::UsedUp);
}
