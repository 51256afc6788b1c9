//! The known answers of the container-caching thesis, through the running daemon: 131,072 blocks read in order, twice.

use crate::common::daemon::{Larder, count};
use crate::common::process::{program, run};
use crate::common::setup::{MIB, Setup};

const BLOCKS: u64 = 131_072;

/// The index, the replacement list and the slots may take this much for each block of a full cache, in bytes.
const MEMORY_PER_BLOCK: u64 = 32;

/// The same for a cache that is kept: what the journal says of each slot is a byte more, and checksums have their place in the index.
const KEPT_MEMORY_PER_BLOCK: u64 = 32;

fn one_tenant(setup: Setup, volume_bytes: u64) -> Larder {
    setup.control("allocator = \"static\"").tenant("a", "").volume("a0", volume_bytes).start()
}

/// Read the whole volume in order, one request at a time.
fn read_in_order(larder: &Larder) {
    let mut nbdcopy = program("nbdcopy");
    nbdcopy.args([
        "--connections=1",
        "--requests=1",
        "--threads=1",
        "--no-extents",
        "--request-size=1048576",
    ]);
    run(nbdcopy.args([&larder.uri("a0"), "null:"]), larder.folder());
}

/// Read misses, read hits and evictions so far.
fn answers(larder: &Larder) -> [u64; 3] {
    let tenant = larder.tenant("a");
    ["read_misses", "read_hits", "evictions"].map(|key| count(&tenant, key))
}

fn assert_memory_is_bounded(larder: &Larder, per_block: u64) {
    let status = larder.status();
    let (occupied, memory) =
        (count(&larder.tenant("a"), "occupied_blocks"), count(&status["cache"], "memory_bytes"));
    assert_eq!(occupied, count(&status["cache"], "blocks"), "the cache is full");
    assert!(memory <= per_block * occupied, "{memory} bytes for {occupied} blocks");
    // What is told must be of the size that the structures cannot do without: two links and a slot number.
    assert!(memory >= 12 * occupied, "{memory} bytes for {occupied} blocks");
}

#[test]
fn a_cache_of_2_gib_misses_each_block_once() {
    let larder = one_tenant(Setup::new("2GiB"), BLOCKS * 4096);
    read_in_order(&larder);
    assert_eq!(answers(&larder), [BLOCKS, 0, 0]);
    read_in_order(&larder);
    assert_eq!(answers(&larder), [BLOCKS, BLOCKS, 0]);

    let tenant = larder.tenant("a");
    assert_eq!(count(&tenant, "backing_reads"), BLOCKS);
    assert_eq!(count(&tenant["ssd_writes"], "total"), BLOCKS);
    assert_eq!(count(&larder.status()["cache"], "free_blocks"), 524_288 - BLOCKS);
    larder.stop();
}

#[test]
fn a_cache_of_128000_blocks_is_scanned_without_a_hit() {
    // Not kept: what is evicted leaves its slot at once, and every block finds one.
    let larder = one_tenant(Setup::new("524288000").cold(), BLOCKS * 4096);
    read_in_order(&larder);
    assert_eq!(answers(&larder), [BLOCKS, 0, 3072]);
    read_in_order(&larder);
    assert_eq!(answers(&larder), [2 * BLOCKS, 0, 3072 + BLOCKS]);
    assert_memory_is_bounded(&larder, MEMORY_PER_BLOCK);
    larder.stop();
}

#[test]
fn a_full_cache_of_1_gib_takes_bounded_memory_for_each_block() {
    for (setup, per_block) in
        [(Setup::new("1GiB").cold(), MEMORY_PER_BLOCK), (Setup::new("1GiB"), KEPT_MEMORY_PER_BLOCK)]
    {
        let larder = one_tenant(setup, 1024 * MIB);
        read_in_order(&larder);
        assert_memory_is_bounded(&larder, per_block);
    }
}
