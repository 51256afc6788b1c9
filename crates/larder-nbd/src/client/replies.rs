//! Replies of the transmission phase, parsed in a form that lets payload go straight to where it belongs.
//!
//! [`ReplyParser::next`] takes headers from the input and tells [`Event`]s. At an [`Event::Payload`] the driver moves
//! payload itself, from its input or from the socket, and says so with [`ReplyParser::payload_taken`].

use super::{CHUNK_BYTES_MAX, Outstanding};
use crate::consts::{PAYLOAD_BYTES_MAX, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk};
use crate::wire::{Gather, Reader};
use crate::{Command, ErrorCode};

/// What the parser needs to know of the driver's requests.
pub trait Outstandings {
    /// The request with this cookie, if it waits for a reply.
    fn outstanding(&mut self, cookie: u64) -> Option<&mut Outstanding>;
}

/// What a reply tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The next `length` bytes of the stream are for this request's buffer, from byte `at` on. Told again, for what is
    /// left, until [`ReplyParser::payload_taken`] has counted all of it.
    Payload {
        /// The request.
        cookie: u64,
        /// First byte in the request's buffer.
        at: u32,
        /// Number of bytes, not zero.
        length: u32,
    },
    /// A part of the request's buffer is to be filled with zeroes.
    Hole {
        /// The request.
        cookie: u64,
        /// First byte in the request's buffer.
        at: u32,
        /// Number of bytes, not zero.
        length: u32,
    },
    /// The next extent of a block status.
    Status {
        /// The request.
        cookie: u64,
        /// Number of bytes, not zero; all of them together are no more than was asked.
        length: u32,
        /// Bits of `base:allocation`.
        flags: u32,
    },
    /// The reply is complete; its cookie is free. A successful read has filled its buffer; after an error the buffer holds
    /// nothing of use.
    Done {
        /// The request.
        cookie: u64,
        /// How it ended.
        result: Result<(), ErrorCode>,
    },
}

/// How a server broke the protocol. The connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The stream is out of step.
    #[error("reply begins with {0:#010x} instead of a reply magic")]
    BadMagic(u32),
    /// No request has this cookie.
    #[error("reply to a request that was not sent (cookie {0:#x})")]
    UnknownCookie(u64),
    /// Structured without agreement, or a simple reply to a read in spite of it.
    #[error("reply of the form that was not agreed")]
    WrongForm,
    /// A chunk of an unknown type, or of a type that does not belong to the request.
    #[error("chunk of type {0} does not belong to its request")]
    UnexpectedChunk(u16),
    /// A chunk's length does not go with its type.
    #[error("chunk of type {kind} has {bytes} bytes")]
    ChunkLength {
        /// Type of the chunk.
        kind: u16,
        /// Length of its payload.
        bytes: u32,
    },
    /// Data outside of the range asked, or twice.
    #[error("data outside of what was asked, or sent twice")]
    BadRange,
    /// An error chunk without an error.
    #[error("error chunk without an error")]
    NoError,
    /// An extent of another metadata context, or of no length.
    #[error("block status that was not asked for")]
    BadStatus,
    /// Success claimed too early.
    #[error("reply is complete, but not its data")]
    Incomplete,
}

/// The chunk being received.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    cookie: u64,
    kind: u16,
    bytes: u32,
    done: bool,
}

/// What comes next from the server.
#[derive(Clone, Copy, Debug)]
enum State {
    Magic,
    Simple,
    ChunkHeader,
    /// The fixed part of a chunk's payload.
    ChunkFields(Chunk),
    Payload {
        cookie: u64,
        at: u32,
        left: u32,
        done: bool,
    },
    Extents {
        chunk: Chunk,
        left: u32,
    },
    Skip {
        chunk: Chunk,
        left: u32,
    },
    /// The chunk is complete.
    ChunkEnd {
        cookie: u64,
        done: bool,
    },
}

/// Parses the replies of one connection. Holds at most one header.
#[derive(Debug)]
pub struct ReplyParser {
    structured: bool,
    base_allocation: Option<u32>,
    state: State,
    gather: Gather,
}

type Outcome<T> = Result<T, ReplyError>;

impl ReplyParser {
    /// For a connection on which this was agreed.
    pub fn new(structured: bool, base_allocation: Option<u32>) -> Self {
        Self { structured, base_allocation, state: State::Magic, gather: Gather::default() }
    }

    /// Take headers from `input` until there is something to tell: the number of bytes consumed, and the event. Without an
    /// event all input is consumed, and more is needed.
    ///
    /// # Errors
    /// The server broke the protocol; the parser is of no further use.
    pub fn next(
        &mut self,
        input: &[u8],
        requests: &mut impl Outstandings,
    ) -> Outcome<(usize, Option<Event>)> {
        let mut rest = input;
        loop {
            if let State::Payload { cookie, at, left: length, .. } = self.state {
                return Ok((input.len() - rest.len(), Some(Event::Payload { cookie, at, length })));
            }
            if !self.fill(&mut rest) {
                return Ok((input.len() - rest.len(), None));
            }
            let mut message = std::mem::take(&mut self.gather);
            let event = self.message(message.bytes(), requests);
            if !matches!(self.state, State::Simple | State::ChunkHeader) {
                message.clear();
            }
            self.gather = message;
            if let Some(event) = event? {
                return Ok((input.len() - rest.len(), Some(event)));
            }
        }
    }

