//! Caches to begin with: empty, or after a random history.

use super::disk::Disk;
use super::model::{BLOCKS, Model, SLOT_STEP, SLOTS, VOLUME};
use super::state::REGION_BLOCKS;
use crate::format::*;
use larder_policy::Rng;

/// A cache after a random history.
pub fn image(records: u64, seed: u64, clean_stop: bool) -> Disk {
    lived(layout(records), seed, clean_stop).disk
}

/// The same with all that the model knows; left right after a commit, or stopped cleanly.
pub fn lived(layout: Layout, seed: u64, clean_stop: bool) -> Model {
    live(Model::of(layout), seed, clean_stop)
}

pub fn live(mut model: Model, seed: u64, clean_stop: bool) -> Model {
    let mut rng = Rng::new(seed);
    for _ in 0..400 {
        model.step(rng.below(23) as u8, rng.next_u64());
    }
    // At least two commits of one record each, so that the last but one is known to be durable; dirty blocks and a
    // mark among what they say.
    for block in [3, 9, 17] {
        model.step(0, block);
        model.write_past(block + 1, false);
        model.commit();
    }
    if clean_stop {
        model.commit_whole();
        model.stopped().store(&mut model.disk).unwrap();
    }
    model
}

pub fn layout(records: u64) -> Layout {
    let shape = Shape {
        block_bytes: 4096,
        sector_bytes: 512,
        slots: SLOTS * SLOT_STEP,
        records,
        volume_table_bytes: 4096,
    };
    Layout::new(shape).unwrap()
}

/// An empty cache with one volume.
pub fn formatted(layout: Layout) -> Disk {
    let mut disk = Disk::new(&layout);
    format_on(&mut disk, layout);
    disk
}

pub fn format_on(disk: &mut Disk, layout: Layout) {
    let uuid = Uuid([0x5a; 16]);
    format(disk, &Superblock { region_blocks: REGION_BLOCKS, ..Superblock::new(uuid, layout) }).unwrap();
    let superblock = recover(disk).unwrap().superblock().clone();
    let identity = "file:/backing".to_string();
    let volume = Volume { id: VOLUME, name: "v".into(), uuid, bytes: BLOCKS * 4096, identity };
    let table = VolumeTable { generation: 1, volumes: vec![volume] };
    disk.write(layout.volume_table_offset(1), &table.encode(&layout, superblock.salt()).unwrap()).unwrap();
    disk.flush().unwrap();
    let superblock = Superblock { volumes_generation: 1, may_hold_dirty: true, ..superblock.successor() };
    superblock.store(disk).unwrap();
    superblock.successor().store(disk).unwrap();
}
