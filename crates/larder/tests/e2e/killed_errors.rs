//! `kill -9` under write-back where a device fails meanwhile, now the backing and now the cache: what a flush covered is there all the same.
//!
//! `LARDER_KILLS` sets how often (20 times where nothing is set).

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use crate::common::LIMIT;
use crate::common::daemon::{count, larder};
use crate::common::disk::{Disk, is_root};
use crate::common::failing::Failing;
use crate::common::kills::{a_while, seed, times};
use crate::common::nbd::Client;
use crate::common::pattern::{first_difference, random, stamp};
use crate::common::process::{run, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::writer::{BLOCKS, Writer};

const WRITERS: u64 = 3;

#[test]
fn nothing_flushed_is_lost_while_the_backing_fails() {
    let (mut state, kills) = (seed(), times(20));
    // Less than what is written: dirty blocks have to leave, to a backing that fails.
    let setup = Setup::new("2MiB").control("min_blocks = 10");
    let far = Failing::new(&setup, "far", 4 * MIB, "5%");
    let tenant = "write_policy = \"wb\"\ndirty_rest = 30\ndirty_max = 60";
    let mut setup = setup.tenant("a", tenant).volume_on("a0", &far.uri);
    far.fail();
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|n| Writer::on_bad_devices(n * BLOCKS, random(&mut state, u64::MAX))).collect();
    let mut errors = 0;
    for _ in 0..kills {
        let larder = setup.start();
        writers.iter_mut().for_each(|writer| writer.verify(&larder));
        let running: Vec<_> = writers.into_iter().map(|writer| writer.run(&larder.socket("a0"))).collect();
        a_while(&mut state, Duration::from_millis(1200));
        errors += count(&larder.tenant("a"), "backing_errors");
        setup = larder.kill();
        writers = running.into_iter().map(|writer| writer.join().expect("a writer's record")).collect();
    }
    let running = setup.start();
    writers.iter_mut().for_each(|writer| writer.verify(&running));
    let setup = running.stop();
    eprintln!("{errors} errors of the backing");
    assert!(errors > 10 * kills, "{errors} errors of the backing in {kills} lives");

    // The backing is well again: it gets everything.
    far.heal();
    run(larder().args(["cache", "writeback"]).arg(setup.cache()), setup.folder());
    let image = fs::read(setup.backing("far.image")).expect("the backing");
    writers.iter_mut().for_each(|writer| writer.verify_image(&image));
}

/// `larder cache check`, and a repair, if a start says that it takes one: the device failed while metadata was written. True if it was so.
pub(super) fn repaired(setup: &Setup) -> bool {
    let mut start = larder();
    start.args(["serve", "--check", "--config"]).arg(setup.write_config());
    let outcome = run_within(LIMIT, &mut start, setup.folder());
    if outcome.status.success() {
        return false;
    }
    let words = ["needs a check", "could not write its metadata"];
    assert!(words.iter().any(|words| outcome.stderr.contains(words)), "{}", outcome.stderr);
    run(larder().args(["cache", "repair", "--yes"]).arg(setup.cache()), setup.folder());
    true
}

#[test]
fn nothing_flushed_is_lost_while_the_cache_fails() {
    let (mut state, kills) = (seed(), times(20));
    let setup = Setup::new("10MiB").control("min_blocks = 10");
    if !is_root(setup.folder()) {
        return;
    }
    let ssd = Failing::new(&setup, "ssd", 12 * MIB, "0.5%");
    let disk = Disk::attach(&setup, "ssd", &ssd.uri);
    // A name of the test's own for the device: what is written down of it lies beside.
    symlink(&disk.device, setup.cache()).expect("the cache's name");
    let mut setup = setup.tenant("a", "write_policy = \"wb\"\ndirty_rest = 30").volume("a0", 6 * MIB);
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|n| Writer::on_bad_devices(n * BLOCKS, random(&mut state, u64::MAX))).collect();
    let (mut errors, mut repairs) = (0, 0);
    for _ in 0..kills {
        let larder = setup.start();
        writers.iter_mut().for_each(|writer| writer.verify(&larder));
        let running: Vec<_> = writers.into_iter().map(|writer| writer.run(&larder.socket("a0"))).collect();
        a_while(&mut state, Duration::from_millis(600));
        ssd.fail();
        a_while(&mut state, Duration::from_millis(600));
        errors += count(&larder.tenant("a"), "cache_errors");
        setup = larder.kill();
        writers = running.into_iter().map(|writer| writer.join().expect("a writer's record")).collect();
        ssd.heal();
        repairs += u64::from(repaired(&setup));
    }
    let running = setup.start();
    writers.iter_mut().for_each(|writer| writer.verify(&running));
    let setup = running.stop();
    eprintln!("{errors} errors of the cache, {repairs} repairs");
    assert!(errors > kills, "{errors} errors of the cache in {kills} lives");
    run(larder().args(["cache", "writeback"]).arg(setup.cache()), setup.folder());
    let image = fs::read(setup.backing("a0")).expect("the backing");
    writers.iter_mut().for_each(|writer| writer.verify_image(&image));
    disk.detach();
}

/// The cache fails, guests write past it, and the daemon is killed before anybody could look: with the device back, nothing on it hides what was flushed.
#[test]
fn what_was_written_past_a_cache_that_failed_just_now_is_there() {
    const COUNT: u64 = 64;
    let setup = Setup::new("10MiB").control("min_blocks = 10");
    if !is_root(setup.folder()) {
        return;
    }
    let ssd = Failing::new(&setup, "ssd", 12 * MIB, "100%");
    let disk = Disk::attach(&setup, "ssd", &ssd.uri);
    symlink(&disk.device, setup.cache()).expect("the cache's name");
    let mut setup = setup.tenant("a", "write_policy = \"wt\"").stamped_volume("a0", 6 * MIB, 1);
    let offsets = || (0..COUNT).map(|block| block * BLOCK);
    for life in 2..6 {
        // All of it is cached, and mapped.
        let larder = setup.start();
        let mut client = Client::connect(&larder.socket("a0"), "a0");
        client.read(0, (COUNT * BLOCK) as u32).expect("a read");
        drop(client);
        let larder = larder.stop().start();
        let mut client = Client::connect(&larder.socket("a0"), "a0");
        ssd.fail();
        for offset in offsets() {
            client.write(offset, &stamp(life, 0, offset, BLOCK)).expect("a write past the cache");
        }
        client.flush().expect("a flush past the cache");
        setup = larder.kill();
        ssd.heal();
        repaired(&setup);
        let larder = setup.start();
        let mut client = Client::connect(&larder.socket("a0"), "a0");
        for offset in offsets() {
            let found = client.read(offset, BLOCK as u32).expect("a read after the start");
            assert_eq!(first_difference(&found, &stamp(life, 0, offset, BLOCK)), None, "at {offset}");
        }
        setup = larder.stop();
    }
    disk.detach();
}
