//! The cache's metadata while it is in use: what keeps the cache over stops and crashes. `docs/FORMAT.md` has the rules,
//! [`crate::format`] the bytes.
//!
//! A [`Durable`] owns the journal and the slot table of one session. One engine has it, so for now a cache that survives is
//! one engine's. It works in *rounds* ([`round`]): what is to be said is pushed and sealed, the records are written, with
//! pages of the slot table that are due, and the cache device is flushed. All that waits shares a round; while one runs, the
//! next gathers.
//!
//! * **A block is mapped** when it has been cached, a round's flush covers its data, and its region is quiet
//!   ([`regions`]): the backing holds just this. Nothing waits for that.
//! * **A block that leaves** frees its slot with the next round; until then it is not used for anything else ([`slots`]).
//!   So a few slots are freed ahead.
//! * **A write past a mapped block** waits until its region is marked, durably ([`guard`]). Marks go when a region has been quiet
//!   for a while ([`tend`]).
//! * **A dirty block** is mapped when its data is written, in the order of the writes ([`news`]): the flush of the round makes both durable, and a guest's flush
//!   waits for that. What becomes of the slots of older versions is in [`dirty`].
//! * **A volume that grows** has its new size in the volume table before anything is said of what is beyond the old end ([`grow`]), and one that
//!   joins ([`join`]) its name, before anything is said of it.
//! * **An error** of the device in metadata ends all this for good ([`latch`]): the superblock is marked, the cache is not used
//!   any more, and the backings serve alone.

mod commit;
mod dirty;
mod grow;
mod guard;
mod join;
mod latch;
mod limbo;
mod news;
mod open;
mod planted;
mod regions;
mod retable;
mod round;
mod slots;
mod stop;
mod sums;
mod tend;
mod verify;
mod versions;

pub use grow::GrowError;
pub use join::JoinError;
pub use open::OpenError;
pub use planted::Planted;
#[cfg(feature = "planted")]
pub use planted::recover_planted;
pub use sums::Sums;

use crate::format::{
    BlockId, JournalWriter, Piece, Region, Salt, Superblock, TableWriter, Ticket, VolumeTable,
};
use crate::store::{BlockKey, Store};
use crate::{StageId, VolumeId};
use limbo::Limbo;
use news::NewsDesk;
use regions::Regions;
use slots::{SlotTable, Sum};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use versions::Versions;

/// Blocks that wait to be mapped before a round is worth it.
const LAZY: usize = 256;

/// A cached block that the journal is to map, as it was when that was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    block: BlockId,
    slot: u32,
    crc: u32,
}

/// What is under way on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing.
    Idle,
    /// Writes, then a flush.
    Busy(After),
    /// The session is over: all was told, or nothing can be told any more.
    Stopped,
    /// An error of the device: the cache is not to be used before a check.
    Latched,
}

/// What comes when the writes and their flush have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// The next piece of the start.
    Start,
    /// The next piece of another volume table.
    Table,
    /// The superblock says that there may be dirty blocks: now there may.
    Flag,
    /// The round is over.
    Round,
    /// The last pages are written, and the superblock is next.
    Pages,
    /// The superblock says that all is well.
    Stop,
    /// The superblock says that all is not.
    Latch,
}

/// What a round says: in force when its flush has ended.
#[derive(Debug, Default)]
struct Said {
    frees: Vec<u32>,
    marks: Vec<Region>,
    /// Slots that are mapped dirty.
    firm: Vec<u32>,
    /// Slots that have an epoch no more, without being free.
    epochless: Vec<u32>,
    /// Volumes, by their numbers, of which blocks were dirty and are so no more.
    cleaned: BTreeSet<u16>,
}

