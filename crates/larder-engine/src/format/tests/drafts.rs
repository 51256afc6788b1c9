//! Drafts of records: what makes them, where they lie, and what is left where one of them is torn, without its data, or damaged.

use super::arrivals::Rig;
use crate::format::record::{self, Sector};
use crate::format::*;

impl Rig {
    /// A commit of its own for this one, durable. Its data are there.
    fn commit(&mut self, block: u64, slot: u32) {
        self.data(slot, slot as u8);
        let entry = self.entry(block, slot, slot as u8, None);
        self.draft(&[entry]);
        self.flush();
    }

    /// A commit that is not durable. Where its pieces lie: the places of which records.
    fn draft(&mut self, entries: &[Entry]) -> Vec<u64> {
        entries.iter().for_each(|&entry| self.session.journal.push(entry).unwrap());
        let pieces = self.session.journal.draft();
        self.write(&pieces)
    }

    fn seal(&mut self) -> Vec<u64> {
        let pieces = self.session.journal.seal();
        self.write(&pieces)
    }

    fn write(&mut self, pieces: &[Piece]) -> Vec<u64> {
        let layout = self.session.superblock.layout;
        let mut places = Vec::new();
        for Piece { offset, bytes } in pieces {
            self.disk.write(*offset, bytes).unwrap();
            let first = (offset - layout.record_offset(0)) / 512;
            places.extend(first..first + bytes.len() as u64 / 512);
        }
        places
    }

    fn damage(&mut self, place: u64) {
        let at = self.session.superblock.layout.record_offset(place) as usize;
        self.disk.replace(at, &[0xa5; 512]);
    }

    /// The blocks that are found, and the worst that is.
    fn blocks(&mut self) -> (Vec<u64>, Option<Severity>) {
        let (blocks, worst, _) = self.found();
        (blocks.into_iter().map(|(_, block)| block).collect(), worst)
    }
}

/// The places of drafts of record 1 in a ring of 64, of which eight are the room for them.
const FIRST: u64 = 7;
const SECOND: u64 = 9;

#[test]
fn small_commits_share_a_record() {
    let mut rig = Rig::new();
    let mut places = Vec::new();
    // Of 16 bytes each, where 464 have room.
    for block in 0..29 {
        let map = rig.entry(block, block as u32, 0, None);
        let mark = Entry::mark(Region { volume: 3, region: block });
        places.extend(rig.draft(&[if block % 2 == 0 { mark } else { map }]));
        assert_eq!((rig.session.journal.sealed(), rig.session.journal.has_draft()), (1, block < 28));
        rig.flush();
    }
    let in_turn: Vec<u64> = [FIRST, SECOND].into_iter().cycle().take(28).collect();
    assert_eq!((&places[..28], &places[28..]), (&in_turn[..], &[1][..]));
    // It has all of them, and the marks are of the record in which they were asked for.
    let layout = rig.session.superblock.layout;
    let mut sector = [0; 512];
    rig.disk.read(layout.record_offset(1), &mut sector).unwrap();
    let salt = rig.session.superblock.salt();
    let Sector::Record(header, entries) = record::inspect(&sector, salt, &layout, 1) else { panic!() };
    assert_eq!((entries.iter().count(), header.durable, header.before), (29, 0, 28 * 16));
    let marks = entries.iter().filter(|entry| matches!(entry, Entry::Mark { since: 1, .. })).count();
    assert_eq!(marks, 15);
}

#[test]
fn a_commit_that_fills_half_a_record_is_one() {
    let mut rig = Rig::new();
    let entries: Vec<Entry> = (0..15).map(|slot| rig.entry(slot, slot as u32, 0, None)).collect();
    assert_eq!((rig.draft(&entries), rig.session.journal.has_draft()), (vec![1], false));
    assert_eq!(rig.draft(&entries[..1]), [2], "the last record is not known to be durable");
    rig.flush();
    assert_eq!(rig.draft(&entries[..1]), [3 - 1 + FIRST]);
    assert_eq!(rig.draft(&entries[..1]), [3], "nor is the last draft");
}

#[test]
fn no_page_is_made_while_a_record_may_grow() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    let Session { journal, table, .. } = &mut rig.session;
    let mut bytes = vec![0; PAGE_BYTES];
    assert_eq!(table.write_next(journal, |_| None, &mut bytes), None);
    assert_eq!(rig.seal(), [1]);
    let Session { journal, table, .. } = &mut rig.session;
    assert_eq!(table.write_next(journal, |_| None, &mut bytes).map(|write| write.after), Some(1));
}

