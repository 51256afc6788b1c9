//! `kill -9` under write-back: what a flush covered is there afterwards, everything else reads as one of the versions written since, and keeps
//! reading as that. And over half of the hits are back right after the restart.
//!
//! `LARDER_KILLS` sets how often the daemon is killed (20 times where nothing is set).

use std::time::Duration;

use crate::common::daemon::count;
use crate::common::kills::{a_while, seed, times};
use crate::common::pattern::random;
use crate::common::setup::{MIB, Setup};
use crate::common::writer::{BLOCKS, Writer};

#[test]
fn nothing_flushed_is_lost_under_write_back() {
    let tenant = "write_policy = \"wb\"\ndirty_rest = 30";
    let setup = Setup::new("10MiB").control("min_blocks = 10").tenant("a", tenant);
    kill_again_and_again(setup.volume("a0", 6 * MIB));
}

/// Versions of blocks wait, are written back one after the other, and are found again.
#[test]
fn nothing_flushed_is_lost_under_ordered_write_back() {
    let tenant = "write_policy = \"wb\"\ndirty_rest = 5";
    let setup = Setup::new("12MiB").control("min_blocks = 10").tenant("a", tenant);
    kill_again_and_again(setup.volume("a0", 6 * MIB).ordered());
}

fn kill_again_and_again(mut setup: Setup) {
    let (mut state, kills) = (seed(), times(20));
    let mut writers: Vec<Writer> =
        (0..3).map(|n| Writer::new(n * BLOCKS, random(&mut state, u64::MAX))).collect();
    let mut hits = 0;
    for kill in 0..kills {
        let larder = setup.start();
        writers.iter_mut().for_each(|writer| writer.verify(&larder));
        if kill > 0 {
            hits += count(&larder.tenant("a"), "read_hits");
        }
        let running: Vec<_> = writers.into_iter().map(|writer| writer.run(&larder.socket("a0"))).collect();
        a_while(&mut state, Duration::from_millis(1200));
        setup = larder.kill();
        writers = running.into_iter().map(|writer| writer.join().expect("a writer's record")).collect();
    }
    let reads = (kills - 1) * 3 * BLOCKS * 2;
    assert!(hits > reads / 2, "{hits} of {reads} reads were hits after the restarts");
    let larder = setup.start();
    writers.iter_mut().for_each(|writer| writer.verify(&larder));
    // A clean stop keeps everything that was answered.
    let larder = larder.stop().start();
    writers.iter_mut().for_each(|writer| writer.verify(&larder));
    larder.stop();
}
