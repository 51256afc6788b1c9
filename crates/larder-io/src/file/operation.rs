//! One operation on a file as a sequence of system calls: what the next call is, and what its result means.
//!
//! The same steps run through the ring or inline. Short transfers continue with the rest; a discard that the device cannot
//! do is a success; zeroes that it cannot make by itself are written.

use crate::command::{Command, CommandKind};
use crate::loan::Place;
use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use larder_engine::IoError;
use std::os::fd::RawFd;

/// Bytes of a read or write given to the kernel at once.
const TRANSFER_MAX: u64 = 1 << 30;
/// Bytes of zeroes written at once where the device cannot make them itself.
const ZEROES_BYTES: usize = 128 << 10;
/// Times that an interrupted call is repeated in a row before it counts as failed.
const RETRIES_MAX: u8 = 16;

const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;

#[repr(align(4096))]
struct Zeroes([u8; ZEROES_BYTES]);
static ZEROES: Zeroes = Zeroes([0; ZEROES_BYTES]);

/// What a device turned out not to do, so that it is not asked again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lacks {
    punch: bool,
    zero_range: bool,
}

/// A command on a file, and how far it has come.
#[derive(Debug)]
pub(crate) struct FileOperation {
    pub command: Command,
    step: Step,
    offset: u64,
    left: u64,
    retries: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    Write,
    Sync,
    Discard,
    Punch,
    ZeroRange,
    WriteZeroes,
}

/// What the result of a call means for the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Another call is needed.
    Again,
    /// It has ended.
    Done(Result<(), Failure>),
}

/// A failed operation: what the guest is told, and the system's error number for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub error: IoError,
    pub errno: i32,
}

impl FileOperation {
    pub fn new(command: Command, lacks: Lacks) -> Self {
        let step = match command.kind {
            CommandKind::Read => Step::Read,
            CommandKind::Write => Step::Write,
            CommandKind::Flush => Step::Sync,
            CommandKind::Discard => Step::Discard,
            CommandKind::WriteZeroes { no_hole } => first_zero_step(no_hole, lacks),
        };
        Self { offset: command.offset, left: command.len, step, retries: 0, command }
    }

    /// Its memory, if it is a write that has not begun, with nothing else to be done.
    #[inline]
    pub fn plain_write(&self) -> Option<libc::iovec> {
        let Place::One(start) = self.command.memory else { return None };
        let is_whole = self.left == self.command.len && self.retries == 0;
        let is_plain = self.step == Step::Write && !self.command.fua && is_whole;
        is_plain.then(|| libc::iovec { iov_base: start.cast(), iov_len: self.left as usize })
    }

    /// The next call as an entry for the ring, without key.
    pub fn entry(&self, fd: types::Fd) -> Entry {
        let memory = self.memory();
        let fallocate = |mode| opcode::Fallocate::new(fd, self.left).offset(self.offset).mode(mode).build();
        match self.step {
            Step::Read => match &self.command.memory {
                Place::One(_) => opcode::Read::new(fd, memory, self.chunk()).offset(self.offset).build(),
                Place::Many(pieces) => {
                    opcode::Readv::new(fd, pieces.as_ptr(), pieces.len() as u32).offset(self.offset).build()
                }
            },
            Step::Write => opcode::Write::new(fd, memory, self.chunk())
                .offset(self.offset)
                .rw_flags(self.write_flags())
                .build(),
            Step::WriteZeroes => opcode::Write::new(fd, memory, self.chunk()).offset(self.offset).build(),
            Step::Sync => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
            Step::Discard | Step::Punch => fallocate(PUNCH),
            Step::ZeroRange => fallocate(ZERO),
        }
    }

    /// Make the next call now. The result is as the ring would give it: negative for an error number.
    ///
    /// # Safety
    /// The command's memory is valid for its length, and nobody else writes it.
    pub unsafe fn call(&self, fd: RawFd) -> i32 {
        let part = libc::iovec { iov_base: self.memory().cast(), iov_len: self.chunk() as usize };
        let offset = self.offset as i64;
        // SAFETY: the caller vouches for the memory; `chunk` stays inside it.
        let result = unsafe {
            match self.step {
                Step::Read => match &self.command.memory {
                    Place::One(_) => libc::pread(fd, part.iov_base, part.iov_len, offset),
                    Place::Many(pieces) => libc::preadv(fd, pieces.as_ptr(), pieces.len() as i32, offset),
                },
                Step::Write if self.command.fua => libc::pwritev2(fd, &part, 1, offset, libc::RWF_DSYNC),
                Step::Write | Step::WriteZeroes => libc::pwrite(fd, part.iov_base, part.iov_len, offset),
                Step::Sync => libc::fdatasync(fd) as isize,
                Step::Discard | Step::Punch => libc::fallocate(fd, PUNCH, offset, self.left as i64) as isize,
                Step::ZeroRange => libc::fallocate(fd, ZERO, offset, self.left as i64) as isize,
            }
        };
        if result < 0 {
            -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
        } else {
            result as i32
        }
    }

