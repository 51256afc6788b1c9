//! The handshake as a state machine: greeting, client flags, options ("Fixed newstyle negotiation").

use super::answer::{self, Answer};
use super::options::{InfoRequest, MetaRequest, Refusal, text};
use super::{HANDSHAKE_REPLY_BYTES_MAX, OPTION_BYTES_MAX, OPTION_SKIP_BYTES_MAX, OPTIONS_MAX};
use crate::Exports;
use crate::consts::{
    BASE_ALLOCATION, BASE_ALLOCATION_ID, CLIENT_FIXED_NEWSTYLE, CLIENT_NO_ZEROES, OPTION_MAGIC,
    STRING_BYTES_MAX, option, rep, tflag,
};
use crate::wire::{Gather, Reader};

/// Bytes of an option's header: magic, option, length of its data.
const OPTION_HEADER_BYTES: usize = 16;

/// What the client chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Its number in [`Exports`].
    pub export: usize,
    /// The transmission flags that the client was told.
    pub flags: u16,
    /// Replies to reads have to be structured.
    pub structured: bool,
    /// The client may ask for extents of `base:allocation`.
    pub base_allocation: bool,
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All input is consumed, and more is needed.
    NeedMore,
    /// Transmission begins with the first byte that is not consumed.
    Ready(Negotiated),
    /// The client gave up, or an earlier error ended the handshake. Send what is to be sent, then close.
    Closed,
}

/// Why a handshake ends. The connection is to be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// Client flags that no specification lists.
    #[error("client sent unknown handshake flags {0:#010x}")]
    ClientFlags(u32),
    /// An option does not begin as options do.
    #[error("option begins with {0:#018x} instead of the option magic")]
    OptionMagic(u64),
    /// More data than may be skipped.
    #[error("option {option} has {bytes} bytes of data, more than {OPTION_SKIP_BYTES_MAX}")]
    OptionTooLong {
        /// The option.
        option: u32,
        /// Length of its data.
        bytes: u32,
    },
    /// The client does not come to the point.
    #[error("client sent more than {OPTIONS_MAX} options")]
    TooManyOptions,
    /// The client makes us talk too much.
    #[error("client asked for more than {HANDSHAKE_REPLY_BYTES_MAX} bytes of replies")]
    TooManyReplies,
    /// A client without fixed newstyle understands no replies: it may only name an export.
    #[error("client without fixed newstyle sent option {0}")]
    NotFixedNewstyle(u32),
    /// `EXPORT_NAME` cannot be refused but by closing.
    #[error("{0}")]
    ExportName(String),
}

/// What comes next from the client.
#[derive(Debug)]
enum State {
    ClientFlags,
    OptionHeader,
    OptionData {
        option: u32,
        bytes: u32,
    },
    /// The data of an option that is refused whatever it says.
    Skip {
        option: u32,
        left: u32,
        reply: u32,
    },
    Finished,
}

/// The server's side of one handshake. Holds at most [`OPTION_BYTES_MAX`] bytes.
#[derive(Debug)]
pub struct Handshake {
    state: State,
    gather: Gather,
    client_flags: u32,
    structured: bool,
    /// The export for which `base:allocation` was chosen; it does not hold for another.
    base_allocation: Option<usize>,
    options: u32,
    reply_bytes: usize,
}

impl Handshake {
    /// Begin: append the greeting to `out`.
    pub fn new(out: &mut Vec<u8>) -> Self {
        answer::greeting(out);
        Self {
            state: State::ClientFlags,
            gather: Gather::default(),
            client_flags: 0,
            structured: false,
            base_allocation: None,
            options: 0,
            reply_bytes: 0,
        }
    }

    /// Take in what the client sent; append what it is to be told to `out`. Tells how many bytes of `input` were consumed:
    /// all, unless the handshake came to its end.
    ///
    /// # Errors
    /// The connection is to be closed; what was appended to `out` may still be sent.
    pub fn feed(
        &mut self,
        input: &[u8],
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Progress), HandshakeError> {
        let mut rest = input;
        loop {
            let begin = out.len();
            let step = self.step(&mut rest, exports, out);
            self.reply_bytes += out.len() - begin;
            match step.and_then(|step| self.within_limits().map(|()| step)) {
                Ok(None) => {}
                Ok(Some(progress)) => return Ok((input.len() - rest.len(), progress)),
                Err(error) => {
                    self.finish();
                    return Err(error);
                }
            }
        }
    }

