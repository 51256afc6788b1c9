//! A live connection: what is in flight on its socket, and who owns the memory meanwhile.

use super::batch::SendBatch;
use super::connect::Connection;
use crate::Buffer;
use crate::lane::{Lane, Operation};
use crate::socket::SocketId;
use io_uring::opcode;
use larder_nbd::client::ReplyParser;
use std::io;

/// Bytes received at a time into the connection's own buffer.
const RECEIVE_BYTES: usize = 256 << 10;

/// A connection on the ring: at most one send and one receive are in flight.
pub(super) struct Live {
    socket: SocketId,
    device: usize,
    pub parser: ReplyParser,
    /// Here while nothing is being sent.
    batch: Option<Box<SendBatch>>,
    /// Number of the batch that is being filled or sent.
    batch_number: u64,
    /// Here while nothing is being received into it.
    input: Option<Buffer>,
    receiving: bool,
}

impl Live {
    pub fn new(connection: Connection, device: usize, lane: &mut Lane) -> io::Result<Self> {
        let input = Buffer::alloc(RECEIVE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let Connection { socket, agreed } = connection;
        Ok(Self {
            socket: lane.adopt(socket)?,
            device,
            parser: ReplyParser::new(agreed.structured, agreed.base_allocation),
            batch: Some(SendBatch::new()),
            batch_number: 0,
            input: Some(input),
            receiving: false,
        })
    }

    /// The batch to fill for the next send; `None` while one is under way.
    pub fn batch(&mut self) -> Option<&mut SendBatch> {
        self.batch.as_deref_mut()
    }

    /// Number of the batch to fill.
    pub fn batch_number(&self) -> u64 {
        self.batch_number
    }

    /// True while the kernel may still read the payloads of this batch.
    pub fn is_sending(&self, batch_number: u64) -> bool {
        self.batch.is_none() && self.batch_number == batch_number
    }

    /// Send what is in the batch, if anything. Its payloads stay until the send has ended.
    pub fn send(&mut self, lane: &mut Lane) {
        match self.batch.take() {
            Some(batch) if !batch.is_empty() => self.send_rest(batch, lane),
            idle => self.batch = idle,
        }
    }

    /// Send what is left of a batch.
    pub fn send_rest(&mut self, batch: Box<SendBatch>, lane: &mut Lane) {
        let Some(file) = lane.begin(self.socket) else {
            return self.batch = Some(batch);
        };
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
        let operation = Operation::NbdSend { socket: self.socket, device: self.device, batch };
        // SAFETY: the batch belongs to the operation; payloads are held by commands that end after it.
        unsafe {
            lane.start(file, operation, |operation, fd| match operation {
                Operation::NbdSend { batch, .. } => {
                    opcode::SendMsg::new(fd, batch.prepare()).flags(flags).build()
                }
                _ => opcode::Nop::new().build(),
            });
        }
    }

    /// The send has ended, for good or ill.
    pub fn send_ended(&mut self, mut batch: Box<SendBatch>) {
        batch.clear();
        self.batch = Some(batch);
        self.batch_number += 1;
    }

    /// Receive into the connection's buffer, or straight to where payload belongs: memory that is held by a command
    /// which ends after the receive.
    pub fn receive(&mut self, direct: Option<(*mut u8, u32)>, lane: &mut Lane) {
        let Some(file) = lane.begin(self.socket) else { return };
        let input = if direct.is_none() { self.input.take() } else { None };
        let (memory, length, flags) = match (&input, direct) {
            (_, Some((memory, length))) => (memory, length, libc::MSG_WAITALL),
            (Some(input), None) => (input.as_raw(), RECEIVE_BYTES as u32, 0),
            (None, None) => return lane.end(self.socket),
        };
        self.receiving = true;
        let operation = Operation::NbdReceive { socket: self.socket, device: self.device, input };
        // SAFETY: the buffer belongs to the operation; a destination is held as this function asks.
        unsafe {
            lane.start(file, operation, |_, fd| opcode::Recv::new(fd, memory, length).flags(flags).build());
        }
    }

    /// The receive has ended, and its bytes are taken in.
    pub fn receive_ended(&mut self, input: Option<Buffer>) {
        self.receiving = false;
        self.input = input.or(self.input.take());
    }

    /// True where nothing works on the socket.
    pub fn is_still(&self) -> bool {
        !self.receiving && self.batch.is_some()
    }

    /// End what is in flight, and close.
    pub fn close(&self, lane: &mut Lane) {
        lane.close(self.socket);
    }
}
