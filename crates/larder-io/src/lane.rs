//! The reactor's operations in flight: each has a slot that owns what the kernel works on until its completion.

use crate::file::FileOperation;
use crate::nbd_backing::SendBatch;
use crate::ring::{FileRef, Ring};
use crate::socket::{SocketId, Sockets};
use crate::table::{Key, Table};
use crate::{Buffer, SendList};
use io_uring::squeue::Entry;
use io_uring::types;
use std::io;

/// An operation in flight, with everything that it needs to live on.
#[derive(Debug)]
pub(crate) enum Operation {
    /// On a file; its memory is held by the command's ticket.
    File { device: usize, operation: FileOperation },
    /// A frontend waits for a connection.
    Accept { socket: SocketId, token: u64 },
    /// A frontend receives.
    Receive { socket: SocketId, token: u64, buffer: Buffer },
    /// A frontend sends.
    Send { socket: SocketId, token: u64, list: SendList },
    /// The first half of [`Operation::Watch`]: its end says nothing.
    Waited { socket: SocketId },
    /// A frontend waits for an event counter, which is read into this.
    Watch { socket: SocketId, token: u64, count: Box<[u8; 8]> },
    /// A frontend's command waits in a device's driver.
    Command { socket: SocketId, token: u64 },
    /// A frontend adds to an event counter.
    Signal { socket: SocketId, token: u64 },
    /// An NBD backing receives, into its buffer or (without one) into memory held by a command.
    NbdReceive { socket: SocketId, device: usize, input: Option<Buffer> },
    /// An NBD backing sends; payloads are held by commands.
    NbdSend { socket: SocketId, device: usize, batch: Box<SendBatch> },
    /// The mailbox's event counter is read into this.
    Wake { _count: Box<[u8; 8]> },
    /// Something else is being cancelled; its end says nothing.
    Cancel,
}

/// The ring and the operations on it.
pub(crate) struct Lane {
    pub ring: Ring,
    pub sockets: Sockets,
    operations: Table<Operation>,
    /// Those of them that are commands.
    pub commands: usize,
}

impl Lane {
    pub fn new() -> io::Result<Self> {
        Ok(Self { ring: Ring::new()?, sockets: Sockets::new(), operations: Table::new(), commands: 0 })
    }

    /// Operations in flight, without commands that wait in a driver.
    pub fn in_flight(&self) -> usize {
        self.operations.len() - self.commands
    }

    /// Start an operation. `entry` builds the kernel's view of it, from the operation at its final address.
    ///
    /// # Safety
    /// All memory that the entry names is owned by the operation, or kept by its owner until the operation has ended.
    #[inline]
    pub unsafe fn start(
        &mut self,
        file: FileRef,
        operation: Operation,
        entry: impl FnOnce(&mut Operation, types::Fd) -> Entry,
    ) {
        let mut operation = operation;
        let entry = entry(&mut operation, file.target());
        let key = self.operations.insert(operation);
        // SAFETY: as the caller promises; the slot keeps the operation until its completion is collected. Moving it into
        // the slot moves no memory that entries name: buffers, lists and boxes own theirs through a pointer.
        unsafe { self.ring.push(file.finish(entry, key)) };
    }

    /// Start an operation on no file.
    ///
    /// # Safety
    /// As for [`Lane::start`].
    pub unsafe fn start_plain(&mut self, operation: Operation, entry: Entry) {
        let key = self.operations.insert(operation);
        // SAFETY: as the caller promises; see `start`.
        unsafe { self.ring.push(entry.user_data(key.to_bits())) };
    }

    /// A completion was collected: its operation.
    #[inline]
    pub fn finish(&mut self, key: Key) -> Option<Operation> {
        self.operations.remove(key)
    }
}
