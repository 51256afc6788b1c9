//! Every operation under every write policy, on blocks in every state. Under `wt` and `ro` nothing is dirty after any of them, and the backing holds
//! what guests read; under `wb` a flush makes it last.

use crate::support::{BLOCK, VOLUME, plan};
use larder_engine::{Request, RequestKind, WritePolicy};
use larder_io::sim::ask;
use larder_simtest::World;
use std::collections::BTreeSet;

/// Blocks of the volume.
const BLOCKS: u64 = 8;

/// Blocks from the first on that were written before the operation comes.
const WRITTEN: u64 = 4;

/// How the blocks are when the operation comes, where none is dirty.
#[derive(Clone, Copy, Debug)]
enum Before {
    Absent,
    /// Read, and cached.
    Clean,
    /// Written under the same policy, and not flushed.
    Written,
}

/// How they are dirty from a time under `wb`.
#[derive(Clone, Copy, Debug)]
enum Dirty {
    /// Not yet mapped.
    New,
    /// Mapped durably.
    Mapped,
}

const BEFORE: [Before; 3] = [Before::Absent, Before::Clean, Before::Written];

const DIRTY: [Dirty; 2] = [Dirty::New, Dirty::Mapped];

/// Those that never hold dirty data.
const THROUGH: [WritePolicy; 3] =
    [WritePolicy::WriteThrough, WritePolicy::WriteThroughNoAllocate, WritePolicy::ReadOnly];

/// A whole block, several, parts at either end, within one, and across two; on what was written, at its end, and beyond.
const RANGES: [(u64, u64); 8] = [
    (BLOCK, BLOCK),
    (0, 3 * BLOCK),
    (512, 2 * BLOCK),
    (BLOCK, BLOCK + 1536),
    (BLOCK + 512, 1024),
    (2 * BLOCK - 512, 1024),
    (3 * BLOCK + 512, 2 * BLOCK),
    (6 * BLOCK, BLOCK),
];

const KINDS: [RequestKind; 5] = [
    RequestKind::Read,
    RequestKind::Write,
    RequestKind::Discard,
    RequestKind::WriteZeroes { no_hole: false },
    RequestKind::WriteZeroes { no_hole: true },
];

/// Every operation: each of the kinds on each of the ranges, with and without FUA; and a flush.
fn operations() -> Vec<Request> {
    let mut all = vec![ask::flush(VOLUME)];
    for kind in KINDS {
        for (offset, len) in RANGES {
            let plain = ask::of(kind, VOLUME, offset, len);
            all.extend([plain, Request { fua: true, ..plain }]);
        }
    }
    all
}

/// A volume under this policy, of which nothing is cached. It is a small part of its partition: the cleaner rests.
fn world(policy: WritePolicy) -> World {
    let mut plan = plan(BLOCKS);
    (plan.tenants[0].quota, plan.tenants[0].policy) = (100, policy);
    plan.holds_back = policy == WritePolicy::WriteBack;
    let mut world = World::new(plan);
    world.settle();
    world
}

fn submit(world: &mut World, request: Request) {
    world.submit(request);
    world.settle();
}

/// The world itself holds every step of it against `dirty == 0`, too: it began under this policy.
fn prepared(policy: WritePolicy, before: Before) -> World {
    let mut world = world(policy);
    match before {
        Before::Absent => {}
        Before::Clean => submit(&mut world, ask::read(VOLUME, 0, BLOCKS * BLOCK)),
        Before::Written => submit(&mut world, ask::write(VOLUME, 0, WRITTEN * BLOCK)),
    }
    world
}

/// The first blocks are dirty.
fn dirtied(dirty: Dirty) -> World {
    let mut world = prepared(WritePolicy::WriteBack, Before::Written);
    if matches!(dirty, Dirty::Mapped) {
        submit(&mut world, ask::flush(VOLUME));
    }
    assert_eq!(dirty_blocks(&mut world), BTreeSet::from_iter(0..WRITTEN));
    world
}

fn dirty_blocks(world: &mut World) -> BTreeSet<u64> {
    world.host().engine().dirty_blocks(VOLUME).collect()
}

/// Let time pass until nothing is dirty. A guest asks for something all the time: it is not for idleness that it ends.
fn await_drain(world: &mut World) {
    for _ in 0..20 {
        if world.dirty() == 0 {
            return;
        }
        submit(world, ask::read(VOLUME, (BLOCKS - 1) * BLOCK, 512));
        world.tick();
        world.settle();
    }
    panic!("what was dirty under `wb` is not written back: {:?}", dirty_blocks(world));
}

/// The blocks that a request touches, wholly or in part.
fn touched(request: &Request) -> std::ops::Range<u64> {
    request.offset / BLOCK..(request.offset + request.len).div_ceil(BLOCK)
}

