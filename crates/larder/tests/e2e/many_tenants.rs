//! A host with many tenants of which few do anything: what they cost in threads and memory.

use std::fs;

use crate::common::daemon::{Larder, count};
use crate::common::nbd::Client;
use crate::common::setup::{BLOCK, MIB, Setup};

/// Enough to tell what grows with them.
const MANY: usize = 150;

/// What an idle tenant may take of the analyzer's memory.
const IDLE_BYTES: u64 = 64 << 10;

fn with_tenants(tenants: usize) -> Larder {
    let add = |setup: Setup, at: usize| setup.tenant(&format!("t{at}"), "").volume(&format!("v{at}"), MIB);
    (0..tenants).fold(Setup::in_memory("4MiB").control("min_blocks = 1"), add).start()
}

fn threads(daemon: &Larder) -> usize {
    fs::read_dir(format!("/proc/{}/task", daemon.id())).expect("the daemon's threads").count()
}

#[test]
fn idle_tenants_take_no_threads_and_little_memory() {
    let few = with_tenants(2);
    let wanted = threads(&few);
    few.stop();
    let many = with_tenants(MANY);
    let mut client = Client::connect(&many.socket("v7"), "v7");
    client.read(0, BLOCK as u32).expect("a read");
    let status = many.status();
    assert_eq!(status["tenants"].as_array().map(Vec::len), Some(MANY));
    let clients: Vec<u64> =
        (0..MANY).map(|at| count(&status["tenants"][at]["volumes"][0], "clients")).collect();
    assert!(clients.iter().enumerate().all(|(at, clients)| *clients == u64::from(at == 7)), "{clients:?}");
    // One that answers a client comes and goes.
    let now = threads(&many);
    assert!(now <= wanted + 2, "{now} threads for {MANY} tenants, {wanted} for two");
    let analyzer = count(&status, "analyzer_memory_bytes");
    assert!(analyzer < MANY as u64 * IDLE_BYTES / 4, "{analyzer} bytes");
    many.stop();
}
