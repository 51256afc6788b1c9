//! The cache device fails under guests that stay: what is clean is served on, what the device alone has is not; and when it is there again, so is that.

use crate::support::{BLOCK, VOLUME, plan, tend};
use larder_engine::{
    CachingSpec, DeviceOp, DirtyLimits, Drain, IoError, OpKind, RequestKind, Target, VolumeId, WritePolicy,
};
use larder_io::sim::{FaultKind, Rng, ask};
use larder_simtest::{Disk, Plan, Tenant, World};

const OTHER: VolumeId = VolumeId(1);
const BLOCKS: u64 = 64;

/// A tenant under `wb` that rests dirty, and one under `wt`, with a volume each.
fn two(seed: u64) -> World {
    two_with(seed, false)
}

/// The same; the first one's writes have an order, or none.
fn two_with(seed: u64, ordered: bool) -> World {
    let one = plan(BLOCKS);
    let tenant = |policy| Tenant {
        quota: 400,
        most: u32::MAX,
        policy,
        dirty: DirtyLimits { rest: 90, max: 95, age: 1000 },
        caching: CachingSpec::default(),
    };
    let tenants = vec![tenant(WritePolicy::WriteBack), tenant(WritePolicy::WriteThrough)];
    let disk = |tenant| Disk { tenant, bytes: BLOCKS * BLOCK, identity: 0, ordered: ordered && tenant == 0 };
    let mut world = World::new(Plan { tenants, disks: (0..2).map(disk).collect(), seed, ..one });
    world.settle();
    world
}

/// The device answers nothing but errors, and is given up.
fn lose(world: &mut World) {
    world.excuse_metadata();
    world.excuse_cache();
    world.host().cache().set_gone(true);
    // Somebody has to notice.
    world.submit(ask::write(OTHER, 0, BLOCK));
    world.settle();
    (0..4).for_each(|_| {
        world.tick();
        world.settle();
    });
    world.detach();
    world.settle();
    assert!(world.host().engine().is_detached());
}

fn is_refused(world: &mut World, volume: VolumeId) -> bool {
    let id = world.host().free_id();
    let request = larder_engine::Request { id, ..ask::read(volume, 0, BLOCK) };
    world.host().submit(request, Vec::new());
    while world.host().step() {}
    world.host().take_done().iter().any(|done| done.request.id == id && done.result == Err(IoError::Io))
}

#[test]
fn a_device_that_is_gone_fails_what_it_alone_has_and_nothing_else() {
    let mut world = two(1);
    world.submit(ask::write(VOLUME, 2 * BLOCK, 3 * BLOCK));
    world.submit(ask::write(VOLUME, 9 * BLOCK, BLOCK));
    world.submit(ask::read(OTHER, 0, 20 * BLOCK));
    world.settle();
    world.submit(ask::flush(VOLUME));
    world.settle();
    lose(&mut world);
    assert_eq!(world.failed(), [VOLUME]);
    let lost = world.host().engine().lost_ranges(VOLUME);
    assert_eq!(lost, [2 * BLOCK..5 * BLOCK, 9 * BLOCK..10 * BLOCK]);
    assert!(world.host().engine().lost_ranges(OTHER).is_empty());
    assert!(is_refused(&mut world, VOLUME) && !is_refused(&mut world, OTHER));
    world.submit(ask::write(OTHER, 0, 9 * BLOCK));
    world.submit(ask::flush(OTHER));
    world.settle();

    let resumed = world.reattach(|_| {});
    world.settle();
    assert_eq!((resumed.back, resumed.lost.len(), world.failed().len()), (4, 0, 0));
    world.read_everything();
    assert_eq!(world.host().engine().dirty_of(VOLUME), 4);
    // It is a cache like any other: filled, mapped, kept over a crash, written back.
    tend(&mut world);
    world.cut();
    world.read_everything();
    assert!(world.cached()[1] > 0, "blocks are cached again");
    world.drain();
}

