//! What a frontend can ask of its reactor: memory, sockets, guest requests.

use crate::driver::Driver;
use crate::extents;
use crate::frontend::{Event, Extent, GuestRequest, VolumeInfo};
use crate::lane::{Lane, Operation};
use crate::memory::Held;
use crate::ring::FileRef;
use crate::sys;
use crate::{Buffer, Loan, SendList, SocketId};
use io_uring::opcode;
use io_uring::squeue::Flags;
use larder_engine::{TenantId, VolumeId, WritePolicy};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Instant;

/// The reactor as its frontend sees it. No method blocks or calls the frontend; what is started ends in an [`Event`]
/// or a reply.
pub struct Context {
    pub(crate) lane: Lane,
    pub(crate) driver: Driver,
    /// Events that need no kernel: operations on sockets that are gone.
    pub(crate) events: VecDeque<Event>,
    pub(crate) now: Instant,
}

impl Context {
    /// Memory for `len` bytes, aligned for any device; `None` while the reactor's budget is spent. It may hold old bytes: fill
    /// it before a guest sees it.
    #[inline]
    pub fn buffer(&mut self, len: usize) -> Option<Buffer> {
        self.driver.pool.take(len)
    }

    /// As [`Context::buffer`], but beyond the budget where that is spent: for what the frontend bounds by other means.
    #[inline]
    pub fn buffer_beyond(&mut self, len: usize) -> Option<Buffer> {
        self.driver.pool.take_beyond(len)
    }

    /// Bytes of data buffers that the reactor is meant to have at most.
    pub fn buffer_budget(&self) -> usize {
        self.driver.pool.budget_bytes()
    }

    /// Give memory back. What is dropped instead stays counted against the budget.
    #[inline]
    pub fn recycle(&mut self, buffer: Buffer) {
        self.driver.pool.give(buffer);
    }

    /// Empty a list, giving its buffers back.
    pub fn recycle_list(&mut self, list: &mut SendList) {
        list.clear(|buffer| self.driver.pool.give(buffer));
    }

    /// Hand over a socket: a listener or a connection. It becomes a blocking one. Fails at [`crate::SOCKETS_MAX`].
    pub fn adopt(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        self.lane.adopt(fd)
    }

    /// Take a socket back, to give it to another reactor. `None` while any operation on it is in flight.
    pub fn detach(&mut self, socket: SocketId) -> Option<OwnedFd> {
        self.lane.detach(socket)
    }

    /// Close a socket: both directions are shut down, operations on it end (each with its event, as cancelled or at the end
    /// of the stream), then it goes.
    pub fn close(&mut self, socket: SocketId) {
        self.lane.close(socket);
    }

    /// End what works on a socket, which stays as it is: each operation ends with its event, as cancelled where it has moved nothing yet, else with what
    /// it has moved. One that is about to end by itself may do that instead.
    pub fn interrupt(&mut self, socket: SocketId) {
        self.lane.interrupt(socket);
    }

    /// Wait for one connection; ends in [`Event::Accepted`].
    pub fn accept(&mut self, socket: SocketId, token: u64) {
        let Some(file) = self.lane.begin(socket) else {
            self.events.push_back(Event::Accepted { token, result: Err(gone()) });
            return;
        };
        let null = std::ptr::null_mut();
        // SAFETY: no address is asked for, so the entry names no memory.
        unsafe {
            self.lane.start(file, Operation::Accept { socket, token }, |_, fd| {
                opcode::Accept::new(fd, null, null.cast()).flags(libc::SOCK_CLOEXEC).build()
            });
        }
    }

    /// Receive whatever comes into `buffer[range]`, at least one byte; ends in [`Event::Received`].
    #[inline]
    pub fn recv(&mut self, socket: SocketId, buffer: Buffer, range: Range<usize>, token: u64) {
        self.receive(socket, buffer, range, token, 0);
    }

    /// Receive until `buffer[range]` is full or the stream ends; ends in [`Event::Received`].
    pub fn recv_all(&mut self, socket: SocketId, buffer: Buffer, range: Range<usize>, token: u64) {
        self.receive(socket, buffer, range, token, libc::MSG_WAITALL);
    }

