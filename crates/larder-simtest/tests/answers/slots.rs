//! Slots on their way through the journal: writes wait for them rather than pass the cache by, and no tenant loses its part of the cache by them.

use crate::support::{BLOCK, VOLUME, plan, tend};
use larder_engine::{DirtyLimits, RequestKind, VolumeId, WritePolicy};
use larder_io::sim::{FaultKind, ask};
use larder_simtest::{Disk, Plan, Tenant, World};

/// So many slots, all of them tenant 0's, under write-back. Its volume has four times as many blocks.
fn write_back(slots: u32) -> Plan {
    let mut plan = plan(4 * u64::from(slots));
    (plan.tenants[0].quota, plan.tenants[0].policy) = (slots, WritePolicy::WriteBack);
    plan.shape.slots = slots;
    plan
}

fn submit_each(world: &mut World, kind: RequestKind, volume: VolumeId, blocks: impl Iterator<Item = u64>) {
    blocks.for_each(|block| world.submit(ask::of(kind, volume, block * BLOCK, BLOCK)));
}

#[test]
fn a_burst_of_writes_to_a_full_cache_enters_it() {
    let mut world = World::new(write_back(200));
    world.settle();
    submit_each(&mut world, RequestKind::Read, VOLUME, 0..200);
    world.settle();
    tend(&mut world);
    // More than is freed ahead of its use, at once: new blocks and cached ones, in many requests and in one.
    submit_each(&mut world, RequestKind::Write, VOLUME, 300..330);
    submit_each(&mut world, RequestKind::Write, VOLUME, 190..200);
    world.submit(ask::write(VOLUME, 400 * BLOCK, 40 * BLOCK));
    world.settle();
    assert_eq!(world.stats(0).ssd_guest_write_blocks, 80, "{:?}", world.stats(0));
    world.read_everything();
    world.submit(ask::flush(VOLUME));
    world.settle();
    world.cut();
    world.read_everything();
}

/// Where all that could leave is dirty, no journal frees anything: writes go on, to the backing.
#[test]
fn writes_do_not_wait_for_slots_that_will_not_come() {
    let mut plan = write_back(100);
    plan.tenants[0].dirty = DirtyLimits { rest: 100, max: 100, age: 1000 };
    let mut world = World::new(plan);
    world.settle();
    for at in 0..4 {
        submit_each(&mut world, RequestKind::Write, VOLUME, at * 90..(at + 1) * 90);
        world.settle();
    }
    let stats = world.stats(0);
    assert_eq!((stats.write_hits, stats.write_misses), (0, 360));
    assert!(stats.backing_writes > 0, "{stats:?}");
    world.read_everything();
}

/// Two tenants that lend, with quotas of 200 of 400 slots, and 16 to spare. The second one's volume has so many blocks.
fn lenders(blocks: u64) -> World {
    let mut plan = write_back(400);
    plan.tenants[0].quota = 200;
    (plan.shape.slots, plan.spare_slots) = (416, 16);
    plan.tenants.push(Tenant { ..plan.tenants[0].clone() });
    plan.disks.push(Disk { tenant: 1, bytes: blocks * BLOCK, identity: 1, ordered: false });
    let mut world = World::new(plan);
    world.settle();
    world.set_lending(true);
    submit_each(&mut world, RequestKind::Read, VOLUME, 0..400);
    world.settle();
    assert!(world.cached()[0] > 380, "nobody else wants it: {:?}", world.cached());
    world
}

/// Slots that others lend come in batches, and are of use when the journal has said so: that is asked for before those at hand are gone.
#[test]
fn what_a_tenant_misses_enters_while_another_gives_its_place_back() {
    let mut world = lenders(190);
    let before = world.cached();
    for block in 0..190 {
        submit_each(&mut world, RequestKind::Read, VolumeId(1), [block].into_iter());
        world.settle();
    }
    assert_eq!(world.stats(1).ssd_fill_blocks, 190, "before {before:?}, after {:?}", world.cached());
    assert_eq!(world.cached(), [400 - 3 * 64, 190], "{:?}", world.stats(0));
}

/// The second tenant writes to its blocks in turn; misses of the first find the slots that this is about to free.
fn one_writes_and_one_misses(world: &mut World, turn: u64, blocks: u64) {
    let again = (0..20).map(|at| (turn * 20 + at) % blocks);
    submit_each(world, RequestKind::Write, VolumeId(1), again);
    for at in 0..60 {
        world.step();
        submit_each(world, RequestKind::Read, VOLUME, [(turn * 617 + at * 53) % 1600].into_iter());
    }
    world.settle();
    world.tick();
}

#[test]
fn a_tenant_that_writes_again_and_again_gets_its_quota_from_one_that_borrows() {
    let mut world = lenders(150);
    (0..60).for_each(|turn| one_writes_and_one_misses(&mut world, turn, 150));
    let cached = world.cached();
    assert!(
        cached[1] >= 140 && cached[0] <= 260,
        "150 blocks, all of them in use, of a quota of 200: {cached:?}"
    );
    // Its first turn through its blocks misses, and no other.
    assert!(world.stats(1).write_misses <= 160, "{:?}", world.stats(1));
    world.read_everything();
}

/// Three tenants that lend, with quotas of 130 of 390 slots, and 26 to spare: the first holds nothing but dirty blocks that its backing does not take, the second has read its quota, and both pause.
#[test]
fn whose_blocks_cannot_leave_is_passed_over_for_the_next_who_lends() {
    let mut plan = write_back(390);
    plan.tenants[0].quota = 130;
    plan.tenants[0].dirty = DirtyLimits { rest: 100, max: 100, age: u32::MAX };
    (plan.shape.slots, plan.spare_slots) = (416, 26);
    for tenant in 1..3 {
        plan.tenants.push(Tenant { ..plan.tenants[0].clone() });
        plan.disks.push(Disk { tenant, bytes: 10_000 * BLOCK, identity: 1, ordered: false });
    }
    let mut world = World::new(plan);
    world.settle();
    world.set_lending(true);
    submit_each(&mut world, RequestKind::Write, VOLUME, 0..130);
    world.settle();
    world.excuse_backings();
    world.host().backing(VOLUME).fail_next(FaultKind::Write, u32::MAX);
    for (volume, blocks) in [(1, 0..130), (2, 0..3000)] {
        for block in blocks.step_by(2).flat_map(|first| [first, first + 1, first, first + 1]) {
            submit_each(&mut world, RequestKind::Read, VolumeId(volume), [block].into_iter());
            world.settle();
        }
    }
    let cached = world.cached();
    assert!(cached[0] == 130 && cached[1] < 70 && cached[2] > 180, "{cached:?}");
}
