//! The cleaner lets guests go first who wait for the same backing.

use crate::support::{BLOCK, VOLUME, plan};
use larder_engine::{DeviceOp, DirtyLimits, OpKind, Target, WritePolicy};
use larder_io::sim::{FaultKind, ask};
use larder_simtest::World;

/// A partition of 100 blocks under `wb`, of which 20 may rest dirty and 80 be dirty, and a read of the backing that does not end.
fn waiting() -> World {
    let mut plan = plan(400);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (100, WritePolicy::WriteBack);
    plan.shape.slots = 200;
    let mut world = World::new(plan);
    world.settle();
    world.submit(ask::read(VOLUME, LAST * BLOCK, BLOCK));
    world
}

const LAST: u64 = 399;

fn waits(op: &DeviceOp) -> bool {
    op.target == Target::Backing(VOLUME)
        && matches!(op.kind, OpKind::Read { offset, .. } if offset == LAST * BLOCK)
}

/// Write so many blocks, and let a second pass, so that the journal durably maps them.
fn write(world: &mut World, blocks: u64) {
    (0..blocks).for_each(|block| world.submit(ask::write(VOLUME, block * BLOCK, BLOCK)));
    world.settle_but(waits);
    world.tick();
    world.settle_but(waits);
}

#[test]
fn nothing_is_written_back_while_guests_wait_for_the_backing() {
    let mut world = waiting();
    write(&mut world, 40);
    assert_eq!((world.dirty(), world.stats(0).cleaned_blocks), (40, 0));
    // The read ends: what may not rest dirty is written back.
    world.settle();
    assert!(world.stats(0).cleaned_blocks >= 20, "{:?}", world.stats(0));
    world.read_everything();
}

/// From half of the way to the limit on there is no time for that.
#[test]
fn near_the_limit_it_does_not_wait() {
    let mut world = waiting();
    write(&mut world, 60);
    assert!(world.stats(0).cleaned_blocks > 0, "{:?}", world.stats(0));
    world.settle();
    world.read_everything();
}

/// What stands in the way of others waits as well: clean blocks can leave in its place.
#[test]
fn what_is_to_leave_waits_for_guests_too() {
    let mut world = waiting();
    write(&mut world, 30);
    world.submit(ask::read(VOLUME, 100 * BLOCK, 70 * BLOCK));
    world.settle_but(waits);
    world.submit(ask::read(VOLUME, 200 * BLOCK, 20 * BLOCK));
    world.settle_but(waits);
    let stats = world.stats(0);
    assert_eq!(stats.cleaned_blocks, 0, "{stats:?}");
    assert!(stats.evictions >= 20, "{stats:?}");
    world.settle();
    assert!(world.stats(0).cleaned_blocks >= 10, "{:?}", world.stats(0));
    world.read_everything();
}

/// What is dirty for too long goes all the same, one run after the other.
#[test]
fn what_is_dirty_for_too_long_is_written_back_run_by_run() {
    for (waits_for_it, runs) in [(true, 1), (false, 8)] {
        let mut plan = plan(400);
        (plan.tenants[0].quota, plan.tenants[0].policy) = (100, WritePolicy::WriteBack);
        (plan.tenants[0].dirty, plan.shape.slots) = (DirtyLimits { age: 2, ..DirtyLimits::default() }, 200);
        let mut world = World::new(plan);
        world.settle();
        let is_write =
            |op: &DeviceOp| op.target == Target::Backing(VOLUME) && matches!(op.kind, OpKind::Write { .. });
        let stays = |op: &DeviceOp| waits(op) || is_write(op);
        if waits_for_it {
            world.submit(ask::read(VOLUME, LAST * BLOCK, BLOCK));
        }
        (0..36).step_by(3).for_each(|block| world.submit(ask::write(VOLUME, block * BLOCK, BLOCK)));
        for tick in 0..5 {
            // A guest that is always there, so that nothing goes for idleness.
            world.submit(ask::read(VOLUME, (200 + tick) * BLOCK, BLOCK));
            world.settle_but(stays);
            world.tick();
        }
        world.settle_but(stays);
        assert_eq!(world.host().backing(VOLUME).started(FaultKind::Write), runs, "{waits_for_it}");
        world.settle();
        world.tick();
        world.settle();
        world.read_everything();
    }
}
