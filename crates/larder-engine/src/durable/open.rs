//! Going on with a cache that was recovered.
//!
//! Volumes are found again by name, identity and size ([`VolumeTable::again`]): one that differs is another volume. What is mapped of others is freed: while
//! they are not here anyone may write to their backings. First the device is flushed, so that all that recovery has read is durable; then
//! comes the superblock of the session, which says so. Guests wait for both.

use super::join::enter;
use super::limbo::Limbo;
use super::round::superblock_piece;
use super::slots::{Release, SlotTable};
use super::versions::Versions;
use super::{After, Durable, Phase, Planted, Regions};
use crate::format::{
    BlockId, Contents, PERIOD, Piece, RecoverError, Recovered, Session, SlotState, Superblock, Ticket,
    Version, Volume, VolumeTable, VolumeTableError,
};
use crate::store::{BlockKey, State};
use crate::{Engine, VolumeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A recovered cache cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Its blocks, their number or the device's sectors are not the engine's.
    #[error("the cache has another block size, number of blocks or sector size than the engine")]
    Geometry,
    /// Its metadata could not be written at some time.
    #[error("the cache needs a check: its device failed while metadata was written")]
    NeedsCheck,
    /// It holds blocks that their backing does not have, of a volume that is not here, or has another size.
    #[error("the cache holds dirty data of a volume that is not there: {0} in slot {1}")]
    Dirty(BlockId, u32),
    /// Dirty blocks may be lost.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// There is no room for another volume's name.
    #[error(transparent)]
    Volumes(#[from] VolumeTableError),
}

impl Engine {
    /// Go on with what the cache holds, and keep it over stops and crashes from now on. All tenants and volumes have been added:
    /// `volumes` has one element for each that has not left, in their order; their `id` is chosen here. The free pool holds the slots that are
    /// [`SlotState::Free`], and no others. Clean blocks above their tenant's quota are freed.
    ///
    /// One engine has the metadata of a cache, and all of its slots. Follow with [`Engine::next_action`] until it is empty. Data of
    /// slots is addressed as before ([`crate::Target::Cache`]): the driver adds [`crate::format::Layout::data_offset`].
    ///
    /// # Panics
    /// If something is cached already, or `volumes` has another length.
    pub fn open_cache(&mut self, recovered: &Recovered, volumes: Vec<Volume>) -> Result<(), OpenError> {
        assert_eq!(self.store.len(), 0, "a cache is opened first");
        self.check_openable(recovered, &volumes)?;
        self.open_resumed(recovered, volumes, &BTreeSet::new())
    }

    /// True if a cache could be opened with these volumes.
    ///
    /// # Panics
    /// If there are not as many as were added.
    pub(crate) fn check_openable(&self, recovered: &Recovered, volumes: &[Volume]) -> Result<(), OpenError> {
        let here = self.volumes.iter().filter(|volume| !volume.gone).count();
        assert_eq!(volumes.len(), here, "each volume has a name");
        self.check_cache(recovered)?;
        let session = recovered.open()?;
        let Numbered { table, numbers, .. } = number(recovered, volumes.to_vec());
        let strange = |block: &(u32, Contents)| block.1.dirty && !numbers.contains(&block.1.block.volume);
        if let Some((slot, contents)) = recovered.blocks().find(strange) {
            return Err(OpenError::Dirty(contents.block, slot));
        }
        start_pieces(recovered, &session, &table).map(drop)
    }

    /// Begin a session on what was recovered. Blocks of the volumes that were `served` without the cache are not trusted, dirty or not.
    pub(crate) fn open_resumed(
        &mut self,
        recovered: &Recovered,
        volumes: Vec<Volume>,
        served: &BTreeSet<VolumeId>,
    ) -> Result<(), OpenError> {
        let session = recovered.open()?;
        let numbered = number(recovered, volumes);
        let start = start_pieces(recovered, &session, &numbered.table)?;
        let first = session.first.clone();
        let gone: Vec<bool> = self.volumes.iter().map(|volume| volume.gone).collect();
        self.durable =
            Some(Box::new(Durable::new(recovered, session, (numbered, &gone), start, self.store.seed())));
        let versions = recovered.versions();
        self.store.number_by_slots(Some(self.config.cache_blocks));
        self.store.reserve(recovered.blocks().count());
        for (slot, state) in recovered.slots() {
            match state {
                SlotState::Used(contents) => {
                    self.restore(slot, contents, !self.is_of(contents, served), versions.get(&slot));
                }
                SlotState::Dropped(contents) => self.restore(slot, contents, false, None),
                // Nobody knows whether an unknown slot is free: it is not used before a start that knows.
                SlotState::Free | SlotState::Unknown => {}
            }
        }
        // Dirty blocks are held whatever the quota.
        self.trim_due = true;
        // What recovery has read may be in the device's own cache only, if the last process died: the superblock calls it durable.
        let first = Vec::from_iter(first.filter(|_| !self.is_planted(Planted::DraftNotPut)));
        let in_one_place = self.is_planted(Planted::DraftsInOnePlace);
        self.durable.iter_mut().for_each(|durable| durable.journal.drafts_in_one_place = in_one_place);
        match self.is_planted(Planted::StartUnflushed) {
            false => self.meta_step(first, After::Start),
            true => self.start_unflushed(first),
        }
        for volume in 0..self.volumes.len() {
            self.flush_backing(VolumeId(volume as u16));
        }
        Ok(())
    }

    fn is_of(&self, contents: Contents, volumes: &BTreeSet<VolumeId>) -> bool {
        let volume = self.durable.as_ref().and_then(|durable| durable.volumes.get(&contents.block.volume));
        volume.is_some_and(|volume| volumes.contains(volume))
    }

    fn check_cache(&self, recovered: &Recovered) -> Result<(), OpenError> {
        let superblock = recovered.superblock();
        let shape = superblock.layout.shape();
        let same = (shape.block_bytes, shape.slots) == (self.config.block_bytes, self.config.cache_blocks);
        if !same || self.config.cache_align > shape.sector_bytes {
            return Err(OpenError::Geometry);
        }
        if superblock.needs_check {
            return Err(OpenError::NeedsCheck);
        }
        Ok(())
    }

    /// A slot that was in use: its block is cached again, or the slot is freed.
    fn restore(&mut self, slot: u32, contents: Contents, usable: bool, version: Option<&Version>) {
        let Some(durable) = &mut self.durable else { return };
        self.store.leave(slot, contents.block);
        durable.slots.restore(&mut self.store, slot, contents.dirty, contents.crc);
        if let Some(version) = version.filter(|_| contents.epoch.is_some()) {
            durable.versions.add(slot, contents.block.volume, version.number);
        }
        let is_older = version.is_some_and(|version| version.is_superseded);
        // Of what was written before the volume had an order nobody knows it: that is the oldest.
        let epoch = version.map_or(PERIOD - 1, |version| version.number);
        match durable.key_of(contents.block).filter(|_| usable) {
            Some(key) if is_older => {
                durable.keep(contents.block, slot);
                match self.is_ordered(key.volume) {
                    true => self.restore_version(key, slot, epoch, true),
                    false => self.durable.iter_mut().for_each(|durable| durable.retire(slot, true)),
                }
            }
            Some(key) if contents.dirty => {
                self.restore_entry(key, slot, State::Dirty);
                self.count_dirty(key, false);
                self.restore_version(key, slot, epoch, false);
            }
            Some(key) if self.has_room(key.volume) => self.restore_entry(key, slot, State::Valid),
            _ => self.release(contents.block, slot),
        }
    }

    fn release(&mut self, block: BlockId, slot: u32) {
        if let Some(durable) = &mut self.durable {
            durable.release(block, slot);
        }
    }

    /// What was written of the start is durable: write the next piece, or serve guests.
    pub(super) fn start_step(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        match durable.start.pop_front() {
            Some((piece, superblock)) => {
                durable.next_superblock = superblock;
                self.meta_step(vec![piece], After::Start);
            }
            None => durable.want(1),
        }
    }

    /// A bug: what recovery has read, and the superblock that calls it durable, at once.
    fn start_unflushed(&mut self, mut pieces: Vec<Piece>) {
        let superblock = self.durable.as_mut().and_then(|durable| {
            let (piece, superblock) = durable.start.pop_front()?;
            pieces.push(piece);
            superblock
        });
        self.durable.iter_mut().for_each(|durable| durable.next_superblock.clone_from(&superblock));
        self.meta_step(pieces, After::Start);
    }

    /// True if guests have to wait for the session's superblock.
    pub(crate) fn is_starting(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.is_starting())
    }

    /// True if the journal maps blocks of a volume dirty of which the backing has newer data.
    pub(crate) fn owes(&self, volume: VolumeId) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.owes(durable.numbers[volume.0 as usize]))
    }

    /// A slot has no entry any more. True if it may be used for something else.
    pub(crate) fn may_reuse(&mut self, key: BlockKey, slot: u32) -> bool {
        let early = self.is_planted(Planted::SlotBeforeFree);
        let hasty = self.is_planted(Planted::FreeBeforeFlush);
        let silent = self.is_planted(Planted::FreeSkipped);
        let Some(durable) = &mut self.durable else { return true };
        let block = durable.block_id(key);
        self.store.leave(slot, block);
        if silent {
            durable.slots.forget(slot);
            return true;
        }
        let reusable = durable.release(block, slot);
        if hasty {
            durable.pay_early(slot);
        }
        if early && !reusable {
            durable.slots.forget(slot);
        }
        reusable || early
    }
}

