//! Draining: the end comes however much guests write, the backing durably has everything then, and nothing becomes dirty as long as it goes on.

use crate::support::{BLOCK, VOLUME, plan, tend};
use larder_engine::{Drain, WritePolicy};
use larder_io::sim::{FaultKind, ask};
use larder_simtest::World;

/// A volume under `wb` with a block of each kind dirty, and a cleaner that rests.
fn dirty(blocks: u64) -> World {
    let mut plan = plan(64);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (800, WritePolicy::WriteBack);
    let mut world = World::new(plan);
    world.settle();
    world.submit(ask::write(VOLUME, 0, blocks * BLOCK));
    world.settle();
    assert_eq!(dirty_blocks(&mut world), blocks as u32);
    world
}

fn dirty_blocks(world: &mut World) -> u32 {
    world.host().engine().dirty_of(VOLUME)
}

fn state(world: &mut World) -> Drain {
    world.host().engine().draining(VOLUME)
}

#[test]
fn a_drained_volume_stays_drained_and_its_backing_has_all() {
    let mut world = dirty(20);
    world.host().set_drain(VOLUME, true);
    world.settle();
    assert_eq!((dirty_blocks(&mut world), state(&mut world)), (0, Drain::Done));
    world.observe_backing(VOLUME, 0, 64 * BLOCK);
    // What is written from now on is on both.
    world.submit(ask::write(VOLUME, 5 * BLOCK, 30 * BLOCK));
    world.submit(ask::write(VOLUME, 50 * BLOCK + 512, 1024));
    world.settle();
    assert_eq!((dirty_blocks(&mut world), state(&mut world)), (0, Drain::Done));
    world.observe_backing(VOLUME, 0, 64 * BLOCK);
    world.host().set_drain(VOLUME, false);
    world.submit(ask::write(VOLUME, 0, BLOCK));
    world.settle();
    assert_eq!((dirty_blocks(&mut world), state(&mut world)), (1, Drain::Off));
    world.cut();
    world.read_everything();
}

#[test]
fn once_ends_while_guests_go_on_writing() {
    let mut world = dirty(40);
    world.host().drain_once(VOLUME);
    for n in 0..10_000 {
        world.submit(ask::write(VOLUME, n * 7 % 64 * BLOCK, BLOCK));
        (0..6).for_each(|_| _ = world.step());
        if state(&mut world) == Drain::Off {
            // A power cut of the backing loses nothing of what was dirty.
            world.settle();
            world.submit(ask::write(VOLUME, 0, BLOCK));
            world.settle();
            assert!(dirty_blocks(&mut world) > 0, "write-back goes on as before");
            world.cut();
            return world.read_everything();
        }
    }
    panic!("the end never comes");
}

/// A write to the cache that was under way when the draining began ends after it seemed to be over.
#[test]
fn a_straggler_is_written_back_too() {
    let mut world = dirty(4);
    world.submit(ask::write(VOLUME, 60 * BLOCK, BLOCK));
    let late = world.host().pending()[0].op.id;
    world.host().set_drain(VOLUME, true);
    world.settle_but(|op| op.id == late);
    assert_eq!(state(&mut world), Drain::Done);
    world.settle();
    assert_eq!((dirty_blocks(&mut world), state(&mut world)), (0, Drain::Done));
    world.observe_backing(VOLUME, 0, 64 * BLOCK);
}

#[test]
fn it_is_not_done_before_the_backing_has_flushed() {
    let mut world = dirty(4);
    world.excuse_backings();
    world.host().backing(VOLUME).fail_next(FaultKind::Flush, 1);
    world.host().drain_once(VOLUME);
    world.settle();
    assert_eq!((dirty_blocks(&mut world), state(&mut world)), (4, Drain::Once));
    assert_eq!(world.host().engine().backing_failing_for(VOLUME), Some(0));
    world.tick();
    assert_eq!(world.host().engine().backing_failing_for(VOLUME), Some(1));
    tend(&mut world);
    assert_eq!((dirty_blocks(&mut world), state(&mut world)), (0, Drain::Off));
    assert_eq!(world.host().engine().backing_failing_for(VOLUME), None);
    world.observe_backing(VOLUME, 0, 64 * BLOCK);
}

