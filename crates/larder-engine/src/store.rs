//! What is cached where: the entries, and the index from (volume, block) to entry.
//!
//! An entry stands for one slot of the cache device for as long as this engine holds the slot. Entries live in chunked arrays and are
//! linked by 32-bit numbers: 24 bytes for the entry, of which 8 are its links in the replacement policy, 4 for its hash bucket, and 4 for a tag where a policy
//! of the engine keeps tags (all but LRU and FIFO do). Ghosts are entries without a slot. What a hit looks at lies together: memory is what it waits for.
//! The index is a chained hash table ([`Chains`]): a lookup costs one access to the bucket and one to the entry. The buckets of neighbouring blocks lie together.

use crate::VolumeId;
use crate::chains::{Chains, Linked, NONE};
use larder_policy::{Chunked, Links};
use std::cell::Cell;

/// Bits of the key word that hold the block number: 2^40 blocks of 4 KiB are 4 PiB.
const BLOCK_BITS: u32 = 40;
const VOLUME_SHIFT: u32 = BLOCK_BITS;
const STATE_SHIFT: u32 = 56;
const STATE_MASK: u64 = 7;
/// The bit of the key word that tells of an entry in the common partition.
const COMMON: u64 = 1 << 60;
const KEY_MASK: u64 = (1 << STATE_SHIFT) - 1;

/// The word of an entry that is not in use: no state has this number.
const UNUSED: u64 = u64::MAX;

/// Blocks whose entries are remembered because they were found last: a request asks for its blocks several times, from its start to its end.
const RECENT: usize = 256;

/// Largest block number that an index can hold.
pub(crate) const BLOCK_MAX: u64 = (1 << BLOCK_BITS) - 1;

/// An entry's number, local to its engine.
pub(crate) type EntryId = u32;

/// Which block of which volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKey {
    pub volume: VolumeId,
    pub block: u64,
}

impl BlockKey {
    fn pack(self) -> u64 {
        debug_assert!(self.block <= BLOCK_MAX, "volumes are bounded when they are added");
        (u64::from(self.volume.0) << VOLUME_SHIFT) | self.block
    }

    fn unpack(word: u64) -> Self {
        Self { volume: VolumeId((word >> VOLUME_SHIFT) as u16), block: word & BLOCK_MAX }
    }
}

/// How far an entry's data on the cache device may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The slot holds the block.
    Valid,
    /// A fill is on its way to the slot; its staging buffer has, or will have, the data.
    Filling,
    /// A guest's write of the whole block is on its way to the slot, under an exclusive lock.
    Writing,
    /// The data is stale, but someone may still read the slot: it leaves once nobody does.
    Dead,
    /// A block that left, which its tenant's replacement policy remembers: no slot.
    Ghost,
    /// The slot holds the block, and the backing does not have it yet.
    Dirty,
}

