//! The cleaner of plain `wb`, by what a backing is asked for: in the order of addresses, neighbours at once, few at a time; and when it begins.

use crate::support::{BLOCK, VOLUME, plan};
use larder_engine::{DeviceOp, DirtyLimits, OpKind, Target, VolumeId, WritePolicy};
use larder_io::sim::{Rng, ask};
use larder_simtest::{Disk, World};
use std::collections::BTreeSet;

/// Blocks of a volume.
const BLOCKS: u64 = 3000;

/// Blocks of the partition: a per cent is ten of them.
const QUOTA: u64 = 1000;

/// Blocks that one write to the backing takes at most.
const MOST: u64 = 256;

/// Writes to the backing of one volume, and of all, that are under way at a time at most.
const OF_ONE: usize = 4;
const OF_ALL: usize = 16;

/// Nothing is written back but for idleness.
const NEVER: DirtyLimits = DirtyLimits { rest: 100, max: 100, age: u32::MAX };

/// So many volumes under `wb` in one partition.
fn world(limits: DirtyLimits, volumes: u64) -> World {
    let mut plan = plan(BLOCKS);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (QUOTA as u32, WritePolicy::WriteBack);
    plan.tenants[0].dirty = limits;
    plan.shape.slots = 3000;
    plan.holds_back = true;
    let bytes = BLOCKS * BLOCK;
    plan.disks = (0..volumes).map(|_| Disk { tenant: 0, bytes, identity: 0, ordered: false }).collect();
    let mut world = World::new(plan);
    world.settle();
    world
}

/// Write these blocks one by one, and make the journal map them.
fn write(world: &mut World, volume: VolumeId, blocks: impl IntoIterator<Item = u64>) {
    for block in blocks {
        world.submit(ask::write(volume, block * BLOCK, BLOCK));
        world.settle_but(is_write_back);
    }
    world.submit(ask::flush(volume));
    world.settle_but(is_write_back);
}

/// Different blocks in no order.
fn random_blocks(seed: u64, count: usize) -> Vec<u64> {
    let (mut rng, mut seen) = (Rng::new(seed), BTreeSet::new());
    let blocks = std::iter::repeat_with(|| rng.below(BLOCKS));
    blocks.filter(|&block| seen.insert(block)).take(count).collect()
}

fn is_write_back(op: &DeviceOp) -> bool {
    matches!((op.target, op.kind), (Target::Backing(_), OpKind::Write { .. }))
}

/// Writes to backings that are under way.
fn under_way(world: &mut World) -> usize {
    world.host().pending().iter().filter(|pending| is_write_back(&pending.op)).count()
}

/// Keep what the backings are asked to write from now on.
fn watch(world: &mut World) {
    for volume in 0..world.plan().disks.len() as u16 {
        world.host().backing(VolumeId(volume)).watch(0..BLOCKS * BLOCK);
    }
}

/// First block and number of blocks of each write to a backing since then, in the order in which they began.
fn written(world: &mut World, volume: VolumeId) -> Vec<(u64, u64)> {
    let writes = world.host().backing(volume).watched();
    writes.iter().map(|(offset, data)| (offset / BLOCK, data.len() as u64 / BLOCK)).collect()
}

/// A second passes in which a guest asks for something, once all is at rest.
fn busy_second(world: &mut World) {
    // A hit: it has nothing to do with the backing.
    world.submit(ask::read(VOLUME, ANCHOR * BLOCK, 512));
    world.settle();
    world.tick();
    world.settle();
}

/// A clean block that is cached.
const ANCHOR: u64 = BLOCKS - 1;

fn anchored(world: &mut World) {
    world.submit(ask::read(VOLUME, ANCHOR * BLOCK, BLOCK));
    world.settle();
}

/// Nobody asks for anything for a second: all of it is written back.
fn idle(world: &mut World) {
    for _ in 0..2 {
        world.tick();
        world.settle();
    }
    assert_eq!(world.dirty(), 0);
}

/// The same, with the writes to the backings ending one by one.
fn idle_in_order(world: &mut World) {
    for _ in 0..2 {
        world.tick();
        world.settle_but(is_write_back);
    }
    while under_way(world) > 0 {
        end_one(world);
    }
    idle(world);
}

