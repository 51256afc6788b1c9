//! The volume table changes while the cache is in use: a volume grows, or joins.
//!
//! What it says is durable before anything is mapped that needs it: recovery finds no block that its table has no room for. The table goes to the copy that
//! is not in force, then a superblock names it, as at a start; rounds wait for that, guests do not.

use super::round::superblock_piece;
use super::{After, Durable};
use crate::format::{Piece, Superblock, VolumeTable};
use crate::{Engine, VolumeId};

/// A change under way.
#[derive(Debug)]
pub(super) struct Retabling {
    /// On its way to the device, then in force with the superblock after it.
    table: VolumeTable,
    then: Then,
    step: Step,
}

/// What is so once the table is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// A volume has so many bytes.
    Grown {
        /// The volume.
        volume: VolumeId,
        /// Its size.
        bytes: u64,
    },
    /// A volume may be served.
    Joined(VolumeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Waiting,
    Table,
    Superblock,
}

impl Durable {
    /// Have this table take the place of the one in force, soon. It has been encoded once, so there is room for it; and no other is on its way.
    pub(super) fn retable(&mut self, table: VolumeTable, then: Then) {
        debug_assert!(self.retabling.is_none(), "one at a time");
        self.retabling = Some(Retabling { table, then, step: Step::Waiting });
        self.want(1);
    }

    /// True while a volume waits for the table that has it.
    pub(crate) fn is_joining(&self, volume: VolumeId) -> bool {
        self.retabling.as_ref().is_some_and(|retabling| retabling.then == Then::Joined(volume))
    }
}

impl Engine {
    /// Nothing of the journal is under way: begin with a table that waits. False if none does.
    pub(super) fn start_retabling(&mut self) -> bool {
        let Some(durable) = &mut self.durable else { return false };
        let Some(retabling) = durable.retabling.as_mut().filter(|retabling| retabling.step == Step::Waiting)
        else {
            return false;
        };
        let (layout, salt) = (durable.superblock.layout, durable.superblock.salt());
        let encoded = retabling.table.encode(&layout, salt);
        let Ok(bytes) = encoded else {
            debug_assert!(false, "whoever asked has encoded it");
            durable.retabling = None;
            return false;
        };
        retabling.step = Step::Table;
        let piece = Piece { offset: layout.volume_table_offset(retabling.table.copy()), bytes };
        self.meta_step(vec![piece], After::Table);
        true
    }

    /// The table is durable, and then the superblock that names it.
    pub(super) fn retabling_step(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        durable.flush_ended();
        let Some(mut retabling) = durable.retabling.take() else { return };
        if retabling.step == Step::Table {
            retabling.step = Step::Superblock;
            let volumes_generation = retabling.table.generation;
            durable.retabling = Some(retabling);
            let superblock = Superblock { volumes_generation, ..durable.successor() };
            let piece = superblock_piece(&superblock);
            durable.next_superblock = Some(superblock);
            return self.meta_step(vec![piece], After::Table);
        }
        durable.volume_table = retabling.table;
        durable.want(1);
        match retabling.then {
            Then::Grown { volume, bytes } => self.volume_mut(volume).bytes = bytes,
            Then::Joined(_) => {}
        }
    }
}
