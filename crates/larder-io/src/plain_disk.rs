//! One disk without a cache and without guests, on a ring of its own: requests go in, their ends come out. For programs that
//! put load on a device (`larder replay`), on the same code that drives a backing.
//!
//! The caller's thread is the loop: [`PlainDisk::submit`], [`PlainDisk::turn`], [`PlainDisk::next_end`]. A request's buffer belongs
//! to the disk until its end gives it back.

use crate::backing::{Backing, Device};
use crate::buffer::{Buffer, BufferPool};
use crate::command::{Command, CommandKind, Ended, Ticket};
use crate::lane::{Lane, Operation};
use crate::loan::Place;
use crate::mailbox::Waker;
use crate::ring::Completion;
use larder_engine::{IoError, OpId, RequestKind};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Completions handled in one turn.
const COMPLETIONS_PER_TURN: usize = 256;
/// Longest sleep of a turn: nothing else wakes it where a connection is made again.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// For cancelled operations to come back when the disk is let go of.
const CLOSING_MAX: Duration = Duration::from_secs(2);

/// What is asked of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// What to do.
    pub kind: RequestKind,
    /// First byte; a multiple of [`PlainDisk::align`].
    pub offset: u64,
    /// Bytes; likewise. A buffer of a read or a write has as many, or more.
    pub len: u64,
}

/// The end of a request.
#[derive(Debug)]
pub struct DiskEnd {
    /// As given.
    pub cookie: u64,
    /// How it went.
    pub result: Result<(), IoError>,
    /// The buffer given. After a failed read it may hold anything.
    pub buffer: Option<Buffer>,
}

/// A disk at work.
pub struct PlainDisk {
    /// Dropped only where no operation is in flight: else the memory that the kernel may still use stays.
    inner: ManuallyDrop<Inner>,
    began: Instant,
    bytes: u64,
    align: u32,
    read_only: bool,
}

struct Inner {
    lane: Lane,
    device: Device,
    /// Requests in flight, with the memory that the kernel works on.
    held: Slab<Held>,
    ended: VecDeque<Ended>,
    pool: BufferPool,
    completions: Vec<Completion>,
}

struct Held {
    cookie: u64,
    buffer: Option<Buffer>,
}

impl PlainDisk {
    /// Drive a backing, with buffers of so many bytes in all.
    pub fn new(backing: Backing, buffer_bytes: usize) -> io::Result<Self> {
        let (bytes, info) = (backing.bytes(), backing.info(512));
        let read_only = info.read_only;
        let mut lane = Lane::new()?;
        let device = backing.into_device(0, &mut lane, &Arc::new(Waker::new()?))?;
        let inner = Inner {
            lane,
            device,
            held: Slab::new(),
            ended: VecDeque::new(),
            pool: BufferPool::new(buffer_bytes),
            completions: Vec::with_capacity(COMPLETIONS_PER_TURN),
        };
        let inner = ManuallyDrop::new(inner);
        Ok(Self { inner, began: Instant::now(), bytes, align: info.min_block, read_only })
    }

