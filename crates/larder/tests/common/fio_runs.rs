//! fio with `--verify` on a volume, in *runs*: each writes every block once, at random and with flushes in between, and verifies behind itself, until
//! the daemon is killed. `nbdkit`'s log filter between the two says which writes a flush covered. So of each block it is known which runs it may be of.

use std::fs;

use super::LIMIT;
use super::daemon::{Larder, count};
use super::nbd::Client;
use super::nbdkit::nbdkit;
use super::process::{Background, program, run_within};
use super::request_log::Written;
use super::setup::{BLOCK, MIB, Setup};

/// Bytes of the volume, `a0` of the tenant `a`.
pub const SIZE: u64 = 24 * MIB;
/// Its blocks.
pub const BLOCKS: usize = (SIZE / BLOCK) as usize;

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

/// What a run meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// Nothing fails before the daemon is killed: fio verifies behind itself.
    Sound,
    /// Requests may be refused: fio goes on, and does not read meanwhile. (Where a read is refused it writes the buffer's zeroes next, under a header that is right.)
    Bad,
}

/// For each block the oldest and the newest run that it may be of.
pub struct Runs {
    number: u32,
    blocks: Vec<[u32; 2]>,
}

impl Runs {
    /// The first run, to its end and flushed.
    pub fn first(larder: &Larder) -> Self {
        let pattern = format!("--verify_pattern=0x{FIRST_RUN:08x}");
        let mut fill = fio(&larder.uri("a0"), &["--rw=write", "--end_fsync=1", "--do_verify=1", &pattern]);
        let outcome = run_within(LIMIT, &mut fill, larder.folder());
        assert!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
        Self { number: FIRST_RUN, blocks: vec![[FIRST_RUN; 2]; BLOCKS] }
    }

    /// One more run, behind a log, which the daemon's death cuts short after what happens `meanwhile`. The setup goes on.
    pub fn until_killed(
        &mut self,
        larder: Larder,
        tally: &mut Tally,
        devices: Devices,
        meanwhile: impl FnOnce(&Larder),
    ) -> Setup {
        self.number += 1;
        let log = larder.path("requests.log");
        let arguments = [format!("uri={}", larder.uri("a0")), format!("logfile={}", log.display())];
        let (mut between, uri) =
            nbdkit(&larder, "logged", &["--filter=log", "nbd", &arguments[0], &arguments[1]]);
        let pattern = format!("--verify_pattern=0x{:08x}", self.number);
        let mut fio = fio(&uri, &["--rw=randwrite", "--fsync=16", &pattern]);
        match devices {
            Devices::Sound => fio.args(["--do_verify=1", "--verify_backlog=64"]),
            Devices::Bad => fio.args(["--do_verify=0", "--continue_on_error=io"]),
        };
        let mut job = Background::start(&mut fio, &larder.path("fio.log"));
        meanwhile(&larder);
        let tenant = larder.tenant("a");
        tally.held += count(&tenant, "occupied_blocks");
        tally.dirty += count(&tenant, "dirty_blocks");
        let setup = larder.kill();
        // It has met an error, or it had come to its end before.
        job.wait(LIMIT);
        between.kill();
        assert!(!job.log().contains("verify: bad"), "{}", job.log());
        let written = Written::from_log(&fs::read_to_string(log).expect("the log"), BLOCK);
        written.tried.iter().for_each(|&block| self.blocks[block as usize][1] = self.number);
        written.flushed.iter().for_each(|&block| self.blocks[block as usize][0] = self.number);
        tally.flushes += written.flushes;
        setup
    }

    /// fio finds every header and checksum right; then each block is of a run that it may be of, and from now on of no other. The hits of fio's
    /// pass, in random order: read one after the other, what is cached would leave just before it is read.
    pub fn verify(&mut self, larder: &Larder) -> u64 {
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
        self.settle(&image);
        after - before
    }

    /// Each block of an image of the volume is of a run that it may be of, and from now on of no other.
    pub fn settle(&mut self, image: &[u8]) {
        assert_eq!(image.len() as u64, SIZE);
        for (block, data) in image.chunks_exact(BLOCK as usize).enumerate() {
            let found = u32::from_be_bytes(data[4092..].try_into().expect("four bytes"));
            let [oldest, newest] = self.blocks[block];
            assert!(
                (oldest..=newest).contains(&found),
                "block {block} is of run {found:#x}: it may be of {oldest:#x} to {newest:#x}"
            );
            self.blocks[block] = [found; 2];
        }
    }
}

/// What was seen, over all lives.
#[derive(Default)]
pub struct Tally {
    /// Flushes that were answered.
    pub flushes: u64,
    /// Blocks cached just before the kills.
    pub held: u64,
    /// Dirty ones of them.
    pub dirty: u64,
    /// Blocks cached right after the kills.
    pub warm: u64,
    /// Hits of fio's first pass over all blocks after each restart.
    pub hits: u64,
}
