//! `kill -9` at random moments, over and over, while clients write: what was answered is there afterwards, each block reads as one of the
//! values that it may have, it keeps reading as that, and cache and backing agree.
//!
//! `LARDER_KILLS` sets how often (a few times here); each kill comes at another moment.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use crate::common::daemon::{Larder, count};
use crate::common::kills::{a_while, seed, times};
use crate::common::nbd::Client;
use crate::common::pattern::{first_difference, random, stamp};
use crate::common::process::{Background, program, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};

/// Two ticks, and some: by then what was read is mapped.
const MAPPED_AFTER: Duration = Duration::from_secs(3);

/// A kill comes within this time: what is cached is mapped by the second.
const LONGEST: Duration = Duration::from_millis(1500);

/// Blocks that one client has for itself.
const BLOCKS: u64 = 256;

/// A client of a volume, and what it knows: for each of its blocks the generation that was answered last, and the one that may be there
/// instead.
struct Writer {
    volume: &'static str,
    first: u64,
    known: Vec<[u64; 2]>,
    state: u64,
}

impl Writer {
    fn new(volume: &'static str, first: u64, state: u64) -> Self {
        Self { volume, first, known: vec![[0, 0]; BLOCKS as usize], state }
    }

    /// Write and read until the daemon goes away.
    fn run(mut self, socket: &Path) -> JoinHandle<Self> {
        let mut client = Client::connect(socket, self.volume);
        thread::spawn(move || {
            while self.step(&mut client) {}
            self
        })
    }

    /// One request; false when the daemon has gone.
    fn step(&mut self, client: &mut Client) -> bool {
        let block = random(&mut self.state, BLOCKS);
        match random(&mut self.state, 16) {
            0 => client.flush().is_ok(),
            1..=8 => {
                client.read(self.offset(block), BLOCK as u32).is_ok_and(|found| self.learn(block, &found))
            }
            _ => {
                let next = self.known[block as usize][1] + 1;
                let offset = self.offset(block);
                self.known[block as usize][1] = next;
                let written = client.write(offset, &stamp(7, next, offset, BLOCK)).is_ok();
                if written {
                    self.known[block as usize][0] = next;
                }
                written
            }
        }
    }

    fn offset(&self, block: u64) -> u64 {
        (self.first + block) * BLOCK
    }

    /// What was read must be one of the values that the block may have; from then on it has no other. True.
    fn learn(&mut self, block: u64, found: &[u8]) -> bool {
        let offset = self.offset(block);
        let held = self.known[block as usize].into_iter().find(|&generation| match generation {
            0 => found.iter().all(|&byte| byte == 0),
            _ => first_difference(found, &stamp(7, generation, offset, BLOCK)).is_none(),
        });
        let known = self.known[block as usize];
        let held = held.unwrap_or_else(|| panic!("block {block} of {} is none of {known:?}", self.volume));
        self.known[block as usize] = [held, held];
        true
    }

    /// After a start: every block, twice; then the backing itself, which has the same.
    fn verify(&mut self, larder: &Larder) {
        let mut client = Client::connect(&larder.socket(self.volume), self.volume);
        let image = fs::read(larder.backing(self.volume)).expect("the backing");
        for _ in 0..2 {
            for block in 0..BLOCKS {
                let offset = self.offset(block);
                let found = client.read(offset, BLOCK as u32).expect("a read after the start");
                self.learn(block, &found);
                let behind = &image[offset as usize..(offset + BLOCK) as usize];
                assert!(found == behind, "block {block} of {}: the backing has something else", self.volume);
            }
        }
    }
}

/// Blocks that nobody writes, behind those that are written, in a region of their own: what is written all the time is not trusted after a
/// crash.
const CALM: std::ops::Range<u64> = 1024..1536;

/// Read them; they are hits, or are from now on. The hits.
fn read_calm(larder: &Larder, volume: &str) -> u64 {
    let hits = || count(&larder.tenant(&volume[..1]), "read_hits");
    let (before, mut client) = (hits(), Client::connect(&larder.socket(volume), volume));
    for block in CALM {
        let found = client.read(block * BLOCK, BLOCK as u32).expect("a read after the start");
        assert_eq!(first_difference(&found, &stamp(5, 0, block * BLOCK, BLOCK)), None, "block {block}");
    }
    hits() - before
}

