//! A cache device that is slower than the backing: clean blocks are read there, and are right; dirty ones are read where they are; and now and then a read
//! looks whether it is fast again.

use crate::support::{BLOCK, VOLUME, plan};
use larder_engine::{DirtyLimits, PROBE_EVERY, WritePolicy};
use larder_io::sim::{FaultKind, ask};
use larder_simtest::World;

const BLOCKS: u64 = 64;

fn cached(policy: WritePolicy) -> World {
    let mut plan = plan(BLOCKS);
    plan.tenants[0].policy = policy;
    (plan.tenants[0].quota, plan.tenants[0].dirty) = (500, DirtyLimits { rest: 90, max: 95, age: 1000 });
    let mut world = World::new(plan);
    world.read_everything();
    world.settle();
    world
}

/// Reads of cache and backing that this takes.
fn reads(world: &mut World, act: impl FnOnce(&mut World)) -> (u64, u64) {
    let count = |world: &mut World| {
        let backing = world.host().backing(VOLUME).started(FaultKind::Read);
        (world.host().cache().started(FaultKind::Read), backing)
    };
    let before = count(world);
    act(world);
    world.settle();
    let after = count(world);
    (after.0 - before.0, after.1 - before.1)
}

fn read_each(world: &mut World) {
    for block in 0..BLOCKS {
        world.submit(ask::read(VOLUME, block * BLOCK, BLOCK));
        world.settle();
    }
}

#[test]
fn clean_blocks_are_read_from_the_backing_but_for_a_few() {
    let mut world = cached(WritePolicy::WriteThrough);
    assert_eq!(reads(&mut world, read_each), (BLOCKS, 0));
    world.host().set_slow_cache(VOLUME, true);
    let probes = BLOCKS / u64::from(PROBE_EVERY);
    assert_eq!(reads(&mut world, read_each), (probes, BLOCKS - probes));
    world.host().set_slow_cache(VOLUME, false);
    assert_eq!(reads(&mut world, read_each), (BLOCKS, 0));
}

#[test]
fn where_all_hit_a_few_are_tried_at_the_backing_the_next_one_first() {
    let mut world = cached(WritePolicy::WriteThrough);
    world.host().probe_backing(VOLUME, true);
    let one = |world: &mut World| world.submit(ask::read(VOLUME, 0, BLOCK));
    assert_eq!(reads(&mut world, one), (0, 1));
    assert_eq!(reads(&mut world, one), (1, 0));
    let probes = BLOCKS / u64::from(PROBE_EVERY);
    assert_eq!(reads(&mut world, read_each), (BLOCKS - probes, probes));
    world.host().probe_backing(VOLUME, false);
    assert_eq!(reads(&mut world, read_each), (BLOCKS, 0));
}

#[test]
fn what_is_written_meanwhile_is_on_both() {
    for policy in [WritePolicy::WriteThrough, WritePolicy::ReadOnly, WritePolicy::WriteBack] {
        let mut world = cached(policy);
        world.host().set_slow_cache(VOLUME, true);
        for block in (0..BLOCKS - 1).step_by(3) {
            world.submit(ask::write(VOLUME, block * BLOCK, BLOCK));
            world.submit(ask::write(VOLUME, block * BLOCK + BLOCK / 2, BLOCK));
            world.settle();
        }
        world.read_everything();
        world.host().set_slow_cache(VOLUME, false);
        world.read_everything();
        world.cut();
        world.read_everything();
    }
}

#[test]
fn nothing_is_filled_and_what_is_dirty_is_read_where_it_is() {
    let mut plan = plan(BLOCKS);
    plan.tenants[0].policy = WritePolicy::WriteBack;
    (plan.tenants[0].quota, plan.tenants[0].dirty) = (500, DirtyLimits { rest: 90, max: 95, age: 1000 });
    let mut world = World::new(plan);
    world.settle();
    world.host().set_slow_cache(VOLUME, true);
    world.submit(ask::write(VOLUME, 0, 8 * BLOCK));
    world.settle();
    assert_eq!(world.cached(), [8]);
    let (cache, backing) = reads(&mut world, |world| world.submit(ask::read(VOLUME, 0, 16 * BLOCK)));
    assert!(cache > 0 && backing > 0, "{cache}, {backing}");
    assert_eq!(world.cached(), [8]);
}
