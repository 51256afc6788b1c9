//! The promises of a cache that survives, each on the smallest case that could break it.

use crate::rig::{CrashRig, Plan};
use larder_engine::format::Shape;
use larder_engine::{OpenError, Planted, SECTOR_BYTES, VolumeId, WritePolicy};
use larder_io::sim::{FaultKind, FaultModel, SharedSlots, ask};

pub const BLOCK: u64 = 4096;
pub const VOLUME: VolumeId = VolumeId(0);

pub fn plan(blocks: u64) -> Plan {
    Plan {
        shape: Shape {
            block_bytes: 4096,
            sector_bytes: 512,
            slots: 1000,
            records: 32,
            volume_table_bytes: 4096,
        },
        region_blocks: 1,
        cache_align: 512,
        tenants: vec![(blocks as u32, WritePolicy::WriteThrough)],
        volumes: vec![(0, blocks * BLOCK)],
        seed: 5,
        backing: FaultModel::default(),
        cache: FaultModel::default(),
        planted: None,
    }
}

/// A volume of which every block is cached, and mapped.
fn warm(blocks: u64) -> CrashRig {
    let mut rig = CrashRig::new(plan(blocks));
    rig.read_everything();
    tend(&mut rig);
    assert_eq!(rig.cached(), [blocks as u32]);
    rig
}

/// Let a few seconds pass.
pub fn tend(rig: &mut CrashRig) {
    for _ in 0..6 {
        rig.tick();
        rig.settle();
    }
}

#[test]
fn a_cut_keeps_the_cache_warm() {
    let mut rig = warm(100);
    rig.cut();
    assert_eq!(rig.cached(), [100]);
    rig.read_everything();
    assert_eq!((rig.stats(0).read_hits, rig.stats(0).read_misses), (100, 0));
}

#[test]
fn what_was_written_is_warm_again_when_its_region_rests() {
    let mut rig = warm(100);
    rig.submit(ask::write(VOLUME, 0, 30 * BLOCK));
    rig.submit(ask::write(VOLUME, 40 * BLOCK + 512, 1024));
    rig.settle();
    tend(&mut rig);
    rig.cut();
    assert_eq!(rig.cached(), [100]);
    rig.submit(ask::write(VOLUME, 0, 30 * BLOCK));
    rig.settle();
    rig.cut();
    assert_eq!(rig.cached(), [70], "their backing may have lost the writes");
    rig.read_everything();
}

/// Each region is one block here, and the journal carries far fewer marks than there are blocks.
#[test]
fn more_regions_are_written_than_can_be_marked() {
    let mut rig = warm(400);
    for block in 0..400 {
        rig.submit(ask::write(VOLUME, (block * 7 % 400) * BLOCK, BLOCK));
    }
    rig.settle();
    tend(&mut rig);
    rig.cut();
    rig.read_everything();
    assert_eq!(rig.stats(0).read_hits, 400);
}

/// The ring turns many times; slots come and go with each block.
#[test]
fn a_cache_that_is_too_small_is_used_all_the_same() {
    let mut plan = plan(400);
    plan.tenants[0].0 = 200;
    let mut rig = CrashRig::new(plan);
    for n in 0..6000 {
        rig.submit(ask::read(VOLUME, (n * 31 % 400) * BLOCK, BLOCK));
        rig.settle();
    }
    let stats = rig.stats(0);
    assert!(stats.ssd_fill_blocks > 3000, "slots are freed as fast as they are wanted: {stats:?}");
    tend(&mut rig);
    let before = rig.cached();
    rig.cut();
    assert_eq!(rig.cached(), before);
}

/// Metadata written for each block that comes or goes.
#[test]
fn fills_cost_little_metadata() {
    let mut rig = warm(400);
    let bytes = rig.host().engine().metadata_bytes();
    let data = rig.stats(0).ssd_fill_bytes;
    // Two entries and its share of the slot table, in small commits, are about 150 bytes.
    assert!(bytes * 100 < data * 6, "{bytes} bytes of metadata for {data} of data");
}

#[test]
fn a_block_that_has_rotted_or_is_misplaced_is_a_miss() {
    let mut rig = warm(10);
    rig.stop();
    rig.damaged = true;
    let slots: Vec<u32> = rig.recovered().blocks().map(|(slot, _)| slot).take(3).collect();
    let layout = rig.recovered().superblock().layout;
    let mut data = vec![0; BLOCK as usize];
    rig.host().cache().content().read(layout.slot_offset(slots[0]), &mut data);
    rig.host().cache().content_mut().write(layout.slot_offset(slots[1]), &data);
    data[17] ^= 4;
    rig.host().cache().content_mut().write(layout.slot_offset(slots[0]), &data);
    rig.host().cache().content_mut().write(layout.slot_offset(slots[2]) + SECTOR_BYTES, &[9; 512]);
    rig.read_everything();
    assert_eq!(rig.stats(0).checksum_errors, 3);
    rig.read_everything();
    assert_eq!(rig.stats(0).checksum_errors, 3, "they were filled again");
}

/// A write of a part of a rotten block must not make it whole.
#[test]
fn a_merge_verifies_what_it_keeps() {
    let mut rig = warm(1);
    rig.damaged = true;
    let slot = rig.recovered().blocks().next().expect("the block is mapped").0;
    let offset = rig.recovered().superblock().layout.slot_offset(slot);
    rig.host().cache().content_mut().write(offset + 1024, &[9; 512]);
    rig.submit(ask::write(VOLUME, 0, 512));
    rig.read_everything();
    assert_eq!(rig.stats(0).checksum_errors, 1);
}

#[test]
#[should_panic(expected = "sector")]
fn checksums_that_are_not_compared_are_noticed() {
    let mut rig = CrashRig::new(Plan { planted: Some(Planted::SumsIgnored), ..plan(1) });
    rig.read_everything();
    tend(&mut rig);
    let slot = rig.recovered().blocks().next().expect("the block is mapped").0;
    let offset = rig.recovered().superblock().layout.slot_offset(slot);
    rig.host().cache().content_mut().write(offset + 1024, &[9; 512]);
    rig.read_everything();
}

#[test]
fn an_error_in_metadata_ends_the_cache_and_not_the_service() {
    for kind in [FaultKind::Write, FaultKind::Flush] {
        let mut rig = warm(50);
        rig.host().cache().fail_next(kind, 1);
        // These wait for a mark that cannot be written.
        (0..50).for_each(|block| rig.submit(ask::write(VOLUME, block * BLOCK, BLOCK)));
        rig.settle();
        assert!(rig.host().engine().cache_failed() && rig.host().engine().is_stopped());
        rig.read_everything();
        rig.submit(ask::write(VOLUME, 0, 8 * BLOCK));
        rig.read_everything();
        let recovered = rig.recovered();
        assert!(recovered.superblock().needs_check);
        let (_, opened) = rig.engine(&recovered, SharedSlots::of(Vec::new(), 1000));
        assert_eq!(opened, Err(OpenError::NeedsCheck));
    }
}

/// What another volume has left is freed: while it is not here, anyone may write to its backing.
#[test]
fn a_volume_of_another_size_is_another_volume() {
    let mut rig = warm(20);
    rig.resize(0, 16 * BLOCK);
    assert_eq!(rig.cached(), [0]);
    rig.read_everything();
    tend(&mut rig);
    rig.cut();
    assert_eq!(rig.cached(), [16]);
    rig.settle();
    let recovered = rig.recovered();
    assert_eq!(recovered.volumes().volumes.len(), 1, "the old one is forgotten: {:?}", recovered.volumes());
}
