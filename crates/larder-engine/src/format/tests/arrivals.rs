//! Records and the data that are written with them: a power cut may leave either alone.

use super::disk::Disk;
use super::images::{formatted, layout};
use super::model::VOLUME;
use crate::format::*;

pub struct Rig {
    pub disk: Disk,
    pub session: Session,
}

impl Rig {
    pub fn new() -> Self {
        let mut disk = formatted(layout(64));
        let session = recover(&mut disk).unwrap().open().unwrap();
        session.superblock.store(&mut disk).unwrap();
        Self { disk, session }
    }

    /// One commit, which is durable: block 5, with ones, in slot 0.
    pub fn committed() -> Self {
        let mut rig = Self::new();
        rig.data(0, 1);
        let entry = rig.entry(5, 0, 1, None);
        rig.records(&[entry]);
        rig.flush();
        rig
    }

    /// Its data are found to be damaged, not missing.
    pub fn is_told_of_damage(&mut self) -> bool {
        let damaged = |finding: &Finding| matches!(finding, Finding::Data { slot: 0, dirty: true, .. });
        check(&mut self.disk, true).unwrap().iter().any(damaged)
    }

    /// The start of another session.
    pub fn restart(&mut self) {
        self.session = recover(&mut self.disk).unwrap().open().unwrap();
        if let Some(first) = &self.session.first {
            self.disk.write(first.offset, &first.bytes).unwrap();
        }
        self.disk.flush().unwrap();
        self.session.superblock.store(&mut self.disk).unwrap();
    }

    /// What tells that a slot holds a block, with these data.
    pub fn entry(&self, block: u64, slot: u32, data: u8, old: Option<u32>) -> Entry {
        let block = BlockId { volume: VOLUME, block };
        let crc = self.session.superblock.salt().block(block, &[data; 4096]);
        Entry::Write { block, epoch: Epoch::NONE, slot, crc, old }
    }

    pub fn data(&mut self, slot: u32, data: u8) {
        let offset = self.session.superblock.layout.slot_offset(slot);
        self.disk.write(offset, &[data; 4096]).unwrap();
    }

    /// A record of its own for each.
    pub fn records(&mut self, entries: &[Entry]) {
        for &entry in entries {
            self.session.journal.push(entry).unwrap();
            let pieces = self.session.journal.seal();
            pieces.iter().for_each(|piece| self.disk.write(piece.offset, &piece.bytes).unwrap());
        }
    }

    pub fn flush(&mut self) {
        let journal = &mut self.session.journal;
        self.disk.flush().unwrap();
        journal.flushed(journal.sealed());
    }

    /// Which block is in which slot, how bad what was found is, and which record does not count.
    pub fn found(&mut self) -> (Vec<(u32, u64)>, Option<Severity>, Option<u64>) {
        let recovered = recover(&mut self.disk).unwrap();
        let blocks = recovered.blocks().map(|(slot, contents)| (slot, contents.block.block)).collect();
        let cut = recovered.findings().iter().find_map(|finding| match finding {
            Finding::NotArrived { sequence, .. } => Some(*sequence),
            _ => None,
        });
        (blocks, recovered.severity(), cut)
    }
}

#[test]
fn a_record_without_its_data_does_not_count_nor_what_follows() {
    let mut rig = Rig::committed();
    assert_eq!(rig.found(), (vec![(0, 5)], None, None));
    // Block 6 is there, block 5 is not; block 7 is.
    rig.data(1, 2);
    rig.data(3, 4);
    let more = [rig.entry(6, 1, 2, None), rig.entry(5, 2, 3, Some(0)), rig.entry(7, 3, 4, None)];
    rig.records(&more);
    assert_eq!(rig.found(), (vec![(0, 5), (1, 6)], Some(Severity::Note), Some(3)));
    // Another session does not bring it back, even if the data come after all.
    rig.restart();
    rig.data(2, 3);
    assert_eq!(rig.found(), (vec![(0, 5), (1, 6)], None, None));
    rig.records(&[Entry::Free { slot: 1 }]);
    assert_eq!(rig.found(), (vec![(0, 5)], None, None));
}

#[test]
fn what_is_called_durable_counts_whatever_became_of_its_data() {
    let mut rig = Rig::committed();
    rig.data(0, 9);
    assert_eq!(rig.found(), (vec![], Some(Severity::Note), Some(1)), "nobody can tell it from a power cut");
    rig.records(&[Entry::mark(Region { volume: VOLUME, region: 0 })]);
    assert_eq!(rig.found(), (vec![(0, 5)], None, None), "a later record calls it durable");
    assert!(rig.is_told_of_damage());
}

