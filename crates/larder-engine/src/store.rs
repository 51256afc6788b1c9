//! What is cached where: the entries, and the index from (volume, block) to entry.
//!
//! An entry stands for one slot of the cache device for as long as this engine holds the slot. Entries are linked by 32-bit numbers: 24 bytes for the entry, of
//! which 8 are its links in the replacement policy, 4 for its hash bucket, and 4 for a tag where a policy of the engine keeps tags (all but LRU and FIFO do).
//! Ghosts are entries without a slot. What a hit looks at lies together: memory is what it waits for.
//! The index is a chained hash table ([`Chains`]): a lookup costs one access to the bucket and one to the entry. The buckets of neighbouring blocks lie together.
//!
//! An engine that keeps its cache has all of its slots: there **an entry's number is its slot's** ([`Store::number_by_slots`]), and a block that goes to another slot
//! takes another number. Then the entry need not say which slot it has, and a slot finds its block. An entry has room for a *note* instead, which is the slot's (`durable`): it
//! stays when the entry leaves, and so does the block as the journal knows it ([`Store::leave`]), as long as the journal may say something of the slot. Ghosts have numbers
//! above all slots. Elsewhere engines share the slots, each with some of them: there entries are numbered as they come.

use crate::VolumeId;
use crate::cells::Cells;
use crate::chains::{Chains, Linked, NONE};
use crate::format::BlockId;
use larder_policy::Links;
use std::cell::Cell;

/// Bits of the key word that hold the block number: 2^40 blocks of 4 KiB are 4 PiB.
const BLOCK_BITS: u32 = 40;
const VOLUME_SHIFT: u32 = BLOCK_BITS;
const STATE_SHIFT: u32 = 56;
const STATE_MASK: u64 = 7;
/// The bit of the key word that tells of an entry in the common partition.
const COMMON: u64 = 1 << 60;
const KEY_MASK: u64 = (1 << STATE_SHIFT) - 1;

/// The state in the word of a slot without an entry, of which the journal may say something: the rest is the block as the journal numbers it.
const LEFT: u64 = 6;
/// The word of an entry that is not in use: no state has this number.
const UNUSED: u64 = u64::MAX;

/// True for the word of an entry.
#[inline]
fn is_entry(word: u64) -> bool {
    (word >> STATE_SHIFT) & STATE_MASK < LEFT
}

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
    pub fn pack(self) -> u64 {
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
    /// Its slot; where that is its number, the slot's note.
    own: u32,
    /// Its place in the replacement policy.
    links: Links,
}

impl Entry {
    const BLANK: Self = Self::new(UNUSED, NONE, NONE);

    const fn new(word: u64, next: u32, own: u32) -> Self {
        Self { halves: halves(word), next, own, links: Links::NEW }
    }

    #[inline]
    fn word(&self) -> u64 {
        u64::from(self.halves[1]) << 32 | u64::from(self.halves[0])
    }
}

#[inline]
const fn halves(word: u64) -> [u32; 2] {
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
    Plain(Cells<Entry>),
    Tagged(Cells<Tagged>),
}

impl Entries {
    #[inline]
    fn get(&self, id: EntryId) -> &Entry {
        match self {
            Self::Plain(entries) => &entries[id],
            Self::Tagged(entries) => &entries[id].entry,
        }
    }

    #[inline]
    fn get_mut(&mut self, id: EntryId) -> &mut Entry {
        match self {
            Self::Plain(entries) => &mut entries[id],
            Self::Tagged(entries) => &mut entries[id].entry,
        }
    }

    /// The word of a cell, used or not.
    #[inline]
    fn word_of(&self, id: EntryId) -> u64 {
        let entry = match self {
            Self::Plain(entries) => entries.get(id),
            Self::Tagged(entries) => entries.get(id).map(|tagged| &tagged.entry),
        };
        entry.map_or(UNUSED, Entry::word)
    }

    #[inline]
    fn tag_mut(&mut self, id: EntryId) -> &mut u32 {
        match self {
            Self::Plain(_) => unreachable!("a policy that keeps tags was announced"),
            Self::Tagged(entries) => &mut entries[id].tag,
        }
    }

    /// Put an entry there, without what a policy noted of the one before.
    fn put(&mut self, id: EntryId, entry: Entry) {
        self.make(id);
        match self {
            Self::Plain(entries) => entries[id] = entry,
            Self::Tagged(entries) => entries[id] = Tagged { entry, tag: 0 },
        }
    }

