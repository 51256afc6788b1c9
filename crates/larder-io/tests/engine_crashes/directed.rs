//! Bugs that random histories meet too rarely: each has a history that leads right to it, played with and without the bug.

use crate::known_answers::{BLOCK, VOLUME, plan, tend};
use crate::rig::{CrashRig, Plan};
use larder_engine::{DeviceOp, OpKind, Planted, Request, Target, WritePolicy};
use larder_io::sim::{FaultKind, ask};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a power cut leaves is chance.
const SEEDS: u64 = 60;

fn rig(seed: u64, policy: WritePolicy, planted: Option<Planted>) -> CrashRig {
    let mut plan = Plan { seed, planted, ..plan(8) };
    plan.tenants[0].1 = policy;
    let mut rig = CrashRig::new(plan);
    rig.settle();
    rig
}

fn is_backing_flush(op: &DeviceOp) -> bool {
    matches!(op.target, Target::Backing(_)) && op.kind == OpKind::Flush
}

fn is_metadata(op: &DeviceOp) -> bool {
    op.target == Target::CacheMeta
}

/// An earlier life has written to the backing, which may still lose that; this life reads it, and maps it.
fn unflushed_by_an_earlier_life(seed: u64, planted: Option<Planted>) {
    let mut rig = rig(seed, WritePolicy::ReadOnly, planted);
    rig.submit(ask::write(VOLUME, 0, BLOCK));
    rig.settle();
    rig.kill();
    rig.settle_but(is_backing_flush);
    rig.submit(ask::read(VOLUME, 0, BLOCK));
    rig.settle_but(is_backing_flush);
    for _ in 0..4 {
        rig.tick();
        rig.settle_but(is_backing_flush);
    }
    rig.cut();
    rig.read_everything();
}

/// A flush of the backing has failed: what it was to make durable may be lost, although nothing more is written.
fn unflushed_by_a_failed_flush(seed: u64, planted: Option<Planted>) {
    let mut rig = rig(seed, WritePolicy::ReadOnly, planted);
    rig.submit(ask::write(VOLUME, 0, BLOCK));
    rig.settle();
    rig.host().backing(VOLUME).fail_next(FaultKind::Flush, 1);
    rig.tick();
    rig.settle();
    rig.trim();
    rig.submit(ask::read(VOLUME, 0, BLOCK));
    rig.settle();
    tend(&mut rig);
    rig.cut();
    rig.read_everything();
}

/// A mark was written, not flushed, when the process died. The next one finds it, and a guest's write goes past the block.
fn marked_by_an_earlier_life(seed: u64, planted: Option<Planted>) {
    let mut rig = rig(seed, WritePolicy::WriteThrough, planted);
    rig.read_everything();
    tend(&mut rig);
    rig.submit(ask::write(VOLUME, 0, BLOCK));
    rig.settle_but(|op| is_metadata(op) && op.kind == OpKind::Flush);
    rig.kill();
    rig.submit(Request { fua: true, ..ask::write(VOLUME, 0, BLOCK) });
    rig.settle_but(is_metadata);
    rig.cut();
    rig.read_everything();
}

#[test]
fn histories_that_lead_to_a_bug_are_harmless_without_it() {
    for seed in 0..SEEDS {
        unflushed_by_an_earlier_life(seed, None);
        unflushed_by_a_failed_flush(seed, None);
        marked_by_an_earlier_life(seed, None);
    }
}

fn finds(history: fn(u64, Option<Planted>), bug: Planted) -> bool {
    (0..SEEDS).any(|seed| catch_unwind(AssertUnwindSafe(|| history(seed, Some(bug)))).is_err())
}

#[test]
fn and_find_it() {
    assert!(finds(unflushed_by_an_earlier_life, Planted::MapBeforeFirstFlush));
    assert!(finds(unflushed_by_a_failed_flush, Planted::FailedFlushForgotten));
    assert!(finds(marked_by_an_earlier_life, Planted::ServedBeforeStart));
    assert!(finds(marked_by_an_earlier_life, Planted::StartUnflushed));
}
