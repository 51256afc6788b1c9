//! Ordered write-back: what the backing shows between flushes, and who waits for what.

use crate::support::{BLOCK, VOLUME, plan, tend};
use larder_engine::{DeviceOp, DirtyLimits, OpKind, RequestKind, Target, WritePolicy};
use larder_io::sim::{FIRST, FaultKind, ask, stamp};
use larder_simtest::{Plan, World};

/// An ordered volume under `wb`, and a cleaner that rests.
fn ordered(blocks: u64, quota: u32) -> World {
    let mut plan = plan(blocks);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (quota, WritePolicy::WriteBack);
    plan.tenants[0].dirty = DirtyLimits { rest: 90, max: 95, age: 1000 };
    plan.disks[0].ordered = true;
    let mut world = World::new(Plan { holds_back: true, ..plan });
    world.settle();
    world
}

/// The same by a seed.
fn by_seed(seed: u64) -> World {
    let mut plan = plan(8);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (800, WritePolicy::WriteBack);
    plan.disks[0].ordered = true;
    let mut world = World::new(Plan { seed, holds_back: true, ..plan });
    world.settle();
    world
}

/// An ordered volume under `wb`, and a cleaner that begins with the next tick.
fn impatient() -> Plan {
    let mut plan = plan(8);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (800, WritePolicy::WriteBack);
    plan.tenants[0].dirty = DirtyLimits { rest: 90, max: 95, age: 1 };
    plan.disks[0].ordered = true;
    Plan { holds_back: true, ..plan }
}

fn write(world: &mut World, block: u64) {
    world.submit(ask::write(VOLUME, block * BLOCK, BLOCK));
    world.settle();
}

fn flush(world: &mut World) {
    world.submit(ask::flush(VOLUME));
    world.settle();
}

/// Which writes a block's first sector shows on the backing, counted from the world's first.
fn on_backing(world: &mut World, block: u64) -> u64 {
    let mut bytes = [0; 512];
    world.host().backing(VOLUME).content().read(block * BLOCK, &mut bytes);
    stamp::read(VOLUME, block * BLOCK / 512, &bytes).expect("a stamp") - FIRST
}

