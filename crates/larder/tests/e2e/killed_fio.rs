//! `kill -9` under fio with `--verify`: fio writes each block of a volume once in a *run*, at random and with flushes in between, and verifies
//! behind itself, until the daemon is killed. `nbdkit`'s log filter between the two says which writes a flush covered. After the restart each
//! block has fio's header and checksum, and is of the newest run that was flushed, or of one that was tried since.
//!
//! `LARDER_KILLS` sets how often in each of the tests (20 times where nothing is set).

use std::fs;
use std::time::Duration;

use crate::common::LIMIT;
use crate::common::daemon::{Larder, count};
use crate::common::kills::{a_while, seed, times};
use crate::common::nbd::Client;
use crate::common::nbdkit::nbdkit;
use crate::common::process::{Background, program, run_within};
use crate::common::request_log::Written;
use crate::common::setup::{BLOCK, MIB, Setup};

const SIZE: u64 = 24 * MIB;
const BLOCKS: usize = (SIZE / BLOCK) as usize;

/// A run's number is the pattern that fills its blocks; with all digits in use fio takes it as four bytes.
const FIRST_RUN: u32 = 0x1000_0000;

/// fio on the volume behind this URI: `more` are arguments of the job.
fn fio(uri: &str, more: &[&str]) -> std::process::Command {
    let mut fio = program("fio");
    fio.args(["--name=job", "--ioengine=nbd", "--thread=1", "--iodepth=16", "--bs=4k", "--verify=crc32c"]);
    fio.args(["--verify_state_save=0", "--verify_fatal=1", "--randrepeat=0"]);
    fio.arg(format!("--uri={uri}")).arg(format!("--size={SIZE}")).args(more);
    fio
}

/// For each block the oldest and the newest run that it may be of.
struct Runs {
    number: u32,
    blocks: Vec<[u32; 2]>,
}

impl Runs {
    /// The first run, to its end and flushed.
    fn first(larder: &Larder) -> Self {
        let pattern = format!("--verify_pattern=0x{FIRST_RUN:08x}");
        let mut fill = fio(&larder.uri("a0"), &["--rw=write", "--end_fsync=1", "--do_verify=1", &pattern]);
        let outcome = run_within(LIMIT, &mut fill, larder.folder());
        assert!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
        Self { number: FIRST_RUN, blocks: vec![[FIRST_RUN; 2]; BLOCKS] }
    }

    /// One more run, behind a log, which the daemon's death cuts short. The setup goes on.
    fn until_killed(&mut self, larder: Larder, state: &mut u64, tally: &mut Tally) -> Setup {
        self.number += 1;
        let log = larder.path("requests.log");
        let arguments = [format!("uri={}", larder.uri("a0")), format!("logfile={}", log.display())];
        let (mut between, uri) =
            nbdkit(&larder, "logged", &["--filter=log", "nbd", &arguments[0], &arguments[1]]);
        let pattern = format!("--verify_pattern=0x{:08x}", self.number);
        let more = ["--rw=randwrite", "--fsync=16", "--do_verify=1", "--verify_backlog=64", &pattern];
        let mut job = Background::start(&mut fio(&uri, &more), &larder.path("fio.log"));
        a_while(state, Duration::from_millis(1200));
        tally.held += count(&larder.tenant("a"), "occupied_blocks");
        let setup = larder.kill();
        // It has met an error, or it had come to its end before.
        job.wait(LIMIT);
        between.kill();
        let written = Written::from_log(&fs::read_to_string(log).expect("the log"), BLOCK);
        written.tried.iter().for_each(|&block| self.blocks[block as usize][1] = self.number);
        written.flushed.iter().for_each(|&block| self.blocks[block as usize][0] = self.number);
        tally.flushes += written.flushes;
        setup
    }

    /// fio finds every header and checksum right; then each block is of a run that it may be of, and from now on of no other. The hits of fio's
    /// pass, in random order: read one after the other, what is cached would leave just before it is read.
    fn verify(&mut self, larder: &Larder) -> u64 {
        let hits = || count(&larder.tenant("a"), "read_hits");
        let before = hits();
        let outcome = run_within(LIMIT, &mut fio(&larder.uri("a0"), &["--rw=randread"]), larder.folder());
        assert!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
        let after = hits();
        let mut client = Client::connect(&larder.socket("a0"), "a0");
        let mut image = Vec::new();
        for offset in (0..SIZE).step_by(MIB as usize) {
            image.extend(client.read(offset, MIB as u32).expect("a read after the start"));
        }
        for (block, data) in image.chunks_exact(BLOCK as usize).enumerate() {
            let found = u32::from_be_bytes(data[4092..].try_into().expect("four bytes"));
            let [oldest, newest] = self.blocks[block];
            assert!(
                (oldest..=newest).contains(&found),
                "block {block} is of run {found:#x}: it may be of {oldest:#x} to {newest:#x}"
            );
            self.blocks[block] = [found; 2];
        }
        after - before
    }
}

/// What was seen, over all lives.
#[derive(Default)]
struct Tally {
    flushes: u64,
    /// Blocks cached just before the kills, and right after the restarts.
    held: u64,
    warm: u64,
    /// Hits of fio's first pass over all blocks after each restart.
    hits: u64,
}

/// Kill it over and over.
fn killed_under_fio(cache: &str, kills: u64) -> Tally {
    let (mut state, mut tally) = (seed(), Tally::default());
    let larder = Setup::new(cache).tenant("a", "write_policy = \"wb\"").volume("a0", SIZE).start();
    let mut runs = Runs::first(&larder);
    let mut larder = larder.stop().start();
    for _ in 0..kills {
        larder = runs.until_killed(larder, &mut state, &mut tally).start();
        tally.warm += count(&larder.tenant("a"), "warm_blocks");
        tally.hits += runs.verify(&larder);
    }
    let larder = larder.stop().start();
    runs.verify(&larder);
    larder.stop();
    let Tally { flushes, held, warm, hits } = tally;
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
