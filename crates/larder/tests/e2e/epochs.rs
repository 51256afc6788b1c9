//! The loop of an epoch, live: what two tenants do decides their sizes and write policies.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::common::daemon::{Larder, count, tenant};
use crate::common::nbd::Client;
use crate::common::pattern::stamp;
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::wait_for;

/// Blocks that the reader reads again and again.
const READ_AGAIN: u64 = 3000;

/// What a tenant gets at least, as configured by default, in blocks.
const MINIMUM: u64 = 1000;

/// A pause between requests: the tests' machine is not to be kept busy for nothing.
const PAUSE: Duration = Duration::from_micros(500);

fn reader(larder: &Larder) -> Traffic {
    let mut client = Client::connect(&larder.socket("reader0"), "reader0");
    let mut block = 0;
    Traffic::start(move || {
        let count = (READ_AGAIN - block).min(64);
        client.read(block * BLOCK, (count * BLOCK) as u32).expect("a read");
        block = (block + count) % READ_AGAIN;
        sleep(PAUSE);
    })
}

fn writer(larder: &Larder) -> Traffic {
    let mut client = Client::connect(&larder.socket("writer0"), "writer0");
    // Once, far from what it writes: its partition is full when it shrinks.
    client.read(32 * MIB, (4 * MINIMUM * BLOCK) as u32).expect("a read");
    let (mut block, data) = (0, stamp(1, 1, 0, 8 * BLOCK));
    Traffic::start(move || {
        client.write(block * BLOCK, &data).expect("a write");
        block = (block + 8) % 800;
        sleep(PAUSE);
    })
}

/// What must hold in every status: no partition is promised what is not there.
fn assert_bounds(status: &Value) {
    let tenants = status["tenants"].as_array().expect("tenants");
    let quotas: u64 = tenants.iter().map(|tenant| count(tenant, "quota_blocks")).sum();
    let occupied: u64 = tenants.iter().map(|tenant| count(tenant, "occupied_blocks")).sum();
    let blocks = count(&status["cache"], "blocks");
    assert!(
        quotas <= blocks && occupied <= blocks,
        "{quotas} promised, {occupied} held of {blocks}: {status:#}"
    );
    assert!(tenants.iter().all(|tenant| count(tenant, "dirty_blocks") == 0), "{status:#}");
}

/// Decided from at least two epochs of what the tenants do.
fn is_settled(status: &Value) -> bool {
    let (reader, writer) = (tenant(status, "reader"), tenant(status, "writer"));
    let epochs = [&reader, &writer].map(|tenant| count(&tenant["decision"], "epoch"));
    epochs.iter().all(|epoch| *epoch >= 2)
        && count(&reader, "quota_blocks") == READ_AGAIN
        && count(&reader, "urd_blocks") == READ_AGAIN
        && writer["write_policy"] == "ro"
        && count(&writer, "quota_blocks") == MINIMUM
        && [&reader, &writer].iter().all(|t| count(t, "occupied_blocks") <= count(t, "quota_blocks"))
}

#[test]
fn the_reader_gets_its_urd_and_the_writer_goes_past_the_cache() {
    let larder = Setup::new("32MiB")
        .control("allocator = \"eci\"")
        .control("epoch = \"1s\"")
        .tenant("reader", "")
        .volume("reader0", 64 * MIB)
        .tenant("writer", "")
        .volume("writer0", 64 * MIB)
        .start();
    let at_start = larder.status();
    assert_eq!(count(&tenant(&at_start, "reader"), "quota_blocks"), 4096, "an equal share at the start");
    let (reading, writing) = (reader(&larder), writer(&larder));

    let status = wait_for("the decisions that the tenants' doings ask for", || {
        let status = larder.status();
        assert_bounds(&status);
        if is_settled(&status) { Ok(status) } else { Err(format!("{status:#}")) }
    });
    for name in ["reader", "writer"] {
        let tenant = tenant(&status, name);
        let decision = &tenant["decision"];
        assert_eq!(decision["quota_blocks"], tenant["quota_blocks"]);
        assert_eq!(decision["write_policy"], tenant["write_policy"]);
        assert!(decision["reason"].as_str().is_some_and(|reason| reason.len() > 20), "{decision:#}");
    }
    assert!(
        count(&larder.tenant("writer"), "evictions") >= 2 * MINIMUM,
        "its partition shrank without evictions"
    );
    hits_only(&larder);
    reading.finish();
    writing.finish();
    larder.stop();
}

/// With its URD as its size, the reader misses no more.
fn hits_only(larder: &Larder) {
    let before = wait_for("the reader's blocks are in the cache", || {
        let reader = larder.tenant("reader");
        if count(&reader, "occupied_blocks") == READ_AGAIN { Ok(reader) } else { Err(format!("{reader:#}")) }
    });
    wait_for("a pass over all blocks", || {
        let reader = larder.tenant("reader");
        let hits = count(&reader, "read_hits") - count(&before, "read_hits");
        if hits >= READ_AGAIN { Ok(()) } else { Err(format!("{hits} hits")) }
    });
    assert_eq!(count(&larder.tenant("reader"), "read_misses"), count(&before, "read_misses"));
}
