//! The promises of a cache that survives, each on the smallest case that could break it.

mod cleaner;
mod come_and_go;
mod drain;
mod flushes;
mod forget;
mod grow;
mod limits;
mod modes;
mod ordered;
mod resume;
mod sharing;
mod slots;
mod slow;
#[path = "../support/mod.rs"]
mod support;
mod yields;

use larder_engine::{OpenError, Planted, RequestKind, SECTOR_BYTES, WritePolicy};
use larder_io::sim::{FaultKind, SharedSlots, ask};
use larder_simtest::{Plan, World};
use support::{BLOCK, VOLUME, plan, tend};

/// A volume of which every block is cached, and mapped.
fn warm(blocks: u64) -> World {
    let mut world = World::new(plan(blocks));
    world.read_everything();
    tend(&mut world);
    assert_eq!(world.cached(), [blocks as u32]);
    world
}

#[test]
fn a_cut_keeps_the_cache_warm() {
    let mut world = warm(100);
    world.cut();
    assert_eq!(world.cached(), [100]);
    world.read_everything();
    assert_eq!((world.stats(0).read_hits, world.stats(0).read_misses), (100, 0));
}

#[test]
fn what_was_written_is_warm_again_when_its_region_rests() {
    let mut world = warm(100);
    world.submit(ask::write(VOLUME, 0, 30 * BLOCK));
    world.submit(ask::write(VOLUME, 40 * BLOCK + 512, 1024));
    world.settle();
    tend(&mut world);
    world.cut();
    assert_eq!(world.cached(), [100]);
    world.submit(ask::write(VOLUME, 0, 30 * BLOCK));
    world.settle();
    world.cut();
    assert_eq!(world.cached(), [70], "their backing may have lost the writes");
    world.read_everything();
}

/// Each region is one block here, and the journal carries far fewer marks than there are blocks.
#[test]
fn more_regions_are_written_than_can_be_marked() {
    let mut world = warm(400);
    for block in 0..400 {
        world.submit(ask::write(VOLUME, (block * 7 % 400) * BLOCK, BLOCK));
    }
    world.settle();
    tend(&mut world);
    world.cut();
    world.read_everything();
    assert_eq!(world.stats(0).read_hits, 400);
}

/// Each of these writes alone wants more marks than there may be, and others keep the marked regions busy.
#[test]
fn writes_of_many_regions_come_to_an_end() {
    let mut world = warm(400);
    for n in 0..4 {
        world.submit(ask::write(VOLUME, n * 80 * BLOCK, 160 * BLOCK));
    }
    world.submit(ask::of(RequestKind::Discard, VOLUME, 0, 400 * BLOCK));
    for n in 0..600 {
        world.submit(ask::write(VOLUME, (n % 40) * BLOCK, 2 * BLOCK));
        world.step();
        world.step();
    }
    world.settle();
    tend(&mut world);
    world.cut();
    world.read_everything();
}

/// The ring turns many times; slots come and go with each block.
#[test]
fn a_cache_that_is_too_small_is_used_all_the_same() {
    let mut plan = plan(400);
    plan.tenants[0].quota = 200;
    let mut world = World::new(plan);
    for n in 0..6000 {
        world.submit(ask::read(VOLUME, (n * 31 % 400) * BLOCK, BLOCK));
        world.settle();
    }
    let stats = world.stats(0);
    assert!(stats.ssd_fill_blocks > 3000, "slots are freed as fast as they are wanted: {stats:?}");
    tend(&mut world);
    let before = world.cached();
    world.cut();
    assert_eq!(world.cached(), before);
}

/// Metadata written for each block that comes or goes.
#[test]
fn fills_cost_little_metadata() {
    let mut world = warm(400);
    let bytes = world.host().engine().metadata_bytes();
    let data = world.stats(0).ssd_fill_bytes;
    // Two entries and its share of the slot table, in small commits, are about 150 bytes.
    assert!(bytes * 100 < data * 6, "{bytes} bytes of metadata for {data} of data");
}

#[test]
fn a_block_that_has_rotted_or_is_misplaced_is_a_miss() {
    let mut world = warm(10);
    world.stop();
    world.excuse_data();
    let slots: Vec<u32> = world.recovered().blocks().map(|(slot, _)| slot).take(3).collect();
    let layout = world.recovered().superblock().layout;
    let mut data = vec![0; BLOCK as usize];
    world.host().cache().content().read(layout.slot_offset(slots[0]), &mut data);
    world.host().cache().content_mut().write(layout.slot_offset(slots[1]), &data);
    data[17] ^= 4;
    world.host().cache().content_mut().write(layout.slot_offset(slots[0]), &data);
    world.host().cache().content_mut().write(layout.slot_offset(slots[2]) + SECTOR_BYTES, &[9; 512]);
    world.read_everything();
    assert_eq!(world.stats(0).checksum_errors, 3);
    world.read_everything();
    assert_eq!(world.stats(0).checksum_errors, 3, "they were filled again");
}

/// A write of a part of a rotten block must not make it whole.
#[test]
fn a_merge_verifies_what_it_keeps() {
    let mut world = warm(1);
    world.excuse_data();
    let slot = world.recovered().blocks().next().expect("the block is mapped").0;
    let offset = world.recovered().superblock().layout.slot_offset(slot);
    world.host().cache().content_mut().write(offset + 1024, &[9; 512]);
    world.submit(ask::write(VOLUME, 0, 512));
    world.read_everything();
    assert_eq!(world.stats(0).checksum_errors, 1);
}

