//! The writers at their limits: a full ring, marks that are carried along, pages in turn.

use super::images::{formatted, layout};
use super::model::Model;
use super::state::region;
use crate::format::*;
use std::collections::{BTreeMap, BTreeSet};

fn session(records: u64) -> Session {
    recover(&mut formatted(layout(records))).unwrap().open().unwrap()
}

#[test]
fn entries_are_refused_before_a_needed_record_would_be_overwritten() {
    let Session { mut journal, .. } = session(32);
    let mut offsets = BTreeMap::new();
    while journal.push(Entry::Free { slot: 1 }).is_ok() {
        for piece in journal.seal() {
            assert_eq!(offsets.insert(piece.offset, journal.sealed()), None, "record 1 is the tail");
        }
        journal.flushed(journal.sealed());
    }
    assert_eq!((offsets.len(), journal.room_entries()), (28, 0), "four are kept back");
    assert_eq!(journal.push(Entry::Free { slot: 1 }), Err(JournalError::Full));
    // The tail moves only when a durable record says so.
    journal.checkpointed(11);
    assert_eq!(journal.push(Entry::Free { slot: 1 }), Err(JournalError::Full));
    let named = journal.seal();
    assert_eq!((named.len(), journal.sealed()), (1, 29));
    assert_eq!(journal.push(Entry::Free { slot: 1 }), Err(JournalError::Full));
    journal.flushed(29);
    assert_eq!(journal.room_entries(), 9 * 23);
    assert_eq!(journal.push(Entry::Free { slot: 1 }), Ok(()));
}

#[test]
fn nothing_is_sealed_where_there_is_nothing_to_say() {
    let Session { mut journal, .. } = session(32);
    assert!(journal.seal().is_empty());
    (0..93).for_each(|slot| journal.push(Entry::Free { slot }).unwrap());
    let pieces = journal.seal();
    assert_eq!(pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>(), 2 * 512);
    assert!(journal.seal().is_empty() && journal.is_sealed());
}

#[test]
fn marks_go_along_with_the_ring_and_keep_their_age() {
    let mut session = session(64);
    let journal = &mut session.journal;
    let marks_max = journal.marks_max();
    assert_eq!(marks_max, 2 * 29);
    for region in 0..marks_max as u64 {
        journal.push(Entry::mark(Region { volume: 1, region })).unwrap();
    }
    let one_more = Entry::mark(Region { volume: 2, region: 0 });
    assert_eq!(journal.push(one_more), Err(JournalError::Marks(marks_max)));
    for round in 0..1000 {
        journal.push(Entry::Free { slot: 1 }).expect("the tail keeps up");
        journal.seal();
        journal.flushed(journal.sealed());
        journal.checkpointed(journal.sealed());
        for region in 0..marks_max as u64 {
            let mark = journal.mark(Region { volume: 1, region }).unwrap();
            assert_eq!(mark.since, 1 + region / 29, "round {round}");
            assert!(mark.at + 64 > journal.sealed() && journal.tail() <= mark.at);
        }
    }
}

/// Commits of many records that all are full: the marks have records of their own.
#[test]
fn marks_go_along_with_large_commits() {
    let mut session = session(64);
    let journal = &mut session.journal;
    (0..58).for_each(|region| journal.push(Entry::mark(Region { volume: 1, region })).unwrap());
    for _ in 0..200 {
        for _ in 0..10 * 92 {
            journal.push(Entry::Free { slot: 1 }).expect("the tail keeps up");
        }
        journal.seal();
        journal.flushed(journal.sealed());
        journal.checkpointed(journal.sealed());
        journal.seal();
        journal.flushed(journal.sealed());
    }
}

#[test]
fn pages_come_in_turn_and_never_in_place_of_the_newest() {
    let Session { mut journal, mut table, superblock, .. } = session(64);
    let (mut bytes, mut copies, mut written) = (vec![0; PAGE_BYTES], BTreeMap::new(), 0);
    for _ in 0..640 {
        journal.push(Entry::Free { slot: 1 }).expect("pages keep up");
        journal.seal();
        journal.flushed(journal.sealed());
        while let Some(write) = table.write_due(&journal, |_| None, &mut bytes) {
            assert_eq!(write.after, journal.sealed());
            let pages = 0..superblock.layout.pages();
            let found = pages
                .flat_map(|page| [(page, 0), (page, 1)])
                .find(|&(page, copy)| superblock.layout.page_offset(page, copy) == write.offset);
            let (page, copy) = found.expect("a page's place");
            assert_ne!(copies.insert(page, copy), Some(copy), "page {page}");
            table.flushed(table.issued());
            written += 1;
        }
        journal.checkpointed(table.tail());
    }
    // All three once in 52 records.
    assert_eq!((superblock.layout.pages(), written), (3, 640 * 3 / 52));
}

#[test]
fn a_page_counts_once_a_flush_covers_it() {
    let Session { mut journal, mut table, .. } = session(32);
    journal.push(Entry::Free { slot: 1 }).unwrap();
    journal.seal();
    let (mut bytes, begun) = (vec![0; PAGE_BYTES], table.issued());
    let mut tickets = Vec::new();
    while let Some(write) = table.write_next(&journal, |_| None, &mut bytes) {
        tickets.push(write.ticket);
    }
    table.flushed(begun);
    assert_eq!(table.tail(), 1, "they were handed out after that flush began");
    table.flushed(tickets[1]);
    assert_eq!(table.tail(), 1, "the third one was not written yet");
    table.flushed(tickets[2]);
    assert_eq!(table.tail(), 2);
}

#[test]
fn a_stop_brings_all_pages_up_to_date() {
    let mut model = Model::new(64);
    (0..20).for_each(|block| model.step(0, block));
    model.step(17, 0);
    let recovered = recover(&mut model.disk).unwrap();
    assert_eq!(recovered.pages_behind().collect::<Vec<_>>(), [0, 1, 2]);
    let Session { journal, mut table, .. } = recovered.open().unwrap();
    let slots = |slot| match recovered.slot(slot) {
        SlotState::Used(contents) => Some(contents),
        _ => None,
    };
    let mut bytes = vec![0; PAGE_BYTES];
    while let Some(write) = table.write_next(&journal, slots, &mut bytes) {
        model.disk.write(write.offset, &bytes).unwrap();
    }
    table.flushed(table.issued());
    assert_eq!(table.tail(), recovered.next());
    let again = recover(&mut model.disk).unwrap();
    assert_eq!(again.pages_behind().count(), 0);
    assert!(again.slots().eq(recovered.slots()));
}

#[test]
fn what_is_dropped_is_settled() {
    let mut model = Model::new(64);
    model.step(6, 1);
    model.step(17, 0);
    model.step(9, 1);
    let mut disk = model.disk.clone();
    let recovered = recover(&mut disk).unwrap();
    let settle: BTreeSet<_> = recovered.settle().map(|entry| format!("{entry:?}")).collect();
    let expected = [Entry::Free { slot: 0 }, Entry::Unmark { region: region(1) }];
    assert_eq!(settle, expected.iter().map(|entry| format!("{entry:?}")).collect());
    assert_eq!(recovered.marks().map(|(region, _)| region).collect::<Vec<_>>(), [region(1)]);
}

#[test]
fn marks_are_few_in_the_largest_cache() {
    let layout = Layout::for_slots(4096, 512, 1 << 28).unwrap();
    let journal = JournalWriter::new(layout, Salt::new(Uuid([1; 16])), 1, (1, 1), BTreeMap::new());
    assert_eq!(journal.marks_max(), 1 << 18);
}
