//! Every operation under every write policy, on blocks in every state. Under `wt` and `ro` nothing that was touched is dirty afterwards, and the backing
//! holds the data; under `wb` a flush makes it last.

use crate::support::{BLOCK, VOLUME, plan};
use larder_engine::{Request, RequestKind, WritePolicy};
use larder_io::sim::ask;
use larder_simtest::World;

/// How the blocks are when the operation comes.
#[derive(Clone, Copy, Debug)]
enum Before {
    Absent,
    Clean,
    /// From a time under `wb`, not yet mapped.
    Dirty,
    /// Likewise, and mapped durably.
    Mapped,
}

const BEFORE: [Before; 4] = [Before::Absent, Before::Clean, Before::Dirty, Before::Mapped];

const POLICIES: [WritePolicy; 3] = [WritePolicy::WriteBack, WritePolicy::WriteThrough, WritePolicy::ReadOnly];

/// A whole block, several, parts at either end, within one, and across two.
const RANGES: [(u64, u64); 6] = [
    (BLOCK, BLOCK),
    (0, 3 * BLOCK),
    (512, 2 * BLOCK),
    (BLOCK, BLOCK + 1536),
    (BLOCK + 512, 1024),
    (2 * BLOCK - 512, 1024),
];

const KINDS: [RequestKind; 4] = [
    RequestKind::Read,
    RequestKind::Write,
    RequestKind::Discard,
    RequestKind::WriteZeroes { no_hole: false },
];

fn prepared(before: Before) -> World {
    let mut plan = plan(8);
    // Few blocks of a large partition: the cleaner rests.
    (plan.tenants[0].quota, plan.tenants[0].policy) = (100, WritePolicy::WriteBack);
    let mut world = World::new(plan);
    world.settle();
    match before {
        Before::Absent => {}
        Before::Clean => world.submit(ask::read(VOLUME, 0, 8 * BLOCK)),
        Before::Dirty | Before::Mapped => world.submit(ask::write(VOLUME, 0, 4 * BLOCK)),
    }
    world.settle();
    if matches!(before, Before::Mapped) {
        world.submit(ask::flush(VOLUME));
        world.settle();
    }
    world
}

#[test]
fn every_operation_leaves_what_its_mode_promises() {
    for policy in POLICIES {
        for before in BEFORE {
            for kind in KINDS {
                for (offset, len) in RANGES {
                    for fua in [false, true] {
                        operate(policy, before, Request { fua, ..ask::of(kind, VOLUME, offset, len) });
                    }
                }
            }
        }
    }
}

fn operate(policy: WritePolicy, before: Before, request: Request) {
    println!("{policy:?} {before:?} {request:?}");
    let mut world = prepared(before);
    world.set_write_policy(0, policy);
    world.submit(request);
    world.settle();
    let (first, end) = (request.offset, request.offset + request.len);
    let touched = first / BLOCK..end.div_ceil(BLOCK);
    let writes = !matches!(request.kind, RequestKind::Read | RequestKind::Discard);
    let dirty: Vec<u64> = world.host().engine().dirty_blocks(VOLUME).collect();
    match policy {
        WritePolicy::WriteBack if request.kind == RequestKind::Write => {
            assert!(touched.clone().all(|block| dirty.contains(&block)), "a write goes to the cache");
        }
        WritePolicy::WriteBack => {}
        // A discard is advisory: it passes by what is dirty and touched only in part.
        _ if writes => {
            assert!(!dirty.iter().any(|block| touched.contains(block)), "{dirty:?} are dirty");
            world.observe_backing(VOLUME, first, request.len);
        }
        _ if matches!(before, Before::Absent | Before::Clean) => assert!(dirty.is_empty()),
        _ => {}
    }
    world.submit(ask::flush(VOLUME));
    world.settle();
    world.cut();
    world.read_everything();
}
