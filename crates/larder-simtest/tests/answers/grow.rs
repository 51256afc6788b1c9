//! A volume grows in use: what is written beyond its old end survives as everything else does, and what was cached stays warm.

use crate::support::{BLOCK, VOLUME, plan, tend};
use crate::warm;
use larder_engine::{GrowError, WritePolicy};
use larder_io::sim::ask;
use larder_simtest::World;

#[test]
fn what_is_written_beyond_the_old_end_is_there_after_a_cut() {
    for policy in [WritePolicy::WriteThrough, WritePolicy::WriteBack] {
        let mut world = warm(100);
        world.set_quota(0, 200);
        world.set_write_policy(0, policy);
        world.grow(0, 50);
        world.settle();
        assert_eq!(world.host().engine().volume_bytes(VOLUME), 150 * BLOCK);
        world.submit(ask::write(VOLUME, 98 * BLOCK, 40 * BLOCK));
        world.settle();
        world.submit(ask::flush(VOLUME));
        world.settle();
        tend(&mut world);
        world.cut();
        assert_eq!(world.cached(), [138], "{policy:?}");
        world.read_everything();
    }
}

#[test]
fn a_crash_at_any_step_of_a_growth_keeps_the_cache() {
    let mut steps = 0;
    loop {
        let mut world = warm(20);
        world.set_write_policy(0, WritePolicy::WriteBack);
        world.submit(ask::write(VOLUME, 0, 5 * BLOCK));
        world.settle();
        world.submit(ask::flush(VOLUME));
        world.settle();
        world.grow(0, 4);
        let ended = (0..steps).filter(|_| world.step()).count();
        world.cut();
        assert_eq!(world.cached(), [20], "after {steps} steps");
        assert_eq!(world.host().engine().volume_bytes(VOLUME), 24 * BLOCK);
        world.read_everything();
        if ended < steps {
            break;
        }
        steps += 1;
    }
    assert!(steps > 4, "a table, a superblock, and a flush of each");
}

#[test]
fn one_that_ends_within_a_block_does_not_grow_in_use() {
    let mut plan = plan(8);
    plan.disks[0].bytes -= 512;
    let mut world = World::new(plan);
    world.settle();
    let bytes = 8 * BLOCK - 512;
    let mut engine = |to| {
        let host = world.host();
        let grows = host.grow(VOLUME, to);
        (grows, host.engine().volume_bytes(VOLUME))
    };
    assert_eq!(engine(16 * BLOCK), (false, bytes));
    let text = GrowError::Uneven { bytes, block_bytes: 4096 }.to_string();
    assert!(text.contains("no multiple of the cache's block of 4096 bytes"), "{text}");
}