    /// Take the result of a call. `align` is the unit of which direct transfers are multiples.
    pub fn advance(&mut self, result: i32, align: u32, lacks: &mut Lacks) -> Progress {
        if result < 0 {
            return self.failed(-result, lacks);
        }
        self.retries = 0;
        match self.step {
            Step::Read | Step::Write | Step::WriteZeroes => self.transferred(result as u64, align),
            Step::Punch | Step::ZeroRange => self.zeroed(),
            Step::Sync | Step::Discard => Progress::Done(Ok(())),
        }
    }

    fn transferred(&mut self, bytes: u64, align: u32) -> Progress {
        let bytes = if bytes < self.left { bytes / u64::from(align) * u64::from(align) } else { self.left };
        if bytes == 0 {
            // Nothing moved: the file was truncated under us, or a write found no room.
            let error = if self.step == Step::Read { IoError::Io } else { IoError::NoSpace };
            return fail(error, 0);
        }
        self.offset += bytes;
        self.left -= bytes;
        if self.left > 0 {
            self.skip_pieces(bytes as usize);
        }
        match self.left {
            0 if self.step == Step::WriteZeroes => self.zeroed(),
            0 => Progress::Done(Ok(())),
            _ => Progress::Again,
        }
    }

    /// So many bytes are where they belong, and some are left.
    fn skip_pieces(&mut self, bytes: usize) {
        let Place::Many(pieces) = &mut self.command.memory else { return };
        let mut skip = bytes;
        let done = pieces.iter().take_while(|piece| {
            let whole = piece.iov_len <= skip;
            skip -= if whole { piece.iov_len } else { 0 };
            whole
        });
        let mut left = pieces[done.count()..].to_vec();
        if let Some(first) = left.first_mut() {
            first.iov_base = first.iov_base.wrapping_byte_add(skip);
            first.iov_len -= skip;
        }
        *pieces = left.into();
    }

    /// The zeroes are there; with FUA they also have to be durable.
    fn zeroed(&mut self) -> Progress {
        if !self.command.fua {
            return Progress::Done(Ok(()));
        }
        self.step = Step::Sync;
        Progress::Again
    }

    fn failed(&mut self, errno: i32, lacks: &mut Lacks) -> Progress {
        let unsupported = matches!(errno, libc::EOPNOTSUPP | libc::ENOSYS | libc::ENODEV);
        match self.step {
            _ if matches!(errno, libc::EINTR | libc::EAGAIN) && self.retries < RETRIES_MAX => {
                self.retries += 1
            }
            Step::Discard if unsupported => return Progress::Done(Ok(())),
            Step::Punch if unsupported => {
                lacks.punch = true;
                self.step = first_zero_step(true, *lacks);
            }
            Step::ZeroRange if unsupported => {
                lacks.zero_range = true;
                self.step = Step::WriteZeroes;
            }
            _ => return fail(error_of(errno), errno),
        }
        Progress::Again
    }

    /// Where the next transfer begins in memory.
    fn memory(&self) -> *mut u8 {
        match self.step {
            // Only ever read from: the kernel takes the zeroes from here.
            Step::WriteZeroes => ZEROES.0.as_ptr().cast_mut(),
            _ => self.command.memory.at((self.command.len - self.left) as usize),
        }
    }

    fn chunk(&self) -> u32 {
        let most = if self.step == Step::WriteZeroes { ZEROES_BYTES as u64 } else { TRANSFER_MAX };
        self.left.min(most) as u32
    }

    fn write_flags(&self) -> i32 {
        if self.command.fua { libc::RWF_DSYNC } else { 0 }
    }
}

/// The cheapest way to make zeroes that the device has not refused yet.
fn first_zero_step(no_hole: bool, lacks: Lacks) -> Step {
    match (no_hole, lacks) {
        (false, Lacks { punch: false, .. }) => Step::Punch,
        (_, Lacks { zero_range: false, .. }) => Step::ZeroRange,
        _ => Step::WriteZeroes,
    }
}

fn fail(error: IoError, errno: i32) -> Progress {
    Progress::Done(Err(Failure { error, errno }))
}