    /// Its path or URI.
    pub fn name(&self) -> String {
        self.inner.device.name()
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Smallest unit of a request in bytes: 512 to 4096.
    pub fn align(&self) -> u32 {
        self.align
    }

    /// True where a server takes no writes.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Memory for `len` bytes, aligned for any device; `None` while all that there is is in use. It may hold old bytes.
    pub fn buffer(&mut self, len: usize) -> Option<Buffer> {
        self.inner.pool.take(len)
    }

    /// Give memory back.
    pub fn recycle(&mut self, buffer: Buffer) {
        self.inner.pool.give(buffer);
    }

    /// Requests without an end.
    pub fn in_flight(&self) -> usize {
        self.inner.held.len()
    }

    /// Ask for something; it ends with this cookie. What is misaligned, beyond the end, or longer than its buffer ends as
    /// [`IoError::Invalid`].
    pub fn submit(&mut self, request: DiskRequest, buffer: Option<Buffer>, cookie: u64) {
        let is_good = self.is_good(request, buffer.as_ref());
        let now_ns = self.now_ns();
        let Inner { lane, device, held, ended, .. } = &mut *self.inner;
        let memory = buffer.as_ref().map_or(std::ptr::null_mut(), Buffer::as_raw);
        let op = OpId(held.insert(Held { cookie, buffer }) as u32);
        let ticket = Ticket { op: Some(op), hold: None, started_ns: now_ns };
        let DiskRequest { kind, offset, len } = request;
        let kind = command_kind(kind);
        if is_good {
            let (offset, len) = if kind == CommandKind::Flush { (0, 0) } else { (offset, len) };
            ended.extend(device.start(
                Command { ticket, kind, offset, len, memory: Place::One(memory), lent: None, fua: false },
                lane,
            ));
        } else {
            ended.push_back(Ended { device: 0, ticket, kind, result: Err(IoError::Invalid), again: None });
        }
    }

    fn is_good(&self, request: DiskRequest, buffer: Option<&Buffer>) -> bool {
        let DiskRequest { kind, offset, len } = request;
        let unit = u64::from(self.align);
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.bytes);
        let aligned = offset.is_multiple_of(unit) && len.is_multiple_of(unit) && len > 0;
        match kind {
            RequestKind::Flush => true,
            RequestKind::Read | RequestKind::Write => {
                inside && aligned && buffer.is_some_and(|buffer| buffer.capacity() as u64 >= len)
            }
            RequestKind::Discard | RequestKind::WriteZeroes { .. } => inside && aligned,
        }
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Let the kernel have what was submitted, and collect what has ended. Where nothing has, sleep until something does, at most
    /// so long; it may return earlier.
    pub fn turn(&mut self, sleep: Option<Duration>) -> io::Result<()> {
        let now_ns = self.now_ns();
        let Inner { lane, device, ended, .. } = &mut *self.inner;
        if let Device::Nbd(nbd) = device {
            nbd.poll(now_ns, lane, ended);
        }
        if let Device::File(file) = device {
            ended.extend(file.continue_inline());
        }
        let may_sleep = ended.is_empty() && !matches!(device, Device::File(file) if file.has_inline_work());
        lane.enter(sleep.filter(|_| may_sleep).map(|sleep| sleep.min(SLEEP_MAX)))?;
        self.collect();
        Ok(())
    }

    fn collect(&mut self) {
        let inner = &mut *self.inner;
        let mut completions = std::mem::take(&mut inner.completions);
        inner.lane.ring.collect(&mut completions, COMPLETIONS_PER_TURN);
        for Completion { key, result } in completions.drain(..) {
            if let Some(operation) = inner.lane.finish(key) {
                inner.completed(operation, result);
            }
        }
        inner.completions = completions;
    }

    /// The next request that has ended.
    pub fn next_end(&mut self) -> Option<DiskEnd> {
        let Inner { ended, held, .. } = &mut *self.inner;
        while let Some(Ended { ticket, result, .. }) = ended.pop_front() {
            let held = ticket.op.and_then(|OpId(op)| held.try_remove(op as usize));
            if let Some(Held { cookie, buffer }) = held {
                return Some(DiskEnd { cookie, result, buffer });
            }
            tracing::error!("BUG: the end of a request that is not in flight");
        }
        None
    }
}

impl Inner {
    fn completed(&mut self, operation: Operation, result: i32) {
        let Self { lane, device, ended, .. } = self;
        match (operation, device) {
            (Operation::File { operation, .. }, Device::File(file)) => {
                ended.extend(file.completed(operation, result, lane));
            }
            (Operation::Run { run, .. }, Device::File(file)) => {
                file.completed_run(*run, result, lane, ended);
            }
            (Operation::NbdSend { socket, batch, .. }, Device::Nbd(nbd)) => {
                lane.end(socket);
                nbd.sent(batch, result, lane, ended);
            }
            (Operation::NbdReceive { socket, input, .. }, Device::Nbd(nbd)) => {
                lane.end(socket);
                nbd.received(input, result, lane, ended);
            }
            _ => {}
        }
    }
}

fn command_kind(kind: RequestKind) -> CommandKind {
    match kind {
        RequestKind::Read => CommandKind::Read,
        RequestKind::Write => CommandKind::Write,
        RequestKind::Flush => CommandKind::Flush,
        RequestKind::Discard => CommandKind::Discard,
        RequestKind::WriteZeroes { no_hole } => CommandKind::WriteZeroes { no_hole },
    }
}

impl Drop for PlainDisk {
    /// Take leave of a server, and wait a moment for what is in flight. What does not come back keeps its memory.
    fn drop(&mut self) {
        let Inner { lane, device, .. } = &mut *self.inner;
        if let Device::Nbd(nbd) = device {
            nbd.closing();
            nbd.farewell(lane);
        }
        // The farewell goes out before the socket is shut. Where this fails, so does the loop below, and the memory stays.
        let _ = lane.enter(None);
        lane.close_all();
        let until = Instant::now() + CLOSING_MAX;
        while self.inner.lane.in_flight() > 0 && Instant::now() < until {
            if self.inner.lane.enter(Some(SLEEP_MAX)).is_err() {
                break;
            }
            self.collect();
        }
        if self.inner.lane.in_flight() == 0 && !std::thread::panicking() {
            // SAFETY: `self.inner` is not used again, and no operation can touch its memory.
            unsafe { ManuallyDrop::drop(&mut self.inner) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const MIB: u64 = 1 << 20;

    fn disk(directory: &str) -> (tempfile::NamedTempFile, PlainDisk) {
        let file = tempfile::NamedTempFile::new_in(Path::new(directory)).unwrap();
        file.as_file().set_len(MIB).unwrap();
        let backing = Backing::open_alone(file.path().to_str().unwrap()).unwrap();
        (file, PlainDisk::new(backing, 64 << 20).unwrap())
    }

    fn end(disk: &mut PlainDisk) -> DiskEnd {
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            if let Some(end) = disk.next_end() {
                return end;
            }
            disk.turn(Some(Duration::from_secs(1))).unwrap();
        }
        panic!("no end");
    }

    fn ask(disk: &mut PlainDisk, kind: RequestKind, offset: u64, buffer: Buffer) -> DiskEnd {
        let len = buffer.len() as u64;
        disk.submit(DiskRequest { kind, offset, len }, Some(buffer), offset);
        end(disk)
    }

    #[test]
    fn what_is_written_is_read_again() {
        for directory in [".", "/dev/shm"] {
            let (_file, mut disk) = disk(directory);
            for at in 0..8 {
                let mut buffer = disk.buffer(8192).unwrap();
                buffer.fill(at as u8 + 1);
                disk.submit(
                    DiskRequest { kind: RequestKind::Write, offset: at * 8192, len: 8192 },
                    Some(buffer),
                    at,
                );
            }
            let mut cookies: Vec<u64> = (0..8).map(|_| end(&mut disk)).map(|end| end.cookie).collect();
            cookies.sort_unstable();
            assert_eq!((cookies, disk.in_flight()), ((0..8).collect(), 0), "{directory}");
            disk.submit(DiskRequest { kind: RequestKind::Flush, offset: 7, len: 9 }, None, 3);
            assert_eq!((end(&mut disk).result, disk.in_flight()), (Ok(()), 0));
            let mut buffer = disk.buffer(8192).unwrap();
            buffer.fill(0);
            let read = ask(&mut disk, RequestKind::Read, 4 * 8192, buffer);
            assert!(read.result.is_ok() && read.buffer.unwrap().iter().all(|&byte| byte == 5));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_buffer() {
        let (_file, mut disk) = disk(".");
        for (offset, len) in [(1, 4096), (MIB, 4096), (u64::MAX - 511, 512), (0, 100), (0, 0)] {
            let mut buffer = disk.buffer(4096).unwrap();
            buffer.set_len(len);
            let end = ask(&mut disk, RequestKind::Write, offset, buffer);
            assert!(end.result == Err(IoError::Invalid) && end.buffer.is_some(), "{offset} {len}");
        }
        let buffer = disk.buffer(4096);
        disk.submit(DiskRequest { kind: RequestKind::Read, offset: 0, len: 8192 }, buffer, 0);
        assert_eq!(end(&mut disk).result, Err(IoError::Invalid), "longer than its buffer");
    }

    #[test]
    fn a_file_is_used_by_one_and_read_by_others() {
        let (file, disk) = disk(".");
        let path = file.path().to_str().unwrap();
        assert!(matches!(
            Backing::open_alone(path),
            Err(crate::BackingError::File(crate::OpenError::Busy { .. }))
        ));
        let mut reader = PlainDisk::new(Backing::open_to_read(path).unwrap(), 1 << 20).unwrap();
        let buffer = reader.buffer(4096).unwrap();
        let written = ask(&mut reader, RequestKind::Write, 0, buffer);
        assert!(written.result.is_err(), "it was opened for reading alone");
        drop(disk);
        assert!(Backing::open_alone(path).is_ok());
    }
}
