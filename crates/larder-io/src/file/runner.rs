//! A file at work on a reactor: commands go to the ring, a bounded number at a time, or run inline where the file lives in
//! memory.

use super::operation::{Failure, Lacks, Progress};
use super::{FileDevice, FileOperation, WriteRun};
use crate::command::{Command, CommandKind, Ended};
use crate::error_log::ErrorLog;
use crate::lane::Lane;
use crate::ring::FileRef;
use larder_engine::IoError;
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd};

/// Operations that the kernel has of one file at a time. More would only block in its request queue.
const IN_FLIGHT_MAX: usize = 256;

/// A [`FileDevice`] on a reactor.
pub(crate) struct FileRunner {
    pub device: FileDevice,
    index: usize,
    file: FileRef,
    in_flight: usize,
    waiting: VecDeque<FileOperation>,
    lacks: Lacks,
    log: ErrorLog,
}

impl FileRunner {
    /// `index` is the reactor's name for the device, which comes back with every completion.
    pub fn new(device: FileDevice, index: usize, lane: &mut Lane) -> Self {
        let file = lane.ring.register(device.as_fd());
        let log = ErrorLog::default();
        Self { device, index, file, in_flight: 0, waiting: VecDeque::new(), lacks: Lacks::default(), log }
    }

    /// Let go of the file. Nothing is in flight on it.
    pub fn close(self, lane: &mut Lane) {
        debug_assert!(self.in_flight == 0 && self.waiting.is_empty());
        lane.ring.unregister(self.file);
    }

    /// True where commands run inline, without the ring.
    pub fn is_inline(&self) -> bool {
        self.device.inline
    }

    /// Start a command. On an inline device its first call is made at once.
    #[inline]
    pub fn start(&mut self, command: Command, lane: &mut Lane) -> Option<Ended> {
        let operation = FileOperation::new(command, self.lacks);
        if self.device.inline {
            return self.call(operation);
        }
        let operation = match lane.add_to_run(self.index, operation) {
            Ok(()) => return None,
            Err(operation) => operation,
        };
        if self.in_flight == IN_FLIGHT_MAX {
            self.waiting.push_back(operation);
            return None;
        }
        self.in_flight += 1;
        match WriteRun::new(operation) {
            Ok(run) => lane.begin_run(self.index, self.file, run),
            Err(operation) => self.send(operation, lane),
        }
        None
    }

    /// Inline devices: go on with an operation that takes several calls, one call per turn of the loop.
    pub fn continue_inline(&mut self) -> Option<Ended> {
        let operation = if self.device.inline { self.waiting.pop_front() } else { None }?;
        self.call(operation)
    }

    /// True where [`FileRunner::continue_inline`] has something to do.
    pub fn has_inline_work(&self) -> bool {
        self.device.inline && !self.waiting.is_empty()
    }

    /// The ring finished a call.
    #[inline]
    pub fn completed(&mut self, mut operation: FileOperation, result: i32, lane: &mut Lane) -> Option<Ended> {
        match operation.advance(result, self.device.align, &mut self.lacks) {
            Progress::Again => {
                self.send(operation, lane);
                None
            }
            Progress::Done(result) => {
                self.in_flight -= 1;
                self.send_waiting(lane);
                Some(self.ended(operation.command, result))
            }
        }
    }

    /// The ring finished the call of a run.
    pub fn completed_run(
        &mut self,
        run: WriteRun,
        result: i32,
        lane: &mut Lane,
        ended: &mut impl Extend<Ended>,
    ) {
        self.in_flight -= 1;
        if run.is_done(result) {
            ended.extend(run.into_writes().map(|write| self.ended(write.command, Ok(()))));
        } else {
            self.waiting.extend(run.into_writes());
        }
        self.send_waiting(lane);
    }

    fn call(&mut self, mut operation: FileOperation) -> Option<Ended> {
        // SAFETY: the command's memory is held by its ticket.
        let result = unsafe { operation.call(self.device.file.as_raw_fd()) };
        match operation.advance(result, self.device.align, &mut self.lacks) {
            Progress::Again => {
                self.waiting.push_back(operation);
                None
            }
            Progress::Done(result) => Some(self.ended(operation.command, result)),
        }
    }