/// Retries become rarer, and errors of many runs at once count as one.
#[test]
fn a_backing_that_fails_keeps_its_blocks_and_is_left_alone_longer_each_time() {
    let mut world = dirty(16);
    world.excuse_backings();
    world.host().backing(VOLUME).fail_next(FaultKind::Write, u32::MAX);
    world.host().set_drain(VOLUME, true);
    let mut tries = Vec::new();
    for tick in 0..70 {
        let before = world.stats(0).backing_errors;
        world.settle();
        if world.stats(0).backing_errors > before {
            tries.push(tick);
        }
        world.tick();
    }
    assert_eq!(tries, [0, 1, 3, 7, 15, 31, 63]);
    assert_eq!(dirty_blocks(&mut world), 16);
    world.host().backing(VOLUME).forgive();
    for _ in 0..64 {
        world.settle();
        world.tick();
    }
    assert_eq!((dirty_blocks(&mut world), state(&mut world)), (0, Drain::Done));
    world.observe_backing(VOLUME, 0, 64 * BLOCK);
}

/// An operator who has mended the backing does not wait until it is tried again by itself.
#[test]
fn a_backing_that_was_left_alone_is_tried_when_somebody_asks() {
    let mut world = dirty(16);
    world.excuse_backings();
    world.host().backing(VOLUME).fail_next(FaultKind::Write, u32::MAX);
    world.host().drain_once(VOLUME);
    for _ in 0..40 {
        world.settle();
        world.tick();
    }
    world.settle();
    let failed = |world: &mut World| world.host().engine().backing_failed_since_asked(VOLUME);
    assert!(failed(&mut world));
    // In vain: that is known at once, and for how long it is so.
    world.host().drain_once(VOLUME);
    assert!(!failed(&mut world));
    world.settle();
    assert!(failed(&mut world) && dirty_blocks(&mut world) == 16);
    assert_eq!(world.host().engine().backing_failing_for(VOLUME), Some(40));
    world.tick();
    world.tick();
    world.host().backing(VOLUME).forgive();
    world.host().drain_once(VOLUME);
    world.settle();
    assert_eq!((dirty_blocks(&mut world), state(&mut world)), (0, Drain::Off));
    assert_eq!(world.host().engine().backing_failing_for(VOLUME), None);
    world.observe_backing(VOLUME, 0, 64 * BLOCK);
}

/// Flushes of a backing failed while nothing was dirty. That says nothing of what becomes dirty later.
#[test]
fn errors_of_long_ago_are_not_held_against_a_backing() {
    let mut world = dirty(1);
    world.host().set_drain(VOLUME, true);
    world.settle();
    world.host().set_drain(VOLUME, false);
    world.excuse_backings();
    world.host().backing(VOLUME).fail_next(FaultKind::Flush, 1);
    world.host().drain_once(VOLUME);
    world.settle();
    assert!(world.host().engine().backing_failing_for(VOLUME).is_some(), "somebody waits for it");
    tend(&mut world);
    assert_eq!(state(&mut world), Drain::Off);
    world.submit(ask::write(VOLUME, 0, BLOCK));
    world.settle();
    assert_eq!(world.host().engine().backing_failing_for(VOLUME), None);
}

/// Dirty blocks of which one is damaged on the cache device.
fn damaged(ordered: bool) -> World {
    let mut plan = plan(64);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (800, WritePolicy::WriteBack);
    plan.disks[0].ordered = ordered;
    let mut world = World::new(plan);
    world.settle();
    world.submit(ask::write(VOLUME, 0, 8 * BLOCK));
    world.settle();
    world.submit(ask::flush(VOLUME));
    world.settle();
    let (slot, _) = world.recovered().blocks().next().expect("a dirty block");
    world.excuse_data();
    let at = world.layout().slot_offset(slot);
    world.host().cache().content_mut().write(at, &[0xff; 8]);
    world
}

/// It can never be written back: a drain once ends without it, and one for good only when the guest has written it again.
#[test]
fn what_is_lost_keeps_no_drain_once_from_its_end() {
    for ordered in [false, true] {
        let mut world = damaged(ordered);
        world.host().drain_once(VOLUME);
        world.settle();
        tend(&mut world);
        assert_eq!((dirty_blocks(&mut world), state(&mut world)), (1, Drain::Off), "ordered: {ordered}");
        assert_eq!(world.host().engine().lost_of(VOLUME), 1);
        world.observe_backing(VOLUME, 0, 64 * BLOCK);
        world.host().drain_once(VOLUME);
        world.settle();
        assert_eq!((dirty_blocks(&mut world), state(&mut world)), (1, Drain::Off), "ordered: {ordered}");

        world.host().set_drain(VOLUME, true);
        world.settle();
        tend(&mut world);
        assert_eq!((dirty_blocks(&mut world), state(&mut world)), (1, Drain::On), "ordered: {ordered}");
        world.submit(ask::write(VOLUME, 0, 8 * BLOCK));
        world.settle();
        tend(&mut world);
        assert_eq!((dirty_blocks(&mut world), state(&mut world)), (0, Drain::Done), "ordered: {ordered}");
        world.observe_backing(VOLUME, 0, 64 * BLOCK);
    }
}