/// A session was given up, and its device took no superblock that says so. Whoever has written down what was durable loses nothing but the data that are damaged.
#[test]
fn a_repair_by_someone_who_knows_what_was_durable_does_not_doubt_it() {
    let mut rig = Rig::committed();
    rig.data(1, 2);
    let entry = rig.entry(6, 1, 2, None);
    rig.records(&[entry]);
    rig.flush();
    rig.data(0, 9);
    let Superblock { uuid, session, .. } = rig.session.superblock;
    let mark = crate::SessionMark { uuid, session, record: 2, part: 0 };
    let mut doubted = rig.disk.clone();
    doubted.write(layout(64).slot_offset(1), &[9; 4096]).unwrap();
    let mut known = doubted.clone();
    assert_eq!(repair(&mut doubted).unwrap().kept, 1, "nobody can tell it from a power cut");
    let repaired = repair_after(&mut known, mark).unwrap();
    assert_eq!((repaired.kept, repaired.lost), (2, vec![]));
    assert_eq!(check(&mut known, false).unwrap(), []);
    rig.disk = known;
    assert!(rig.is_told_of_damage());
}

#[test]
fn data_of_a_slot_that_was_freed_since_are_not_asked_for() {
    let mut rig = Rig::new();
    rig.data(0, 1);
    rig.data(1, 2);
    // Two records, and one flush for both.
    let entries = [rig.entry(5, 0, 1, None), rig.entry(5, 1, 2, Some(0))];
    rig.records(&entries);
    rig.flush();
    rig.data(0, 3);
    assert_eq!(rig.found(), (vec![(1, 5)], None, None));
    // Where the second one does not count, the first has to.
    rig.data(1, 4);
    assert_eq!(rig.found(), (vec![], Some(Severity::Note), Some(1)));
}

#[test]
fn blocks_that_nobody_can_check_are_found_wrong_as_ever() {
    let mut rig = Rig::new();
    let beyond = rig.entry(BlockId::BLOCK_MAX, 0, 1, None);
    rig.records(&[beyond]);
    assert_eq!(rig.found(), (vec![], Some(Severity::Dirty), None));
}

#[test]
fn a_record_may_be_confirmed_where_nothing_follows() {
    let mut rig = Rig::new();
    rig.data(0, 1);
    let entry = rig.entry(5, 0, 1, None);
    rig.records(&[entry]);
    assert!(rig.session.journal.confirm().is_empty(), "it is not durable");
    rig.flush();
    let confirmed = rig.session.journal.confirm();
    confirmed.iter().for_each(|piece| rig.disk.write(piece.offset, &piece.bytes).unwrap());
    assert_eq!(confirmed.len(), 1);
    rig.flush();
    assert!(rig.session.journal.confirm().is_empty(), "there is nothing more to say");
    rig.data(0, 9);
    assert_eq!(rig.found(), (vec![(0, 5)], None, None));
}

/// The second commit is cut, and one of its records names the first one durable: damage of that is damage.
#[test]
fn what_a_commit_behind_the_end_calls_durable_counts() {
    let mut rig = Rig::new();
    (0..2).for_each(|slot| rig.data(slot, 1));
    let first = [rig.entry(5, 0, 1, None), rig.entry(6, 1, 1, None)];
    rig.records(&first);
    rig.flush();
    let second = [rig.entry(7, 2, 2, None), rig.entry(8, 3, 3, None)];
    rig.records(&second);
    rig.data(0, 9);
    assert_eq!(rig.found(), (vec![(0, 5), (1, 6)], Some(Severity::Note), Some(3)));
    assert!(rig.is_told_of_damage());
}

#[test]
fn who_knows_what_was_durable_is_believed() {
    let mut rig = Rig::committed();
    rig.data(0, 9);
    let Superblock { uuid, session, .. } = rig.session.superblock;
    let mark = |session, record| crate::SessionMark { uuid, session, record, part: 0 };
    let mut next = |mark| recover_after(&mut rig.disk, mark).unwrap().next();
    assert_eq!((next(mark(session, 1)), next(mark(session, 0)), next(mark(session - 1, 1))), (2, 1, 1));
}