    /// The driver moved `count` bytes of payload. No more than [`Event::Payload`] told are counted.
    pub fn payload_taken(&mut self, count: u32) {
        let State::Payload { cookie, at, left, done } = self.state else { return };
        let count = count.min(left);
        self.state = match left - count {
            0 => State::ChunkEnd { cookie, done },
            left => State::Payload { cookie, at: at + count, left, done },
        };
    }

    /// Move what the state needs from the input. True once it is there.
    fn fill(&mut self, input: &mut &[u8]) -> bool {
        let need = match &mut self.state {
            State::Skip { left, .. } => {
                let count = (*left as usize).min(input.len());
                *input = &input[count..];
                *left -= count as u32;
                return *left == 0;
            }
            State::Magic => 4,
            State::Simple => 16,
            State::ChunkHeader => 20,
            State::ChunkFields(chunk) => chunk.field_bytes(),
            State::Extents { .. } => 8,
            State::Payload { .. } | State::ChunkEnd { .. } => 0,
        };
        self.gather.fill(input, need)
    }

    fn message(&mut self, bytes: &[u8], requests: &mut impl Outstandings) -> Outcome<Option<Event>> {
        let mut reader = Reader::new(bytes);
        match self.state {
            State::Magic => self.magic(&mut reader).map(|()| None),
            State::Simple => self.simple(&mut reader, requests),
            State::ChunkHeader => self.chunk_header(&mut reader, requests).map(|()| None),
            State::ChunkFields(chunk) => self.chunk_fields(chunk, &mut reader, requests),
            State::Extents { chunk, left } => self.extent(chunk, left, &mut reader, requests),
            State::Skip { chunk, .. } => {
                self.state = chunk.end();
                Ok(None)
            }
            State::ChunkEnd { cookie, done } => self.chunk_end(cookie, done, requests),
            State::Payload { .. } => Ok(None),
        }
    }

    fn magic(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        let magic = reader.u32().unwrap_or(0);
        self.state = match magic {
            SIMPLE_REPLY_MAGIC => State::Simple,
            STRUCTURED_REPLY_MAGIC if self.structured => State::ChunkHeader,
            STRUCTURED_REPLY_MAGIC => return Err(ReplyError::WrongForm),
            other => return Err(ReplyError::BadMagic(other)),
        };
        Ok(())
    }

    fn simple(
        &mut self,
        reader: &mut Reader<'_>,
        requests: &mut impl Outstandings,
    ) -> Outcome<Option<Event>> {
        let _magic = reader.u32();
        let error = reader.u32().unwrap_or(0);
        let cookie = reader.u64().unwrap_or(0);
        let request = find(requests, cookie)?;
        let is_read = request.command() == Command::Read;
        if self.structured && (is_read || request.command() == Command::BlockStatus && error == 0) {
            return Err(ReplyError::WrongForm);
        }
        if error != 0 {
            request.fail(ErrorCode::from_wire(error));
        } else if is_read && request.length() > 0 {
            request.fill(0, request.length());
            self.state = State::Payload { cookie, at: 0, left: request.length(), done: true };
            return Ok(None);
        }
        self.chunk_end(cookie, true, requests)
    }

    fn chunk_header(&mut self, reader: &mut Reader<'_>, requests: &mut impl Outstandings) -> Outcome<()> {
        let _magic = reader.u32();
        let done = reader.u16().unwrap_or(0) & chunk::DONE != 0;
        let kind = reader.u16().unwrap_or(0);
        let cookie = reader.u64().unwrap_or(0);
        let bytes = reader.u32().unwrap_or(0);
        let chunk = Chunk { cookie, kind, bytes, done };
        chunk.check(find(requests, cookie)?)?;
        self.state = if kind == chunk::NONE { chunk.end() } else { State::ChunkFields(chunk) };
        Ok(())
    }

    fn chunk_fields(
        &mut self,
        chunk: Chunk,
        reader: &mut Reader<'_>,
        requests: &mut impl Outstandings,
    ) -> Outcome<Option<Event>> {
        let request = find(requests, chunk.cookie)?;
        match chunk.kind {
            chunk::OFFSET_DATA => self.data(chunk, reader, request).map(|()| None),
            chunk::OFFSET_HOLE => self.hole(chunk, reader, request).map(Some),
            chunk::BLOCK_STATUS => self.status(chunk, reader).map(|()| None),
            _ => self.error(chunk, reader, request).map(|()| None),
        }
    }

    fn data(&mut self, chunk: Chunk, reader: &mut Reader<'_>, request: &mut Outstanding) -> Outcome<()> {
        let left = chunk.bytes.saturating_sub(8);
        let at = claim(request, reader.u64(), left)?;
        self.state = State::Payload { cookie: chunk.cookie, at, left, done: chunk.done };
        Ok(())
    }

