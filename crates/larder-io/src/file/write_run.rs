//! Writes that lie one behind the other on a file, made by one call.
//!
//! Slots are handed out in the order of their places ([`larder_engine::FreeSlots`]), so what several requests write in one turn of the reactor often is such a run. (Random
//! writes to a cache of which a third is free: some two in a run.) Where a run fails or ends early, each of its writes
//! is made again by itself: so each has its own error, and what was waited for in vain is waited for once more.

use super::FileOperation;
use io_uring::squeue::Entry;
use io_uring::{opcode, types};

/// Bytes of a run: what disks take at once.
const BYTES_MAX: u64 = 256 << 10;
/// Writes of a run.
const WRITES_MAX: usize = 64;

/// Writes that have not begun.
#[derive(Debug)]
pub(crate) struct WriteRun {
    first: FileOperation,
    rest: Vec<FileOperation>,
    /// Where the data is, for the kernel.
    pieces: Vec<libc::iovec>,
    bytes: u64,
}

impl WriteRun {
    /// A run of one, if it can be one of several.
    #[inline]
    pub fn new(first: FileOperation) -> Result<Self, FileOperation> {
        match first.plain_write() {
            Some(_) => Ok(Self { bytes: first.command.len, first, rest: Vec::new(), pieces: Vec::new() }),
            None => Err(first),
        }
    }

    /// Add a write that comes behind the last one; else it comes back.
    #[inline]
    pub fn add(&mut self, next: FileOperation) -> Result<(), FileOperation> {
        let is_next = next.command.offset == self.first.command.offset + self.bytes
            && self.bytes + next.command.len <= BYTES_MAX
            && self.rest.len() + 1 < WRITES_MAX;
        if !is_next || next.plain_write().is_none() {
            return Err(next);
        }
        self.bytes += next.command.len;
        self.rest.push(next);
        Ok(())
    }

    /// True if it is one write.
    pub fn is_single(&self) -> bool {
        self.rest.is_empty()
    }

    /// The first of its writes.
    pub fn into_first(self) -> FileOperation {
        self.first
    }

    /// The call as an entry for the ring, without key. It names memory of the run, which does not move with it.
    pub fn entry(&mut self, fd: types::Fd) -> Entry {
        self.pieces.extend(self.first.plain_write());
        self.pieces.extend(self.rest.iter().filter_map(FileOperation::plain_write));
        let start = self.first.command.offset;
        opcode::Writev::new(fd, self.pieces.as_ptr(), self.pieces.len() as u32).offset(start).build()
    }

    /// True if all was written.
    pub fn is_done(&self, result: i32) -> bool {
        u64::try_from(result).is_ok_and(|bytes| bytes == self.bytes)
    }

    /// Its writes.
    pub fn into_writes(self) -> impl Iterator<Item = FileOperation> {
        std::iter::once(self.first).chain(self.rest)
    }
}
