//! The cache over restarts: warm after a clean stop and after `kill -9`, and cold where what is cached may not be used.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::common::LIMIT;
use crate::common::daemon::{Larder, count, larder, tenant};
use crate::common::nbd::Client;
use crate::common::pattern::{first_difference, stamp, write_file};
use crate::common::process::run_within;
use crate::common::setup::{BLOCK, MIB, Setup};

/// Blocks that are read again and again, of each volume.
const HOT: u64 = 300;

/// A little longer than blocks that are cached wait until the journal has them, if nothing else happens: two ticks.
const MAPPED_AFTER: Duration = Duration::from_secs(3);

/// Two tenants with a volume each, on a cache that holds what is hot.
fn two_tenants() -> Setup {
    Setup::new("4MiB")
        .tenant("a", "write_policy = \"wt\"")
        .stamped_volume("a0", 8 * MIB, 1)
        .tenant("b", "write_policy = \"ro\"")
        .stamped_volume("b0", 8 * MIB, 2)
}

/// Read a volume's hot blocks, which must be those of this generation; hits and misses of it.
fn read_hot(larder: &Larder, name: &str, seed: u64, generation: u64) -> (u64, u64) {
    let counts = || {
        let tenant = larder.tenant(name);
        (count(&tenant, "read_hits"), count(&tenant, "read_misses"))
    };
    let (before, volume) = (counts(), format!("{name}0"));
    let mut client = Client::connect(&larder.socket(&volume), &volume);
    for block in 0..HOT {
        let found = client.read(block * BLOCK, BLOCK as u32).expect("a read");
        let expected = stamp(seed, generation, block * BLOCK, BLOCK);
        assert_eq!(first_difference(&found, &expected), None, "block {block} of {volume}");
    }
    let after = counts();
    (after.0 - before.0, after.1 - before.1)
}

/// Both tenants' hot blocks are in the cache.
fn warm_up(larder: &Larder) {
    for (name, seed) in [("a", 1), ("b", 2)] {
        read_hot(larder, name, seed, 0);
        assert_eq!(read_hot(larder, name, seed, 0), (HOT, 0), "{name} fits the cache");
    }
}

fn warm_blocks(larder: &Larder) -> [u64; 3] {
    let status = larder.status();
    assert_eq!(status["cache"]["kept"], true, "{status:#}");
    [&tenant(&status, "a"), &tenant(&status, "b"), &status["cache"]].map(|of| count(of, "warm_blocks"))
}

#[test]
fn a_clean_stop_keeps_everything() {
    let larder = two_tenants().start();
    assert_eq!(warm_blocks(&larder), [0, 0, 0]);
    warm_up(&larder);
    // What is written through stays cached, and is what is found again.
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    client.write(0, &stamp(1, 1, 0, HOT * BLOCK)).expect("a write");
    // What is written around leaves the cache.
    let mut client = Client::connect(&larder.socket("b0"), "b0");
    client.write(0, &stamp(2, 0, 0, 10 * BLOCK)).expect("a write");

    let larder = larder.stop().start();
    assert_eq!(warm_blocks(&larder), [HOT, HOT - 10, 2 * HOT - 10]);
    assert_eq!(read_hot(&larder, "a", 1, 1), (HOT, 0));
    assert_eq!(read_hot(&larder, "b", 2, 0), (HOT - 10, 10));
    let written = &larder.status()["cache"]["ssd_write_bytes"];
    assert!(count(written, "metadata") > 0 && count(written, "fill") == 10 * BLOCK, "{written:#}");
    assert!(larder.log().contains("recovered 590 blocks after a clean stop"), "{}", larder.log());
    larder.stop();
}

#[test]
fn kill_9_keeps_most() {
    let larder = two_tenants().start();
    warm_up(&larder);
    sleep(MAPPED_AFTER);
    let larder = larder.kill().start();
    assert!(larder.log().contains("blocks after a crash"), "{}", larder.log());
    for (name, seed) in [("a", 1), ("b", 2)] {
        let (hits, misses) = read_hot(&larder, name, seed, 0);
        assert!(hits > HOT / 2 && hits + misses == HOT, "{name}: {hits} hits, {misses} misses");
    }
    let larder = larder.stop().start();
    assert_eq!(warm_blocks(&larder), [HOT, HOT, 2 * HOT]);
    larder.stop();
}

