//! `kill -9` under write-back: what a flush covered is there afterwards, everything else reads as one of the versions written since, and keeps
//! reading as that. And over half of the hits are back right after the restart.
//!
//! `LARDER_KILLS` sets how often the daemon is killed (20 times where nothing is set).

use std::path::Path;
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::daemon::{Larder, count};
use crate::common::nbd::Client;
use crate::common::pattern::{first_difference, random, stamp};
use crate::common::setup::{BLOCK, MIB, Setup};

/// Blocks that one client has for itself.
const BLOCKS: u64 = 256;

fn kills() -> u64 {
    std::env::var("LARDER_KILLS").map_or(20, |text| text.parse().expect("LARDER_KILLS is a number"))
}

/// Versions of a block: the oldest that may be there, and the newest that was tried.
#[derive(Clone, Copy, Debug)]
struct Versions {
    oldest: u64,
    answered: u64,
    newest: u64,
}

/// A client, and what its blocks may hold.
struct Writer {
    first: u64,
    blocks: Vec<Versions>,
    state: u64,
}

impl Writer {
    fn new(first: u64, state: u64) -> Self {
        let blank = Versions { oldest: 0, answered: 0, newest: 0 };
        Self { first, blocks: vec![blank; BLOCKS as usize], state }
    }

    fn offset(&self, block: u64) -> u64 {
        (self.first + block) * BLOCK
    }

    /// Write, read and flush until the daemon goes away.
    fn run(mut self, socket: &Path) -> JoinHandle<Self> {
        let mut client = Client::connect(socket, "a0");
        thread::spawn(move || {
            while self.step(&mut client) {}
            self
        })
    }

    fn step(&mut self, client: &mut Client) -> bool {
        let block = random(&mut self.state, BLOCKS);
        let offset = self.offset(block);
        match random(&mut self.state, 24) {
            0 => {
                let flushed = client.flush().is_ok();
                if flushed {
                    self.blocks.iter_mut().for_each(|versions| versions.oldest = versions.answered);
                }
                flushed
            }
            1..=8 => client.read(offset, BLOCK as u32).is_ok_and(|found| {
                let newest = self.blocks[block as usize].answered;
                assert_eq!(self.version(block, &found), newest, "block {block} before any kill");
                true
            }),
            _ => {
                let next = self.blocks[block as usize].newest + 1;
                self.blocks[block as usize].newest = next;
                let written = client.write(offset, &stamp(9, next, offset, BLOCK)).is_ok();
                if written {
                    self.blocks[block as usize].answered = next;
                }
                written
            }
        }
    }

    /// Which version of a block this is: one of those that it may be.
    fn version(&self, block: u64, found: &[u8]) -> u64 {
        let (offset, versions) = (self.offset(block), self.blocks[block as usize]);
        let is = |&version: &u64| match version {
            0 => found.iter().all(|&byte| byte == 0),
            _ => first_difference(found, &stamp(9, version, offset, BLOCK)).is_none(),
        };
        let found = (versions.oldest..=versions.newest).rev().find(is);
        found.unwrap_or_else(|| panic!("block {block} is none of {versions:?}"))
    }

    /// After a start: every block twice, in parts too.
    fn verify(&mut self, larder: &Larder) {
        let mut client = Client::connect(&larder.socket("a0"), "a0");
        for block in 0..BLOCKS {
            let offset = self.offset(block);
            let found = client.read(offset, BLOCK as u32).expect("a read after the start");
            let version = self.version(block, &found);
            self.blocks[block as usize] = Versions { oldest: version, answered: version, newest: version };
            let again = client.read(offset + 512, 1024).expect("a read of a part");
            assert!(again == found[512..1536], "block {block} reads as something else in part");
        }
    }
}

#[test]
fn nothing_flushed_is_lost_under_write_back() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    let mut state = now.as_nanos() as u64;
    eprintln!("seed {state}");
    let tenant = "write_policy = \"wb\"\ndirty_rest = 30";
    let setup = Setup::new("10MiB").control("min_blocks = 10").tenant("a", tenant);
    let mut setup = setup.volume("a0", 6 * MIB);
    let mut writers: Vec<Writer> =
        (0..3).map(|n| Writer::new(n * BLOCKS, random(&mut state, u64::MAX))).collect();
    let mut hits = 0;
    for kill in 0..kills() {
        let larder = setup.start();
        writers.iter_mut().for_each(|writer| writer.verify(&larder));
        if kill > 0 {
            hits += count(&larder.tenant("a"), "read_hits");
        }
        let running: Vec<_> = writers.into_iter().map(|writer| writer.run(&larder.socket("a0"))).collect();
        sleep(Duration::from_millis(random(&mut state, 1200)));
        setup = larder.kill();
        writers = running.into_iter().map(|writer| writer.join().expect("a writer's record")).collect();
    }
    let reads = (kills() - 1) * 3 * BLOCKS * 2;
    assert!(hits > reads / 2, "{hits} of {reads} reads were hits after the restarts");
    let larder = setup.start();
    writers.iter_mut().for_each(|writer| writer.verify(&larder));
    // A clean stop keeps everything that was answered.
    let larder = larder.stop().start();
    writers.iter_mut().for_each(|writer| writer.verify(&larder));
    larder.stop();
}