#[test]
fn what_was_not_flushed_is_as_after_a_crash_and_named() {
    let mut world = two(2);
    world.submit(ask::write(VOLUME, 0, 2 * BLOCK));
    world.settle();
    world.submit(ask::flush(VOLUME));
    world.settle();
    world.submit(ask::write(VOLUME, BLOCK, 3 * BLOCK));
    world.settle();
    lose(&mut world);
    let resumed = world.reattach(|_| {});
    world.settle();
    assert_eq!((resumed.back, &resumed.lost[..]), (2, &[(VOLUME, 2), (VOLUME, 3)][..]));
    world.read_everything();
}

#[test]
fn guests_of_other_volumes_wait_and_then_go_on() {
    let mut world = two(3);
    world.submit(ask::write(VOLUME, 0, BLOCK));
    world.settle();
    world.submit(ask::flush(VOLUME));
    world.settle();
    lose(&mut world);
    world.reattach(|world| {
        world.submit(ask::read(OTHER, 0, 8 * BLOCK));
        world.submit(ask::write(OTHER, 4 * BLOCK + 512, 6 * BLOCK));
        world.submit(ask::write(OTHER, 0, 2 * BLOCK));
        world.submit(ask::flush(OTHER));
        assert_eq!(world.host().live(), 4, "they wait");
        assert!(!world.step(), "and nothing is under way");
    });
    world.settle();
    assert_eq!(world.host().live(), 0);
    world.read_everything();
    tend(&mut world);
    world.cut();
    world.read_everything();
}

/// A write went past a clean block while the device was gone, and the device tells nothing of that.
#[test]
fn nothing_clean_is_trusted_afterwards() {
    for seed in 0..10 {
        let mut world = two(seed);
        world.submit(ask::read(OTHER, 0, 32 * BLOCK));
        world.settle();
        tend(&mut world);
        lose(&mut world);
        world.submit(ask::write(OTHER, 0, 16 * BLOCK));
        world.submit(ask::flush(OTHER));
        world.settle();
        world.reattach(|world| {
            assert!(!world.recovered().superblock().needs_check, "it was gone when it was to be told");
        });
        world.settle();
        assert_eq!(world.cached(), [0, 0]);
        world.read_everything();
        world.cut();
        world.read_everything();
    }
}

/// The journal does not durably say yet that what was written back is clean. Its guests must not write on: the device would bring the old data back over
/// theirs.
#[test]
fn a_block_that_was_written_back_just_now_still_counts() {
    let mut world = two(4);
    world.submit(ask::write(VOLUME, 0, BLOCK));
    world.settle();
    world.submit(ask::flush(VOLUME));
    world.settle();
    world.host().set_drain(VOLUME, true);
    // Up to the round that says so.
    for _ in 0..1000 {
        if world.host().engine().dirty_of(VOLUME) == 0 {
            break;
        }
        world.step();
    }
    assert_eq!(world.host().engine().dirty_of(VOLUME), 0);
    assert_eq!(world.host().engine().draining(VOLUME), Drain::On, "it is not done");
    world.excuse_metadata();
    world.excuse_cache();
    world.host().cache().set_gone(true);
    world.settle();
    world.detach();
    world.settle();
    assert_eq!(world.failed(), [VOLUME]);
    world.reattach(|_| {});
    world.settle();
    world.read_everything();
    assert_eq!(world.host().engine().draining(VOLUME), Drain::Done, "what was asked for goes on");
}

/// It failed after all of the volume had been written back, and before the journal durably says so: what is dirty there would be back, over what
/// somebody else has written since.
#[test]
fn a_volume_that_has_failed_does_not_leave() {
    let mut world = two(6);
    world.submit(ask::write(VOLUME, 0, BLOCK));
    world.settle();
    world.submit(ask::flush(VOLUME));
    world.settle();
    world.host().set_drain(VOLUME, true);
    while world.host().engine().dirty_of(VOLUME) > 0 {
        assert!(world.step());
    }
    world.excuse_metadata();
    world.excuse_cache();
    world.host().cache().set_gone(true);
    world.settle();
    world.detach();
    world.settle();
    world.host().forget_volume(VOLUME);
    world.trim();
    world.settle();
    assert!(!world.host().leave(VOLUME));
    world.reattach(|_| {});
    world.settle();
    // It leaves when the backing has all of it, and the journal says so.
    for _ in 0..100 {
        if world.host().leave(VOLUME) {
            break;
        }
        world.tick();
        world.trim();
        world.settle();
    }
    assert!(world.host().engine().is_gone(VOLUME));
    world.cut();
    assert_eq!(world.cached()[0], 0, "nothing of it is there again");
}