/// Guests may change the memory that a block is read to before its checksum is compared. That says nothing of the block.
#[test]
fn a_guest_cannot_spoil_a_block_by_changing_its_own_memory() {
    for policy in [WritePolicy::WriteBack, WritePolicy::WriteThrough] {
        let mut plan = Plan { meddling: true, holds_back: policy == WritePolicy::WriteBack, ..plan(8) };
        plan.tenants[0].policy = policy;
        let mut world = World::new(plan);
        world.submit(ask::write(VOLUME, 0, 8 * BLOCK));
        world.settle();
        for _ in 0..20 {
            (0..8).for_each(|block| world.submit(ask::read(VOLUME, block * BLOCK, BLOCK)));
            world.settle();
        }
        let stats = world.stats(0);
        assert_eq!((stats.checksum_errors, stats.read_hits, stats.read_misses), (0, 160, 0), "{policy:?}");
        assert_eq!(world.cached(), [8]);
    }
}

#[test]
#[should_panic(expected = "sector")]
fn checksums_that_are_not_compared_are_noticed() {
    let mut world = World::new(Plan { planted: Some(Planted::SumsIgnored), ..plan(1) });
    world.read_everything();
    tend(&mut world);
    let slot = world.recovered().blocks().next().expect("the block is mapped").0;
    let offset = world.recovered().superblock().layout.slot_offset(slot);
    world.host().cache().content_mut().write(offset + 1024, &[9; 512]);
    world.read_everything();
}

#[test]
fn an_error_in_metadata_ends_the_cache_and_not_the_service() {
    for kind in [FaultKind::Write, FaultKind::Flush] {
        let mut world = warm(50);
        world.excuse_metadata();
        world.host().cache().fail_next(kind, 1);
        // These wait for a mark that cannot be written.
        (0..50).for_each(|block| world.submit(ask::write(VOLUME, block * BLOCK, BLOCK)));
        world.settle();
        assert!(world.host().engine().cache_failed() && world.host().engine().is_stopped());
        world.read_everything();
        world.submit(ask::write(VOLUME, 0, 8 * BLOCK));
        world.read_everything();
        let recovered = world.recovered();
        assert!(recovered.superblock().needs_check);
        let (_, opened) = world.engine(&recovered, SharedSlots::of(Vec::new(), 1000));
        assert_eq!(opened, Err(OpenError::NeedsCheck));
    }
}

/// What guests were told is durable is not taken for a torn commit, whatever becomes of it later: the superblock that ends the session says so, of the last draft as well.
#[test]
fn what_was_durable_when_metadata_failed_is_not_doubted() {
    for kind in [FaultKind::Write, FaultKind::Flush] {
        let mut plan = plan(100);
        plan.tenants[0].policy = WritePolicy::WriteBack;
        let mut world = World::new(plan);
        let submit = |world: &mut World, request| {
            world.submit(request);
            world.settle();
        };
        for block in 0..3 {
            submit(&mut world, ask::write(VOLUME, block * BLOCK, BLOCK));
            submit(&mut world, ask::flush(VOLUME));
        }
        let draft = world.recovered();
        assert!(draft.open().unwrap().first.is_some());
        submit(&mut world, ask::write(VOLUME, 3 * BLOCK, BLOCK));
        world.excuse_metadata();
        world.excuse_cache();
        world.host().cache().fail_next(kind, 1);
        submit(&mut world, ask::flush(VOLUME));
        assert!(world.host().engine().cache_failed());
        let superblock = world.recovered().superblock().clone();
        assert!(superblock.needs_check && superblock.part > 0);
        assert_eq!(superblock.next, draft.next() - 1);
        for (slot, _) in draft.blocks() {
            world.host().cache().content_mut().write(superblock.layout.slot_offset(slot), &[9; 512]);
        }
        let dirty = world.recovered().blocks().filter(|(_, contents)| contents.dirty).count();
        assert!(dirty >= 3, "{kind:?}: {dirty}");
    }
}

/// What another volume has left is freed: while it is not here, anyone may write to its backing.
#[test]
fn a_volume_of_another_size_is_another_volume() {
    let mut world = warm(20);
    world.resize(0, 16 * BLOCK);
    assert_eq!(world.cached(), [0]);
    world.read_everything();
    tend(&mut world);
    world.cut();
    assert_eq!(world.cached(), [16]);
    world.settle();
    let recovered = world.recovered();
    assert_eq!(recovered.volumes().volumes.len(), 1, "the old one is forgotten: {:?}", recovered.volumes());
}

/// Both are read, changed and written as a whole.
#[test]
fn writes_of_two_parts_of_a_block_at_once_both_stay() {
    for seed in 0..20 {
        let mut world = World::new(Plan { seed, ..plan(1) });
        world.read_everything();
        world.submit(ask::write(VOLUME, 0, 512));
        world.submit(ask::write(VOLUME, 1024, 512));
        world.submit(ask::read(VOLUME, 2048, 512));
        world.read_everything();
    }
}

/// Writes have gone past what is mapped, without marks.
#[test]
fn a_repaired_cache_holds_no_block_from_before_an_error_in_metadata() {
    for seed in 0..20 {
        let mut world = World::new(Plan { seed, ..plan(10) });
        world.read_everything();
        tend(&mut world);
        world.excuse_metadata();
        world.host().cache().fail_next(FaultKind::Flush, 1);
        world.submit(ask::write(VOLUME, 0, 2 * BLOCK));
        world.settle();
        assert!(world.host().engine().cache_failed());
        world.cut();
        assert_eq!(world.cached(), [0]);
        world.read_everything();
    }
}
