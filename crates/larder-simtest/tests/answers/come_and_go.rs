//! Volumes come and go while the engine works: no crash brings anything back of one that has left, and one that has come is kept as all others are.

use crate::support::{BLOCK, VOLUME, plan, tend};
use crate::warm;
use larder_engine::format::SlotState;
use larder_engine::{JoinError, VolumeId, WritePolicy};
use larder_io::sim::ask;
use larder_simtest::World;

const SECOND: VolumeId = VolumeId(1);

#[test]
fn what_has_come_is_warm_after_a_cut() {
    for policy in [WritePolicy::WriteThrough, WritePolicy::WriteBack] {
        let mut world = warm(50);
        world.set_quota(0, 200);
        world.set_write_policy(0, policy);
        world.join(0, 40 * BLOCK, false);
        world.settle();
        assert!(world.is_served(1));
        world.submit(ask::write(SECOND, 0, 40 * BLOCK));
        world.settle();
        world.submit(ask::flush(SECOND));
        world.settle();
        tend(&mut world);
        world.cut();
        assert_eq!(world.cached(), [90], "{policy:?}");
        world.read_everything();
    }
}

#[test]
fn a_crash_at_any_step_of_a_coming_keeps_the_cache() {
    let mut steps = 0;
    loop {
        let mut world = warm(20);
        world.join(0, 10 * BLOCK, false);
        let ended = (0..steps).filter(|_| world.step()).count();
        world.cut();
        assert_eq!(world.cached(), [20], "after {steps} steps");
        world.read_everything();
        if ended < steps {
            break;
        }
        steps += 1;
    }
    assert!(steps > 4, "a table, a superblock, and a flush of each");
}

#[test]
fn a_crash_at_any_step_of_a_leaving_brings_nothing_old_back() {
    let (mut steps, mut gone) = (0, 0);
    loop {
        let mut world = warm(20);
        world.set_write_policy(0, WritePolicy::WriteBack);
        world.submit(ask::write(VOLUME, 0, 5 * BLOCK));
        world.settle();
        world.leave(0);
        for _ in 0..steps {
            if !world.step() {
                world.tick();
            }
        }
        gone += usize::from(world.is_gone(0));
        world.cut();
        world.read_everything();
        if gone == 3 {
            break;
        }
        steps += 1;
        assert!(steps < 1000, "it never leaves");
    }
    assert!(steps > 5, "it is written back, flushed, and forgotten");
}

#[test]
fn nothing_is_left_of_one_that_has_left() {
    let mut world = warm(20);
    world.leave(0);
    tend(&mut world);
    assert!(world.is_gone(0));
    assert_eq!(world.cached(), [0]);
    world.cut();
    assert!(
        world.recovered().slots().all(|(_, state)| state == SlotState::Free),
        "the journal knows of none"
    );
    world.read_everything();
}

/// The device is let go of after one has left, and one has come; both are known when it is there again.
#[test]
fn a_cache_that_is_there_again_knows_who_has_come_and_who_has_left() {
    let mut world = warm(20);
    world.set_quota(0, 100);
    world.set_write_policy(0, WritePolicy::WriteBack);
    world.leave(0);
    tend(&mut world);
    world.join(0, 10 * BLOCK, false);
    world.settle();
    world.submit(ask::write(SECOND, 0, 4 * BLOCK));
    world.settle();
    world.submit(ask::flush(SECOND));
    world.settle();
    world.detach();
    world.settle();
    let resumed = world.reattach(|_| {});
    assert_eq!((resumed.back, resumed.lost.len()), (4, 0));
    world.settle();
    world.read_everything();
    world.cut();
    world.read_everything();
}

/// The table has room for some eighty; those that have left make room for others.
#[test]
fn names_of_those_who_have_left_make_room() {
    let mut world = World::new(plan(8));
    for number in 1..200 {
        world.join(0, 2 * BLOCK, false);
        tend(&mut world);
        assert!(world.is_served(number), "volume {number}");
        world.leave(number);
        tend(&mut world);
        assert!(world.is_gone(number), "volume {number}");
    }
}

#[test]
fn one_joins_at_a_time() {
    let mut world = warm(8);
    world.join(0, 8 * BLOCK, false);
    assert!(!world.is_served(1), "its name is not durable yet");
    world.join(0, 8 * BLOCK, false);
    assert_eq!(world.plan().disks.len(), 2, "{}", JoinError::Busy);
    world.settle();
    assert!(world.is_served(1));
}