/// A process has died that had called blocks clean, not durably; the device loses its power before the next one has made that durable, and so has them dirty again.
#[test]
fn what_was_clean_before_a_start_may_be_dirty_where_the_start_failed() {
    let is_round = |op: &DeviceOp| op.target == Target::CacheMeta && op.kind == OpKind::Flush;
    for seed in 0..20 {
        let mut world = two(seed);
        world.submit(ask::write(VOLUME, 0, BLOCK));
        world.settle();
        world.submit(ask::flush(VOLUME));
        world.settle();
        world.host().set_drain(VOLUME, true);
        world.settle_but(is_round);
        assert_eq!(world.host().engine().dirty_of(VOLUME), 0);
        world.kill();
        world.excuse_metadata();
        world.excuse_cache();
        world.host().cache().pull(true, &mut Rng::new(seed));
        world.settle();
        world.detach();
        world.settle();
        assert_eq!(world.failed(), [VOLUME]);
        world.submit(ask::write(VOLUME, 0, BLOCK));
        world.submit(ask::write(OTHER, 0, BLOCK));
        world.settle();
        world.reattach(|_| {});
        world.settle();
        world.read_everything();
    }
}

/// What it is to cover may be lost with the device's power: it must not end well with what another session finds.
#[test]
fn a_flush_that_waits_when_the_device_is_there_again_fails() {
    let is_flush = |op: &DeviceOp| op.target == Target::Backing(VOLUME) && op.kind == OpKind::Flush;
    for seed in 0..20 {
        let mut world = two(seed);
        // Something on the backing is to be flushed there, and that takes long.
        world.submit(ask::of(RequestKind::WriteZeroes { no_hole: true }, VOLUME, 20 * BLOCK, BLOCK));
        world.settle();
        world.submit(ask::flush(VOLUME));
        world.submit(ask::write(VOLUME, 0, BLOCK));
        world.settle_but(is_flush);
        world.submit(ask::flush(VOLUME));
        world.settle_but(is_flush);
        assert_eq!(world.host().live(), 2);
        world.excuse_metadata();
        world.excuse_cache();
        world.host().cache().pull(true, &mut Rng::new(seed));
        world.detach();
        world.settle_but(is_flush);
        world.reattach(|world| assert_eq!(world.host().live(), 0));
        world.settle();
        world.read_everything();
    }
}

/// Parts that wait for marks, or for older epochs, when the device fails end once.
#[test]
fn those_who_wait_in_order_are_told_once() {
    for seed in 0..400 {
        let (mut world, mut rng) = (two_with(seed, true), Rng::new(seed ^ 99));
        for _ in 0..3 {
            for _ in 0..20 + rng.below(20) {
                let at = rng.below(8) * BLOCK + rng.below(3) * 512;
                let len = 512 + rng.below(3 * 8) * 512;
                world.submit(match rng.below(6) {
                    0 => ask::flush(VOLUME),
                    1 => ask::of(RequestKind::Discard, VOLUME, at, len),
                    2 => ask::read(VOLUME, at, len),
                    _ => ask::write(VOLUME, at, len),
                });
                world.host().set_drain(VOLUME, rng.chance(0.5));
                (0..rng.below(4)).for_each(|_| _ = world.step());
            }
            world.excuse_metadata();
            world.excuse_cache();
            world.host().cache().set_gone(true);
            world.excuse_order();
            (0..rng.below(30)).for_each(|_| _ = world.step());
            world.detach();
            world.settle();
            world.reattach(|_| {});
        }
        world.host().set_drain(VOLUME, false);
        world.settle();
        world.read_everything();
    }
}

