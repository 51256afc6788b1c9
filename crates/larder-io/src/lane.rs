//! The reactor's operations in flight: each has a slot that owns what the kernel works on until its completion.

use crate::file::{FileOperation, WriteRun};
use crate::nbd_backing::SendBatch;
use crate::ring::{FileRef, Ring};
use crate::socket::{SocketId, Sockets};
use crate::table::{Key, Table};
use crate::{Buffer, SendList};
use io_uring::squeue::Entry;
use io_uring::types;
use std::io;
use std::time::Duration;

/// An operation in flight, with everything that it needs to live on.
#[derive(Debug)]
pub(crate) enum Operation {
    /// On a file; its memory is held by the command's ticket.
    File { device: usize, operation: FileOperation },
    /// Several writes of one file.
    Run { device: usize, run: Box<WriteRun> },
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

/// A run that may become longer until the kernel is entered.
struct Held {
    device: usize,
    file: FileRef,
    run: WriteRun,
}

/// The ring and the operations on it.
pub(crate) struct Lane {
    /// To be entered through the lane.
    pub ring: Ring,
    held: Option<Held>,
    pub sockets: Sockets,
    operations: Table<Operation>,
    /// Those of them that are commands.
    pub commands: usize,
}

impl Lane {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new()?,
            held: None,
            sockets: Sockets::new(),
            operations: Table::new(),
            commands: 0,
        })
    }

    /// Operations in flight, without commands that wait in a driver.
    pub fn in_flight(&self) -> usize {
        self.operations.len() - self.commands + usize::from(self.held.is_some())
    }

    /// Start a file's operation.
    pub fn start_on_file(&mut self, device: usize, file: FileRef, operation: FileOperation) {
        let operation = Operation::File { device, operation };
        // SAFETY: the command's memory is held by its ticket, which is released when the command has ended.
        unsafe {
            self.start(file, operation, |operation, fd| match operation {
                Operation::File { operation, .. } => operation.entry(fd),
                _ => io_uring::opcode::Nop::new().build(),
            });
        }
    }

    /// Make an operation part of the run of its device that has not left; it comes back where it cannot be.
    #[inline]
    pub fn add_to_run(&mut self, device: usize, operation: FileOperation) -> Result<(), FileOperation> {
        match &mut self.held {
            Some(held) if held.device == device => held.run.add(operation),
            _ => Err(operation),
        }
    }

    /// Begin a run, which leaves with the next entry to the kernel, or when another one begins.
    #[inline]
    pub fn begin_run(&mut self, device: usize, file: FileRef, run: WriteRun) {
        self.let_run_go();
        self.held = Some(Held { device, file, run });
    }

    #[inline]
    fn let_run_go(&mut self) {
        let Some(Held { device, file, run }) = self.held.take() else { return };
        if run.is_single() {
            return self.start_on_file(device, file, run.into_first());
        }
        let run = Box::new(run);
        // SAFETY: the commands' memory is held by their tickets, which are released when they have ended; the run owns its list of pieces.
        unsafe {
            self.start(file, Operation::Run { device, run }, |operation, fd| match operation {
                Operation::Run { run, .. } => run.entry(fd),
                _ => io_uring::opcode::Nop::new().build(),
            });
        }
    }

    /// True where something waits for [`Lane::enter`].
    #[inline]
    pub fn has_submissions(&mut self) -> bool {
        self.held.is_some() || self.ring.has_submissions()
    }

    /// Enter the kernel with all that was started ([`Ring::enter`]).
    pub fn enter(&mut self, sleep: Option<Duration>) -> io::Result<()> {
        self.let_run_go();
        self.ring.enter(sleep)
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
