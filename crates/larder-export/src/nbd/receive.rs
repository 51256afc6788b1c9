//! Bytes from the socket, and the requests in them.
//!
//! Everything is received into one buffer, from which many requests are taken at once. Only the payload of a large write goes
//! straight to the request's own memory. One receive is in flight at a time.

use super::limits::{COPIED_PAYLOAD_BYTES_MAX, RECEIVE_BUFFER_BYTES};
use super::memory::memory_of;
use larder_io::{Buffer, Context, SocketId};
use larder_nbd::consts::{PAYLOAD_BYTES_MAX, REQUEST_BYTES};
use larder_nbd::{Command, ErrorCode, Fault, Limits, Request, Violation};
use std::io;

/// The next thing in the stream.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing more for now.
    Wait,
    /// A request. A read comes with memory for its data, a write with its payload.
    Request(Request, Option<Buffer>),
    /// A request to be answered with an error.
    Refused(Request, ErrorCode),
    /// The stream can no longer be understood.
    Close(Violation),
}

/// How a receive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// There are new bytes.
    Bytes,
    /// The client sends no more.
    End,
    /// The connection is broken, or ended within a write.
    Broken,
    /// It was interrupted before anything came.
    Interrupted,
}

/// A write whose payload goes straight to its memory.
#[derive(Debug)]
struct Payload {
    request: Request,
    /// Away while the kernel has it.
    buffer: Option<Buffer>,
    filled: usize,
}

/// The receiving side of a connection.
#[derive(Debug)]
pub(super) struct Receive {
    socket: SocketId,
    token: u64,
    /// Away while the kernel has it.
    buffer: Option<Buffer>,
    start: usize,
    end: usize,
    receiving: bool,
    payload: Option<Payload>,
    /// Bytes of a refused write's payload still to come.
    skip: usize,
    /// The next request is here, and has to wait.
    waits_for: Option<WaitsFor>,
}

/// What the next request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// Memory.
    Memory,
    /// The next turn of the reactor.
    Turn,
}

/// What the next request may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Bytes of memory.
    pub memory: usize,
    /// A query for the status of blocks may be answered in this turn.
    pub status: bool,
}

impl Receive {
    /// Receives end with this token.
    pub fn new(socket: SocketId, token: u64, buffer: Buffer) -> Self {
        Self {
            socket,
            token,
            buffer: Some(buffer),
            start: 0,
            end: 0,
            receiving: false,
            payload: None,
            skip: 0,
            waits_for: None,
        }
    }

    /// Bytes not yet understood.
    pub fn unread(&self) -> &[u8] {
        self.buffer.as_deref().and_then(|bytes| bytes.get(self.start..self.end)).unwrap_or_default()
    }

    /// The first of them are understood.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// True while the kernel has a buffer.
    pub fn is_receiving(&self) -> bool {
        self.receiving
    }