impl Durable {
    fn new(
        recovered: &Recovered,
        session: Session,
        (numbered, gone): (Numbered, &[bool]),
        start: VecDeque<(Piece, Option<Superblock>)>,
        seed: u64,
    ) -> Self {
        let Numbered { table: volume_table, numbers: here, taken } = numbered;
        let mut next = here.into_iter();
        // Nothing is ever said of those that are gone.
        let numbers: Vec<u16> =
            gone.iter().map(|gone| if *gone { None } else { next.next() }.unwrap_or(u16::MAX)).collect();
        let named = numbers.iter().copied().zip((0..).map(VolumeId)).zip(gone);
        let volumes: BTreeMap<u16, VolumeId> =
            named.filter(|(_, gone)| !**gone).map(|(named, _)| named).collect();
        let mut regions = Regions::default();
        volumes.keys().for_each(|&volume| regions.add_volume(volume));
        recovered.marks().for_each(|(region, _)| regions.restore_mark(region));
        Self {
            superblock: recovered.superblock().clone(),
            once_dirty: recovered.once_dirty().clone(),
            salt: recovered.superblock().salt(),
            generation: session.superblock.generation,
            journal: session.journal,
            table: session.table,
            slots: SlotTable::new(recovered.superblock().layout.slots()),
            versions: Versions::default(),
            regions,
            limbo: Limbo::new(seed),
            kept: 0,
            numbers,
            volumes,
            taken,
            phase: Phase::Idle,
            writes: 0,
            failed: false,
            start,
            volume_table,
            retabling: None,
            next_superblock: None,
            wanted: 0,
            frees: VecDeque::new(),
            marks: VecDeque::new(),
            unmarks: recovered.marks().map(|(region, _)| region).collect(),
            ripe: VecDeque::new(),
            flushing: Vec::new(),
            unflushed: Vec::new(),
            news: super::NewsDesk::default(),
            owed: BTreeMap::new(),
            cleans: VecDeque::new(),
            said: super::Said::default(),
            pages: Vec::new(),
            ticket: Ticket::default(),
            confirms: false,
            full: false,
            gate: VecDeque::new(),
            held: Vec::new(),
            loads: VecDeque::new(),
            written_bytes: 0,
            stopping: false,
            looked: false,
        }
    }

