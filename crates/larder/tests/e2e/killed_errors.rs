//! `kill -9` under write-back where a device fails meanwhile, one of twenty reads and writes: what a flush covered is there all the same.
//!
//! `LARDER_KILLS` sets how often (20 times where nothing is set).

use std::fs;
use std::time::Duration;

use crate::common::daemon::{count, larder};
use crate::common::kills::{a_while, seed, times};
use crate::common::nbdkit::nbdkit;
use crate::common::pattern::random;
use crate::common::process::{Background, run};
use crate::common::setup::{MIB, Setup};
use crate::common::writer::{BLOCKS, Writer};

const WRITERS: u64 = 3;

/// `nbdkit` on a file of the setup: reads and writes fail while the file `NAME.fail` is there.
fn failing_file(setup: &Setup, name: &str, bytes: u64) -> (Background, String) {
    let image = setup.sparse_file(&format!("{name}.image"), bytes);
    let trigger = setup.path(&format!("{name}.fail"));
    let arguments = [
        format!("file={image}"),
        "error=EIO".into(),
        "error-rate=5%".into(),
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
    let (_nbdkit, backing) = failing_file(&setup, "far", 4 * MIB);
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