    /// What the next request waits for, if it has to.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        self.waits_for
    }

    /// Memory of a write that is being received to its own, in bytes.
    pub fn payload_memory(&self) -> usize {
        self.payload.as_ref().map_or(0, |payload| memory_of(payload.request.length as usize))
    }

    /// Go on with a larger buffer, which begins with `unread`. False where there is no memory, or too little.
    pub fn refill(&mut self, cx: &mut Context, bytes: usize, unread: &[u8]) -> bool {
        // Connections are bounded in number: their receive buffers need not wait for others' data.
        let Some(mut buffer) = cx.buffer_beyond(bytes) else { return false };
        let Some(begin) = buffer.get_mut(..unread.len()) else { return false };
        begin.copy_from_slice(unread);
        (self.start, self.end) = (0, unread.len());
        self.release(cx);
        self.buffer = Some(buffer);
        true
    }

    /// Go on with a larger buffer.
    pub fn grow(&mut self, cx: &mut Context, bytes: usize) -> bool {
        let unread = self.unread().to_vec();
        self.refill(cx, bytes, &unread)
    }

    /// What has come and is not understood yet, from a request's header on, and how much of it, or of what comes next, is to be skipped first. Nothing may be
    /// on its way.
    pub fn rest(&self) -> (Vec<u8>, usize) {
        let Some(Payload { request, buffer: Some(buffer), filled }) = &self.payload else {
            return (self.unread().to_vec(), self.skip);
        };
        let mut stream = request.encode().to_vec();
        stream.extend_from_slice(buffer.get(..*filled).unwrap_or_default());
        (stream, 0)
    }

    /// Go on with a [`Receive::rest`]. False where there is no memory, or where it is none.
    pub fn resume(&mut self, cx: &mut Context, stream: &[u8], skip: usize) -> bool {
        if stream.len() <= RECEIVE_BUFFER_BYTES {
            self.skip = skip;
            return self.refill(cx, RECEIVE_BUFFER_BYTES, stream);
        }
        // Only a write's payload is longer than the buffer.
        let Some((header, data)) = stream.split_first_chunk::<REQUEST_BYTES>() else { return false };
        let write = Request::parse(header).ok().filter(|request| {
            request.payload_bytes() as usize > data.len() && request.length <= PAYLOAD_BYTES_MAX
        });
        let Some(request) = write else { return false };
        let Some(mut buffer) = cx.buffer_beyond(request.length as usize) else { return false };
        let Some(begin) = buffer.get_mut(..data.len()) else { return false };
        begin.copy_from_slice(data);
        if !self.refill(cx, RECEIVE_BUFFER_BYTES, &[]) {
            return false;
        }
        self.payload = Some(Payload { request, buffer: Some(buffer), filled: data.len() });
        true
    }

    /// Give the memory back.
    pub fn release(&mut self, cx: &mut Context) {
        self.buffer.take().into_iter().for_each(|buffer| cx.recycle(buffer));
        let payload = self.payload.take().and_then(|payload| payload.buffer);
        payload.into_iter().for_each(|buffer| cx.recycle(buffer));
    }

    /// Receive more, unless the kernel is at it, or there is no room.
    #[inline]
    pub fn start(&mut self, cx: &mut Context) {
        if self.receiving || self.waits_for.is_some() {
            return;
        }
        if let Some(payload) = &mut self.payload {
            let Some(buffer) = payload.buffer.take() else { return };
            let range = payload.filled..payload.request.length as usize;
            self.receiving = true;
            cx.recv_all(self.socket, buffer, range, self.token);
            return;
        }
        self.compact();
        let Some(buffer) = self.buffer.take_if(|buffer| self.end < buffer.len()) else { return };
        let range = self.end..buffer.len();
        self.receiving = true;
        cx.recv(self.socket, buffer, range, self.token);
    }

    /// Make room behind what is unread.
    fn compact(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if let Some(buffer) = &mut self.buffer
            && self.end > buffer.len() / 2
        {
            buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    /// A receive ended.
    #[inline]
    pub fn received(&mut self, buffer: Buffer, result: io::Result<usize>) -> Received {
        self.receiving = false;
        let count = result.as_ref().copied().unwrap_or(0);
        let in_payload = match &mut self.payload {
            Some(payload) => {
                payload.buffer = Some(buffer);
                payload.filled += count;
                true
            }
            None => {
                self.end = (self.end + count).min(buffer.len());
                self.buffer = Some(buffer);
                false
            }
        };
        match (result, in_payload) {
            (Ok(1..), _) => Received::Bytes,
            (Ok(0), false) if self.start == self.end && self.skip == 0 => Received::End,
            (Err(error), _) if error.raw_os_error() == Some(libc::ECANCELED) => Received::Interrupted,
            _ => Received::Broken,
        }
    }

    /// Take the next request from what was received.
    #[inline]
    pub fn next(&mut self, cx: &mut Context, limits: &Limits, allowance: Allowance) -> Step {
        self.waits_for = None;
        if self.payload.is_some() {
            return self.next_payload();
        }
        self.skip_payload();
        let Some((header, rest)) = self.unread().split_first_chunk::<REQUEST_BYTES>() else {
            return Step::Wait;
        };
        let available = rest.len();
        let request = match Request::parse(header) {
            Ok(request) => request,
            Err(violation) => return Step::Close(violation),
        };
        match request.check(limits) {
            Ok(()) => self.accept(cx, request, available, allowance),
            Err(Fault::Answer(code)) => {
                self.consume(REQUEST_BYTES);
                self.skip = request.payload_bytes() as usize;
                Step::Refused(request, code)
            }
            Err(Fault::Close(violation)) => Step::Close(violation),
        }
    }

    fn skip_payload(&mut self) {
        let count = self.skip.min(self.unread().len());
        self.consume(count);
        self.skip -= count;
    }

    /// A good request, with this many bytes behind its header. It gets its memory, or waits for it.
    #[inline]
    fn accept(&mut self, cx: &mut Context, request: Request, available: usize, allowance: Allowance) -> Step {
        if request.command == Command::BlockStatus && !allowance.status {
            self.waits_for = Some(WaitsFor::Turn);
            return Step::Wait;
        }
        let length = request.length as usize;
        let is_write = request.command == Command::Write;
        if is_write && available < length && length <= COPIED_PAYLOAD_BYTES_MAX {
            return Step::Wait;
        }
        let buffer = if is_write || request.command == Command::Read {
            let granted = (memory_of(length) <= allowance.memory).then(|| cx.buffer_beyond(length));
            let Some(buffer) = granted.flatten() else {
                self.waits_for = Some(WaitsFor::Memory);
                return Step::Wait;
            };
            Some(buffer)
        } else {
            None
        };
        self.consume(REQUEST_BYTES);
        match buffer {
            Some(buffer) if is_write => self.take_payload(request, buffer, available),
            buffer => Step::Request(request, buffer),
        }
    }

    /// Move what has come of a write's payload.
    fn take_payload(&mut self, request: Request, mut buffer: Buffer, available: usize) -> Step {
        let filled = available.min(request.length as usize);
        if let Some((from, to)) = self.unread().get(..filled).zip(buffer.get_mut(..filled)) {
            to.copy_from_slice(from);
        }
        self.consume(filled);
        if filled == request.length as usize {
            return Step::Request(request, Some(buffer));
        }
        self.payload = Some(Payload { request, buffer: Some(buffer), filled });
        Step::Wait
    }

    /// The write whose payload is being received, once it is there.
    fn next_payload(&mut self) -> Step {
        let whole = |payload: &mut Payload| {
            payload.filled >= payload.request.length as usize && payload.buffer.is_some()
        };
        match self.payload.take_if(whole) {
            Some(Payload { request, buffer, .. }) => Step::Request(request, buffer),
            None => Step::Wait,
        }
    }
}