#[test]
fn entries_are_refused_that_would_reach_a_draft() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    let mut slots = 1u32..;
    while rig.session.journal.push(Entry::Free { slot: slots.next().unwrap() }).is_ok() {}
    let places = rig.seal();
    assert!(places.len() > 1 && places.iter().all(|place| (1..FIRST).contains(place)), "{places:?}");
    let free = Entry::Free { slot: 0 };
    assert!(rig.session.journal.push(free).is_err(), "the record is not durable in its place");
    rig.flush();
    assert!(rig.session.journal.push(free).is_ok(), "the draft is not needed any more");
}

#[test]
fn the_newest_draft_that_is_whole_counts() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    assert_eq!(rig.blocks(), (vec![5], None));
    rig.commit(6, 1);
    assert_eq!(rig.blocks(), (vec![5, 6], None));
    let mut torn = Rig { disk: rig.disk.clone(), ..Rig::new() };
    torn.damage(SECOND);
    assert_eq!(torn.blocks(), (vec![5], Some(Severity::Note)), "nobody can tell it from a power cut");
    // The next session puts it in its place, and goes on behind it.
    rig.restart();
    assert_eq!(rig.session.journal.sealed(), 1);
    [FIRST, SECOND].into_iter().for_each(|place| rig.damage(place));
    assert_eq!(rig.blocks().0, [5, 6]);
    rig.commit(7, 2);
    assert_eq!(rig.blocks().0, [5, 6, 7]);
}

#[test]
fn a_draft_without_its_data_does_not_count() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    let entry = rig.entry(6, 1, 1, None);
    assert_eq!(rig.draft(&[entry]), [SECOND]);
    assert_eq!(rig.found(), (vec![(0, 5)], Some(Severity::Note), Some(1)));
    // Not even where the data come in another session.
    rig.restart();
    rig.data(1, 1);
    assert_eq!(rig.blocks(), (vec![5], None));
    rig.commit(7, 2);
    assert_eq!(rig.blocks(), (vec![5, 7], None));
    // Nor where the superblock of that session is damaged.
    rig.data(1, 9);
    rig.disk.replace(rig.session.superblock.offset() as usize, &[0; 4096]);
    assert_eq!(rig.blocks(), (vec![5, 7], Some(Severity::Note)));
}

#[test]
fn a_record_without_its_data_leaves_the_draft() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    rig.commit(6, 1);
    let entry = rig.entry(7, 2, 2, None);
    rig.session.journal.push(entry).unwrap();
    assert_eq!(rig.seal(), [1]);
    assert_eq!(rig.found(), (vec![(0, 5), (1, 6)], Some(Severity::Note), Some(1)));
    let mut lost = Rig { disk: rig.disk.clone(), ..Rig::new() };
    // The record says that the draft was durable.
    lost.damage(SECOND);
    assert_eq!(lost.blocks(), (vec![5], Some(Severity::Dirty)));
    assert!(recover(&mut lost.disk).unwrap().open().is_err());
    lost.damage(FIRST);
    assert_eq!(lost.blocks(), (vec![], Some(Severity::Dirty)));
    rig.restart();
    rig.data(2, 2);
    assert_eq!(rig.blocks(), (vec![5, 6], None));
}

/// What was made with the record, and survived it, follows it and not the draft.
#[test]
fn nothing_follows_a_draft_that_a_start_has_put_in_its_place() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    let lost = rig.entry(6, 1, 1, None);
    rig.data(2, 2);
    let there = rig.entry(7, 2, 2, None);
    for entry in [lost, there] {
        rig.session.journal.push(entry).unwrap();
        rig.seal();
    }
    assert_eq!(rig.blocks(), (vec![5], Some(Severity::Note)));
    // The power goes before there is another session.
    let Piece { offset, bytes } = recover(&mut rig.disk).unwrap().open().unwrap().first.unwrap();
    rig.disk.write(offset, &bytes).unwrap();
    assert_eq!(rig.blocks(), (vec![5], None));
    rig.restart();
    rig.commit(8, 3);
    assert_eq!(rig.blocks(), (vec![5, 8], None));
}

/// A superblock of the session before says less than the newest, but nothing false.
#[test]
fn drafts_count_though_their_session_is_not_told() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    rig.seal();
    rig.flush();
    // Larger than what the next session writes; and not all of it is there.
    let more: Vec<Entry> = (10..18).map(|block| rig.entry(block, block as u32, 1, None)).collect();
    more.iter().for_each(|&entry| rig.session.journal.push(entry).unwrap());
    assert_eq!(rig.seal(), [2]);
    rig.restart();
    rig.commit(6, 1);
    rig.commit(7, 2);
    assert_eq!(rig.blocks(), (vec![5, 6, 7], None));
    let mut cut = Rig { disk: rig.disk.clone(), ..Rig::new() };
    let newest = rig.session.superblock.offset() as usize;
    rig.disk.replace(newest, &[0; 4096]);
    assert_eq!(rig.blocks(), (vec![5, 6, 7], Some(Severity::Note)));
    // Nor does what is missing of it bring back anything older.
    cut.disk.replace(newest, &[0; 4096]);
    cut.data(1, 9);
    cut.data(2, 9);
    cut.damage(1 + SECOND);
    assert_eq!(cut.blocks(), (vec![5], Some(Severity::Note)));
}