/// One of the writes to the backing that are under way ends.
fn end_one(world: &mut World) {
    let pending = world.host().pending();
    let next = pending.iter().find(|pending| is_write_back(&pending.op)).expect("a write to the backing");
    world.host().finish(next.op.id);
    world.settle_but(is_write_back);
}

/// The writes to a backing of [`idle_in_order`]. The first ones were begun at one moment, and read from the cache in any order.
fn swept(world: &mut World, volume: VolumeId) -> Vec<(u64, u64)> {
    let mut writes = written(world, volume);
    let at_once = OF_ONE.min(writes.len());
    writes[..at_once].sort_unstable();
    writes
}

/// Neighbouring blocks together, from the lowest on.
fn runs(blocks: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &block in blocks {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == block && *count < MOST => *count += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}

#[test]
fn random_writes_are_written_back_in_the_order_of_addresses_neighbours_at_once() {
    for seed in 0..6 {
        let mut world = world(NEVER, 1);
        let mut blocks = random_blocks(seed, 500);
        // Neighbours of some, and some a second time: each is written back once.
        blocks.extend_from_within(..100);
        let neighbours: Vec<u64> = blocks[..150].iter().map(|block| (block + 1) % BLOCKS).collect();
        blocks.extend(neighbours);
        watch(&mut world);
        write(&mut world, VOLUME, blocks.iter().copied());
        assert_eq!(written(&mut world, VOLUME), [], "it rests");
        let dirty: BTreeSet<u64> = world.host().engine().dirty_blocks(VOLUME).collect();
        assert_eq!(dirty, blocks.into_iter().collect());
        idle_in_order(&mut world);
        assert!(swept(&mut world, VOLUME) == runs(&dirty), "seed {seed}: {:?}", written(&mut world, VOLUME));
        world.observe_backing(VOLUME, 0, BLOCKS * BLOCK);
    }
}

/// However they came: one write takes so many blocks.
#[test]
fn a_long_row_of_neighbours_is_few_writes() {
    let mut world = world(NEVER, 1);
    let mut row: Vec<u64> = (100..800).collect();
    let mut rng = Rng::new(3);
    (1..row.len()).rev().for_each(|at| row.swap(at, rng.below(at as u64 + 1) as usize));
    write(&mut world, VOLUME, row);
    watch(&mut world);
    idle_in_order(&mut world);
    assert_eq!(swept(&mut world, VOLUME), [(100, MOST), (356, MOST), (612, 188)]);
}

/// Each backing has an order of its own.
#[test]
fn of_two_volumes_each_is_gone_through_in_order() {
    let mut world = world(NEVER, 2);
    let volumes = [VOLUME, VolumeId(1)];
    let blocks = volumes.map(|volume| random_blocks(7 + u64::from(volume.0), 300));
    for at in 0..300 {
        volumes.iter().zip(&blocks).for_each(|(&volume, blocks)| write(&mut world, volume, [blocks[at]]));
    }
    watch(&mut world);
    idle_in_order(&mut world);
    for (volume, blocks) in volumes.into_iter().zip(blocks) {
        let found = swept(&mut world, volume);
        assert!(found == runs(&blocks.into_iter().collect()), "{volume:?}: {found:?}");
    }
}

/// What becomes dirty behind it waits for the next time around; what does so before it is taken along.
#[test]
fn it_goes_on_where_it_is_and_does_not_turn_back() {
    // Nothing may rest dirty, and it is far from the limit: one write after the other.
    let mut world = world(DirtyLimits { rest: 0, ..NEVER }, 1);
    watch(&mut world);
    let first = (1000..1400).step_by(2);
    write(&mut world, VOLUME, first.clone());
    for _ in 0..20 {
        end_one(&mut world);
    }
    let (behind, before) = ((500..530).step_by(2), [1301, 1350, 1399]);
    write(&mut world, VOLUME, behind.clone().chain(before));
    while under_way(&mut world) > 0 {
        end_one(&mut world);
    }
    let expected = [runs(&first.chain(before).collect()), runs(&behind.collect())].concat();
    let found = written(&mut world, VOLUME);
    assert!(found == expected, "{found:?}");
    idle(&mut world);
}

/// What waits for a backing that does not answer, for whatever reason it is to go, holds up no other.
#[test]
fn a_backing_that_hangs_keeps_others_from_nothing() {
    let hung = VOLUME;
    // Above the limit, above what may rest, for too long, or to be drained.
    let (low, old) = (DirtyLimits { rest: 1, max: 30, age: u32::MAX }, DirtyLimits { age: 1, ..NEVER });
    for (limits, drained) in [(low, false), (old, false), (NEVER, true)] {
        let mut world = world(limits, 6);
        let hangs = |op: &DeviceOp| op.target == Target::Backing(hung) && is_write_back(op);
        for volume in 0..6 {
            for block in (0..120).step_by(3) {
                world.submit(ask::write(VolumeId(volume), block * BLOCK, BLOCK));
                world.settle_but(hangs);
            }
            world.submit(ask::flush(VolumeId(volume)));
            world.settle_but(hangs);
        }
        if drained {
            (0..6).for_each(|volume| world.host().drain_once(VolumeId(volume)));
        }
        for _ in 0..8 {
            world.submit(ask::read(VolumeId(5), 0, BLOCK));
            world.settle_but(hangs);
            world.tick();
        }
        world.settle_but(hangs);
        let dirty = |world: &mut World, volume| world.host().engine().dirty_blocks(VolumeId(volume)).count();
        let left: Vec<usize> = (1..6).map(|volume| dirty(&mut world, volume)).collect();
        let most = if limits.rest == 1 { 10 } else { 0 };
        assert!(left.iter().all(|&left| left <= most), "{limits:?}: {left:?}");
        assert!(dirty(&mut world, 0) > 0);
        world.settle();
        idle(&mut world);
    }
}

/// Let them end one by one; how many were under way at a time at most.
fn most_under_way(world: &mut World, of: impl Fn(&mut World) -> usize) -> usize {
    let mut most = of(world);
    while under_way(world) > 0 {
        end_one(world);
        most = most.max(of(world));
    }
    most
}

#[test]
fn few_writes_to_backings_are_under_way_at_a_time() {
    for volumes in 1..=6 {
        let mut world = world(NEVER, volumes);
        let all = || (0..volumes as u16).map(VolumeId);
        all().for_each(|volume| write(&mut world, volume, random_blocks(volume.0.into(), 150)));
        for _ in 0..2 {
            world.tick();
            world.settle_but(is_write_back);
        }
        let expected = OF_ALL.min(OF_ONE * volumes as usize);
        assert_eq!(under_way(&mut world), expected, "{volumes} volumes");
        let most = most_under_way(&mut world, |world| {
            let pending = world.host().pending();
            let of = |volume| {
                let is_here = |op: &DeviceOp| is_write_back(op) && op.target == Target::Backing(volume);
                pending.iter().filter(|pending| is_here(&pending.op)).count()
            };
            all().for_each(|volume| assert!(of(volume) <= OF_ONE, "{} writes to {volume:?}", of(volume)));
            under_way(world)
        });
        assert_eq!(most, expected, "{volumes} volumes");
        idle(&mut world);
    }
}

/// How many follows how near the tenant is to its limit; far from it, it is one while guests are about.
#[test]
fn more_are_under_way_the_nearer_the_limit() {
    let limits = DirtyLimits { rest: 20, max: 80, age: u32::MAX };
    let many = |dirty: u64, guests: bool| {
        let mut world = world(limits, 1);
        anchored(&mut world);
        let mut hit = None;
        if guests {
            world.submit(ask::read(VOLUME, ANCHOR * BLOCK, BLOCK));
            hit = world.host().pending().last().map(|pending| pending.op.id);
            assert_eq!(
                (world.host().pending().len(), world.host().live()),
                (1, 1),
                "a guest waits for the cache"
            );
        }
        let is_kept = |op: &DeviceOp| is_write_back(op) || Some(op.id) == hit;
        for block in 0..dirty {
            world.submit(ask::write(VOLUME, 2 * block * BLOCK, BLOCK));
            world.settle_but(is_kept);
        }
        world.submit(ask::flush(VOLUME));
        world.settle_but(is_kept);
        let many = under_way(&mut world);
        world.settle();
        world.read_everything();
        many
    };
    let alone = [200, 250, 350, 500, 650, 790].map(|dirty| many(dirty, false));
    assert_eq!(alone, [0, 1, 2, 4, 6, 7]);
    let with_guests = [200, 250, 350, 500, 650, 790].map(|dirty| many(dirty, true));
    assert_eq!(with_guests, [0, 1, 1, 4, 6, 7]);
}

#[test]
fn it_begins_when_nobody_asks_for_anything() {
    let mut world = world(NEVER, 1);
    anchored(&mut world);
    watch(&mut world);
    write(&mut world, VOLUME, random_blocks(5, 300));
    for _ in 0..10 {
        busy_second(&mut world);
    }
    assert_eq!(written(&mut world, VOLUME), [], "guests are busy");
    world.tick();
    world.settle_but(is_write_back);
    assert_eq!(under_way(&mut world), OF_ONE);
    // A guest comes: what is under way ends, and nothing more begins.
    let begun = written(&mut world, VOLUME).len();
    world.submit(ask::read(VOLUME, ANCHOR * BLOCK, 512));
    world.settle();
    assert_eq!(written(&mut world, VOLUME).len(), begun);
    assert!(world.dirty() > 200, "{} are dirty", world.dirty());
    idle(&mut world);
}

/// Blocks written back so far.
fn blocks_of(world: &mut World) -> u32 {
    written(world, VOLUME).iter().map(|(_, count)| *count as u32).sum()
}

/// And neither guests who ask all the time nor one who waits for the same backing are in its way.
#[test]
fn it_begins_at_an_age_though_guests_are_busy() {
    for waiting in [false, true] {
        let mut world = world(DirtyLimits { age: 5, ..NEVER }, 1);
        anchored(&mut world);
        watch(&mut world);
        let last = BLOCKS - 2;
        let waits = |op: &DeviceOp| matches!((op.target, op.kind), (Target::Backing(_), OpKind::Read { offset, .. }) if offset == last * BLOCK);
        let second = |world: &mut World| {
            world.submit(ask::read(VOLUME, ANCHOR * BLOCK, 512));
            world.settle_but(waits);
            world.tick();
            world.settle_but(waits);
        };
        write(&mut world, VOLUME, [700, 20, 21, 900, 300]);
        if waiting {
            world.submit(ask::read(VOLUME, last * BLOCK, BLOCK));
        }
        (0..3).for_each(|_| second(&mut world));
        // Far from these: age is told for a thousand blocks together.
        for block in [2500, 2100] {
            world.submit(ask::write(VOLUME, block * BLOCK, BLOCK));
            world.settle_but(waits);
        }
        second(&mut world);
        assert_eq!(written(&mut world, VOLUME), [], "they are four seconds old");
        second(&mut world);
        let found = |world: &mut World| BTreeSet::from_iter(written(world, VOLUME));
        let (old, young) = ([(20, 2), (300, 1), (700, 1), (900, 1)], [(2100, 1), (2500, 1)]);
        assert_eq!(found(&mut world), old.into());
        (0..2).for_each(|_| second(&mut world));
        assert_eq!(found(&mut world), old.into());
        second(&mut world);
        assert_eq!(found(&mut world), old.into_iter().chain(young).collect());
        world.settle();
        world.read_everything();
    }
}

#[test]
fn it_begins_at_a_share_though_guests_are_busy() {
    let mut world = world(DirtyLimits { rest: 20, ..NEVER }, 1);
    anchored(&mut world);
    watch(&mut world);
    let blocks = random_blocks(9, 201);
    write(&mut world, VOLUME, blocks[..200].iter().copied());
    (0..10).for_each(|_| busy_second(&mut world));
    assert_eq!((written(&mut world, VOLUME), world.dirty()), (Vec::new(), 200), "so much may rest dirty");
    write(&mut world, VOLUME, blocks[200..].iter().copied());
    busy_second(&mut world);
    assert!(world.dirty() <= 200 && blocks_of(&mut world) > 0, "{} are dirty", world.dirty());
    world.read_everything();
}