    /// One message, or a part of one. `None`: go on.
    fn step(
        &mut self,
        input: &mut &[u8],
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Result<Option<Progress>, HandshakeError> {
        match self.state {
            State::ClientFlags => self.gather(input, 4, |this, bytes| this.client_flags(bytes)),
            State::OptionHeader => {
                self.gather(input, OPTION_HEADER_BYTES, |this, bytes| this.option_header(bytes))
            }
            State::OptionData { option, bytes } => {
                self.gather(input, bytes as usize, |this, data| this.option_data(option, data, exports, out))
            }
            State::Skip { option, left, reply } => Ok(self.skip(input, option, left, reply, out)),
            State::Finished => Ok(Some(Progress::Closed)),
        }
    }

    /// Wait for `need` bytes, then act on them.
    fn gather(
        &mut self,
        input: &mut &[u8],
        need: usize,
        act: impl FnOnce(&mut Self, &[u8]) -> Result<Option<Progress>, HandshakeError>,
    ) -> Result<Option<Progress>, HandshakeError> {
        if !self.gather.fill(input, need) {
            return Ok(Some(Progress::NeedMore));
        }
        let mut message = std::mem::take(&mut self.gather);
        let outcome = act(self, message.bytes());
        message.clear();
        self.gather = message;
        outcome
    }

    fn client_flags(&mut self, bytes: &[u8]) -> Result<Option<Progress>, HandshakeError> {
        let flags = Reader::new(bytes).u32().unwrap_or(u32::MAX);
        if flags & !(CLIENT_FIXED_NEWSTYLE | CLIENT_NO_ZEROES) != 0 {
            return Err(HandshakeError::ClientFlags(flags));
        }
        self.client_flags = flags;
        self.state = State::OptionHeader;
        Ok(None)
    }

    fn option_header(&mut self, bytes: &[u8]) -> Result<Option<Progress>, HandshakeError> {
        let mut reader = Reader::new(bytes);
        let magic = reader.u64().unwrap_or(0);
        if magic != OPTION_MAGIC {
            return Err(HandshakeError::OptionMagic(magic));
        }
        let option = reader.u32().unwrap_or(0);
        let bytes = reader.u32().unwrap_or(u32::MAX);
        self.options += 1;
        if self.options > OPTIONS_MAX {
            return Err(HandshakeError::TooManyOptions);
        }
        self.state = self.expect(option, bytes)?;
        Ok(None)
    }

    /// How to receive an option's data.
    fn expect(&self, option: u32, bytes: u32) -> Result<State, HandshakeError> {
        if option == option::EXPORT_NAME {
            return match bytes as usize <= STRING_BYTES_MAX {
                true => Ok(State::OptionData { option, bytes }),
                false => Err(HandshakeError::OptionTooLong { option, bytes }),
            };
        }
        if self.client_flags & CLIENT_FIXED_NEWSTYLE == 0 {
            return Err(HandshakeError::NotFixedNewstyle(option));
        }
        if bytes > OPTION_SKIP_BYTES_MAX {
            return Err(HandshakeError::OptionTooLong { option, bytes });
        }
        Ok(match (is_known(option), bytes > OPTION_BYTES_MAX) {
            (true, false) => State::OptionData { option, bytes },
            (true, true) => State::Skip { option, left: bytes, reply: rep::ERR_TOO_BIG },
            (false, _) => State::Skip { option, left: bytes, reply: rep::ERR_UNSUP },
        })
    }

    fn skip(
        &mut self,
        input: &mut &[u8],
        option: u32,
        left: u32,
        reply: u32,
        out: &mut Vec<u8>,
    ) -> Option<Progress> {
        let count = (left as usize).min(input.len());
        *input = &input[count..];
        // `count` is at most `left`.
        let left = left - count as u32;
        if left > 0 {
            self.state = State::Skip { option, left, reply };
            return Some(Progress::NeedMore);
        }
        let message = if reply == rep::ERR_UNSUP { "option not supported" } else { "option data too long" };
        Answer::new(option, out).refuse(&Refusal::new(reply, message));
        self.state = State::OptionHeader;
        None
    }

    fn option_data(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Result<Option<Progress>, HandshakeError> {
        self.state = State::OptionHeader;
        if option == option::EXPORT_NAME {
            return self.export_name(data, exports, out).map(Some);
        }
        let mut answer = Answer::new(option, out);
        let outcome = match option {
            option::ABORT => Ok(Some(self.abort())),
            option::LIST => list(data, exports, &mut answer),
            option::INFO | option::GO => self.info(option == option::GO, data, exports, &mut answer),
            option::STRUCTURED_REPLY => self.structured_reply(data),
            option::SET_META_CONTEXT => self.set_meta_context(data, exports, &mut answer),
            _ => list_meta_context(data, exports, &mut answer),
        };
        match outcome {
            Ok(progress) => {
                answer.ack();
                Ok(progress)
            }
            Err(refusal) => {
                answer.refuse(&refusal);
                Ok(None)
            }
        }
    }

    fn export_name(
        &mut self,
        data: &[u8],
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Result<Progress, HandshakeError> {
        let found = text(data)
            .and_then(|name| exports.find(name).ok_or_else(|| answer::unknown_export(name, exports)));
        let export = found.map_err(|refusal| HandshakeError::ExportName(refusal.message))?;
        let info = exports.info(export);
        let negotiated = self.negotiated(export, info.flags);
        answer::export_name(out, info.size, negotiated.flags, self.client_flags & CLIENT_NO_ZEROES != 0);
        self.finish();
        Ok(Progress::Ready(negotiated))
    }

    fn abort(&mut self) -> Progress {
        self.finish();
        Progress::Closed
    }

    fn info(
        &mut self,
        go: bool,
        data: &[u8],
        exports: &dyn Exports,
        answer: &mut Answer<'_>,
    ) -> Result<Option<Progress>, Refusal> {
        let request = InfoRequest::parse(data)?;
        let export = find(request.export, exports)?;
        let info = exports.info(export);
        let negotiated = self.negotiated(export, info.flags);
        answer.export(&request, exports.name(export), &info, negotiated.flags);
        if !go {
            return Ok(None);
        }
        self.finish();
        Ok(Some(Progress::Ready(negotiated)))
    }

    fn structured_reply(&mut self, data: &[u8]) -> Result<Option<Progress>, Refusal> {
        no_data(data)?;
        self.structured = true;
        Ok(None)
    }

    fn set_meta_context(
        &mut self,
        data: &[u8],
        exports: &dyn Exports,
        answer: &mut Answer<'_>,
    ) -> Result<Option<Progress>, Refusal> {
        // Whatever becomes of this, what was chosen before no longer holds.
        self.base_allocation = None;
        if !self.structured {
            return Err(Refusal::invalid("structured replies have to be negotiated first"));
        }
        let request = MetaRequest::parse(data)?;
        let export = find(request.export, exports)?;
        if request.queries.contains(&BASE_ALLOCATION.as_bytes()) {
            self.base_allocation = Some(export);
            answer.meta_context(BASE_ALLOCATION_ID, BASE_ALLOCATION);
        }
        Ok(None)
    }

    /// What holds for an export after the options so far.
    fn negotiated(&self, export: usize, flags: u16) -> Negotiated {
        // "Transmission flags": SEND_DF must not be set unless structured replies were negotiated.
        let hidden = if self.structured { 0 } else { tflag::SEND_DF };
        Negotiated {
            export,
            flags: (flags | tflag::HAS_FLAGS) & !hidden,
            structured: self.structured,
            base_allocation: self.base_allocation == Some(export),
        }
    }

    fn within_limits(&self) -> Result<(), HandshakeError> {
        if self.reply_bytes > HANDSHAKE_REPLY_BYTES_MAX {
            Err(HandshakeError::TooManyReplies)
        } else {
            Ok(())
        }
    }

    fn finish(&mut self) {
        self.state = State::Finished;
        self.gather = Gather::default();
    }
}

/// True for the options that [`Handshake::option_data`] acts on.
fn is_known(option: u32) -> bool {
    use option::{ABORT, GO, INFO, LIST, LIST_META_CONTEXT, SET_META_CONTEXT, STRUCTURED_REPLY};
    matches!(option, ABORT | LIST | INFO | GO | STRUCTURED_REPLY | LIST_META_CONTEXT | SET_META_CONTEXT)
}

fn list(data: &[u8], exports: &dyn Exports, answer: &mut Answer<'_>) -> Result<Option<Progress>, Refusal> {
    no_data(data)?;
    (0..exports.count()).for_each(|index| answer.server(exports.name(index)));
    Ok(None)
}

/// Without queries every context is listed; a query that ends in the colon lists its namespace.
fn list_meta_context(
    data: &[u8],
    exports: &dyn Exports,
    answer: &mut Answer<'_>,
) -> Result<Option<Progress>, Refusal> {
    let request = MetaRequest::parse(data)?;
    find(request.export, exports)?;
    let asked = |query: &&[u8]| *query == b"base:" || *query == BASE_ALLOCATION.as_bytes();
    if request.queries.is_empty() || request.queries.iter().any(asked) {
        // The number is reserved in a list.
        answer.meta_context(0, BASE_ALLOCATION);
    }
    Ok(None)
}

fn no_data(data: &[u8]) -> Result<(), Refusal> {
    if data.is_empty() { Ok(()) } else { Err(Refusal::invalid("the option takes no data")) }
}

fn find(name: &str, exports: &dyn Exports) -> Result<usize, Refusal> {
    exports.find(name).ok_or_else(|| answer::unknown_export(name, exports))
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