#[test]
fn a_device_that_can_only_be_read_is_given_up() {
    let mut world = two(5);
    world.submit(ask::read(OTHER, 0, 32 * BLOCK));
    world.settle();
    tend(&mut world);
    world.excuse_metadata();
    world.excuse_cache();
    world.host().cache().fail_next(FaultKind::Write, u32::MAX);
    for n in 0..80 {
        world.submit(ask::read(OTHER, n % 32 * BLOCK, BLOCK));
        world.submit(ask::write(OTHER, n % 32 * BLOCK, BLOCK));
        world.settle();
    }
    assert!(world.host().engine().cache_failed());
    assert!(world.failed().is_empty());
    world.read_everything();
}

/// Random guests, with the device lost and back again and again.
#[test]
fn devices_come_and_go_under_any_load() {
    for seed in 0..60 {
        let (mut world, mut rng) = (two(seed), Rng::new(seed ^ 77));
        for _ in 0..4 {
            some_load(&mut world, &mut rng);
            world.excuse_metadata();
            world.excuse_cache();
            world.host().cache().set_gone(true);
            some_load(&mut world, &mut rng);
            world.settle();
            world.detach();
            world.settle();
            some_load(&mut world, &mut rng);
            world.settle();
            let mut other = Rng::new(rng.next_u64());
            world.reattach(|world| (0..6).for_each(|_| some(world, &mut other, OTHER)));
            if rng.chance(0.5) {
                world.settle();
                world.read_everything();
            }
            if rng.chance(0.3) {
                world.cut();
            }
        }
        world.settle();
        world.read_everything();
    }
}

fn some_load(world: &mut World, rng: &mut Rng) {
    for _ in 0..rng.below(60) {
        let volume = VolumeId(rng.below(2) as u16);
        some(world, rng, volume);
        (0..rng.below(5)).for_each(|_| _ = world.step());
        if rng.chance(0.05) {
            world.tick();
        }
        if rng.chance(0.03) {
            world.host().set_drain(volume, rng.chance(0.5));
        }
    }
}

fn some(world: &mut World, rng: &mut Rng, volume: VolumeId) {
    let at = rng.below(BLOCKS - 8) * BLOCK + rng.below(3) * 512;
    let len = 512 + rng.below(5 * 8) * 512;
    world.submit(match rng.below(8) {
        0..=2 => ask::read(volume, at, len),
        3..=5 => ask::write(volume, at, len),
        6 => larder_engine::Request { fua: true, ..ask::write(volume, at, len) },
        _ => ask::flush(volume),
    });
}

/// Without the device nothing is dirty of a volume that is served: a drain needs only a flush of the backing. One that has failed is never drained.
#[test]
fn a_volume_that_is_served_without_the_device_is_drained_at_once() {
    for before in [false, true] {
        let mut world = two(3);
        world.submit(ask::write(VOLUME, 0, BLOCK));
        world.submit(ask::flush(VOLUME));
        world.submit(ask::write(OTHER, 0, 9 * BLOCK));
        world.settle();
        if before {
            lose(&mut world);
        }
        for volume in [VOLUME, OTHER] {
            world.host().set_drain(volume, true);
        }
        if !before {
            lose(&mut world);
        }
        world.settle();
        tend(&mut world);
        let state = |world: &mut World, volume| world.host().engine().draining(volume);
        assert_eq!(state(&mut world, OTHER), Drain::Done);
        assert!(!world.failed().contains(&VOLUME) || state(&mut world, VOLUME) == Drain::On);
        world.host().set_drain(OTHER, false);
        world.host().drain_once(OTHER);
        world.settle();
        assert_eq!(state(&mut world, OTHER), Drain::Off);
        world.observe_backing(OTHER, 0, BLOCKS * BLOCK);
    }
}
