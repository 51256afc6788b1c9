//! What a guest's flush costs under `wb`, and what is known of a commit afterwards.

use crate::support::{BLOCK, VOLUME, plan};
use larder_engine::format::{Finding, recover};
use larder_engine::{OpKind, Request, Target, WritePolicy};
use larder_io::sim::ask;
use larder_simtest::World;

fn world() -> World {
    let mut plan = plan(400);
    plan.tenants[0].policy = WritePolicy::WriteBack;
    let mut world = World::new(plan);
    world.settle();
    // The superblock says that there may be dirty blocks: that comes once.
    world.submit(Request { fua: true, ..ask::write(VOLUME, 399 * BLOCK, BLOCK) });
    world.settle();
    world
}

/// Flushes of the cache device until everything has ended.
fn flushes(world: &mut World) -> usize {
    let mut flushes = 0;
    while let Some(next) = world.host().pending().into_iter().next() {
        flushes += usize::from(next.op.target == Target::CacheMeta && next.op.kind == OpKind::Flush);
        world.host().finish(next.op.id);
    }
    world.settle();
    flushes
}

#[test]
fn a_flush_of_many_writes_is_one_flush_of_the_device() {
    let mut world = world();
    (0..32).for_each(|block| world.submit(ask::write(VOLUME, block * BLOCK, BLOCK)));
    assert_eq!(flushes(&mut world), 0, "nobody waits for them to be durable");
    world.submit(ask::flush(VOLUME));
    assert_eq!(flushes(&mut world), 1);
    world.submit(Request { fua: true, ..ask::write(VOLUME, 0, BLOCK) });
    assert_eq!(flushes(&mut world), 1);
    world.submit(ask::flush(VOLUME));
    assert_eq!(flushes(&mut world), 0, "everything is durable");
    world.cut();
    assert_eq!(world.dirty(), 33);
    world.read_everything();
}

/// True if recovery takes damage of a dirty block for a commit that a power cut left unfinished.
fn is_doubted(world: &mut World) -> bool {
    let (layout, mut cache) = (world.layout(), world.host().cache().clone());
    let recovered = recover(&mut cache).expect("it is whole");
    let (slot, _) = recovered.blocks().next().expect("a dirty block");
    cache.content_mut().write(layout.slot_offset(slot), &[1]);
    let findings = recover(&mut cache).expect("it is whole").findings().to_vec();
    findings.iter().any(|finding| matches!(finding, Finding::NotArrived { .. }))
}

#[test]
fn a_second_later_damage_is_told_from_a_power_cut() {
    let mut world = world();
    assert!(is_doubted(&mut world));
    world.tick();
    world.settle();
    assert!(!is_doubted(&mut world));
    let written = world.host().engine().metadata_bytes();
    world.tick();
    world.settle();
    assert_eq!(world.host().engine().metadata_bytes(), written, "that is said once");
}