/// What a guest is told of a system's error number.
pub(crate) fn error_of(errno: i32) -> IoError {
    match errno {
        libc::ENOSPC | libc::EDQUOT => IoError::NoSpace,
        libc::EOPNOTSUPP | libc::EROFS => IoError::NotSupported,
        _ => IoError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::test_command;

    fn operation(kind: CommandKind, len: u64, fua: bool) -> FileOperation {
        FileOperation::new(Command { fua, ..test_command(kind, 4096, len) }, Lacks::default())
    }

    #[test]
    fn a_short_read_continues_with_the_rest() {
        let mut read = operation(CommandKind::Read, 8192, false);
        assert_eq!(read.advance(1000, 512, &mut Lacks::default()), Progress::Again);
        assert_eq!((read.offset, read.left), (4096 + 512, 8192 - 512));
        assert_eq!(read.advance(8192 - 512, 512, &mut Lacks::default()), Progress::Done(Ok(())));
    }

    #[test]
    fn a_short_read_continues_within_its_pieces() {
        let mut memory = [0_u8; 4096];
        let mut piece =
            |at: usize, len| libc::iovec { iov_base: memory[at..].as_mut_ptr().cast(), iov_len: len };
        let pieces = [piece(0, 1024), piece(2048, 512), piece(3072, 512)];
        let [_, second, third] = [0, 1, 2].map(|n: usize| pieces[n].iov_base);
        let mut read = operation(CommandKind::Read, 2048, false);
        read.command.memory = Place::Many(pieces.into());
        assert_eq!(read.advance(1024 + 256, 256, &mut Lacks::default()), Progress::Again);
        let Place::Many(left) = &read.command.memory else { panic!("two are left") };
        let left: Vec<_> = left.iter().map(|piece| (piece.iov_base, piece.iov_len)).collect();
        assert_eq!(left, [(second.wrapping_byte_add(256), 256), (third, 512)]);
        assert_eq!(read.advance(768, 256, &mut Lacks::default()), Progress::Done(Ok(())));
    }

    #[test]
    fn the_end_of_the_file_is_an_error() {
        let mut read = operation(CommandKind::Read, 8192, false);
        assert_eq!(read.advance(0, 512, &mut Lacks::default()), fail(IoError::Io, 0));
    }

    #[test]
    fn interrupted_calls_are_repeated_but_not_forever() {
        let mut write = operation(CommandKind::Write, 512, false);
        for _ in 0..RETRIES_MAX {
            assert_eq!(write.advance(-libc::EINTR, 512, &mut Lacks::default()), Progress::Again);
        }
        assert_eq!(write.advance(-libc::EINTR, 512, &mut Lacks::default()), fail(IoError::Io, libc::EINTR));
    }

    #[test]
    fn zeroes_fall_back_step_by_step_and_the_device_remembers() {
        let mut lacks = Lacks::default();
        let mut zeroes = operation(CommandKind::WriteZeroes { no_hole: false }, 200 << 10, true);
        assert_eq!(zeroes.step, Step::Punch);
        assert_eq!(zeroes.advance(-libc::EOPNOTSUPP, 512, &mut lacks), Progress::Again);
        assert_eq!(zeroes.step, Step::ZeroRange);
        assert_eq!(zeroes.advance(-libc::EOPNOTSUPP, 512, &mut lacks), Progress::Again);
        assert_eq!((zeroes.step, zeroes.chunk()), (Step::WriteZeroes, 128 << 10));
        assert_eq!(zeroes.advance(128 << 10, 512, &mut lacks), Progress::Again);
        assert_eq!(zeroes.advance(72 << 10, 512, &mut lacks), Progress::Again);
        assert_eq!(zeroes.step, Step::Sync);
        assert_eq!(zeroes.advance(0, 512, &mut lacks), Progress::Done(Ok(())));
        let next =
            FileOperation::new(test_command(CommandKind::WriteZeroes { no_hole: false }, 0, 512), lacks);
        assert_eq!(next.step, Step::WriteZeroes);
    }

    #[test]
    fn a_discard_that_is_not_supported_succeeds() {
        let mut discard = operation(CommandKind::Discard, 1 << 20, false);
        assert_eq!(discard.advance(-libc::EOPNOTSUPP, 512, &mut Lacks::default()), Progress::Done(Ok(())));
        let mut discard = operation(CommandKind::Discard, 1 << 20, false);
        assert_eq!(discard.advance(-libc::EIO, 512, &mut Lacks::default()), fail(IoError::Io, libc::EIO));
    }

    #[test]
    fn error_numbers_have_their_meaning() {
        assert_eq!(error_of(libc::ENOSPC), IoError::NoSpace);
        assert_eq!(error_of(libc::EROFS), IoError::NotSupported);
        assert_eq!(error_of(libc::EIO), IoError::Io);
    }
}