    /// An entry goes to another number, with what a policy noted of it; the notes of slots stay.
    #[inline]
    fn shift(&mut self, from: EntryId, to: EntryId) {
        self.make(to);
        match self {
            Self::Plain(entries) => entries[to] = Entry { own: entries[to].own, ..entries[from] },
            Self::Tagged(entries) => {
                let Tagged { entry, tag } = entries[from];
                entries[to] = Tagged { entry: Entry { own: entries[to].entry.own, ..entry }, tag };
            }
        }
    }

    #[inline]
    fn make(&mut self, id: EntryId) {
        match self {
            Self::Plain(entries) => entries.make(id, Entry::BLANK),
            Self::Tagged(entries) => entries.make(id, Tagged { entry: Entry::BLANK, tag: 0 }),
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
    /// Numbers that were used, but for those of slots.
    unused: u32,
    /// Numbers from here on were never used; where entries are numbered by slots, this is above all of those.
    end: u32,
    used: u32,
    seed: u64,
    by_slots: bool,
}

impl Store {
    pub fn new(seed: u64) -> Self {
        let recent = vec![Cell::new((UNUSED, NONE)); RECENT].into_boxed_slice();
        let (entries, chains) = (Entries::Plain(Cells::new()), Chains::new(seed));
        Self { entries, chains, recent, unused: NONE, end: 0, used: 0, seed, by_slots: false }
    }

    /// Entries are numbered by their slots from now on, of which there are so many; or (`None`) as they come.
    ///
    /// # Panics
    /// If there are entries.
    pub fn number_by_slots(&mut self, slots: Option<u32>) {
        assert_eq!(self.used, 0, "entries keep their numbers");
        let tagged = matches!(self.entries, Entries::Tagged(_));
        *self = Self { by_slots: slots.is_some(), end: slots.unwrap_or(0), ..Self::new(self.seed) };
        if tagged {
            self.keep_tags();
        }
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

    /// These blocks are about to be looked for. Nothing follows from that, but memory is waited for once.
    pub fn expect(&self, keys: &[BlockKey]) {
        // First what needs no decision: where one is guessed wrong, the processor begins anew with what comes after it.
        let first = |key: &BlockKey| match self.chains.first(key.pack()) {
            NONE => UNUSED,
            id => self.entries.get(id).word(),
        };
        std::hint::black_box(keys.iter().fold(0, |all, key| all ^ first(key)));
        for &key in keys {
            std::hint::black_box(self.find_any(key));
        }
    }

    /// The same of slots, where entries are numbered by them.
    pub fn expect_slots(&self, slots: impl Iterator<Item = u32>) {
        std::hint::black_box(slots.fold(0, |all, slot| all ^ self.entries.word_of(slot)));
    }

    /// Add an entry for a block that has none.
    pub fn insert(&mut self, key: BlockKey, slot: u32, state: State) -> EntryId {
        debug_assert!(self.find_any(key).is_none(), "a block has one entry");
        let word = key.pack() | (state as u64) << STATE_SHIFT;
        let (id, own) = match self.by_slots {
            true => (slot, self.note_of(slot)),
            false => (self.allocate(), slot),
        };
        debug_assert!(!is_entry(self.entries.word_of(id)), "a slot has one entry");
        self.entries.put(id, Entry::new(word, NONE, own));
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

    /// Keep an entry without its slot: its number from now on, and the slot.
    pub fn make_ghost(&mut self, id: EntryId) -> (EntryId, u32) {
        self.set_state(id, State::Ghost);
        if !self.by_slots {
            return (id, std::mem::replace(&mut self.entries.get_mut(id).own, NONE));
        }
        let ghost = self.allocate();
        self.renumber(id, ghost);
        (ghost, id)
    }

    /// A ghost gets a slot: its number from now on.
    pub fn revive(&mut self, ghost: EntryId, slot: u32, state: State) -> EntryId {
        debug_assert_eq!(self.state(ghost), State::Ghost);
        self.set_state(ghost, state);
        if !self.by_slots {
            self.entries.get_mut(ghost).own = slot;
            return ghost;
        }
        self.renumber(ghost, slot);
        self.set_unused(ghost);
        slot
    }

    /// A block goes to another slot, where entries are numbered by them: its entry's number is that of the slot from now on.
    #[inline]
    pub fn move_to(&mut self, id: EntryId, slot: u32) {
        debug_assert!(self.by_slots && self.state(id) != State::Ghost);
        self.renumber(id, slot);
    }

    #[inline]
    fn renumber(&mut self, old: EntryId, new: EntryId) {
        debug_assert!(!is_entry(self.entries.word_of(new)), "a slot has one entry");
        self.entries.shift(old, new);
        self.chains.rename(&mut self.entries, old, new);
        self.entries.get_mut(old).halves = halves(UNUSED);
        let word = self.entries.get(new).word() & KEY_MASK;
        let recent = &self.recent[word as usize % RECENT];
        if recent.get().0 == word {
            recent.set((word, new));
        }
    }

    /// Remove an entry; returns its slot (no slot's number for a ghost).
    pub fn remove(&mut self, id: EntryId) -> u32 {
        let slot = if self.state(id) == State::Ghost { NONE } else { self.slot(id) };
        let word = self.entries.get(id).word() & KEY_MASK;
        let recent = &self.recent[word as usize % RECENT];
        if recent.get().0 == word {
            recent.set((UNUSED, NONE));
        }
        self.chains.remove(&mut self.entries, id);
        self.used -= 1;
        match self.by_slots && slot != NONE {
            true => self.entries.get_mut(id).halves = halves(UNUSED),
            false => self.set_unused(id),
        }
        slot
    }

    /// A number that is no slot's may be used again.
    fn set_unused(&mut self, id: EntryId) {
        self.entries.put(id, Entry::new(UNUSED, self.unused, NONE));
        self.unused = id;
    }

    /// A number that is no slot's.
    fn allocate(&mut self) -> EntryId {
        match self.unused {
            NONE => {
                self.end += 1;
                self.end - 1
            }
            id => {
                self.unused = self.entries.get(id).next;
                id
            }
        }
    }

    /// A slot has no entry, or will get one, and this is its block as the journal knows it.
    #[inline]
    pub fn leave(&mut self, slot: u32, block: BlockId) {
        debug_assert!(self.by_slots && !is_entry(self.entries.word_of(slot)));
        self.entries.make(slot);
        self.entries.get_mut(slot).halves = halves(block.pack() | LEFT << STATE_SHIFT);
    }

    /// The block of a slot that has an entry (`Ok`), or was left ([`Store::leave`]).
    #[inline]
    pub fn block_of(&self, slot: u32) -> Result<BlockKey, BlockId> {
        self.block_and_note(slot).0
    }

    /// The same, and what was noted of the slot.
    #[inline]
    pub fn block_and_note(&self, slot: u32) -> (Result<BlockKey, BlockId>, u32) {
        let entry = self.entries.get(slot);
        let word = entry.word();
        let block = match (word >> STATE_SHIFT) & STATE_MASK {
            LEFT => Err(BlockId::unpack(word & KEY_MASK)),
            _ => Ok(BlockKey::unpack(word & KEY_MASK)),
        };
        (block, entry.own)
    }

    /// What was noted of a slot, where entries are numbered by them.
    #[inline]
    pub fn note(&self, slot: u32) -> u32 {
        self.entries.get(slot).own
    }

    /// Note something of a slot that has an entry, or was left.
    #[inline]
    pub fn set_note(&mut self, slot: u32, note: u32) {
        debug_assert!(self.by_slots);
        self.entries.get_mut(slot).own = note;
    }

    fn note_of(&mut self, slot: u32) -> u32 {
        self.entries.make(slot);
        self.note(slot)
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

    #[inline]
    pub fn key(&self, id: EntryId) -> BlockKey {
        BlockKey::unpack(self.entries.get(id).word() & KEY_MASK)
    }

    /// What no guest can foresee.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Entries have numbers below this, in use or not.
    pub fn numbers(&self) -> u32 {
        self.end
    }

    /// The block of an entry by its number, if it is in use.
    pub fn key_of_number(&self, number: u32) -> Option<BlockKey> {
        let word = self.entries.word_of(number);
        is_entry(word).then(|| BlockKey::unpack(word & KEY_MASK))
    }

    /// The slot of an entry that is no ghost.
    #[inline]
    pub fn slot(&self, id: EntryId) -> u32 {
        if self.by_slots { id } else { self.entries.get(id).own }
    }

    #[inline]
    pub fn state(&self, id: EntryId) -> State {
        State::from_bits(self.entries.get(id).word())
    }

    #[inline]
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
            self.entries = Entries::Tagged(entries.map(|entry| Tagged { entry, tag: 0 }));
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
            Entries::Tagged(entries) => entries[id].tag,
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
}

#[cfg(test)]
mod tests;
