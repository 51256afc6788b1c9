//! The cache device failing under the running daemon: it costs hits, never data or service.

use std::fs::File;
use std::time::Duration;

use crate::common::daemon::{Larder, count, tenant};
use crate::common::nbd::Client;
use crate::common::pattern::{first_difference, stamp};
use crate::common::process::run_within;
use crate::common::setup::{BLOCK, MIB, Setup};

const BLOCKS: u64 = 1024;

/// Read these blocks one by one; they must be right.
fn read(client: &mut Client, blocks: std::ops::Range<u64>) {
    for block in blocks {
        let found = client.read(block * BLOCK, BLOCK as u32).expect("a read while the cache fails");
        assert_eq!(first_difference(&found, &stamp(6, 0, block * BLOCK, BLOCK)), None, "block {block}");
    }
}

/// Cut the cache file off behind its header, as if the device had shrunk: what was cached is gone.
fn truncate(larder: &Larder) {
    let file = File::options().write(true).open(larder.cache()).expect("the cache file");
    file.set_len(4096).expect("a short cache file");
}

fn state(larder: &Larder) -> String {
    larder.status()["cache"]["state"].as_str().expect("a state").to_owned()
}

#[test]
fn a_failing_cache_costs_hits_and_nothing_else() {
    let setup = Setup::new("8MiB").tenant("a", "write_policy = \"wt\"").stamped_volume("a0", 8 * MIB, 6);
    let larder = setup.start();
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    read(&mut client, 0..BLOCKS);
    read(&mut client, 0..BLOCKS);
    assert_eq!(count(&larder.tenant("a"), "read_hits"), BLOCKS);
    assert_eq!(state(&larder), "ok");

    truncate(&larder);
    read(&mut client, 0..8);
    let status = larder.status();
    assert_eq!(status["cache"]["state"], "degraded");
    let a = tenant(&status, "a");
    assert_eq!((count(&a, "cache_errors"), count(&a, "read_hits")), (8, BLOCKS), "{status:#}");
    assert_eq!(count(&a, "occupied_blocks"), BLOCKS - 8, "what failed is dropped");

    // One error after another: the device is given up.
    read(&mut client, 8..BLOCKS);
    assert_eq!(state(&larder), "failed");
    assert_eq!(count(&larder.tenant("a"), "read_hits"), BLOCKS);
    serve_without_cache(&larder, &mut client);
    drained_without_cache(&larder, &mut client);
    larder.stop();
}

/// Nothing is dirty, so all is done at once; and the status says how it stands.
fn drained_without_cache(larder: &Larder, client: &mut Client) {
    let ask = |words: &[&str]| {
        let mut command = crate::common::daemon::larder();
        command.args(words).arg("--socket").arg(larder.control_socket());
        run_within(Duration::from_secs(10), &mut command, larder.folder())
    };
    let flushed = ask(&["flush", "a"]);
    assert_eq!(
        flushed.stdout, "a: all that was dirty is on the backings (nothing was dirty)\n",
        "{flushed:?}"
    );
    let drained = ask(&["drain", "a0"]);
    assert!(drained.stdout.starts_with("a0: drained (nothing was dirty)"), "{drained:?}");
    let table = ask(&["status"]).stdout;
    let told = table.lines().find(|line| line.contains("a0") && line.contains("done")).expect("the volume");
    assert!(told.ends_with("ok; the cache device has failed: the backing alone serves it"), "{table}");
    assert!(ask(&["drain", "--off", "a0"]).status.success());
    read(client, 4..8);
}

fn serve_without_cache(larder: &Larder, client: &mut Client) {
    let data = stamp(6, 1, 0, 4 * BLOCK);
    client.write(0, &data).expect("a write without a cache");
    client.flush().expect("a flush without a cache");
    assert_eq!(client.read(0, 4 * BLOCK as u32).expect("a read without a cache"), data);
    read(client, 4..BLOCKS);
    let a = larder.tenant("a");
    assert_eq!((count(&a, "read_hits"), count(&a, "occupied_blocks")), (BLOCKS, 0), "{a:#}");
    assert_eq!(count(&a, "backing_errors"), 0);
}