/// A device that was given up is trusted with what was durable, in a draft as well.
#[test]
fn a_superblock_may_say_how_much_of_a_draft_was_durable() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    rig.commit(6, 1);
    let journal = &rig.session.journal;
    let (next, part) = (journal.durable() + 1, journal.draft_durable() as u32);
    let told = Superblock { next, part, needs_check: true, ..rig.session.superblock.successor() };
    told.store(&mut rig.disk).unwrap();
    rig.data(1, 9);
    let recovered = recover(&mut rig.disk).unwrap();
    assert_eq!((recovered.blocks().count(), recovered.findings()), (2, &[Finding::NeedsCheck][..]));
    rig.damage(SECOND);
    let recovered = recover(&mut rig.disk).unwrap();
    let lost = |finding: &Finding| matches!(finding, Finding::RecordLost { sequence: 1, .. });
    assert!(recovered.blocks().count() == 1 && recovered.findings().iter().any(lost));
}

#[test]
fn data_that_were_durable_with_an_earlier_draft_are_damaged_not_missing() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    rig.commit(6, 1);
    rig.data(0, 9);
    assert_eq!(rig.blocks(), (vec![5, 6], None));
    assert!(rig.is_told_of_damage());
    // Those of the last draft may be either, until that is confirmed.
    rig.data(1, 9);
    assert_eq!(rig.found(), (vec![(0, 5)], Some(Severity::Note), Some(1)));
    let confirmed = rig.session.journal.confirm();
    assert_eq!(rig.write(&confirmed), [1]);
    rig.flush();
    assert_eq!(rig.blocks(), (vec![5, 6], None));
    assert!(rig.session.journal.confirm().is_empty(), "there is nothing more to say");
}

#[test]
fn a_record_that_is_lost_is_missed_though_there_are_drafts_of_it() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    rig.data(1, 1);
    let entry = rig.entry(6, 1, 1, None);
    rig.session.journal.push(entry).unwrap();
    assert_eq!(rig.seal(), [1]);
    rig.flush();
    rig.commit(7, 2);
    assert_eq!(rig.blocks(), (vec![5, 6, 7], None));
    rig.damage(1);
    assert_eq!(rig.blocks(), (vec![5], Some(Severity::Dirty)));
    let lost = |finding: &Finding| matches!(finding, Finding::RecordLost { sequence: 1, .. });
    assert!(recover(&mut rig.disk).unwrap().findings().iter().any(lost));
    let repaired = repair(&mut rig.disk).unwrap();
    assert_eq!((repaired.kept, repaired.outdated.len()), (1, 1));
}

/// Its sessions tell a device that comes back what it had.
#[test]
fn a_session_is_reached_by_what_was_durable_of_it() {
    let mut rig = Rig::new();
    rig.commit(5, 0);
    let early = rig.disk.clone();
    rig.commit(6, 1);
    let Superblock { uuid, session, .. } = rig.session.superblock;
    let (record, part) = (rig.session.journal.durable(), rig.session.journal.draft_durable() as u32);
    let mark = crate::SessionMark { uuid, session, record, part };
    assert_eq!((record, part), (0, 32));
    let reaches = |disk: &mut super::disk::Disk| recover_after(disk, mark).unwrap().reaches(&mark);
    assert!(reaches(&mut rig.disk) && !reaches(&mut early.clone()));
    // What was durable counts, whatever became of its data.
    rig.data(1, 9);
    assert_eq!(recover_after(&mut rig.disk, mark).unwrap().blocks().count(), 2);
    assert_eq!(rig.seal(), [1]);
    rig.flush();
    assert!(reaches(&mut rig.disk));
}

#[test]
fn a_record_is_damaged_with_its_drafts() {
    let mut rig = Rig::new();
    (0..3).for_each(|block| rig.commit(block, block as u32));
    assert_eq!(rig.blocks(), (vec![0, 1, 2], None));
    Harm::Record(1).inflict(&mut rig.disk).unwrap();
    assert!(rig.blocks().0.is_empty());
    let mut rig = Rig::new();
    (0..3).for_each(|block| rig.commit(block, block as u32));
    rig.seal();
    rig.flush();
    Harm::Record(1).inflict(&mut rig.disk).unwrap();
    assert!(rig.blocks().0.is_empty());
}