    #[inline]
    fn receive(&mut self, socket: SocketId, buffer: Buffer, range: Range<usize>, token: u64, flags: i32) {
        let inside =
            range.start <= range.end && range.end <= buffer.capacity() && range.len() <= i32::MAX as usize;
        let Some(file) = inside.then(|| self.lane.begin(socket)).flatten() else {
            let result = Err(if inside { gone() } else { io::ErrorKind::InvalidInput.into() });
            self.events.push_back(Event::Received { token, buffer, result });
            return;
        };
        let memory = buffer.as_raw().wrapping_add(range.start);
        // SAFETY: the range is inside the buffer, which the operation owns.
        unsafe {
            self.lane.start(file, Operation::Receive { socket, token, buffer }, |_, fd| {
                opcode::Recv::new(fd, memory, range.len() as u32).flags(flags).build()
            });
        }
    }

    /// Send a list without its first `skip` bytes; ends in [`Event::Sent`].
    #[inline]
    pub fn send(&mut self, socket: SocketId, list: SendList, skip: usize, token: u64) {
        let Some(file) = self.lane.begin(socket) else {
            self.events.push_back(Event::Sent { token, list, result: Err(gone()) });
            return;
        };
        self.send_on(file, Operation::Send { socket, token, list }, skip);
    }