impl State {
    fn from_bits(word: u64) -> Self {
        match (word >> STATE_SHIFT) & STATE_MASK {
            0 => Self::Valid,
            1 => Self::Filling,
            2 => Self::Writing,
            3 => Self::Dead,
            4 => Self::Ghost,
            _ => Self::Dirty,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// State and whether it is in the common partition (8 bits), volume (16), block (40), in halves: aligned to eight bytes an entry would be four longer.
    halves: [u32; 2],
    /// Next entry of the same bucket, or of the list of unused entries.
    next: u32,
    slot: u32,
    /// Its place in the replacement policy.
    links: Links,
}

impl Entry {
    fn new(word: u64, next: u32, slot: u32) -> Self {
        Self { halves: halves(word), next, slot, links: Links::NEW }
    }

    #[inline]
    fn word(&self) -> u64 {
        u64::from(self.halves[1]) << 32 | u64::from(self.halves[0])
    }
}

#[inline]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

#[derive(Clone, Copy, Debug)]
struct Tagged {
    entry: Entry,
    tag: u32,
}

/// All entries: with a tag each only where a replacement policy keeps any.
#[derive(Debug)]
enum Entries {
    Plain(Chunked<Entry>),
    Tagged(Chunked<Tagged>),
}

impl Entries {
    #[inline]
    fn get(&self, id: EntryId) -> &Entry {
        match self {
            Self::Plain(entries) => &entries[id as usize],
            Self::Tagged(entries) => &entries[id as usize].entry,
        }
    }

    #[inline]
    fn get_mut(&mut self, id: EntryId) -> &mut Entry {
        match self {
            Self::Plain(entries) => &mut entries[id as usize],
            Self::Tagged(entries) => &mut entries[id as usize].entry,
        }
    }

    #[inline]
    fn tag_mut(&mut self, id: EntryId) -> &mut u32 {
        match self {
            Self::Plain(_) => unreachable!("a policy that keeps tags was announced"),
            Self::Tagged(entries) => &mut entries[id as usize].tag,
        }
    }

    /// Put another entry in place of this one.
    fn replace(&mut self, id: EntryId, entry: Entry) {
        *self.get_mut(id) = entry;
        if let Self::Tagged(_) = self {
            *self.tag_mut(id) = 0;
        }
    }

    fn push(&mut self, entry: Entry) {
        match self {
            Self::Plain(entries) => entries.push(entry),
            Self::Tagged(entries) => entries.push(Tagged { entry, tag: 0 }),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Plain(entries) => entries.len(),
            Self::Tagged(entries) => entries.len(),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Plain(entries) => entries.memory_bytes(),
            Self::Tagged(entries) => entries.memory_bytes(),
        }
    }
}

impl Linked for Entries {
    #[inline]
    fn word(&self, id: u32) -> u64 {
        self.get(id).word() & KEY_MASK
    }

    #[inline]
    fn next(&self, id: u32) -> u32 {
        self.get(id).next
    }

    #[inline]
    fn set_next(&mut self, id: u32, next: u32) {
        self.get_mut(id).next = next;
    }
}

/// Entries and index.
#[derive(Debug)]
pub(crate) struct Store {
    entries: Entries,
    chains: Chains,
    /// By the block's number modulo [`RECENT`]: the key's word and the entry that were found last, or [`UNUSED`].
    recent: Box<[Cell<(u64, u32)>]>,
    unused: u32,
    used: u32,
    seed: u64,
}

impl Store {
    pub fn new(seed: u64) -> Self {
        let recent = vec![Cell::new((UNUSED, NONE)); RECENT].into_boxed_slice();
        let (entries, chains) = (Entries::Plain(Chunked::new()), Chains::new(seed));
        Self { entries, chains, recent, unused: NONE, used: 0, seed }
    }

    /// The entry of a block that has a slot.
    #[inline]
    pub fn find(&self, key: BlockKey) -> Option<EntryId> {
        self.find_any(key).filter(|&id| self.state(id) != State::Ghost)
    }

    /// The entry of a block that is only remembered.
    #[inline]
    pub fn find_ghost(&self, key: BlockKey) -> Option<EntryId> {
        self.find_any(key).filter(|&id| self.state(id) == State::Ghost)
    }

    #[inline]
    fn find_any(&self, key: BlockKey) -> Option<EntryId> {
        let word = key.pack();
        let recent = &self.recent[word as usize % RECENT];
        let (found, id) = recent.get();
        if found == word {
            return Some(id);
        }
        let mut at = self.chains.first(word);
        while at != NONE {
            let entry = self.entries.get(at);
            if entry.word() & KEY_MASK == word {
                recent.set((word, at));
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    /// Add an entry for a block that has none.
    pub fn insert(&mut self, key: BlockKey, slot: u32, state: State) -> EntryId {
        debug_assert!(self.find_any(key).is_none(), "a block has one entry");
        let word = key.pack() | (state as u64) << STATE_SHIFT;
        let id = self.allocate(Entry::new(word, NONE, slot));
        self.chains.add(&mut self.entries, id);
        self.used += 1;
        if self.used as usize > self.chains.len() {
            self.chains.split_one(&mut self.entries);
        }
        id
    }

    /// So many more entries will come: the buckets for them are made now, while few have to move.
    pub fn reserve(&mut self, more: usize) {
        while self.chains.len() < self.used as usize + more {
            self.chains.split_one(&mut self.entries);
        }
    }

    /// Keep an entry without its slot, which is returned.
    pub fn make_ghost(&mut self, id: EntryId) -> u32 {
        self.set_state(id, State::Ghost);
        std::mem::replace(&mut self.entries.get_mut(id).slot, NONE)
    }

    /// A ghost gets a slot.
    pub fn revive(&mut self, id: EntryId, slot: u32, state: State) {
        debug_assert_eq!(self.state(id), State::Ghost);
        self.entries.get_mut(id).slot = slot;
        self.set_state(id, state);
    }

    /// Remove an entry; returns its slot (no slot's number for a ghost).
    pub fn remove(&mut self, id: EntryId) -> u32 {
        let entry = *self.entries.get(id);
        let slot = entry.slot;
        let word = entry.word() & KEY_MASK;
        let recent = &self.recent[word as usize % RECENT];
        if recent.get().0 == word {
            recent.set((UNUSED, NONE));
        }
        self.chains.remove(&mut self.entries, id);
        self.entries.replace(id, Entry::new(UNUSED, self.unused, slot));
        self.unused = id;
        self.used -= 1;
        slot
    }

    /// A block as one number, its own, that a guest cannot foresee: what policies hash.
    #[inline]
    pub fn secret_key(&self, key: BlockKey) -> u64 {
        key.pack() ^ self.seed
    }

    /// The block of a [`Self::secret_key`].
    pub fn key_of_secret(&self, secret: u64) -> BlockKey {
        BlockKey::unpack(secret ^ self.seed)
    }

    /// [`Self::secret_key`] of an entry's block.
    #[inline]
    pub fn secret_key_of(&self, id: EntryId) -> u64 {
        (self.entries.get(id).word() & KEY_MASK) ^ self.seed
    }

    pub fn key(&self, id: EntryId) -> BlockKey {
        BlockKey::unpack(self.entries.get(id).word() & KEY_MASK)
    }

    /// What no guest can foresee.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Entries have numbers below this, in use or not.
    pub fn numbers(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The block of an entry by its number, if it is in use.
    pub fn key_of_number(&self, number: u32) -> Option<BlockKey> {
        let word = self.entries.get(number).word();
        (word != UNUSED).then(|| BlockKey::unpack(word & KEY_MASK))
    }

    pub fn slot(&self, id: EntryId) -> u32 {
        self.entries.get(id).slot
    }

    /// The block's data is in another slot now.
    pub fn set_slot(&mut self, id: EntryId, slot: u32) {
        self.entries.get_mut(id).slot = slot;
    }

    pub fn state(&self, id: EntryId) -> State {
        State::from_bits(self.entries.get(id).word())
    }

    pub fn set_state(&mut self, id: EntryId, state: State) {
        let entry = self.entries.get_mut(id);
        entry.halves = halves((entry.word() & (KEY_MASK | COMMON)) | (state as u64) << STATE_SHIFT);
    }

    /// True if an entry is in the partition that tenants share.
    #[inline]
    pub fn is_common(&self, id: EntryId) -> bool {
        self.entries.get(id).word() & COMMON != 0
    }

    /// An entry is in the partition that tenants share, or in its tenant's own.
    pub fn set_common(&mut self, id: EntryId, common: bool) {
        let entry = self.entries.get_mut(id);
        let flag = if common { COMMON } else { 0 };
        entry.halves = halves((entry.word() & !COMMON) | flag);
    }

    /// A replacement policy keeps tags: entries get them, all at once.
    pub fn keep_tags(&mut self) {
        if let Entries::Plain(entries) = &self.entries {
            let mut tagged = Chunked::new();
            (0..entries.len()).for_each(|at| tagged.push(Tagged { entry: entries[at], tag: 0 }));
            self.entries = Entries::Tagged(tagged);
        }
    }

    /// An entry's place in its replacement policy.
    #[inline]
    pub fn links(&self, id: EntryId) -> &Links {
        &self.entries.get(id).links
    }

    #[inline]
    pub fn links_mut(&mut self, id: EntryId) -> &mut Links {
        &mut self.entries.get_mut(id).links
    }

    /// What its replacement policy notes about an entry.
    #[inline]
    pub fn tag(&self, id: EntryId) -> u32 {
        match &self.entries {
            Entries::Plain(_) => unreachable!("a policy that keeps tags was announced"),
            Entries::Tagged(entries) => entries[id as usize].tag,
        }
    }

    #[inline]
    pub fn tag_mut(&mut self, id: EntryId) -> &mut u32 {
        self.entries.tag_mut(id)
    }

    /// Entries in use.
    pub fn len(&self) -> u32 {
        self.used
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes() + self.chains.memory_bytes() + size_of_val(&*self.recent)
    }

    fn allocate(&mut self, entry: Entry) -> EntryId {
        match self.unused {
            NONE => {
                self.entries.push(entry);
                (self.entries.len() - 1) as EntryId
            }
            id => {
                self.unused = self.entries.get(id).next;
                self.entries.replace(id, entry);
                id
            }
        }
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn an_entry_with_its_links_and_bucket_takes_28_bytes_and_a_tag_four() {
        for (tags, bytes) in [(false, 28), (true, 32)] {
            let mut store = Store::new(0x9e37_79b9_7f4a_7c15);
            if tags {
                store.keep_tags();
            }
            for n in 0..262_144 {
                store.insert(key(n), n as u32, State::Valid);
            }
            assert!(
                store.memory_bytes() <= 262_144 * bytes + 131_072 + 4096,
                "{} bytes",
                store.memory_bytes()
            );
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
        assert_eq!((store.make_ghost(id), store.find(key(7)), store.find_ghost(key(7))), (3, None, Some(id)));
        store.revive(id, 5, State::Valid);
        assert_eq!((store.slot(id), store.find(key(7)), store.find_ghost(key(7))), (5, Some(id), None));
        let largest = BlockKey { volume: VolumeId(u16::MAX), block: BLOCK_MAX };
        let id = store.insert(largest, 9, State::Dead);
        assert_eq!((store.key(id), store.find(largest)), (largest, Some(id)));
    }
}