    /// A slot has no entry any more. True if it is free.
    pub(super) fn release(&mut self, block: BlockId, slot: u32) -> bool {
        if self.is_latched() {
            return true;
        }
        match self.slots.release(slot) {
            Release::Now => return true,
            Release::Wait => {}
            Release::Owed => self.owe(block, slot),
            Release::Push => {
                self.limbo.insert(block, slot);
                self.frees.push_back(slot);
                self.want_if_much();
            }
        }
        false
    }
}

/// Volumes and their numbers.
struct Numbered {
    /// As it has to be.
    table: VolumeTable,
    /// Of each volume that is here, in their order.
    numbers: Vec<u16>,
    /// All that something has.
    taken: BTreeSet<u16>,
}

/// Give each of `volumes` a number in the volume table. Those that are gone stay there as long as something is mapped of them.
fn number(recovered: &Recovered, volumes: Vec<Volume>) -> Numbered {
    let old = recovered.volumes();
    let mut in_use: BTreeSet<u16> = recovered.marks().map(|(region, _)| region.volume).collect();
    in_use.extend(recovered.slots().filter_map(|(_, state)| match state {
        SlotState::Used(contents) | SlotState::Dropped(contents) => Some(contents.block.volume),
        SlotState::Free | SlotState::Unknown => None,
    }));
    let block_bytes = recovered.superblock().layout.block_bytes();
    let mut table: BTreeMap<u16, Volume> = old.volumes.iter().map(|v| (v.id, v.clone())).collect();
    let mut numbers = Vec::new();
    for volume in volumes {
        let known = old.again(&volume, block_bytes).filter(|known| !numbers.contains(&known.id));
        // There are fewer volumes than numbers, or the table has no room.
        let unused =
            || (0..=u16::MAX).find(|id| !table.contains_key(id) && !in_use.contains(id)).unwrap_or(0);
        let id = known.map_or_else(unused, |known| known.id);
        numbers.push(id);
        enter(&mut table, id, volume);
    }
    table.retain(|id, _| numbers.contains(id) || in_use.contains(id));
    let volumes: Vec<Volume> = table.into_values().collect();
    let changed = volumes != old.volumes;
    in_use.extend(volumes.iter().map(|volume| volume.id));
    let table = VolumeTable { generation: old.generation + u64::from(changed), volumes };
    Numbered { table, numbers, taken: in_use }
}

/// What is written before anything else, one after the other: the session's superblock; where the volumes have changed their table,
/// and a superblock that names it.
fn start_pieces(
    recovered: &Recovered,
    session: &Session,
    table: &VolumeTable,
) -> Result<VecDeque<(Piece, Option<Superblock>)>, OpenError> {
    let first = &session.superblock;
    let mut pieces = VecDeque::from([(superblock_piece(first), Some(first.clone()))]);
    if table.generation != recovered.volumes().generation {
        let (layout, salt) = (first.layout, first.salt());
        let bytes = table.encode(&layout, salt)?;
        pieces.push_back((Piece { offset: layout.volume_table_offset(table.copy()), bytes }, None));
        let second = Superblock { volumes_generation: table.generation, ..first.successor() };
        pieces.push_back((superblock_piece(&second), Some(second)));
    }
    Ok(pieces)
}
