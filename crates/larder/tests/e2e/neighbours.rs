//! A noisy neighbour: what a tenant that reads far and wide does to one whose working set fits its share, under one cache for all and under partitions.

use serde_json::Value;

use crate::common::daemon::{Larder, count, larder, tenant};
use crate::common::nbd::Client;
use crate::common::nbdkit::nbdkit;
use crate::common::pattern::random;
use crate::common::process::run;
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::wait_for;

/// Blocks of the cache; the protected tenant's share is half of them.
const CACHE: u64 = 2048;

/// Blocks that the protected tenant reads, again and again.
const WORKING_SET: u64 = 800;

/// Blocks of the neighbour's volume.
const WIDE: u64 = 16_384;

/// Requests of the protected tenant over which its hit ratio is taken, and the neighbour's for each of them.
const REQUESTS: u64 = 2500;
const NOISE: u64 = 3;

fn cache(allocator: &str) -> Setup {
    Setup::in_memory("8MiB").control(&format!("allocator = \"{allocator}\"\nepoch = \"1s\"\nmin_blocks = 16"))
}

fn setup(allocator: &str) -> Setup {
    cache(allocator)
        .tenant("quiet", "")
        .volume("quiet", 16 * MIB)
        .tenant("noisy", "")
        .volume("noisy", 64 * MIB)
}

fn read(client: &mut Client, block: u64) {
    client.read(block * BLOCK, BLOCK as u32).expect("a read");
}

/// Hits and misses of a tenant's reads so far.
fn reads(larder: &Larder, name: &str) -> (u64, u64) {
    let status = larder.status();
    let tenant = tenant(&status, name);
    (count(&tenant, "read_hits"), count(&tenant, "read_misses"))
}

/// The protected tenant reads, and its neighbour as well if it is there: what share of the former's blocks hit, in points.
fn hit_points(larder: &Larder, quiet: &mut Client, mut noisy: Option<&mut Client>) -> f64 {
    let (mut state, mut noise) = (11, 12);
    let before = reads(larder, "quiet");
    for _ in 0..REQUESTS {
        read(quiet, random(&mut state, WORKING_SET));
        for client in noisy.iter_mut() {
            (0..NOISE).for_each(|_| read(client, random(&mut noise, WIDE)));
        }
    }
    let after = reads(larder, "quiet");
    let (hits, misses) = (after.0 - before.0, after.1 - before.1);
    assert_eq!(hits + misses, REQUESTS, "each read is one block");
    100.0 * hits as f64 / REQUESTS as f64
}

/// The protected tenant's hit ratio alone, and beside its neighbour, in points.
fn alone_and_beside(allocator: &str) -> (f64, f64) {
    // Backings that take longer than the cache: else it brings nothing, and nobody is given any of it for that.
    let setup = cache(allocator);
    let disks = ["quiet", "noisy"].map(|name| {
        nbdkit(&setup, &format!("{name}-disk"), &["--filter=delay", "memory", "64M", "rdelay=1ms"])
    });
    let [quiet_disk, noisy_disk] = [&disks[0].1, &disks[1].1];
    let setup = setup.tenant("quiet", "").volume_on("quiet", quiet_disk);
    let larder = setup.tenant("noisy", "").volume_on("noisy", noisy_disk).start();
    let mut quiet = Client::connect(&larder.socket("quiet"), "quiet");
    let mut noisy = Client::connect(&larder.socket("noisy"), "noisy");
    let (mut block, first) = (0, count(&larder.status(), "epoch"));
    // Until what it reads is known to who decides.
    wait_for("three decisions", || {
        for _ in 0..2 * WORKING_SET {
            read(&mut quiet, block % WORKING_SET);
            block += 1;
        }
        let epoch = count(&larder.status(), "epoch");
        if epoch >= first + 3 { Ok(()) } else { Err(format!("epoch {epoch}")) }
    });
    let alone = hit_points(&larder, &mut quiet, None);
    let beside = hit_points(&larder, &mut quiet, Some(&mut noisy));
    let status = larder.status();
    let held: u64 =
        ["quiet", "noisy"].map(|name| count(&tenant(&status, name), "occupied_blocks")).iter().sum();
    assert!(held <= CACHE && held > CACHE * 8 / 10, "{allocator}: {held} blocks are held");
    larder.stop();
    (alone, beside)
}

#[test]
fn one_cache_for_all_does_not_keep_a_neighbour_out() {
    let (alone, beside) = alone_and_beside("unified");
    assert!(alone > 99.0 && beside <= alone - 15.0, "{alone} points alone, {beside} beside the neighbour");
}

#[test]
fn partitions_keep_a_neighbour_out() {
    for allocator in ["static", "larder"] {
        let (alone, beside) = alone_and_beside(allocator);
        assert!(alone > 99.0, "{allocator}: {alone} points alone");
        assert!(beside > alone - 2.0, "{allocator}: {alone} points alone, {beside} beside the neighbour");
    }
}

fn decided(larder_: &Larder, name: &str) -> Value {
    let mut command = larder();
    command.args(["decisions", name, "--json", "--socket"]).arg(larder_.control_socket());
    let told: Value = serde_json::from_str(&run(&mut command, larder_.folder())).expect("JSON");
    told["decisions"].as_array().expect("a list").last().cloned().unwrap_or_default()
}

/// One tenant may have nearly all of it, and has it again after a restart.
#[test]
fn what_is_shared_is_kept_over_a_restart() {
    for allocator in ["unified", "combined"] {
        let larder = setup(allocator).start();
        let mut quiet = Client::connect(&larder.socket("quiet"), "quiet");
        let mut noisy = Client::connect(&larder.socket("noisy"), "noisy");
        (0..100).for_each(|block| read(&mut quiet, block));
        wait_for("a decision", || match decided(&larder, "quiet") {
            decision if decision["allocator"] == allocator => Ok(decision),
            decision => Err(format!("{decision:#}")),
        });
        (0..900).for_each(|block| read(&mut noisy, block));
        let held = |larder: &Larder| {
            let status = larder.status();
            ["quiet", "noisy"].map(|name| count(&tenant(&status, name), "occupied_blocks"))
        };
        let before = held(&larder);
        assert_eq!(before, [100, 900], "{allocator}");
        let larder = larder.stop().start();
        assert_eq!(held(&larder), before, "{allocator}");
        larder.stop();
    }
}

/// Where a cache is not kept, and has several reactors, each has a part of what is shared, for the number of its tenants.
#[test]
fn reactors_share_among_their_own_tenants() {
    // By turns: the third is with the first.
    let setup = setup("unified").cold().control("reactors = 2").tenant("third", "").volume("third", 16 * MIB);
    let larder = setup.start();
    let mut noisy = Client::connect(&larder.socket("noisy"), "noisy");
    let mut third = Client::connect(&larder.socket("third"), "third");
    (0..CACHE).for_each(|block| read(&mut noisy, block));
    (0..1000).for_each(|block| read(&mut third, block));
    let status = larder.status();
    let held = ["quiet", "noisy", "third"].map(|name| count(&tenant(&status, name), "occupied_blocks"));
    assert_eq!(held, [0, CACHE / 3, 1000]);
    larder.stop();
}
