//! `larder status`: every key that scripts count on, with its type; and the tables for people.

use serde_json::Value;

use crate::common::daemon::{count, larder, tenant};
use crate::common::nbd::Client;
use crate::common::pattern::stamp;
use crate::common::process::run;
use crate::common::setup::{BLOCK, MIB, Setup};

const TENANT_NUMBERS: [&str; 12] = [
    "quota_blocks",
    "occupied_blocks",
    "dirty_blocks",
    "read_hits",
    "read_misses",
    "write_hits",
    "write_misses",
    "evictions",
    "backing_reads",
    "backing_writes",
    "urd_blocks",
    "trd_blocks",
];

fn assert_text(value: &Value, key: &str) {
    assert!(value[key].as_str().is_some_and(|text| !text.is_empty()), "no text {key} in {value:#}");
}

fn assert_keys(status: &Value) {
    for key in ["size_bytes", "block_bytes", "blocks", "free_blocks", "memory_bytes"] {
        count(&status["cache"], key);
    }
    assert_text(&status["cache"], "state");
    for tenant in status["tenants"].as_array().expect("a list of tenants") {
        for key in TENANT_NUMBERS {
            count(tenant, key);
        }
        assert_text(tenant, "name");
        assert_text(tenant, "write_policy");
        assert_text(&tenant["decision"], "write_policy");
        assert_text(&tenant["decision"], "reason");
        count(&tenant["decision"], "epoch");
        count(&tenant["decision"], "quota_blocks");
        assert_eq!(tenant["volumes"].as_array().map(Vec::len), Some(1), "{tenant:#}");
        let writes = tenant["ssd_writes"].as_object().expect("an object");
        let causes =
            writes.iter().filter(|cause| cause.0 != "total").map(|cause| cause.1.as_u64().expect("blocks"));
        assert_eq!(causes.sum::<u64>(), count(&tenant["ssd_writes"], "total"), "{tenant:#}");
    }
}

#[test]
fn the_json_counts_what_was_done() {
    let larder = Setup::new("4MiB")
        .control("allocator = \"static\"")
        .tenant("a", "quota = \"3MiB\"\nwrite_policy = \"wt\"")
        .volume("a0", 8 * MIB)
        .tenant("b", "write_policy = \"ro\"")
        .volume("b0", 8 * MIB)
        .start();
    for volume in ["a0", "b0"] {
        let mut client = Client::connect(&larder.socket(volume), volume);
        client.read(0, 4 * BLOCK as u32).expect("four misses");
        client.read(0, 4 * BLOCK as u32).expect("four hits");
        client.write(2 * BLOCK, &stamp(1, 1, 0, 4 * BLOCK)).expect("two hits, two misses");
    }
    let status = larder.status();
    assert_keys(&status);
    let cache = &status["cache"];
    let sizes = ["size_bytes", "block_bytes", "blocks"].map(|key| count(cache, key));
    assert_eq!((sizes, &cache["state"]), ([4 * MIB, BLOCK, 1024], &"ok".into()));

    let of = |name: &str| {
        let tenant = tenant(&status, name);
        TENANT_NUMBERS[..10].iter().map(|key| count(&tenant, key)).collect::<Vec<_>>()
    };
    // quota, occupied, dirty; read hits and misses; write hits and misses; evictions; backing reads and writes
    assert_eq!(of("a"), [768, 6, 0, 4, 4, 2, 2, 0, 4, 4]);
    assert_eq!(of("b"), [256, 2, 0, 4, 4, 2, 2, 0, 4, 4]);
    assert_eq!(count(&tenant(&status, "a")["ssd_writes"], "total"), 8, "four fills, four guest writes");
    assert_eq!(count(&tenant(&status, "b")["ssd_writes"], "total"), 4, "four fills");
    larder.stop();
}

#[test]
fn the_tables_name_tenants_and_volumes() {
    let running = Setup::new("4MiB").tenant("alpha", "").volume("alpha-root", 8 * MIB).start();
    let text = run(larder().arg("status").arg("--config").arg(running.path("larder.toml")), running.folder());
    for word in ["alpha", "alpha-root", "hit ratio", "4 KiB", "4 MiB"] {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|width| width <= 140), "{widest:?} columns:\n{text}");
    running.stop();
}
