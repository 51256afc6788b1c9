//! A tenant that may write no more to the cache device: nothing new enters, then newer data of cached blocks goes to the backing, and every byte is right.

use crate::support::{BLOCK, VOLUME, plan, tend};
use larder_engine::{RequestKind, WritePolicy};
use larder_io::sim::ask;
use larder_simtest::World;

fn world(policy: WritePolicy) -> World {
    let mut plan = plan(40);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (100, policy);
    let mut world = World::new(plan);
    world.settle();
    world
}

/// Bytes of data written to the cache device.
fn written(world: &World) -> u64 {
    let stats = world.stats(0);
    stats.ssd_fill_bytes + stats.ssd_guest_write_bytes
}

fn submit_each(world: &mut World, kind: RequestKind, blocks: impl Iterator<Item = u64>) {
    for block in blocks {
        world.submit(ask::of(kind, VOLUME, block * BLOCK, BLOCK));
        world.settle();
    }
}

#[test]
fn fills_end_where_the_limit_does() {
    let mut world = world(WritePolicy::WriteThrough);
    world.set_write_limit(0, Some((10, 5)));
    submit_each(&mut world, RequestKind::Read, 0..30);
    assert_eq!((written(&world), world.cached(), world.stats(0).refused_blocks), (10 * BLOCK, vec![10], 20));
    // One request for many blocks is one of many fills: what is under way counts.
    world.set_write_limit(0, Some((4, 0)));
    world.submit(ask::read(VOLUME, 10 * BLOCK, 20 * BLOCK));
    world.settle();
    assert_eq!((written(&world), world.cached()), (14 * BLOCK, vec![14]));
    world.set_write_limit(0, None);
    world.read_everything();
    assert_eq!(world.cached(), [40]);
}

/// Newer data of cached blocks is written while there is something left for it; then the blocks leave.
#[test]
fn writes_to_cached_blocks_go_on_longer_than_admission() {
    for policy in [WritePolicy::WriteThrough, WritePolicy::WriteThroughNoAllocate, WritePolicy::WriteBack] {
        let mut world = world(policy);
        submit_each(&mut world, RequestKind::Read, 0..10);
        let before = written(&world);
        world.set_write_limit(0, Some((0, 4)));
        submit_each(&mut world, RequestKind::Read, 10..12);
        submit_each(&mut world, RequestKind::Write, 0..3);
        // Parts of blocks: each is a whole block, where blocks have checksums.
        for block in 3..5 {
            world.submit(ask::write(VOLUME, block * BLOCK + 512, 1024));
            world.settle();
        }
        assert_eq!(written(&world) - before, 4 * BLOCK, "{policy:?}");
        assert_eq!((world.stats(0).refused_blocks, world.stats(0).diverted_blocks), (2, 1), "{policy:?}");
        submit_each(&mut world, RequestKind::Write, 0..2);
        assert_eq!((world.stats(0).diverted_blocks, world.cached()), (3, vec![7]), "{policy:?}");
        assert_eq!(written(&world) - before, 4 * BLOCK, "{policy:?}");
        world.read_everything();
        tend(&mut world);
        world.cut();
        world.read_everything();
    }
}

/// Dirty blocks are overwritten on the backing when nothing more may be written here, whole or in part, and are gone from the cache.
#[test]
fn dirty_blocks_are_overwritten_past_the_cache() {
    let mut world = world(WritePolicy::WriteBack);
    submit_each(&mut world, RequestKind::Write, 0..6);
    let (before, backing) = (written(&world), world.stats(0).backing_writes);
    world.set_write_limit(0, Some((0, 0)));
    submit_each(&mut world, RequestKind::Write, 0..2);
    world.submit(ask::write(VOLUME, 2 * BLOCK + 512, 1024));
    world.submit(ask::of(RequestKind::WriteZeroes { no_hole: false }, VOLUME, 3 * BLOCK + 512, 1024));
    world.submit(ask::write(VOLUME, 20 * BLOCK, 3 * BLOCK));
    world.settle();
    let stats = world.stats(0);
    assert_eq!((written(&world), stats.diverted_blocks, stats.refused_blocks), (before, 4, 3));
    assert!(stats.backing_writes >= backing + 7, "{stats:?}");
    world.read_everything();
    world.submit(ask::flush(VOLUME));
    world.settle();
    world.cut();
    world.read_everything();
}

