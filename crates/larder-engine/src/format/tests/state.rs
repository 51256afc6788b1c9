//! What the journal says, entry by entry, and which clean blocks may be trusted: the rules of `docs/FORMAT.md`, in
//! their simplest form.

use crate::format::*;
use std::collections::BTreeMap;

pub const REGION_BLOCKS: u32 = 4;

/// What a slot holds, and the record in which that became so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub contents: Contents,
    pub clean_since: u64,
}

/// What the journal says after a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub slots: BTreeMap<u32, Held>,
    pub marks: BTreeMap<Region, u64>,
}

pub fn region(block: u64) -> Region {
    Region { volume: super::model::VOLUME, region: block / u64::from(REGION_BLOCKS) }
}

/// The rule of marks.
pub fn is_trusted(held: &Held, state: &State) -> bool {
    let region = region(held.contents.block.block);
    state.marks.get(&region).is_none_or(|&since| held.clean_since > since)
}

/// Recovery can tell only where the journal still has the entry.
pub fn is_warm(held: &Held, state: &State, recovered: &Recovered) -> bool {
    let unmarked = !state.marks.contains_key(&region(held.contents.block.block));
    unmarked || (is_trusted(held, state) && held.clean_since >= recovered.tail)
}

impl State {
    pub fn apply(&mut self, entry: Entry, sequence: u64) {
        match entry.as_map() {
            Entry::Map { block, dirty, epoch, slot, crc, old } => {
                old.map(|old| self.slots.remove(&old).expect("the old slot is in use"));
                let clean_since = if dirty { u64::MAX } else { sequence };
                self.slots
                    .insert(slot, Held { contents: Contents { block, dirty, epoch, crc }, clean_since });
            }
            Entry::Free { slot } => {
                self.slots.remove(&slot).expect("only slots in use are freed");
            }
            Entry::Clean { slot } => {
                let held = self.slots.get_mut(&slot).expect("only slots in use are cleaned");
                (held.contents.dirty, held.contents.epoch) = (false, Epoch::NONE);
                held.clean_since = sequence;
            }
            Entry::Mark { region, since } => {
                self.marks.insert(region, since);
            }
            Entry::Unmark { region } => {
                self.marks.remove(&region);
            }
            Entry::Write { .. } => unreachable!("it is a map"),
        }
    }
}