/// Each version of a block that is written between flushes has its turn on the backing.
#[test]
fn every_epoch_is_on_the_backing_before_the_next() {
    let mut world = ordered(8, 800);
    for _ in 0..5 {
        write(&mut world, 0);
        write(&mut world, 1);
        flush(&mut world);
    }
    assert_eq!(world.host().engine().epochs_behind(VOLUME), Some(5));
    assert_eq!(world.host().engine().dirty_of(VOLUME), 10, "older versions count");
    world.host().set_drain(VOLUME, true);
    let mut seen = vec![(0, 0)];
    while world.step() {
        let now = (on_backing(&mut world, 0), on_backing(&mut world, 1));
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    assert_eq!(seen.last(), Some(&(9, 10)));
    for epoch in 0..5 {
        let both = (2 * epoch + 1, 2 * epoch + 2);
        let first = seen.iter().position(|&now| now == both).expect("each epoch is there as a whole");
        assert!(seen[first + 1..].iter().all(|now| now.0 >= both.0 && now.1 >= both.1), "{seen:?}");
    }
    assert_eq!(world.host().engine().epochs_behind(VOLUME), Some(0));
    assert_eq!(world.host().engine().dirty_of(VOLUME), 0);
}

#[test]
fn writes_within_an_epoch_take_the_place_of_each_other() {
    let mut world = ordered(8, 800);
    (0..20).for_each(|_| write(&mut world, 0));
    assert_eq!(world.host().engine().dirty_of(VOLUME), 1);
    flush(&mut world);
    write(&mut world, 0);
    assert_eq!(world.host().engine().dirty_of(VOLUME), 2);
}

#[test]
fn versions_are_found_again_after_a_crash_and_go_on_in_their_order() {
    for cut in [true, false] {
        let mut world = ordered(8, 800);
        for block in [0, 1, 0, 2, 0] {
            write(&mut world, block);
            flush(&mut world);
        }
        if cut {
            world.cut()
        } else {
            world.kill()
        }
        world.settle();
        assert_eq!(world.host().engine().dirty_of(VOLUME), 5);
        world.read_everything();
        write(&mut world, 1);
        flush(&mut world);
        // The checks of the world look at the backing all the time.
        world.drain();
        assert_eq!((on_backing(&mut world, 0), on_backing(&mut world, 2)), (5, 4));
    }
}

/// A discard goes to the backing itself, which has to have all that is older first.
#[test]
fn what_passes_the_cache_by_waits_for_what_is_older() {
    let mut world = ordered(8, 800);
    write(&mut world, 0);
    flush(&mut world);
    world.submit(ask::of(RequestKind::WriteZeroes { no_hole: true }, VOLUME, 4 * BLOCK, BLOCK));
    world.settle();
    assert_eq!(on_backing(&mut world, 0), 1);
    assert_eq!(world.host().engine().dirty_of(VOLUME), 0);
}

/// More flushes than there are numbers for epochs.
#[test]
fn flushes_wait_while_too_many_epochs_are_in_use() {
    let mut world = ordered(200, 800);
    for block in 0..200 {
        write(&mut world, block);
        flush(&mut world);
        assert!(world.host().engine().epochs_behind(VOLUME) <= Some(32));
    }
    assert!(on_backing(&mut world, 150) > 0, "the cleaner has made room");
    world.cut();
    world.read_everything();
    world.drain();
}

/// The cleaner goes on quietly with what is old, and takes all the runs that a volume may have when a flush waits for it.
#[test]
fn the_cleaner_hurries_when_a_flush_waits_for_it() {
    let to_backing =
        |op: &DeviceOp| op.target == Target::Backing(VOLUME) && matches!(op.kind, OpKind::Write { .. });
    let mut world = ordered(24, 800);
    let mut runs = Vec::new();
    for _ in 0..40 {
        // No neighbours.
        (0..12).for_each(|block| world.submit(ask::write(VOLUME, 2 * block * BLOCK, BLOCK)));
        world.settle_but(to_backing);
        world.submit(ask::flush(VOLUME));
        world.settle_but(to_backing);
        runs.push(world.host().pending().iter().filter(|pending| to_backing(&pending.op)).count());
    }
    runs.dedup();
    assert_eq!(runs, [0, 4, 8]);
    world.settle();
    world.read_everything();
    world.drain();
}

/// A partition that is all dirty slows its guest down; nothing passes by.
#[test]
fn writes_wait_for_room() {
    let mut world = ordered(100, 20);
    for n in 0..300 {
        world.submit(ask::write(VOLUME, n * 7 % 100 * BLOCK, BLOCK));
        if n % 5 == 0 {
            world.submit(ask::flush(VOLUME));
        }
        while world.host().live() > 6 && world.step() {}
    }
    world.settle();
    let stats = world.stats(0);
    assert!(stats.cleaned_blocks > 200, "{stats:?}");
    assert!(stats.backing_writes - stats.cleaned_blocks < 20, "{stats:?}");
    world.cut();
    world.read_everything();
    world.drain();
}

/// Nobody waits for ever for a backing that takes nothing.
#[test]
fn whoever_waits_for_a_dead_backing_is_told() {
    let mut world = ordered(8, 800);
    write(&mut world, 0);
    flush(&mut world);
    world.excuse_backings();
    world.host().backing(VOLUME).fail_next(FaultKind::Write, 10_000);
    world.submit(ask::of(RequestKind::Discard, VOLUME, 4 * BLOCK, BLOCK));
    world.settle();
    assert_eq!(world.host().engine().dirty_of(VOLUME), 1, "what is dirty stays so");
    world.host().backing(VOLUME).forgive();
    world.drain();
    assert_eq!(on_backing(&mut world, 0), 1);
}

/// What was dirty before the volume had an order is older than all that comes.
#[test]
fn a_volume_may_get_an_order_with_dirty_blocks_and_lose_it_again() {
    let mut plan = plan(8);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (800, WritePolicy::WriteBack);
    plan.tenants[0].dirty = DirtyLimits { rest: 90, max: 95, age: 1000 };
    let mut world = World::new(Plan { holds_back: true, ..plan });
    for order in [true, false, true] {
        write(&mut world, 0);
        write(&mut world, 1);
        flush(&mut world);
        world.stop_with_order(0, order);
        write(&mut world, 0);
        flush(&mut world);
        write(&mut world, 0);
        flush(&mut world);
        world.cut();
        world.read_everything();
        tend(&mut world);
    }
    world.drain();
}

/// A guest's flush ends between a write to the cache and the end of one that goes past it over the same block.
#[test]
fn what_has_overtaken_a_flushed_block_is_durable_before_anything_newer() {
    for seed in 0..60 {
        let mut world = by_seed(seed);
        write(&mut world, 0);
        world.set_write_policy(0, WritePolicy::WriteThrough);
        world.submit(ask::write(VOLUME, 0, BLOCK));
        let past = |op: &DeviceOp| {
            op.target == Target::Backing(VOLUME) && matches!(op.kind, OpKind::Write { offset: 0, .. })
        };
        world.submit(ask::flush(VOLUME));
        world.settle_but(past);
        // The flush has ended, and covers the first write, which the backing will never get.
        while world.step() && world.host().live() > 0 {}
        world.submit(ask::write(VOLUME, BLOCK, BLOCK));
        world.settle_but(|op| op.target == Target::Backing(VOLUME) && op.kind == OpKind::Flush);
        world.cut();
        world.read_everything();
    }
}

/// A slot of a run turns out to be damaged while another one is still being read. Its version is no longer needed, but nobody gets the slot before the run is over.
#[test]
fn a_lost_version_keeps_its_slot_while_its_run_is_under_way() {
    let mut runs = 0;
    for seed in 0..20 {
        let mut world = World::new(Plan { seed, ..impatient() });
        world.settle();
        let read = |op: &DeviceOp| op.target == Target::Cache && matches!(op.kind, OpKind::Read { .. });
        let ask_two = |world: &mut World| {
            (0..2).for_each(|block| world.submit(ask::write(VOLUME, block * BLOCK, BLOCK)));
            world.settle_but(read);
            world.submit(ask::flush(VOLUME));
            world.settle_but(read);
        };
        ask_two(&mut world);
        // Both older versions stay for the run.
        ask_two(&mut world);
        for _ in 0..2 {
            world.tick();
            world.settle_but(read);
        }
        let reads: Vec<DeviceOp> =
            world.host().pending().into_iter().map(|pending| pending.op).filter(read).collect();
        let [first, second] = reads[..] else { continue };
        runs += 1;
        let OpKind::Read { offset, .. } = first.kind else { unreachable!() };
        world.excuse_data();
        let at = world.layout().data_offset() + offset;
        world.host().cache().content_mut().write(at, &[0xff; 8]);
        let second = |op: &DeviceOp| op.id == second.id;
        world.settle_but(second);
        world.submit(ask::flush(VOLUME));
        world.settle_but(second);
        (2..8).for_each(|block| world.submit(ask::write(VOLUME, block * BLOCK, BLOCK)));
        world.settle_but(second);
        world.settle();
        world.read_everything();
        tend(&mut world);
        world.drain();
    }
    assert!(runs > 5, "{runs} runs of two reads");
}

/// A guest finds that a block's data is lost, and the cleaner cannot even read it: the version is in no epoch's way, and in no later version's.
#[test]
fn what_a_guest_has_found_lost_is_lost_to_the_cleaner() {
    let mut world = World::new(impatient());
    world.settle();
    write(&mut world, 0);
    flush(&mut world);
    let (slot, _) = world.recovered().blocks().next().expect("a dirty block");
    world.excuse_data();
    world.excuse_cache();
    let at = world.layout().slot_offset(slot);
    world.host().cache().content_mut().write(at, &[0xff; 8]);
    world.submit(ask::read(VOLUME, 0, BLOCK));
    world.settle();
    assert_eq!(world.host().engine().lost().count(), 1);
    world.host().cache().fail_next(FaultKind::Read, 1);
    tend(&mut world);
    write(&mut world, 0);
    flush(&mut world);
    tend(&mut world);
    assert_eq!(on_backing(&mut world, 0), 2);
    world.kill();
    world.read_everything();
    world.drain();
}

/// An ordered volume with two blocks written in each of three epochs, and a cleaner that begins with the next tick.
fn three_epochs() -> World {
    let mut world = World::new(impatient());
    world.settle();
    world.excuse_cache();
    for _ in 0..3 {
        write(&mut world, 0);
        write(&mut world, 1);
        flush(&mut world);
    }
    world
}

/// What is newer goes on without a sector that cannot be read, after some time.
#[test]
fn a_version_in_a_bad_sector_is_given_up() {
    let mut world = three_epochs();
    world.excuse_data();
    let dirty: Vec<u32> = world.recovered().blocks().map(|(slot, _)| slot).collect();
    let at = world.layout().slot_offset(dirty[0]);
    world.host().cache().fail_range(FaultKind::Read, at..at + 512);
    for _ in 0..40 {
        world.tick();
        world.settle();
    }
    let engine = world.host().engine();
    assert!(!engine.cache_failed(), "it is one sector");
    assert_eq!(
        (engine.dirty_of(VOLUME) - engine.lost_of(VOLUME), engine.epochs_behind(VOLUME)),
        (0, Some(0))
    );
    assert!(on_backing(&mut world, 1) >= 6, "the newest version");
}

/// Nothing is called lost, and nothing newer written over the gap, before a device that is gone is given up; or while one takes writes, and gives nothing back.
#[test]
fn a_device_that_answers_nothing_is_no_bad_sector() {
    for takes_writes in [false, true] {
        let mut world = three_epochs();
        world.excuse_metadata();
        match takes_writes {
            true => world.host().cache().fail_range(FaultKind::Read, 0..u64::MAX),
            false => world.host().cache().set_gone(true),
        }
        for _ in 0..40 {
            // They make up for the reads that fail.
            (0..32).filter(|_| takes_writes).for_each(|at| write(&mut world, 4 + at % 4));
            world.tick();
            world.settle();
            let engine = world.host().engine();
            let versions = if takes_writes { 6 + 4 } else { 6 };
            assert_eq!((engine.dirty_of(VOLUME), engine.lost_of(VOLUME)), (versions, 0));
            assert_eq!((on_backing(&mut world, 0), on_backing(&mut world, 1)), (0, 0));
        }
        let engine = world.host().engine();
        assert_eq!((engine.cache_failed(), engine.is_failed(VOLUME)), (!takes_writes, !takes_writes));
    }
}
