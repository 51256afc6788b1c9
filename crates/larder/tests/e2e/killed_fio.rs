//! `kill -9` under fio with `--verify`. After the restart each block has fio's header and checksum, and is of the newest run that was flushed, or of
//! one that was tried since.
//!
//! `LARDER_KILLS` sets how often in each of the tests (20 times where nothing is set).

use std::time::Duration;

use crate::common::daemon::count;
use crate::common::fio_runs::{BLOCKS, Devices, Runs, SIZE, Tally};
use crate::common::kills::{a_while, seed, times};
use crate::common::request_log::Written;
use crate::common::setup::Setup;

/// Kill it over and over.
fn killed_under_fio(cache: &str, kills: u64) -> Tally {
    let (mut state, mut tally) = (seed(), Tally::default());
    let larder = Setup::new(cache).tenant("a", "write_policy = \"wb\"").volume("a0", SIZE).start();
    let mut runs = Runs::first(&larder);
    let mut larder = larder.stop().start();
    for _ in 0..kills {
        let setup = runs.until_killed(larder, &mut tally, Devices::Sound, |_| {
            a_while(&mut state, Duration::from_millis(1200))
        });
        larder = setup.start();
        tally.warm += count(&larder.tenant("a"), "warm_blocks");
        tally.hits += runs.verify(&larder);
    }
    let larder = larder.stop().start();
    runs.verify(&larder);
    larder.stop();
    let Tally { flushes, held, warm, hits, .. } = tally;
    eprintln!("{kills} kills, {flushes} flushes; {held} blocks cached before, {warm} after; {hits} hits");
    assert!(flushes > kills, "the kills came before there was anything to lose: {flushes} flushes");
    tally
}

#[test]
fn what_fio_flushed_is_there_and_most_hits_are_back() {
    let kills = times(20);
    let tally = killed_under_fio("32MiB", kills);
    let reads = kills * BLOCKS as u64;
    assert!(2 * tally.hits > reads, "{} of {reads} first reads were hits, where all is cached", tally.hits);
}

/// Three times as much as the cache takes: blocks are cleaned and leave while the daemon dies.
#[test]
fn what_fio_flushed_is_there_where_blocks_leave() {
    let tally = killed_under_fio("8MiB", times(20));
    assert!(2 * tally.warm > tally.held, "{} of {} blocks came back", tally.warm, tally.held);
}

/// A write that a flush does not cover, one that failed, one without an answer; a flush that failed, one that was cut short.
#[test]
fn a_log_of_requests_tells_what_was_flushed() {
    let log = "\
2026-01-01 00:00:00.1 connection=2 Write id=1 offset=0x1000 count=0x1000 fua=0 ...
2026-01-01 00:00:00.1 connection=2 Write id=2 offset=0x2000 count=0x1000 fua=0 ...
2026-01-01 00:00:00.1 connection=3 Write id=1 offset=0x3000 count=0x1000 fua=0 ...
2026-01-01 00:00:00.1 connection=2 ...Write id=1 return=0
2026-01-01 00:00:00.1 connection=3 ...Write id=1 return=-1 error=EIO
2026-01-01 00:00:00.1 connection=2 Flush id=3 ...
2026-01-01 00:00:00.1 connection=2 ...Write id=2 return=0
2026-01-01 00:00:00.1 connection=2 ...Flush id=3 return=0
2026-01-01 00:00:00.1 connection=2 Write id=4 offset=0x4000 count=0x1000 fua=0 ...
2026-01-01 00:00:00.1 connection=2 Flush id=5 ...
2026-01-01 00:00:00.1 connection=2 ...Flush id=5 return=-1 error=EIO
2026-01-01 00:00:00.1 connection=2 Flush id=6 ...
2026-01-01 00:00:00.1 connection=2 ...Flush id=6 return=0";
    let expected = Written { tried: vec![1, 2, 3, 4], flushed: vec![1], flushes: 1 };
    assert_eq!(Written::from_log(log, 4096), expected);
}