/// Every other request enters, and those that do not leave everything right: what was cached of their blocks is not when they write.
#[test]
fn behind_a_door_a_part_of_the_requests_enters() {
    for policy in [WritePolicy::WriteThrough, WritePolicy::WriteThroughNoAllocate, WritePolicy::WriteBack] {
        let mut world = world(policy);
        world.set_doors(0, Some(4));
        submit_each(&mut world, RequestKind::Read, (0..20).map(|block| block * 2));
        assert_eq!((written(&world), world.cached()), (10 * BLOCK, vec![10]), "{policy:?}");
        assert_eq!((world.stats(0).turned_away_blocks, world.stats(0).refused_blocks), (10, 0), "{policy:?}");
        world.set_doors(0, Some(0));
        let before = written(&world);
        // What is cached is served all the same, and leaves when it is written, also in part.
        submit_each(&mut world, RequestKind::Read, (0..20).map(|block| block * 2));
        assert_eq!((world.stats(0).read_hits, world.cached()), (10, vec![10]), "{policy:?}");
        submit_each(&mut world, RequestKind::Write, (0..10).map(|block| block * 2));
        for block in 10..20 {
            world.submit(ask::write(VOLUME, block * 2 * BLOCK + 512, 1024));
            world.settle();
        }
        assert_eq!((written(&world), world.cached()), (before, vec![0]), "{policy:?}");
        world.set_doors(0, None);
        world.read_everything();
        assert_eq!(world.cached(), [40], "{policy:?}");
        tend(&mut world);
        world.cut();
        world.read_everything();
    }
}

/// Doors say of each second kind that what enters leaves first: among them of single blocks that go on where others ended. The stream makes way, though others are older.
#[test]
fn what_entered_because_there_was_room_leaves_first() {
    for policy in [WritePolicy::WriteThrough, WritePolicy::WriteBack] {
        for kind in [RequestKind::Read, RequestKind::Write] {
            let mut plan = plan(40);
            (plan.tenants[0].quota, plan.tenants[0].policy) = (8, policy);
            let mut world = World::new(plan);
            world.settle();
            world.set_doors(0, Some(8));
            // Four of them, and one with which a stream begins.
            submit_each(&mut world, kind, [0, 2, 4, 6, 20, 21, 22, 23].into_iter());
            assert_eq!(world.cached(), [8], "{policy:?} {kind:?}");
            submit_each(&mut world, kind, [30, 33, 36].into_iter());
            // Nothing leaves for what would be the first to leave.
            submit_each(&mut world, kind, [24, 25].into_iter());
            assert_eq!(
                (world.stats(0).turned_away_blocks, world.cached()),
                (2, vec![8]),
                "{policy:?} {kind:?}"
            );
            let hits = world.stats(0).read_hits;
            submit_each(&mut world, RequestKind::Read, [0, 2, 4, 6, 20, 30, 33, 36].into_iter());
            assert_eq!(world.stats(0).read_hits, hits + 8, "{policy:?} {kind:?}");
            world.read_everything();
        }
    }
}

/// Of a burst that waits for the backing a part goes to the cache device, though it is worth no more than its price there; when it is over nothing does.
#[test]
fn of_a_burst_a_part_goes_the_other_way() {
    let mut world = world(WritePolicy::WriteBack);
    world.set_doors(0, Some(0));
    let burst = |world: &mut World| {
        let before = written(world);
        (0..40).for_each(|block| world.submit(ask::write(VOLUME, block * BLOCK, BLOCK)));
        world.settle();
        (written(world) - before) / BLOCK
    };
    // Before anything has ended nothing is known of what the devices can.
    assert_eq!(burst(&mut world), 0);
    let entered: Vec<u64> = (0..5).map(|_| burst(&mut world)).collect();
    assert!(entered.iter().any(|entered| (1..40).contains(entered)), "{entered:?}");
    // They were counted until they ended.
    let before = written(&world);
    submit_each(&mut world, RequestKind::Write, 0..40);
    assert_eq!(written(&world), before);
    world.read_everything();
    world.cut();
    world.read_everything();
}

/// Newer data of a dirty block that does not enter takes the block away; a part of one is put together with the rest, on the backing.
#[test]
fn a_dirty_block_whose_newer_data_does_not_enter_goes_to_the_backing() {
    let mut world = world(WritePolicy::WriteBack);
    submit_each(&mut world, RequestKind::Write, 0..4);
    assert_eq!(world.dirty(), 4);
    let before = written(&world);
    world.set_doors(0, Some(0));
    submit_each(&mut world, RequestKind::Write, 0..2);
    world.submit(ask::write(VOLUME, 2 * BLOCK + 512, 1024));
    world.settle();
    assert_eq!((written(&world), world.dirty()), (before, 1));
    world.read_everything();
    world.cut();
    world.read_everything();
}

#[test]
fn what_all_write_together_ends_where_their_limit_does() {
    let mut world = world(WritePolicy::WriteBack);
    world.set_common_limit(Some(10));
    submit_each(&mut world, RequestKind::Read, 0..8);
    submit_each(&mut world, RequestKind::Write, 0..4);
    assert_eq!((written(&world), world.cached()), (10 * BLOCK, vec![6]));
    assert_eq!((world.stats(0).refused_blocks, world.stats(0).diverted_blocks), (0, 2));
    submit_each(&mut world, RequestKind::Read, 0..2);
    // Each one's own limit holds beside it.
    world.set_common_limit(Some(10));
    world.set_write_limit(0, Some((3, 0)));
    submit_each(&mut world, RequestKind::Read, 10..20);
    assert_eq!((written(&world), world.stats(0).refused_blocks), (13 * BLOCK, 7));
    world.read_everything();
    world.cut();
    world.read_everything();
}