    /// Hand over an event counter (eventfd), for [`Context::watch`] and [`Context::signal`]. It may be shared with another process, so
    /// it stays as it is. Fails at [`crate::SOCKETS_MAX`], and with `InvalidInput` for a descriptor of another kind: reading that
    /// might never wait, or never end.
    pub fn adopt_counter(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        match sys::is_event_counter(&fd) {
            true => self.lane.adopt_as_is(fd),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Wait until the counter is not zero, and make it zero; ends in [`Event::Signalled`].
    pub fn watch(&mut self, socket: SocketId, token: u64) {
        let (Some(file), Some(also)) = (self.lane.begin(socket), self.lane.begin(socket)) else {
            self.events.push_back(Event::Signalled { token, result: Err(gone()) });
            return;
        };
        // Wait first, then read: whether a read waits depends on a flag of the counter, which is not ours.
        let wait = opcode::PollAdd::new(file.target(), libc::POLLIN as u32);
        // SAFETY: waiting names no memory.
        unsafe {
            let wait = |_: &mut Operation, _| wait.build().flags(Flags::IO_LINK);
            self.lane.start(file, Operation::Waited { socket }, wait);
        }
        let operation = Operation::Watch { socket, token, count: Box::new([0; 8]) };
        // SAFETY: the box belongs to the operation.
        unsafe {
            self.lane.start(also, operation, |operation, fd| match operation {
                Operation::Watch { count, .. } => opcode::Read::new(fd, count.as_mut_ptr(), 8).build(),
                _ => opcode::Nop::new().build(),
            });
        }
    }

    /// Add one to the counter; ends in [`Event::SignalSent`].
    pub fn signal(&mut self, socket: SocketId, token: u64) {
        static ONE: u64 = 1;
        let Some(file) = self.lane.begin(socket) else {
            self.events.push_back(Event::SignalSent { token });
            return;
        };
        // SAFETY: the memory is read only, and lives for ever.
        unsafe {
            self.lane.start(file, Operation::Signal { socket, token }, |_, fd| {
                opcode::Write::new(fd, (&raw const ONE).cast(), 8).build()
            });
        }
    }

    fn send_on(&mut self, file: FileRef, operation: Operation, skip: usize) {
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
        // SAFETY: the message and all that it points to belong to the list, at stable addresses; the operation owns it.
        unsafe {
            self.lane.start(file, operation, |operation, fd| match operation {
                Operation::Send { list, .. } => {
                    opcode::SendMsg::new(fd, list.prepare(skip)).flags(flags).build()
                }
                _ => opcode::Nop::new().build(),
            });
        }
    }

    /// Ask a volume something for a guest; ends in a reply with this cookie. A read or write needs a buffer of at least the
    /// request's length: the data is at its start.
    #[inline]
    pub fn submit(&mut self, request: GuestRequest, buffer: Option<Buffer>, cookie: u64) {
        self.driver.submit(&mut self.lane, request, buffer.map(Held::Own), cookie);
    }

    /// True where [`Context::submit_lent`] is for this volume.
    #[inline]
    pub fn may_borrow(&self, volume: VolumeId) -> bool {
        self.driver.may_borrow(volume)
    }

    /// As [`Context::submit`], for a read that fills memory which the frontend lends. That comes back when its lender is dropped; the reply has no
    /// buffer. After an error there are zeroes in it.
    #[inline]
    pub fn submit_lent(&mut self, request: GuestRequest, loan: Loan, cookie: u64) {
        self.driver.submit(&mut self.lane, request, Some(Held::Lent(loan)), cookie);
    }

    /// Requests for a volume's bytes around this one will be submitted at once: of several, what the engine looks at comes from memory together.
    #[inline]
    pub fn expect(&self, volume: VolumeId, offset: u64) {
        self.driver.engine.expect(volume, offset);
    }

    /// What there is to know of a volume; `None` where it is not this reactor's.
    pub fn volume(&self, volume: VolumeId) -> Option<VolumeInfo> {
        self.driver.volumes.get(volume.0 as usize).map(|volume| volume.info)
    }

    /// The tenant of a volume; `None` where it is not this reactor's.
    pub fn tenant(&self, volume: VolumeId) -> Option<TenantId> {
        self.driver.volumes.get(volume.0 as usize).map(|volume| volume.tenant)
    }

    /// True where a completed write to the volume may be in the cache alone until it is flushed.
    #[inline]
    pub fn is_written_back(&self, volume: VolumeId) -> bool {
        self.tenant(volume).is_some_and(|tenant| {
            self.driver.engine.write_policy(tenant) == WritePolicy::WriteBack
                || self.driver.engine.dirty_of(volume) > 0
        })
    }

    /// Number of tenants that have a volume here: their identities are below it.
    pub fn tenants(&self) -> usize {
        self.driver.volumes.iter().map(|volume| usize::from(volume.tenant.0) + 1).max().unwrap_or(0)
    }

    /// Number of tenants that have a volume here which has not left.
    pub fn tenants_here(&self) -> usize {
        let Self { driver, .. } = self;
        let here = driver.volumes.iter().zip((0..).map(VolumeId)).filter(|(_, id)| driver.has(*id));
        here.map(|(volume, _)| volume.tenant).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Have another turn without sleeping: it brings [`Event::CalledAgain`].
    pub fn call_again(&mut self) {
        self.events.push_back(Event::CalledAgain);
    }

    /// How a range of a volume is allocated, from its start on, appended to `into`: at most 32 extents, which may end before the
    /// range does. What the cache alone has is no hole, whatever the backing says.
    pub fn extents(&mut self, volume: VolumeId, offset: u64, len: u64, into: &mut Vec<Extent>) {
        let first = into.len();
        self.driver.extents(volume, offset, len, into);
        let Driver { engine, .. } = &self.driver;
        if engine.dirty_of(volume) > 0 || engine.is_failed(volume) {
            let on_backing = into.split_off(first);
            extents::with_alone(on_backing, offset, into, |start, end, blocks| {
                engine.alone_run(volume, start, end, blocks)
            });
        }
    }

    /// The time, as of the beginning of this turn of the loop.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A socket operation's completion, as the frontend's event. Others belong elsewhere and come back.
    #[inline]
    pub(crate) fn event_of(&mut self, operation: Operation, result: i32) -> Result<Event, Operation> {
        let (socket, event) = match operation {
            Operation::Accept { socket, token } => {
                (socket, Event::Accepted { token, result: accepted(result) })
            }
            Operation::Receive { socket, token, buffer } => {
                (socket, Event::Received { token, buffer, result: count(result) })
            }
            Operation::Send { socket, token, list } => {
                (socket, Event::Sent { token, list, result: count(result) })
            }
            Operation::Watch { socket, token, .. } => {
                (socket, Event::Signalled { token, result: count(result).map(|_| ()) })
            }
            Operation::Signal { socket, token } => (socket, Event::SignalSent { token }),
            Operation::Command { socket, token } => {
                self.lane.end_command();
                (socket, Event::Commanded { token, result })
            }
            other => return Err(other),
        };
        self.lane.end(socket);
        Ok(event)
    }
}

fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}

fn count(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

fn accepted(result: i32) -> io::Result<OwnedFd> {
    count(result)?;
    // SAFETY: the kernel just made this descriptor for us; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}