/// Under `eci` a tenant keeps what it holds, though it is more than its equal part.
#[test]
fn a_restart_takes_nothing_from_who_held_most() {
    let setup = Setup::new("4MiB").control("min_blocks = 10");
    let setup = setup.tenant("a", "quota = \"3MiB\"").stamped_volume("a0", 8 * MIB, 1);
    let larder = setup.tenant("b", "").stamped_volume("b0", 8 * MIB, 2).start();
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    client.read(0, (700 * BLOCK) as u32).expect("a read");
    let larder = larder.stop().without("quota = \"3MiB\"").start();
    let (a, b) = (larder.tenant("a"), larder.tenant("b"));
    assert_eq!([count(&a, "warm_blocks"), count(&a, "quota_blocks")], [700, 700], "{a:#}");
    assert_eq!(count(&b, "quota_blocks"), 1024 - 700);
    assert!(a["decision"]["reason"].as_str().is_some_and(|why| why.contains("it held 700")), "{a:#}");
    larder.stop();
}

/// A volume that has shrunk, and one whose file was replaced by another of the same name and size.
#[test]
fn what_is_cached_of_another_disk_is_dropped() {
    let larder = two_tenants().start();
    warm_up(&larder);
    let setup = larder.stop();
    let shorter = File::options().write(true).open(setup.backing("a0")).expect("the backing");
    shorter.set_len(7 * MIB).expect("a shorter backing");
    let larder = setup.start();
    assert_eq!(warm_blocks(&larder), [0, HOT, HOT]);
    assert!(larder.log().contains("300 are dropped"), "{}", larder.log());
    warm_up(&larder);

    let setup = larder.stop();
    let (other, backing) = (setup.path("restored.img"), setup.backing("b0"));
    write_file(&other, 3, 8 * MIB);
    fs::rename(&other, &backing).expect("another file of the same name");
    let larder = setup.start();
    assert_eq!(warm_blocks(&larder), [HOT, 0, HOT]);
    assert_eq!(read_hot(&larder, "b", 3, 0), (0, HOT));
    larder.stop();
}

#[test]
fn another_size_of_the_cache_is_a_cold_start_and_no_error() {
    let larder = two_tenants().start();
    warm_up(&larder);
    let larder = larder.stop().resized("8MiB").start();
    assert_eq!((warm_blocks(&larder), count(&larder.status()["cache"], "blocks")), ([0, 0, 0], 2048));
    assert!(larder.log().contains("it will be made anew, and cold"), "{}", larder.log());
    warm_up(&larder);
    let larder = larder.stop().start();
    assert_eq!(warm_blocks(&larder), [HOT, HOT, 2 * HOT]);
    larder.stop();
}

#[test]
fn a_cache_that_is_not_kept_is_cold_and_leaves_nothing_to_be_found() {
    let larder = two_tenants().start();
    warm_up(&larder);
    let larder = larder.stop().cold().start();
    let cache = &larder.status()["cache"];
    assert_eq!((&cache["kept"], &cache["warm_blocks"]), (&Value::from(false), &Value::from(0)));
    assert_eq!(read_hot(&larder, "a", 1, 0), (0, HOT));
    let larder = larder.stop().kept().start();
    assert_eq!(warm_blocks(&larder), [0, 0, 0], "neither of this life nor of the one before");
    assert_eq!(read_hot(&larder, "a", 1, 0), (0, HOT));
    larder.stop();
}

/// The flag that an error of the device leaves, in both superblocks.
fn need_check(cache: &Path) {
    let file = File::options().read(true).write(true).open(cache).expect("the cache");
    for offset in [0, 4096] {
        let mut page = vec![0; 4096];
        file.read_exact_at(&mut page, offset).expect("a superblock");
        assert_eq!(&page[..8], b"LARDERCD");
        page[48] |= 4;
        let checksum = crc32c(&page[..4092]);
        page[4092..].copy_from_slice(&checksum.to_le_bytes());
        file.write_all_at(&page, offset).expect("a superblock");
    }
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn a_cache_that_needs_a_check_is_refused_with_the_commands_and_left_alone() {
    let running = two_tenants().start();
    warm_up(&running);
    let setup = running.stop();
    need_check(&setup.cache());
    let before = fs::read(setup.cache()).expect("the cache");
    let mut serve = larder();
    serve.arg("serve").arg("--config").arg(setup.write_config());
    let outcome = run_within(LIMIT, &mut serve, setup.folder());
    assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stderr);
    let path = setup.cache().display().to_string();
    let said = [
        "needs a check: its device failed while metadata was written".to_string(),
        format!("larder cache check {path}"),
        format!("larder cache repair {path}"),
    ];
    for words in said {
        assert!(outcome.stderr.contains(&words), "no {words:?} in: {}", outcome.stderr);
    }
    assert!(fs::read(setup.cache()).expect("the cache") == before);
}
