//! Replacement and admission as each tenant's configuration names them, in the running daemon.

use crate::common::daemon::{self, Larder, count};
use crate::common::nbd::Client;
use crate::common::pattern::{first_difference, stamp};
use crate::common::process::run;
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::wait_for;
use std::ops::Range;

/// A cache of 256 blocks for one tenant, whose volume has 1024. In memory, and not kept: which block leaves must not depend on fills whose
/// writes lag behind, nor whether one may enter on a slot that is not freed durably yet.
fn start(caching: &str) -> Larder {
    let tenant = format!("write_policy = \"wt\"\n{caching}");
    Setup::in_memory("1MiB").cold().tenant("a", &tenant).stamped_volume("a0", 4 * MIB, 6).start()
}

/// Read these blocks one by one, and check them; returns the hits and the fills of it.
fn read(larder: &Larder, client: &mut Client, blocks: Range<u64>) -> (u64, u64) {
    let counts = || {
        let tenant = larder.tenant("a");
        (count(&tenant, "read_hits"), count(&tenant["ssd_writes"], "fill"))
    };
    let before = counts();
    for block in blocks {
        let found = client.read(block * BLOCK, BLOCK as u32).expect("a read");
        assert_eq!(first_difference(&found, &stamp(6, 0, block * BLOCK, BLOCK)), None, "block {block}");
    }
    let after = counts();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn larc_lets_a_block_in_when_it_comes_again() {
    let larder = start("replacement = \"larc\"");
    let status = larder.tenant("a");
    assert_eq!((status["replacement"].as_str(), status["admission"].as_str()), (Some("larc"), Some("larc")));
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    assert_eq!(read(&larder, &mut client, 0..20), (0, 0), "first accesses are remembered only");
    assert_eq!(read(&larder, &mut client, 0..20), (0, 20), "the ghost knows them");
    assert_eq!(read(&larder, &mut client, 0..20), (20, 0));
    larder.stop();
}

#[test]
fn arc_keeps_what_was_used_twice_over_a_scan_and_lru_does_not() {
    for (policy, kept) in [("arc", 100), ("lru", 0)] {
        let larder = start(&format!("replacement = \"{policy}\""));
        let mut client = Client::connect(&larder.socket("a0"), "a0");
        assert_eq!(read(&larder, &mut client, 0..100), (0, 100));
        assert_eq!(read(&larder, &mut client, 0..100), (100, 0));
        assert_eq!(read(&larder, &mut client, 200..1024), (0, 824), "a scan of more than the cache holds");
        assert_eq!(read(&larder, &mut client, 0..100).0, kept, "{policy}");
        larder.stop();
    }
}

#[test]
fn the_third_access_lets_a_block_in_behind_any_policy() {
    let larder = start("replacement = \"s3-fifo\"\nadmission = \"nth:3\"");
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    let passes = [(); 4].map(|()| read(&larder, &mut client, 0..50));
    assert_eq!(passes, [(0, 0), (0, 0), (0, 50), (50, 0)]);
    larder.stop();
}

#[test]
fn a_mover_fills_what_was_missed_until_misses_do_again() {
    // It comes every second.
    let larder = Setup::in_memory("1MiB")
        .cold()
        .control("allocator = \"static\"\nepoch = \"5s\"")
        .tenant("a", "write_policy = \"wt\"\npopulation = \"batched\"")
        .stamped_volume("a0", 4 * MIB, 6)
        .start();
    assert_eq!(larder.tenant("a")["population"], "batched");
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    assert_eq!(read(&larder, &mut client, 0..50).0, 0);
    wait_for("the mover", || match count(&larder.tenant("a"), "occupied_blocks") {
        50 => Ok(()),
        others => Err(format!("{others} blocks are cached")),
    });
    assert_eq!(count(&larder.tenant("a")["ssd_writes"], "fill"), 50);
    assert_eq!(read(&larder, &mut client, 0..50), (50, 0));
    let mut set = daemon::larder();
    set.args(["set", "--tenant", "a", "population=on-demand", "--socket"]).arg(larder.control_socket());
    run(&mut set, larder.folder());
    assert_eq!(larder.tenant("a")["population"], "on-demand");
    assert_eq!(read(&larder, &mut client, 100..120), (0, 20));
    larder.stop();
}
