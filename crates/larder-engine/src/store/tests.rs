//! Entries and index against a map, entries that are numbered by their slots, and what they take of memory.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn key(n: u64) -> BlockKey {
    BlockKey { volume: VolumeId((n % 3) as u16), block: n / 3 }
}

proptest! {
    #[test]
    fn equals_an_ordered_map(ops in prop::collection::vec((0..600u64, any::<bool>()), 0..2000), reserved in 0..500usize) {
        let (mut store, mut model) = (Store::new(0x9e37_79b9_7f4a_7c15), BTreeMap::new());
        store.reserve(reserved);
        for (slot, (n, add)) in ops.into_iter().enumerate() {
            match (add, model.contains_key(&n)) {
                (true, false) => { model.insert(n, store.insert(key(n), slot as u32, State::Valid)); }
                (false, true) => { let id = model.remove(&n).expect("in the model"); store.remove(id); }
                _ => {}
            }
            prop_assert_eq!(store.find(key(n)), model.get(&n).copied());
        }
        for n in 0..600 {
            prop_assert_eq!(store.find(key(n)), model.get(&n).copied());
            if let Some(&id) = model.get(&n) { prop_assert_eq!(store.key(id), key(n)); }
        }
        prop_assert_eq!(store.len() as usize, model.len());
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u32),
    Move(u64, u32),
    Ghost(u64),
    Revive(u64, u32),
    Remove(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let (n, slot) = (0..SLOTS as u64 * 2, 0..SLOTS);
    prop_oneof![
        4 => (n.clone(), slot.clone()).prop_map(|(n, slot)| Op::Insert(n, slot)),
        4 => (n.clone(), slot.clone()).prop_map(|(n, slot)| Op::Move(n, slot)),
        2 => n.clone().prop_map(Op::Ghost),
        2 => (n.clone(), slot).prop_map(|(n, slot)| Op::Revive(n, slot)),
        2 => n.prop_map(Op::Remove),
    ]
}

const SLOTS: u32 = 40;

/// What is left in a slot, and noted of it.
fn left(n: u64) -> BlockId {
    BlockId { volume: 9, block: n }
}

proptest! {
    #[test]
    fn numbers_are_those_of_slots_and_blocks_keep_what_is_theirs(ops in prop::collection::vec(op(), 0..600), tags: bool) {
        let mut store = Store::new(7);
        if tags {
            store.keep_tags();
        }
        store.number_by_slots(Some(SLOTS));
        // By block: the slot, if any; by slot: the block, and what was left there last.
        let mut blocks: BTreeMap<u64, Option<u32>> = BTreeMap::new();
        let (mut slots, mut gone): (BTreeMap<u32, u64>, BTreeMap<u32, u64>) = Default::default();
        for op in ops {
            let had = |n: &u64| blocks.get(n).copied();
            match op {
                Op::Insert(n, slot) if had(&n).is_none() && !slots.contains_key(&slot) => {
                    prop_assert_eq!(store.insert(key(n), slot, State::Valid), slot);
                    store.links_mut(slot).newer = n as u32;
                    if tags {
                        prop_assert_eq!(std::mem::replace(store.tag_mut(slot), n as u32), 0);
                    }
                    store.set_note(slot, slot + 100);
                    blocks.insert(n, Some(slot));
                    slots.insert(slot, n);
                    gone.remove(&slot);
                }
                Op::Move(n, slot) if had(&n).flatten().is_some() && !slots.contains_key(&slot) => {
                    let old = had(&n).flatten().expect("it has one");
                    store.move_to(old, slot);
                    store.leave(old, left(n));
                    store.set_note(slot, slot + 100);
                    blocks.insert(n, Some(slot));
                    slots.insert(slot, n);
                    slots.remove(&old);
                    gone.insert(old, n);
                    gone.remove(&slot);
                }
                Op::Ghost(n) if had(&n).flatten().is_some() => {
                    let old = had(&n).flatten().expect("it has one");
                    let (ghost, slot) = store.make_ghost(old);
                    prop_assert!(ghost >= SLOTS && slot == old);
                    store.leave(old, left(n));
                    blocks.insert(n, None);
                    slots.remove(&old);
                    gone.insert(old, n);
                }
                Op::Revive(n, slot) if had(&n) == Some(None) && !slots.contains_key(&slot) => {
                    let ghost = store.find_ghost(key(n)).expect("it is one");
                    prop_assert_eq!(store.revive(ghost, slot, State::Filling), slot);
                    store.set_note(slot, slot + 100);
                    blocks.insert(n, Some(slot));
                    slots.insert(slot, n);
                    gone.remove(&slot);
                }
                Op::Remove(n) if had(&n).is_some() => {
                    let slot = had(&n).flatten();
                    let entry = store.find(key(n)).or(store.find_ghost(key(n))).expect("it is there");
                    prop_assert_eq!(store.remove(entry), slot.unwrap_or(NONE));
                    blocks.remove(&n);
                    if let Some(slot) = slot {
                        store.leave(slot, left(n));
                        slots.remove(&slot);
                        gone.insert(slot, n);
                    }
                }
                _ => {}
            }
            for n in 0..u64::from(SLOTS) * 2 {
                let slot = blocks.get(&n).copied();
                prop_assert_eq!(store.find(key(n)), slot.flatten());
                let ghost = store.find_ghost(key(n));
                prop_assert_eq!(ghost.is_some(), slot == Some(None));
                let Some(entry) = slot.flatten().or(ghost) else { continue };
                prop_assert_eq!((store.key(entry), store.links(entry).newer), (key(n), n as u32));
                prop_assert!(!tags || store.tag(entry) == n as u32);
            }
            for slot in 0..SLOTS {
                prop_assert_eq!(store.key_of_number(slot), slots.get(&slot).map(|&n| key(n)));
                match (slots.get(&slot), gone.get(&slot)) {
                    (Some(&n), None) => prop_assert_eq!(store.block_of(slot), Ok(key(n))),
                    (None, Some(&n)) => prop_assert_eq!(store.block_of(slot), Err(left(n))),
                    (had, _) => prop_assert_eq!(had, None),
                }
                if slots.contains_key(&slot) || gone.contains_key(&slot) {
                    prop_assert_eq!(store.note(slot), slot + 100);
                }
            }
            prop_assert_eq!(store.len() as usize, blocks.len());
        }
    }
}

#[test]
fn an_entry_with_its_links_and_bucket_takes_28_bytes_and_a_tag_four() {
    for (tags, by_slots, bytes) in
        [(false, false, 28), (true, false, 32), (false, true, 28), (true, true, 32)]
    {
        let mut store = Store::new(0x9e37_79b9_7f4a_7c15);
        if tags {
            store.keep_tags();
        }
        store.number_by_slots(by_slots.then_some(1 << 20));
        for n in 0..262_144 {
            // Any slots, so many that lie together.
            store.insert(key(n), n as u32 ^ 0xf_0000, State::Valid);
        }
        assert!(store.memory_bytes() <= 262_144 * bytes + 131_072 + 4096, "{} bytes", store.memory_bytes());
    }
}

#[test]
fn entries_that_get_tags_stay_as_they_were() {
    let mut store = Store::new(0x9e37_79b9_7f4a_7c15);
    let ids: Vec<EntryId> = (0..100).map(|n| store.insert(key(n), n as u32 + 7, State::Dirty)).collect();
    store.links_mut(ids[3]).newer = 5;
    store.remove(ids[9]);
    store.keep_tags();
    *store.tag_mut(ids[4]) = 8;
    store.keep_tags();
    assert_eq!((store.tag(ids[3]), store.tag(ids[4]), store.links(ids[3]).newer), (0, 8, 5));
    for n in (0..100).filter(|&n| n != 9) {
        let id = store.find(key(n)).expect("it is there");
        assert_eq!((id, store.slot(id), store.state(id)), (ids[n as usize], n as u32 + 7, State::Dirty));
    }
    store.remove(ids[4]);
    assert_eq!(store.insert(key(200), 1, State::Valid), ids[4], "the number is used again");
    assert_eq!(store.tag(ids[4]), 0, "without what was noted of the block before");
}

/// The longest chain of a store with these blocks.
fn longest_chain(blocks: impl Iterator<Item = u64>) -> usize {
    let mut store = Store::new(0x9e37_79b9_7f4a_7c15);
    blocks.for_each(|n| {
        store.insert(BlockKey { volume: VolumeId(0), block: n }, 0, State::Valid);
    });
    let chain = |first| {
        let some = |id| (id != NONE).then_some(id);
        std::iter::successors(some(first), |&id| some(store.entries.next(id))).count()
    };
    store.chains.heads().map(chain).max().unwrap_or(0)
}

#[test]
fn blocks_at_any_distance_have_buckets_of_their_own() {
    for step in [1, 2, 16, 256, 4096, 1 << 20] {
        let longest = longest_chain((0..65_536).map(|n| n * step));
        assert!(longest <= 12, "one of {longest} where every {step}th block is cached");
    }
}

#[test]
fn the_state_does_not_change_the_key() {
    let mut store = Store::new(0x9e37_79b9_7f4a_7c15);
    let id = store.insert(key(7), 3, State::Filling);
    for state in [State::Valid, State::Filling, State::Writing, State::Dead, State::Dirty] {
        for common in [true, false] {
            store.set_common(id, common);
            store.set_state(id, state);
            assert_eq!((store.state(id), store.is_common(id)), (state, common));
            assert_eq!((store.find(key(7)), store.slot(id)), (Some(id), 3));
        }
    }
    assert_eq!(
        (store.make_ghost(id), store.find(key(7)), store.find_ghost(key(7))),
        ((id, 3), None, Some(id))
    );
    assert_eq!(store.revive(id, 5, State::Valid), id);
    assert_eq!((store.slot(id), store.find(key(7)), store.find_ghost(key(7))), (5, Some(id), None));
    let largest = BlockKey { volume: VolumeId(u16::MAX), block: BLOCK_MAX };
    let id = store.insert(largest, 9, State::Dead);
    assert_eq!((store.key(id), store.find(largest)), (largest, Some(id)));
}
