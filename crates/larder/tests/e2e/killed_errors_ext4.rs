//! `kill -9` below an ext4 with programs on it that call `fsync` all the time, where a device fails meanwhile, now the backing and now the cache: once it works
//! again the journal is replayed, every file has what was synced, and `e2fsck` finds nothing but what ext4 leaves of errors that it met itself.
//!
//! `LARDER_KILLS` sets how often: a quarter of it in each of the tests (5 times where nothing is set).

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::killed_errors::repaired;
use super::killed_ext4::{attach, backing_alone, prepare, reads, until_killed, verify};
use crate::common::daemon::{Larder, count};
use crate::common::disk::{Disk, is_root};
use crate::common::failing::Failing;
use crate::common::files::Worker;
use crate::common::kills::{a_while, seed, times};
use crate::common::nbd::Client;
use crate::common::setup::{MIB, Setup};

fn kills() -> u64 {
    times(20).div_ceil(4)
}

/// What a test has seen of all its lives.
#[derive(Default)]
struct Seen {
    errors: u64,
    repairs: u64,
    /// Hits and misses right after the restarts.
    reads: [u64; 2],
}

/// Kill it over and over, after what happens in each life. `mended` brings the devices back before each start.
fn kill_again_and_again(
    setup: Setup,
    mut life: impl FnMut(&Larder, &AtomicBool, &mut Seen),
    mut mended: impl FnMut(&Setup, &mut Seen),
) -> (Setup, Seen) {
    let (mut state, mut seen, kills) = (seed(), Seen::default(), kills());
    let larder = setup.start();
    let mut workers: Vec<Worker> = prepare(&larder, &mut state);
    let mut setup = larder.stop();
    for kill in 0..=kills {
        let larder = setup.start();
        let mut disk = attach(&larder);
        verify(&larder, &mut disk, &mut workers);
        if kill > 0 {
            let now = reads(&larder);
            seen.reads = [seen.reads[0] + now[0], seen.reads[1] + now[1]];
        }
        let mount = disk.mount(&larder);
        (setup, workers) =
            until_killed(larder, &mount, workers, |larder, dying| life(larder, dying, &mut seen));
        mended(&setup, &mut seen);
        disk.detach();
    }
    let larder = setup.start();
    let mut disk = attach(&larder);
    verify(&larder, &mut disk, &mut workers);
    disk.detach();
    let setup = larder.stop();
    let synced: u64 = workers.iter().map(|worker| worker.synced).sum();
    let Seen { errors, repairs, reads: [hits, misses] } = seen;
    eprintln!(
        "{synced} changes were synced; {errors} errors, {repairs} repairs; {hits} hits and {misses} misses"
    );
    assert!(synced > kills, "the kills came before there was anything to lose: {synced} changes");
    (setup, seen)
}

/// All of the volume is cached, and all of it may be dirty: programs notice nothing of a backing that fails, and over half of the reads are hits after the
/// restart.
#[test]
fn programs_notice_nothing_of_errors_of_the_backing_and_lose_nothing() {
    const BYTES: u64 = 40 * MIB;
    let setup = Setup::new("96MiB").control("allocator = \"static\"");
    if !is_root(setup.folder()) {
        return;
    }
    let mut state = seed();
    let far = Failing::new(&setup, "far", BYTES, "50%");
    let tenant = "write_policy = \"wb\"\ndirty_rest = 2\ndirty_max = 100";
    let setup = setup.tenant("a", tenant).volume_on("a0", &far.uri);
    let life = |larder: &Larder, _: &AtomicBool, seen: &mut Seen| {
        let mut client = Client::connect(&larder.socket("a0"), "a0");
        for offset in (0..BYTES).step_by(MIB as usize) {
            client.read(offset, MIB as u32).expect("a read of what is to be cached");
        }
        far.now_and_then(&mut state, Duration::from_millis(2000));
        seen.errors += count(&larder.tenant("a"), "backing_errors");
    };
    let (setup, seen) = kill_again_and_again(setup, life, |_, _| far.heal());
    assert!(seen.errors > kills() / 2, "{} errors of the backing", seen.errors);
    let [hits, misses] = seen.reads;
    assert!(hits > misses, "{hits} hits and {misses} misses right after the restarts");
    backing_alone(&setup, "far.image");
}

/// A part of the volume is cached: programs meet the errors. What was synced before is there.
#[test]
fn what_was_synced_before_errors_of_the_backing_is_there() {
    const BYTES: u64 = 64 * MIB;
    let setup = Setup::new("16MiB").control("allocator = \"static\"");
    if !is_root(setup.folder()) {
        return;
    }
    let mut state = seed();
    let far = Failing::new(&setup, "far", BYTES, "50%");
    let tenant = "write_policy = \"wb\"\ndirty_rest = 2\ndirty_max = 8";
    let setup = setup.tenant("a", tenant).volume_on("a0", &far.uri);
    let life = |larder: &Larder, dying: &AtomicBool, seen: &mut Seen| {
        a_while(&mut state, Duration::from_millis(1000));
        dying.store(true, Ordering::SeqCst);
        far.fail();
        // Whatever programs come to meanwhile: not all of this is cached.
        let mut client = Client::connect(&larder.socket("a0"), "a0");
        for offset in (0..BYTES).step_by(MIB as usize) {
            let _ = client.read(offset, MIB as u32);
        }
        far.now_and_then(&mut state, Duration::from_millis(1000));
        seen.errors += count(&larder.tenant("a"), "backing_errors");
    };
    let (setup, seen) = kill_again_and_again(setup, life, |_, _| far.heal());
    assert!(seen.errors > 0, "no error of the backing");
    backing_alone(&setup, "far.image");
}

/// The cache device fails, in part or altogether, and programs meet that. What was synced before is there.
fn killed_on_a_bad_cache(rate: &str) {
    let setup = Setup::new("24MiB").control("allocator = \"static\"");
    if !is_root(setup.folder()) {
        return;
    }
    let mut state = seed();
    let ssd = Failing::new(&setup, "ssd", 28 * MIB, rate);
    let device = Disk::attach(&setup, "ssd", &ssd.uri);
    // A name of the test's own for the device: what is written down of it lies beside.
    symlink(&device.device, setup.cache()).expect("the cache's name");
    let setup = setup.tenant("a", "write_policy = \"wb\"").volume("a0", 64 * MIB);
    let life = |larder: &Larder, dying: &AtomicBool, seen: &mut Seen| {
        a_while(&mut state, Duration::from_millis(1000));
        dying.store(true, Ordering::SeqCst);
        ssd.fail();
        a_while(&mut state, Duration::from_millis(600));
        seen.errors += count(&larder.tenant("a"), "cache_errors");
    };
    let mended = |setup: &Setup, seen: &mut Seen| {
        ssd.heal();
        seen.repairs += u64::from(repaired(setup));
    };
    let (setup, seen) = kill_again_and_again(setup, life, mended);
    assert!(seen.errors > 0, "no error of the cache");
    backing_alone(&setup, "a0");
    device.detach();
}

#[test]
fn what_was_synced_is_there_after_some_errors_of_the_cache() {
    killed_on_a_bad_cache("5%");
}

#[test]
fn what_was_synced_is_there_when_a_cache_that_was_gone_is_back() {
    killed_on_a_bad_cache("100%");
}
