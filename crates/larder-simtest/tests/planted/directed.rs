//! Bugs that random histories meet too rarely: each has a history that leads right to it, played with and without the bug.

use crate::support::{BLOCK, VOLUME, plan, tend};
use larder_engine::{DeviceOp, OpKind, Planted, Request, Target, WritePolicy};
use larder_io::sim::{FaultKind, ask};
use larder_simtest::{Plan, World};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a power cut leaves is chance.
const SEEDS: u64 = 60;

fn world_of(seed: u64, policy: WritePolicy, planted: Option<Planted>) -> World {
    let mut plan = Plan { seed, planted, ..plan(8) };
    plan.tenants[0].policy = policy;
    let mut world = World::new(plan);
    world.settle();
    world
}

fn is_backing_flush(op: &DeviceOp) -> bool {
    matches!(op.target, Target::Backing(_)) && op.kind == OpKind::Flush
}

fn is_metadata(op: &DeviceOp) -> bool {
    op.target == Target::CacheMeta
}

/// An earlier life has written to the backing, which may still lose that; this life reads it, and maps it.
fn unflushed_by_an_earlier_life(seed: u64, planted: Option<Planted>) {
    let mut world = world_of(seed, WritePolicy::ReadOnly, planted);
    world.submit(ask::write(VOLUME, 0, BLOCK));
    world.settle();
    world.kill();
    world.settle_but(is_backing_flush);
    world.submit(ask::read(VOLUME, 0, BLOCK));
    world.settle_but(is_backing_flush);
    for _ in 0..4 {
        world.tick();
        world.settle_but(is_backing_flush);
    }
    world.cut();
    world.read_everything();
}

/// A flush of the backing has failed: what it was to make durable may be lost, although nothing more is written.
fn unflushed_by_a_failed_flush(seed: u64, planted: Option<Planted>) {
    let mut world = world_of(seed, WritePolicy::ReadOnly, planted);
    world.submit(ask::write(VOLUME, 0, BLOCK));
    world.settle();
    world.excuse_backings();
    world.host().backing(VOLUME).fail_next(FaultKind::Flush, 1);
    world.tick();
    world.settle();
    world.trim();
    world.submit(ask::read(VOLUME, 0, BLOCK));
    world.settle();
    tend(&mut world);
    world.cut();
    world.read_everything();
}

/// A mark was written, not flushed, when the process died. The next one finds it, and a guest's write goes past the block.
fn marked_by_an_earlier_life(seed: u64, planted: Option<Planted>) {
    let mut world = world_of(seed, WritePolicy::WriteThrough, planted);
    world.read_everything();
    tend(&mut world);
    world.submit(ask::write(VOLUME, 0, BLOCK));
    world.settle_but(|op| is_metadata(op) && op.kind == OpKind::Flush);
    world.kill();
    world.submit(Request { fua: true, ..ask::write(VOLUME, 0, BLOCK) });
    world.settle_but(is_metadata);
    world.cut();
    world.read_everything();
}

#[test]
fn histories_that_lead_to_a_bug_are_harmless_without_it() {
    for seed in 0..SEEDS {
        unflushed_by_an_earlier_life(seed, None);
        unflushed_by_a_failed_flush(seed, None);
        marked_by_an_earlier_life(seed, None);
    }
}

type History = fn(u64, Option<Planted>);

fn finds(history: History, bug: Planted) -> bool {
    (0..SEEDS).any(|seed| catch_unwind(AssertUnwindSafe(|| history(seed, Some(bug)))).is_err())
}

/// The bugs, each with the history that leads to it.
pub const BUGS: [(Planted, History); 4] = [
    (Planted::MapBeforeFirstFlush, unflushed_by_an_earlier_life),
    (Planted::FailedFlushForgotten, unflushed_by_a_failed_flush),
    (Planted::ServedBeforeStart, marked_by_an_earlier_life),
    (Planted::StartUnflushed, marked_by_an_earlier_life),
];

#[test]
fn and_find_it() {
    for (bug, history) in BUGS {
        assert!(finds(history, bug), "{bug:?}");
    }
}