    fn send_waiting(&mut self, lane: &mut Lane) {
        while self.in_flight < IN_FLIGHT_MAX
            && let Some(operation) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            self.send(operation, lane);
        }
    }

    fn send(&mut self, operation: FileOperation, lane: &mut Lane) {
        lane.start_on_file(self.index, self.file, operation);
    }

    fn ended(&mut self, command: Command, result: Result<(), Failure>) -> Ended {
        let Command { ticket, kind, lent, .. } = command;
        let mut ended =
            Ended { device: self.index, ticket, kind, result: result.map_err(|f| f.error), again: None };
        match result {
            Ok(()) => {}
            Err(_) if lent.is_some() => ended.again = Some(Box::new(command)),
            Err(failure) => self.report(&command, failure),
        }
        ended
    }

    fn report(&mut self, command: &Command, failure: Failure) {
        let path = self.device.path.display().to_string();
        let eof = failure.errno == 0 && failure.error == IoError::Io && command.kind == CommandKind::Read;
        let cause = match failure.errno {
            _ if eof => "the file is shorter than it was: truncated while in use".to_string(),
            0 => "the device took no more bytes".to_string(),
            errno => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        self.log.failed(&path, command.kind.name(), command.offset, command.len, &cause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;
    use crate::command::test_command;
    use crate::lane::Operation;
    use crate::loan::Place;
    use std::path::Path;
    use std::time::Duration;

    struct Rig {
        lane: Lane,
        runner: FileRunner,
        file: tempfile::NamedTempFile,
    }

    impl Rig {
        fn new(directory: &str) -> Self {
            let file = tempfile::NamedTempFile::new_in(Path::new(directory)).unwrap();
            file.as_file().set_len(1 << 20).unwrap();
            let device = FileDevice::open_backing(file.path()).unwrap();
            Self::of(file, device)
        }

        fn of(file: tempfile::NamedTempFile, device: FileDevice) -> Self {
            let mut lane = Lane::new().unwrap();
            let runner = FileRunner::new(device, 0, &mut lane);
            Self { lane, runner, file }
        }

        /// Start one for each of these: the buffer's block of that number, at that block of the file.
        fn start_blocks(&mut self, kind: CommandKind, buffer: &mut Buffer, blocks: &[(usize, u64)]) {
            for &(from, to) in blocks {
                let memory = Place::One(buffer.as_raw().wrapping_add(from * 4096));
                let command = Command { memory, ..test_command(kind, to * 4096, 4096) };
                assert!(self.runner.start(command, &mut self.lane).is_none());
            }
        }

        /// Let the kernel make the calls of what was started: what they were, and what they returned.
        fn calls(&mut self) -> Vec<(Operation, i32)> {
            let (mut done, mut calls) = (Vec::new(), Vec::new());
            let count = self.lane.in_flight();
            while calls.len() < count {
                self.lane.enter(Some(Duration::from_secs(10))).unwrap();
                self.lane.ring.collect(&mut done, 8);
                let ended = done.drain(..).map(|done| (self.lane.finish(done.key).unwrap(), done.result));
                calls.extend(ended);
            }
            calls
        }

        fn finish(&mut self) -> Ended {
            let mut done = Vec::new();
            for _ in 0..1000 {
                if let Some(ended) = self.runner.continue_inline() {
                    return ended;
                }
                if self.lane.in_flight() > 0 {
                    self.lane.enter(Some(Duration::from_secs(10))).unwrap();
                    self.lane.ring.collect(&mut done, 1);
                }
                for completion in done.drain(..) {
                    let Some(operation) = self.lane.finish(completion.key) else { continue };
                    if let Some(ended) = self.completed(operation, completion.result).pop() {
                        return ended;
                    }
                }
            }
            panic!("the operation did not end");
        }

        fn completed(&mut self, operation: Operation, result: i32) -> Vec<Ended> {
            let mut ended = Vec::new();
            match operation {
                Operation::File { operation, .. } => {
                    ended.extend(self.runner.completed(operation, result, &mut self.lane));
                }
                Operation::Run { run, .. } => {
                    self.runner.completed_run(*run, result, &mut self.lane, &mut ended);
                }
                _ => panic!("not a file's"),
            }
            ended
        }

        fn run(
            &mut self,
            kind: CommandKind,
            offset: u64,
            buffer: &mut Buffer,
            fua: bool,
        ) -> Result<(), IoError> {
            let memory = buffer.as_raw();
            let command = Command {
                memory: Place::One(memory),
                fua,
                ..test_command(kind, offset, buffer.len() as u64)
            };
            let ended = self.runner.start(command, &mut self.lane);
            ended.unwrap_or_else(|| self.finish()).result
        }
    }

    fn stamped(len: usize) -> Buffer {
        let mut buffer = Buffer::alloc(len).unwrap();
        buffer.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 512 + 1) as u8);
        buffer
    }

    fn every_command_works_in(directory: &str) {
        let mut rig = Rig::new(directory);
        let mut written = stamped(64 << 10);
        for fua in [false, true] {
            rig.run(CommandKind::Write, 4096, &mut written, fua).unwrap();
        }
        rig.run(CommandKind::Flush, 0, &mut written, false).unwrap();
        let mut read = Buffer::alloc(64 << 10).unwrap();
        rig.run(CommandKind::Read, 4096, &mut read, false).unwrap();
        assert_eq!(read[..], written[..]);
        for (kind, offset) in
            [(false, 4096), (true, 8192)].map(|(h, o)| (CommandKind::WriteZeroes { no_hole: h }, o))
        {
            let mut range = Buffer::alloc(4096).unwrap();
            rig.run(kind, offset, &mut range, true).unwrap();
        }
        rig.run(CommandKind::Discard, 12288, &mut Buffer::alloc(4096).unwrap(), false).unwrap();
        rig.run(CommandKind::Read, 4096, &mut read, false).unwrap();
        assert!(read[..8192].iter().all(|&byte| byte == 0));
        assert_eq!(read[12288..], written[12288..]);
        assert_eq!(rig.file.as_file().metadata().unwrap().len(), 1 << 20);
    }

    #[test]
    fn every_command_works_through_the_ring() {
        every_command_works_in(".");
    }

    #[test]
    fn every_command_works_inline() {
        every_command_works_in("/dev/shm");
    }

    #[test]
    fn a_file_truncated_while_in_use_is_an_error() {
        for directory in [".", "/dev/shm"] {
            let mut rig = Rig::new(directory);
            rig.file.as_file().set_len(8192).unwrap();
            let mut buffer = stamped(8192);
            assert_eq!(rig.run(CommandKind::Read, 4096, &mut buffer, false), Err(IoError::Io), "{directory}");
        }
    }

    #[test]
    fn neighbours_are_written_by_one_call() {
        let mut rig = Rig::new(".");
        let mut written = stamped(5 * 4096);
        // The other way round in memory; then what is not behind the last one, and what is no write.
        rig.start_blocks(CommandKind::Write, &mut written, &[(2, 7), (1, 8), (0, 9), (3, 11), (4, 12)]);
        let mut read = Buffer::alloc(4096).unwrap();
        rig.start_blocks(CommandKind::Read, &mut read, &[(0, 13)]);
        assert_eq!((rig.runner.in_flight, rig.lane.in_flight()), (3, 3));
        let calls = rig.calls();
        let bytes: Vec<_> = calls.iter().map(|&(_, result)| result).collect();
        assert_eq!((bytes.iter().sum::<i32>(), bytes.iter().max()), (6 * 4096, Some(&(3 * 4096))));
        let ended: Vec<_> =
            calls.into_iter().flat_map(|(call, result)| rig.completed(call, result)).collect();
        assert!(ended.len() == 6 && ended.iter().all(|ended| ended.result.is_ok()));
        assert_eq!((rig.runner.in_flight, rig.lane.in_flight()), (0, 0));
        let there = std::fs::read(rig.file.path()).unwrap();
        for (from, to) in [(2, 7), (1, 8), (0, 9), (3, 11), (4, 12)].map(|(f, t)| (f * 4096, t * 4096)) {
            assert_eq!(there[to..to + 4096], written[from..from + 4096]);
        }
    }

    #[test]
    fn no_run_is_longer_than_disks_take_and_none_holds_what_has_to_be_durable() {
        let mut rig = Rig::new(".");
        let mut buffer = stamped(1 << 20);
        let blocks: Vec<_> = (0..130).map(|block| (block, block as u64)).collect();
        rig.start_blocks(CommandKind::Write, &mut buffer, &blocks);
        assert_eq!(rig.runner.in_flight, 3, "64, 64, 2");
        let whole = Command {
            memory: Place::One(buffer.as_raw()),
            ..test_command(CommandKind::Write, 130 * 4096, 256 << 10)
        };
        let durable = Command {
            memory: Place::One(buffer.as_raw()),
            fua: true,
            ..test_command(CommandKind::Write, 194 * 4096, 4096)
        };
        for command in [whole, durable] {
            rig.runner.start(command, &mut rig.lane);
        }
        assert_eq!(rig.runner.in_flight, 5);
        let calls = rig.calls();
        let ended: usize = calls.into_iter().map(|(call, result)| rig.completed(call, result).len()).sum();
        assert_eq!((ended, rig.runner.in_flight), (132, 0));
    }

    #[test]
    fn a_run_that_was_not_done_is_done_one_by_one() {
        for result in [4096 + 512, 0, -libc::EIO] {
            let mut rig = Rig::new(".");
            let mut written = stamped(3 * 4096);
            rig.start_blocks(CommandKind::Write, &mut written, &[(0, 0), (1, 1), (2, 2)]);
            let [(call, _)] = rig.calls().try_into().unwrap();
            rig.file.as_file().set_len(0).unwrap();
            assert!(rig.completed(call, result).is_empty(), "each is asked for by itself");
            assert_eq!((rig.runner.in_flight, rig.lane.in_flight()), (3, 3));
            (0..3).for_each(|_| rig.finish().result.unwrap());
            assert_eq!(std::fs::read(rig.file.path()).unwrap(), written[..], "{result}");
        }
    }

    #[test]
    fn of_a_run_that_cannot_be_done_each_write_has_its_own_error() {
        let file = Rig::new(".").file;
        let device = FileDevice::open_to_read(file.path()).unwrap();
        let mut rig = Rig::of(file, device);
        let mut written = stamped(2 * 4096);
        rig.start_blocks(CommandKind::Write, &mut written, &[(0, 0), (1, 1)]);
        let [(call, result)] = rig.calls().try_into().unwrap();
        assert!(result < 0 && rig.completed(call, result).is_empty());
        let ended: Vec<_> =
            rig.calls().into_iter().flat_map(|(call, result)| rig.completed(call, result)).collect();
        assert!(ended.len() == 2 && ended.iter().all(|ended| ended.result == Err(IoError::Io)));
        assert_eq!((rig.runner.in_flight, rig.lane.in_flight()), (0, 0));
    }

    #[test]
    fn more_commands_than_fit_are_queued_and_all_end() {
        let mut rig = Rig::new(".");
        let mut buffer = stamped(512);
        let count = IN_FLIGHT_MAX + 50;
        for _ in 0..count {
            let command = test_command(CommandKind::Write, 0, 512);
            assert!(
                rig.runner
                    .start(Command { memory: Place::One(buffer.as_raw()), ..command }, &mut rig.lane)
                    .is_none()
            );
        }
        assert_eq!((rig.runner.in_flight, rig.runner.waiting.len()), (IN_FLIGHT_MAX, 50));
        for _ in 0..count {
            rig.finish().result.unwrap();
        }
        assert_eq!((rig.runner.in_flight, rig.lane.in_flight()), (0, 0));
        buffer.fill(0);
    }
}