/// The metadata of one session.
#[derive(Debug)]
pub(crate) struct Durable {
    /// The newest that is durable.
    superblock: Superblock,
    /// The volumes that may have dirty blocks again if the device loses its power before the start is over.
    once_dirty: BTreeSet<u16>,
    salt: Salt,
    /// The highest generation that was tried.
    generation: u64,
    journal: JournalWriter,
    table: TableWriter,
    slots: SlotTable,
    versions: Versions,
    regions: Regions,
    /// Blocks that the journal may map although they are not cached, until their `Free` is durable; with their slots.
    limbo: Limbo,
    /// Slots in limbo that hold versions which are still to be written back.
    kept: usize,
    /// The number of each of the engine's volumes in the volume table, and back; not back for those that are gone.
    numbers: Vec<u16>,
    volumes: BTreeMap<u16, VolumeId>,
    /// Numbers that no volume can be given in this session: they were given, or something on the device has them.
    taken: BTreeSet<u16>,
    phase: Phase,
    /// Writes of metadata in flight.
    writes: u32,
    failed: bool,
    /// What the start still has to write, piece by piece.
    start: VecDeque<(Piece, Option<Superblock>)>,
    /// The volumes of this session, and of those before of which something is mapped.
    volume_table: VolumeTable,
    retabling: Option<retable::Retabling>,
    /// The superblock that is being written.
    next_superblock: Option<Superblock>,
    /// Rounds asked for.
    wanted: u8,
    /// Slots to be freed, marks to be set, marks to go.
    frees: VecDeque<u32>,
    marks: VecDeque<Region>,
    unmarks: VecDeque<Region>,
    /// Blocks to be mapped: their data is durable; it will be with the running flush; with the next one.
    ripe: VecDeque<Wish>,
    flushing: Vec<Wish>,
    unflushed: Vec<Wish>,
    /// What is to be said of dirty blocks.
    news: NewsDesk,
    /// Slots that are mapped dirty although the backing has newer data: their volume, and whether the running flush covers that.
    owed: BTreeMap<u32, (u16, bool)>,
    /// Blocks that the backing durably has, with their slots.
    cleans: VecDeque<(BlockKey, u32)>,
    /// What the running round says.
    said: Said,
    /// Pages that may be written once the running round is durable.
    pages: Vec<Piece>,
    /// The pages that the running flush covers.
    ticket: Ticket,
    /// The next round says of the last one that it is durable, if there is nothing else to say.
    confirms: bool,
    /// True if the journal refused an entry in this round.
    full: bool,
    /// Parts that wait until there may be more marks.
    gate: VecDeque<u32>,
    /// Parts that wait for a latch to be on the device.
    held: Vec<u32>,
    /// Bytes for staging buffers, in the order in which the driver is told of them: names are soon used again.
    loads: VecDeque<(StageId, Vec<u8>)>,
    written_bytes: u64,
    stopping: bool,
    /// The stop has looked at all blocks.
    looked: bool,
}

#[inline]
fn numbered(numbers: &[u16], key: BlockKey) -> BlockId {
    BlockId { volume: numbers[usize::from(key.volume.0)], block: key.block }
}

/// The block of a slot: that of its entry, or that with which it was left.
#[inline]
fn block(store: &Store, numbers: &[u16], slot: u32) -> BlockId {
    store.block_of(slot).map_or_else(|left| left, |key| numbered(numbers, key))
}

impl Durable {
    /// A block as the volume table numbers it.
    fn block_id(&self, key: BlockKey) -> BlockId {
        numbered(&self.numbers, key)
    }

    /// The block that the journal maps, or mapped last, to a slot.
    fn block(&self, store: &Store, slot: u32) -> BlockId {
        block(store, &self.numbers, slot)
    }

    /// The checksum of what a slot holds; none while it is being written.
    #[inline]
    pub(crate) fn sum(&self, store: &Store, slot: u32) -> Option<u32> {
        match self.slots.sum(store, slot) {
            Sum::None => None,
            Sum::Here(crc) => Some(crc),
            Sum::News(number) => self.news.crc(number),
        }
    }

