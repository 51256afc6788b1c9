//! The sockets and event counters that a reactor owns: adopted, counted while operations work on them, closed after the last of these.

use crate::lane::{Lane, Operation};
use crate::ring::{FileRef, Ring};
use crate::sys;
use crate::table::{Key, Table};
use io_uring::{opcode, types};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Sockets of a reactor: listeners, guests' connections, connections to backings.
pub const SOCKETS_MAX: usize = 4096;

/// A socket that the reactor owns. Never reused for another socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketId(Key);

pub(crate) struct Sockets {
    table: Table<Socket>,
}

struct Socket {
    fd: OwnedFd,
    file: FileRef,
    operations: u32,
    closing: bool,
}

impl Sockets {
    pub fn new() -> Self {
        Self { table: Table::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn ids(&self) -> Vec<SocketId> {
        self.table.keys().map(SocketId).collect()
    }
}

impl Lane {
    /// Take over a socket.
    pub fn adopt(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        sys::clear_nonblocking(&fd)?;
        self.adopt_as_is(fd)
    }

    /// Take over a descriptor whose flags are not ours to change.
    pub fn adopt_as_is(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        self.adopt_with(fd, Ring::register)
    }

    /// The same without registering it: a ring that lets go of a registered file waits for every operation on it.
    pub fn adopt_unregistered(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        self.adopt_with(fd, |_, fd| FileRef::plain(fd))
    }

    fn adopt_with(
        &mut self,
        fd: OwnedFd,
        file: impl FnOnce(&mut Ring, BorrowedFd<'_>) -> FileRef,
    ) -> io::Result<SocketId> {
        if self.sockets.table.len() >= SOCKETS_MAX {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let file = file(&mut self.ring, fd.as_fd());
        Ok(SocketId(self.sockets.table.insert(Socket { fd, file, operations: 0, closing: false })))
    }

    /// Give a socket away; `None` while an operation works on it.
    pub fn detach(&mut self, id: SocketId) -> Option<OwnedFd> {
        if self.sockets.table.get(id.0)?.operations > 0 {
            return None;
        }
        let socket = self.sockets.table.remove(id.0)?;
        self.ring.unregister(socket.file);
        Some(socket.fd)
    }

    /// The file of a socket for an operation that begins now; `None` where the socket is gone or going.
    pub fn begin(&mut self, id: SocketId) -> Option<FileRef> {
        let socket = self.sockets.table.get_mut(id.0).filter(|socket| !socket.closing)?;
        socket.operations += 1;
        Some(socket.file)
    }

    /// An operation on the socket has ended.
    pub fn end(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.table.get_mut(id.0) else { return };
        socket.operations = socket.operations.saturating_sub(1);
        if socket.closing {
            self.detach(id);
        }
    }

    /// Close: what works on the socket ends soon, and with the last of it the socket goes.
    pub fn close(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.table.get_mut(id.0) else { return };
        if std::mem::replace(&mut socket.closing, true) {
            return;
        }
        sys::shutdown(&socket.fd);
        let file = socket.file;
        if self.detach(id).is_none() {
            self.cancel(file);
        }
    }

    /// Cancel what works on a socket that is to be given away.
    pub fn interrupt(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.table.get_mut(id.0).filter(|socket| socket.operations > 0) {
            let file = socket.file;
            self.cancel(file);
        }
    }

    /// Close every socket.
    pub fn close_all(&mut self) {
        for id in self.sockets.ids() {
            self.close(id);
        }
    }

    /// Cancel whatever works on a file: a listener's accept does not end by itself.
    fn cancel(&mut self, file: FileRef) {
        let fd = file.target();
        let which = match file.is_registered() {
            true => types::CancelBuilder::fd(types::Fixed(fd.0 as u32)),
            false => types::CancelBuilder::fd(fd),
        };
        let entry = opcode::AsyncCancel2::new(which.all()).build();
        // SAFETY: a cancellation names no memory.
        unsafe { self.start_plain(Operation::Cancel, entry) };
    }
}