    fn hole(&mut self, chunk: Chunk, reader: &mut Reader<'_>, request: &mut Outstanding) -> Outcome<Event> {
        let offset = reader.u64();
        let length = reader.u32().unwrap_or(0);
        let at = claim(request, offset, length)?;
        self.state = chunk.end();
        Ok(Event::Hole { cookie: chunk.cookie, at, length })
    }

    fn status(&mut self, chunk: Chunk, reader: &mut Reader<'_>) -> Outcome<()> {
        if reader.u32() != self.base_allocation {
            return Err(ReplyError::BadStatus);
        }
        self.state = State::Extents { chunk, left: chunk.bytes.saturating_sub(4) };
        Ok(())
    }

    fn error(&mut self, chunk: Chunk, reader: &mut Reader<'_>, request: &mut Outstanding) -> Outcome<()> {
        let code = reader.u32().unwrap_or(0);
        let message = u32::from(reader.u16().unwrap_or(0));
        let offset = if chunk.kind == chunk::ERROR_OFFSET { 8 } else { 0 };
        if code == 0 {
            return Err(ReplyError::NoError);
        }
        if 6 + message + offset > chunk.bytes {
            return Err(chunk.bad_length());
        }
        request.fail(ErrorCode::from_wire(code));
        self.state = State::Skip { chunk, left: chunk.bytes - 6 };
        Ok(())
    }

    fn extent(
        &mut self,
        chunk: Chunk,
        left: u32,
        reader: &mut Reader<'_>,
        requests: &mut impl Outstandings,
    ) -> Outcome<Option<Event>> {
        let length = reader.u32().unwrap_or(0);
        let flags = reader.u32().unwrap_or(0);
        if length == 0 {
            return Err(ReplyError::BadStatus);
        }
        let length = find(requests, chunk.cookie)?.describe(length);
        self.state = match left.saturating_sub(8) {
            0 => chunk.end(),
            left => State::Extents { chunk, left },
        };
        Ok((length > 0).then_some(Event::Status { cookie: chunk.cookie, length, flags }))
    }

    /// After a chunk, or a simple reply.
    fn chunk_end(
        &mut self,
        cookie: u64,
        done: bool,
        requests: &mut impl Outstandings,
    ) -> Outcome<Option<Event>> {
        self.state = State::Magic;
        if !done {
            return Ok(None);
        }
        let request = find(requests, cookie)?;
        let result = request.result();
        let complete = match request.command() {
            Command::Read => request.is_filled(),
            Command::BlockStatus => request.is_described(),
            _ => true,
        };
        if result.is_ok() && !complete {
            return Err(ReplyError::Incomplete);
        }
        Ok(Some(Event::Done { cookie, result }))
    }
}

impl Chunk {
    /// Bytes of the payload's fixed part.
    fn field_bytes(&self) -> usize {
        match self.kind {
            chunk::NONE => 0,
            chunk::OFFSET_DATA => 8,
            chunk::OFFSET_HOLE => 12,
            chunk::BLOCK_STATUS => 4,
            _ => 6,
        }
    }

    fn end(&self) -> State {
        State::ChunkEnd { cookie: self.cookie, done: self.done }
    }

    fn bad_length(&self) -> ReplyError {
        ReplyError::ChunkLength { kind: self.kind, bytes: self.bytes }
    }

    /// "Structured reply types": what belongs to which request, and how long it is.
    fn check(&self, request: &Outstanding) -> Outcome<()> {
        let (belongs, length_is_good) = match self.kind {
            chunk::NONE => (self.done, self.bytes == 0),
            chunk::OFFSET_DATA => {
                (request.command() == Command::Read, self.bytes > 8 && self.bytes - 8 <= PAYLOAD_BYTES_MAX)
            }
            chunk::OFFSET_HOLE => (request.command() == Command::Read, self.bytes == 12),
            chunk::BLOCK_STATUS => {
                let whole =
                    self.bytes >= 12 && (self.bytes - 4).is_multiple_of(8) && self.bytes <= CHUNK_BYTES_MAX;
                (request.command() == Command::BlockStatus, whole)
            }
            kind => (kind & chunk::ERROR_BIT != 0, self.bytes >= 6 && self.bytes <= CHUNK_BYTES_MAX),
        };
        match (belongs, length_is_good) {
            (false, _) => Err(ReplyError::UnexpectedChunk(self.kind)),
            (true, false) => Err(self.bad_length()),
            (true, true) => Ok(()),
        }
    }
}

fn find(requests: &mut impl Outstandings, cookie: u64) -> Outcome<&mut Outstanding> {
    requests.outstanding(cookie).ok_or(ReplyError::UnknownCookie(cookie))
}

/// Where content belongs, if it belongs to the request and has not come before.
fn claim(request: &mut Outstanding, offset: Option<u64>, length: u32) -> Outcome<u32> {
    let at = offset.and_then(|offset| request.place(offset, length)).ok_or(ReplyError::BadRange)?;
    if length == 0 || !request.fill(at, length) {
        return Err(ReplyError::BadRange);
    }
    Ok(at)
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