    fn key_of(&self, block: BlockId) -> Option<BlockKey> {
        self.volumes.get(&block.volume).map(|&volume| BlockKey { volume, block: block.block })
    }

    fn region_of(&self, block: BlockId) -> Region {
        Region::of(block, self.superblock.region_blocks)
    }

    /// Ask for at least this many more rounds.
    fn want(&mut self, rounds: u8) {
        self.wanted = self.wanted.max(rounds);
    }

    /// The volumes of which a crash now could bring back a dirty block.
    pub(crate) fn dirty_volumes(&self, store: &Store) -> BTreeSet<VolumeId> {
        let mapped = self.slots.mapped_dirty().map(|slot| self.block(store, slot).volume);
        let starting = self.is_starting();
        let numbers = mapped.chain(self.said.cleaned.iter().copied());
        let numbers = numbers.chain(self.once_dirty.iter().copied().filter(|_| starting));
        numbers.filter_map(|number| self.volumes.get(&number).copied()).collect()
    }

    /// Where the newest durable superblock lies.
    pub(crate) fn superblock_offset(&self) -> u64 {
        self.superblock.offset()
    }

    /// What is durable of this session.
    pub(crate) fn mark(&self) -> crate::SessionMark {
        let Superblock { uuid, session, .. } = self.superblock;
        if session != self.journal.session() {
            // What recovery has read may not be durable, the superblock among it: a device that lost its power is in an older state, and the same cache.
            return crate::SessionMark { uuid, session: 0, record: 0, part: 0 };
        }
        let (next, part, _) = self.durable_end();
        crate::SessionMark { uuid, session, record: next - 1, part }
    }

    /// Every record before the first number is durable, and so many bytes of the entries of that one, in a draft; and where replay has to begin. What recovery has
    /// read may not be durable before the session's superblock is: until then the one before tells.
    fn durable_end(&self) -> (u64, u32, u64) {
        let Superblock { session, next, part, tail, .. } = self.superblock;
        let journal = &self.journal;
        match session == journal.session() {
            true => (journal.durable() + 1, journal.draft_durable() as u32, journal.durable_tail()),
            false => (next, part, tail),
        }
    }

    /// True while the journal does not durably say that a volume's blocks are clean which are called so.
    pub(crate) fn says_clean(&self, volume: VolumeId) -> bool {
        self.said.cleaned.contains(&self.numbers[volume.0 as usize])
    }

    pub(crate) fn is_latched(&self) -> bool {
        matches!(self.phase, Phase::Latched | Phase::Busy(After::Latch))
    }

    /// Nothing is under way on the device, and nothing comes any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Latched | Phase::Stopped)
    }

    /// Nothing may be done for a guest yet.
    pub(crate) fn is_starting(&self) -> bool {
        self.phase == Phase::Busy(After::Start)
    }

    /// No request may come any more.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Writes of metadata in flight.
    pub(crate) fn writes_in_flight(&self) -> usize {
        self.writes as usize
    }

    /// True while the journal may map blocks of a volume that are not cached.
    pub(crate) fn frees_anything_of(&self, volume: VolumeId) -> bool {
        self.frees_anything_numbered(self.numbers[usize::from(volume.0)])
    }

    fn frees_anything_numbered(&self, volume: u16) -> bool {
        let first = BlockId { volume, block: 0 };
        self.limbo.between(first, u64::MAX).next().is_some()
    }

    /// Bytes of memory held for slots.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes() + self.limbo.memory_bytes()
    }

    /// Bytes for a staging buffer.
    pub(crate) fn load(&mut self, stage: StageId, bytes: Vec<u8>) {
        self.loads.push_back((stage, bytes));
    }

    /// Requests that wait for the journal.
    pub(crate) fn waiters(&self) -> usize {
        self.news.waiters()
    }

    /// Slots that will be free.
    pub(crate) fn freeing(&self) -> usize {
        self.limbo.len() - self.kept.min(self.limbo.len())
    }
}
