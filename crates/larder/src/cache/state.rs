//! What a cache holds, counted.

use std::collections::BTreeMap;

use larder_engine::format::{Recovered, SlotState, Volume};
use serde::Serialize;

/// Blocks of a cache by what can be said of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct State {
    /// Blocks that can be used.
    pub blocks: u64,
    /// Those of them that the backings do not have.
    pub dirty_blocks: u64,
    /// Clean blocks that must not be used: a write may have gone past them, or they contradict something.
    pub dropped_clean_blocks: u64,
    /// Dirty blocks that contradict something.
    pub dropped_dirty_blocks: u64,
    /// Slots of which nothing is known.
    pub unknown_slots: u64,
    /// Slots that hold nothing.
    pub free_slots: u64,
    /// By number.
    pub volumes: Vec<VolumeState>,
}

/// A volume, and what the cache holds of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeState {
    /// Its number in the cache.
    pub number: u16,
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its backing, as it was configured.
    pub backing: String,
    /// Blocks that can be used.
    pub blocks: u64,
    /// Those of them that the backing does not have.
    pub dirty_blocks: u64,
}

impl State {
    /// Count what was recovered.
    pub fn new(recovered: &Recovered) -> Self {
        let mut state = Self::default();
        let mut held: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for (_, slot) in recovered.slots() {
            match slot {
                SlotState::Free => state.free_slots += 1,
                SlotState::Unknown => state.unknown_slots += 1,
                SlotState::Dropped(contents) if contents.dirty => state.dropped_dirty_blocks += 1,
                SlotState::Dropped(_) => state.dropped_clean_blocks += 1,
                SlotState::Used(contents) => {
                    let (blocks, dirty) = held.entry(contents.block.volume).or_default();
                    *blocks += 1;
                    *dirty += u64::from(contents.dirty);
                }
            }
        }
        state.blocks = held.values().map(|held| held.0).sum();
        state.dirty_blocks = held.values().map(|held| held.1).sum();
        let volume =
            |volume: &Volume| VolumeState::new(volume, held.get(&volume.id).copied().unwrap_or_default());
        state.volumes = recovered.volumes().volumes.iter().map(volume).collect();
        state
    }
}

impl VolumeState {
    fn new(volume: &Volume, (blocks, dirty_blocks): (u64, u64)) -> Self {
        Self {
            number: volume.id,
            name: volume.name.clone(),
            uuid: volume.uuid.to_string(),
            size_bytes: volume.bytes,
            backing: larder_io::backing_of(&volume.identity).to_owned(),
            blocks,
            dirty_blocks,
        }
    }
}
