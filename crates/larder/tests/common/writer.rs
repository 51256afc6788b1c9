//! A client under write-back that knows what its blocks may hold after a crash: what a flush covered, or something written since.

use std::path::Path;
use std::thread::{self, JoinHandle};

use super::nbd::{Client, Failure};
use super::pattern::{first_difference, random, stamp};
use super::setup::{BLOCK, Setup};

/// Blocks that one client has for itself.
pub const BLOCKS: u64 = 256;

/// A read that is refused is tried again so often: with one of twenty refused, that many in a row are none.
const TRIES: usize = 40;

/// Versions of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Versions {
    /// The oldest that may be there after a crash.
    oldest: u64,
    /// The newest that was answered.
    answered: u64,
    /// The newest that was tried: above `answered` where its answer was an error, or none.
    newest: u64,
}

/// A client of the volume `a0`, and what its blocks may hold.
pub struct Writer {
    first: u64,
    blocks: Vec<Versions>,
    state: u64,
    /// Requests may be refused with an error: the devices are bad.
    refusals: bool,
}

impl Writer {
    /// One for the blocks from `first` on, all of them zeroes.
    pub fn new(first: u64, state: u64) -> Self {
        Self { first, blocks: vec![Versions::default(); BLOCKS as usize], state, refusals: false }
    }

    /// The same where devices are bad.
    pub fn on_bad_devices(first: u64, state: u64) -> Self {
        Self { refusals: true, ..Self::new(first, state) }
    }

    fn offset(&self, block: u64) -> u64 {
        (self.first + block) * BLOCK
    }

    /// Write, read and flush until the daemon goes away.
    pub fn run(mut self, socket: &Path) -> JoinHandle<Self> {
        let mut client = Client::connect(socket, "a0");
        thread::spawn(move || {
            while self.step(&mut client) {}
            self
        })
    }

    /// One request; false when the daemon has gone.
    fn step(&mut self, client: &mut Client) -> bool {
        let block = random(&mut self.state, BLOCKS);
        let outcome = match random(&mut self.state, 24) {
            0 => client.flush().map(|()| self.flushed()),
            1..=8 => client.read(self.offset(block), BLOCK as u32).map(|found| self.found(block, &found)),
            _ => self.write(client, block),
        };
        match outcome {
            Ok(()) => true,
            Err(Failure::Refused(errno)) => {
                assert!(self.refusals, "block {block}: errno {errno}");
                true
            }
            Err(Failure::Broken(_)) => false,
        }
    }

    fn write(&mut self, client: &mut Client, block: u64) -> Result<(), Failure> {
        let offset = self.offset(block);
        let versions = &mut self.blocks[block as usize];
        versions.newest += 1;
        client.write(offset, &stamp(9, versions.newest, offset, BLOCK))?;
        versions.answered = versions.newest;
        Ok(())
    }

    fn flushed(&mut self) {
        self.blocks.iter_mut().for_each(|versions| versions.oldest = versions.answered);
    }

    /// What a read found while nothing was killed: what was answered last, or a write that was refused after that.
    fn found(&self, block: u64, found: &[u8]) {
        let (version, versions) = (self.version(block, found), self.blocks[block as usize]);
        assert!(
            version >= versions.answered,
            "block {block} is version {version} of {versions:?} before any kill"
        );
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

    /// After a start: every block twice, in parts too. From now on each has the one version that was found.
    pub fn verify(&mut self, setup: &Setup) {
        let mut client = Client::connect(&setup.socket("a0"), "a0");
        for block in 0..BLOCKS {
            let offset = self.offset(block);
            let found = self.read(&mut client, offset, BLOCK as u32);
            self.settle(block, &found);
            let again = self.read(&mut client, offset + 512, 1024);
            assert!(again == found[512..1536], "block {block} reads as something else in part");
        }
    }

    fn read(&self, client: &mut Client, offset: u64, len: u32) -> Vec<u8> {
        let tries = if self.refusals { TRIES } else { 1 };
        let mut last = None;
        for _ in 0..tries {
            match client.read(offset, len) {
                Ok(found) => return found,
                Err(failure) => last = Some(failure),
            }
        }
        panic!("a read at {offset} after the start: {last:?} for {tries} times")
    }

    /// This is what the block has, and nothing else.
    fn settle(&mut self, block: u64, found: &[u8]) {
        let version = self.version(block, found);
        self.blocks[block as usize] = Versions { oldest: version, answered: version, newest: version };
    }

    /// An image of the volume has what was answered.
    pub fn verify_image(&mut self, image: &[u8]) {
        for block in 0..BLOCKS {
            let at = self.offset(block) as usize;
            self.settle(block, &image[at..at + BLOCK as usize]);
        }
    }
}