/// Two volumes, one for each write policy, with two writers each and blocks that are only read.
fn two_volumes() -> Setup {
    let setup = Setup::new("10MiB").control("min_blocks = 10");
    let setup = setup.tenant("a", "write_policy = \"wt\"").volume("a0", 6 * MIB);
    let setup = setup.tenant("b", "write_policy = \"ro\"").volume("b0", 6 * MIB);
    for volume in ["a0", "b0"] {
        let file = File::options().write(true).open(setup.backing(volume)).expect("the backing");
        let (start, len) = (CALM.start * BLOCK, (CALM.end - CALM.start) * BLOCK);
        file.write_all_at(&stamp(5, 0, start, len), start).expect("stamps");
    }
    setup
}

#[test]
fn nothing_answered_is_lost_and_nothing_stale_is_served() {
    let mut state = seed();
    let larder = two_volumes().start();
    for volume in ["a0", "b0"] {
        read_calm(&larder, volume);
    }
    sleep(MAPPED_AFTER);
    let mut setup = larder.kill();
    let mut writers: Vec<Writer> = [("a0", 0), ("a0", BLOCKS), ("b0", 0), ("b0", BLOCKS)]
        .into_iter()
        .map(|(volume, first)| Writer::new(volume, first, random(&mut state, u64::MAX)))
        .collect();
    for kill in 0..times(5) {
        let larder = setup.start();
        for volume in ["a0", "b0"] {
            let hits = read_calm(&larder, volume);
            assert!(hits > (CALM.end - CALM.start) / 2, "{volume}: {hits} hits after kill {kill}");
        }
        writers.iter_mut().for_each(|writer| writer.verify(&larder));
        if kill % 3 == 0 {
            // What was read just now is mapped when it is overwritten.
            sleep(MAPPED_AFTER);
        }
        let running: Vec<_> = writers
            .into_iter()
            .map(|writer| {
                let socket = larder.socket(writer.volume);
                writer.run(&socket)
            })
            .collect();
        a_while(&mut state, LONGEST);
        setup = larder.kill();
        writers = running.into_iter().map(|writer| writer.join().expect("a writer's record")).collect();
    }
    let larder = setup.start();
    writers.iter_mut().for_each(|writer| writer.verify(&larder));
    let larder = larder.stop().start();
    writers.iter_mut().for_each(|writer| writer.verify(&larder));
    larder.stop();
}

const SIZE: u64 = 24 * MIB;

/// fio on a volume: `more` are arguments of the job.
fn fio(larder: &Larder, more: &[&str]) -> std::process::Command {
    let mut fio = program("fio");
    fio.args(["--name=job", "--ioengine=nbd", "--thread=1", "--iodepth=16", "--bs=4k", "--verify=crc32c"]);
    fio.args(["--verify_state_save=0", "--verify_fatal=1", "--randrepeat=0"]);
    fio.arg(format!("--uri={}", larder.uri("a0"))).arg(format!("--size={SIZE}")).args(more);
    fio
}

/// Each block has the header and the checksum that fio gave it, in the first life or in one that was cut off. In random order: read one after
/// the other, what is cached would leave just before it is read.
fn fio_verifies(larder: &Larder) {
    let mut verify = fio(larder, &["--rw=randread"]);
    let outcome = run_within(Duration::from_secs(120), &mut verify, larder.folder());
    assert!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
}

#[test]
fn fio_verifies_what_survived() {
    let mut state = seed();
    let larder = Setup::new("8MiB").tenant("a", "write_policy = \"wt\"").volume("a0", SIZE).start();
    let mut fill = fio(&larder, &["--rw=write", "--do_verify=1"]);
    let outcome = run_within(Duration::from_secs(120), &mut fill, larder.folder());
    assert!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
    let mut setup = larder.stop();
    for _ in 0..times(5) {
        let larder = setup.start();
        fio_verifies(&larder);
        let log = larder.path("fio.log");
        let rewrite = ["--rw=randrw", "--do_verify=0", "--verify_backlog=64", "--time_based", "--runtime=60"];
        let mut job = Background::start(&mut fio(&larder, &rewrite), &log);
        a_while(&mut state, LONGEST);
        setup = larder.kill();
        job.kill();
    }
    let larder = setup.start();
    fio_verifies(&larder);
    fio_verifies(&larder);
    assert!(count(&larder.tenant("a"), "read_hits") > 0);
    larder.stop();
}
