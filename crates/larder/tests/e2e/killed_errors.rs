//! `kill -9` under write-back where a device fails meanwhile, now the backing and now the cache: what a flush covered is there all the same.
//!
//! `LARDER_KILLS` sets how often (20 times where nothing is set).

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use crate::common::LIMIT;
use crate::common::daemon::{count, larder};
use crate::common::disk::{Disk, is_root};
use crate::common::kills::{a_while, seed, times};
use crate::common::nbdkit::nbdkit;
use crate::common::pattern::random;
use crate::common::process::{Background, run, run_within};
use crate::common::setup::{MIB, Setup};
use crate::common::writer::{BLOCKS, Writer};

const WRITERS: u64 = 3;

/// `nbdkit` on a file of the setup: reads and writes fail at this rate while the file `NAME.fail` is there.
fn failing_file(setup: &Setup, name: &str, bytes: u64, rate: &str) -> (Background, String) {
    let image = setup.sparse_file(&format!("{name}.image"), bytes);
    let trigger = setup.path(&format!("{name}.fail"));
    let arguments = [
        format!("file={image}"),
        "error=EIO".into(),
        format!("error-rate={rate}"),
        format!("error-file={}", trigger.display()),
    ];
    let mut all = vec!["--filter=error", "file"];
    all.extend(arguments.iter().map(String::as_str));
    nbdkit(setup, name, &all)
}

#[test]
fn nothing_flushed_is_lost_while_the_backing_fails() {
    let (mut state, kills) = (seed(), times(20));
    // Less than what is written: dirty blocks have to leave, to a backing that fails.
    let setup = Setup::new("2MiB").control("min_blocks = 10");
    let (_nbdkit, backing) = failing_file(&setup, "far", 4 * MIB, "5%");
    let tenant = "write_policy = \"wb\"\ndirty_rest = 30\ndirty_max = 60";
    let mut setup = setup.tenant("a", tenant).volume_on("a0", &backing);
    fs::write(setup.path("far.fail"), "").expect("the trigger of the errors");
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
    fs::remove_file(setup.path("far.fail")).expect("the trigger of the errors");
    run(larder().args(["cache", "writeback"]).arg(setup.cache()), setup.folder());
    let image = fs::read(setup.backing("far.image")).expect("the backing");
    writers.iter_mut().for_each(|writer| writer.verify_image(&image));
}

/// `larder cache check`, and a repair, if a start says that it takes one: the device failed while metadata was written. True if it was so.
fn repaired(setup: &Setup) -> bool {
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
    let (_nbdkit, uri) = failing_file(&setup, "ssd", 12 * MIB, "0.5%");
    let disk = Disk::attach(&setup, "ssd", &uri);
    // A name of the test's own for the device: what is written down of it lies beside.
    symlink(&disk.device, setup.cache()).expect("the cache's name");
    let mut setup = setup.tenant("a", "write_policy = \"wb\"\ndirty_rest = 30").volume("a0", 6 * MIB);
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|n| Writer::on_bad_devices(n * BLOCKS, random(&mut state, u64::MAX))).collect();
    let (trigger, mut errors, mut repairs) = (setup.path("ssd.fail"), 0, 0);
    for _ in 0..kills {
        let larder = setup.start();
        writers.iter_mut().for_each(|writer| writer.verify(&larder));
        let running: Vec<_> = writers.into_iter().map(|writer| writer.run(&larder.socket("a0"))).collect();
        a_while(&mut state, Duration::from_millis(600));
        fs::write(&trigger, "").expect("the trigger of the errors");
        a_while(&mut state, Duration::from_millis(600));
        errors += count(&larder.tenant("a"), "cache_errors");
        setup = larder.kill();
        writers = running.into_iter().map(|writer| writer.join().expect("a writer's record")).collect();
        fs::remove_file(&trigger).expect("the trigger of the errors");
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
