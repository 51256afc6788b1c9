//! `kill -9` under fio with `--verify` where a device fails meanwhile, now the backing and now the cache: once it works again fio finds every header and
//! checksum right, and each block is of the newest run that was flushed, or of one that was tried since. A write that was refused may be there or not.
//!
//! `LARDER_KILLS` sets how often: a quarter of it in each of the tests (5 times where nothing is set).

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::killed_errors::repaired;
use crate::common::daemon::{Larder, count, larder};
use crate::common::disk::{Disk, is_root};
use crate::common::failing::Failing;
use crate::common::fio_runs::{Devices, Runs, SIZE, Tally};
use crate::common::kills::{a_while, seed, times};
use crate::common::process::run;
use crate::common::setup::{MIB, Setup};

fn kills() -> u64 {
    times(20).div_ceil(4)
}

/// Much is written back meanwhile; above the limit guests' writes go to the backing, and may be refused.
const TENANT: &str = "write_policy = \"wb\"\ndirty_rest = 10\ndirty_max = 40";

/// What is saved to the backing is what was flushed, too.
fn backing_alone(runs: &mut Runs, setup: &Setup, file: &str) {
    run(larder().args(["cache", "writeback"]).arg(setup.cache()), setup.folder());
    runs.settle(&fs::read(setup.backing(file)).expect("the backing"));
}

/// Kill it over and over, while the backing fails now and then.
fn killed_on_a_bad_backing(cache: &str, kills: u64) -> Tally {
    let (mut state, mut tally) = (seed(), Tally::default());
    let setup = Setup::new(cache).control("allocator = \"static\"");
    let far = Failing::new(&setup, "far", SIZE, "50%");
    let larder = setup.tenant("a", TENANT).volume_on("a0", &far.uri).start();
    let mut runs = Runs::first(&larder);
    let (mut larder, mut errors) = (larder.stop().start(), 0);
    for _ in 0..kills {
        let setup = runs.until_killed(larder, &mut tally, Devices::Bad, |larder| {
            a_while(&mut state, Duration::from_millis(300));
            far.now_and_then(&mut state, Duration::from_millis(1500));
            errors += count(&larder.tenant("a"), "backing_errors");
        });
        // It starts whether the backing works or not.
        larder = setup.start();
        far.heal();
        tally.warm += count(&larder.tenant("a"), "warm_blocks");
        tally.hits += runs.verify(&larder);
    }
    let larder = larder.stop().start();
    runs.verify(&larder);
    backing_alone(&mut runs, &larder.stop(), "far.image");
    let Tally { flushes, held, dirty, warm, hits } = tally;
    eprintln!(
        "{kills} kills, {errors} errors of the backing, {flushes} flushes; {held} blocks cached before, {dirty} of them dirty, {warm} after; {hits} hits"
    );
    assert!(flushes > kills, "the kills came before there was anything to lose: {flushes} flushes");
    assert!(errors > kills, "{errors} errors of the backing in {kills} lives");
    tally
}

/// Dirty blocks are hits again, but for those that were written back or written anew just then. Of clean ones nothing is promised where guests write past the cache, as they do here above the
/// limit of dirty blocks: a region that is just being written on the backing starts cold.
#[test]
fn what_fio_flushed_is_there_and_dirty_blocks_are_hits_after_errors_of_the_backing() {
    let Tally { dirty, hits, .. } = killed_on_a_bad_backing("32MiB", kills());
    assert!(4 * hits > 3 * dirty, "{dirty} blocks were dirty, and there were {hits} hits");
}

/// Dirty blocks have to leave, to a backing that fails.
#[test]
fn what_fio_flushed_is_there_where_blocks_leave_to_a_failing_backing() {
    let tally = killed_on_a_bad_backing("8MiB", kills());
    assert!(2 * tally.warm > tally.held, "{} of {} blocks came back", tally.warm, tally.held);
}

/// Kill it over and over, each time after some of what the cache device is asked for has failed.
fn killed_on_a_bad_cache(rate: &str) {
    let (mut state, mut tally, kills) = (seed(), Tally::default(), kills());
    let setup = Setup::new("16MiB").control("allocator = \"static\"");
    if !is_root(setup.folder()) {
        return;
    }
    let ssd = Failing::new(&setup, "ssd", 20 * MIB, rate);
    let disk = Disk::attach(&setup, "ssd", &ssd.uri);
    // A name of the test's own for the device: what is written down of it lies beside.
    symlink(&disk.device, setup.cache()).expect("the cache's name");
    let larder = setup.tenant("a", TENANT).volume("a0", SIZE).start();
    let mut runs = Runs::first(&larder);
    let (mut larder, mut errors, mut repairs) = (larder.stop().start(), 0, 0);
    for _ in 0..kills {
        let setup = runs.until_killed(larder, &mut tally, Devices::Bad, |larder: &Larder| {
            a_while(&mut state, Duration::from_millis(800));
            ssd.fail();
            a_while(&mut state, Duration::from_millis(600));
            errors += count(&larder.tenant("a"), "cache_errors");
        });
        ssd.heal();
        repairs += u64::from(repaired(&setup));
        larder = setup.start();
        runs.verify(&larder);
    }
    let larder = larder.stop().start();
    runs.verify(&larder);
    let setup = larder.stop();
    eprintln!("{kills} kills, {errors} errors of the cache, {repairs} repairs, {} flushes", tally.flushes);
    assert!(tally.flushes > kills, "there was nothing to lose: {} flushes", tally.flushes);
    assert!(errors > 0, "no error of the cache");
    backing_alone(&mut runs, &setup, "a0");
    disk.detach();
}

#[test]
fn what_fio_flushed_is_there_after_some_errors_of_the_cache() {
    killed_on_a_bad_cache("1%");
}

#[test]
fn what_fio_flushed_is_there_when_a_cache_that_was_gone_is_back() {
    killed_on_a_bad_cache("100%");
}