/// The operation has ended: nothing is dirty, and the whole backing is what guests may read, and do read.
fn is_through(world: &mut World) {
    assert_eq!((world.dirty(), dirty_blocks(world)), (0, BTreeSet::new()));
    world.observe_backing(VOLUME, 0, BLOCKS * BLOCK);
    world.read_everything();
    assert_eq!(world.dirty(), 0);
    world.observe_backing(VOLUME, 0, BLOCKS * BLOCK);
}

/// What was durable before a power cut, or is by what the operation is, is there after it; and without it what a flush covers.
fn outlives_a_cut(mut world: World, request: &Request) {
    let covered = request.fua || request.kind == RequestKind::Flush;
    if !covered {
        submit(&mut world, ask::flush(VOLUME));
    }
    world.cut();
    world.read_everything();
}

#[test]
fn nothing_is_dirty_and_the_backing_has_all_after_every_operation() {
    for policy in THROUGH {
        for before in BEFORE {
            for request in operations() {
                println!("{policy:?} {before:?} {request:?}");
                let mut world = prepared(policy, before);
                submit(&mut world, request);
                is_through(&mut world);
                outlives_a_cut(world, &request);
            }
        }
    }
}

/// The same where the policy was `wb` before, once what was dirty is written back.
#[test]
fn the_same_after_a_time_under_write_back() {
    for policy in THROUGH {
        for dirty in DIRTY {
            for request in operations() {
                println!("{policy:?} {dirty:?} {request:?}");
                let mut world = dirtied(dirty);
                world.set_write_policy(0, policy);
                await_drain(&mut world);
                world.observe_backing(VOLUME, 0, BLOCKS * BLOCK);
                submit(&mut world, request);
                is_through(&mut world);
                outlives_a_cut(world, &request);
            }
        }
    }
}

/// Where it comes at the very moment of the change, what a write touches is not dirty after it, nothing else becomes dirty, and the drain comes to its end.
#[test]
fn every_operation_may_come_while_write_back_ends() {
    for policy in THROUGH {
        for dirty in DIRTY {
            for request in operations() {
                println!("{policy:?} {dirty:?} {request:?}");
                let mut world = dirtied(dirty);
                world.set_write_policy(0, policy);
                submit(&mut world, request);
                let left = dirty_blocks(&mut world);
                assert!(left.iter().all(|&block| block < WRITTEN), "{left:?} are dirty");
                if matches!(request.kind, RequestKind::Write | RequestKind::WriteZeroes { .. }) {
                    assert!(
                        !left.iter().any(|block| touched(&request).contains(block)),
                        "{left:?} are dirty"
                    );
                    world.observe_backing(VOLUME, request.offset, request.len);
                }
                await_drain(&mut world);
                is_through(&mut world);
                outlives_a_cut(world, &request);
            }
        }
    }
}

/// Under `wb` a write makes the blocks that it touches dirty, a read or a flush makes none so, and nothing that a flush or FUA covers is lost.
#[test]
fn under_write_back_a_write_is_dirty_and_a_flush_makes_it_last() {
    let worlds = |before| move || prepared(WritePolicy::WriteBack, before);
    let dirty = |dirty| move || dirtied(dirty);
    for request in operations() {
        for before in BEFORE {
            write_back(&format!("{before:?}"), worlds(before), request);
        }
        for state in DIRTY {
            write_back(&format!("{state:?}"), dirty(state), request);
        }
    }
}

fn write_back(before: &str, world: impl Fn() -> World, request: Request) {
    println!("WriteBack {before} {request:?}");
    let mut world = world();
    let was = dirty_blocks(&mut world);
    submit(&mut world, request);
    let is = dirty_blocks(&mut world);
    match request.kind {
        RequestKind::Write => {
            assert_eq!(is, was.into_iter().chain(touched(&request)).collect(), "a write goes to the cache");
        }
        RequestKind::Read | RequestKind::Flush => assert_eq!(is, was),
        // What they touch may go past the cache.
        _ => {
            let apart = |blocks: BTreeSet<u64>| -> Vec<u64> {
                blocks.into_iter().filter(|block| !touched(&request).contains(block)).collect()
            };
            assert_eq!(apart(is), apart(was), "others are as they were");
        }
    }
    outlives_a_cut(world, &request);
}

/// What lies between missing blocks is read from the backing with them, and is older there.
#[test]
fn a_dirty_block_between_missing_ones_comes_from_the_cache() {
    for dirty in DIRTY {
        let mut world = world(WritePolicy::WriteBack);
        submit(&mut world, ask::write(VOLUME, BLOCK, BLOCK));
        if matches!(dirty, Dirty::Mapped) {
            submit(&mut world, ask::flush(VOLUME));
        }
        let before = world.stats(0);
        submit(&mut world, ask::read(VOLUME, 0, 3 * BLOCK));
        let now = world.stats(0);
        assert_eq!((now.read_hits, now.read_misses), (before.read_hits + 1, before.read_misses + 2));
        assert_eq!(now.backing_reads, before.backing_reads + 3, "all three at once");
        assert_eq!(dirty_blocks(&mut world), BTreeSet::from([1]));
        world.read_everything();
    }
}
