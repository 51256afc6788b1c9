//! The client's handshake as a state machine.
//!
//! It asks for structured replies, then for `base:allocation`, then for the export with `GO`; each step that the server
//! refuses is done without. A server that does not know `GO` is asked with `EXPORT_NAME`.

use super::{OPTION_REPLIES_MAX, OPTION_REPLY_BYTES_MAX};
use crate::BlockSizes;
use crate::consts::{
    BASE_ALLOCATION, CLIENT_FIXED_NEWSTYLE, CLIENT_NO_ZEROES, EXPORT_NAME_ZEROES, FLAG_FIXED_NEWSTYLE,
    FLAG_NO_ZEROES, INIT_MAGIC, OLDSTYLE_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, STRING_BYTES_MAX, info,
    option, rep,
};
use crate::wire::{Gather, Put, Reader, truncated};

const GREETING_BYTES: usize = 18;
const REPLY_HEADER_BYTES: usize = 20;

/// What the server offers, and what was agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Size of the export in bytes, at most `i64::MAX`.
    pub size: u64,
    /// What the export can do: bits of [`crate::consts::tflag`].
    pub flags: u16,
    /// Its block sizes; [`BlockSizes::UNSTATED`] where the server said nothing.
    pub block: BlockSizes,
    /// Replies to reads will be structured.
    pub structured: bool,
    /// The number by which the server names `base:allocation`, where it has it.
    pub base_allocation: Option<u32>,
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All input is consumed, and more is needed.
    NeedMore,
    /// Transmission begins with the first byte that is not consumed.
    Ready(Connected),
}

/// Why a handshake failed. The connection is to be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// Something else than an NBD server answers.
    #[error("the peer is no NBD server (it begins with {0:#018x})")]
    NotNbd(u64),
    /// A server of the time before 2011.
    #[error("the server speaks oldstyle NBD; newstyle is needed")]
    Oldstyle,
    /// The name cannot be sent.
    #[error("export names have at most {STRING_BYTES_MAX} bytes")]
    NameTooLong,
    /// There is no such export.
    #[error("the server does not have this export{}", because(.0))]
    UnknownExport(String),
    /// TLS is not supported here.
    #[error("the server requires TLS, which is not supported{}", because(.0))]
    TlsRequired(String),
    /// The server is being stopped.
    #[error("the server is shutting down{}", because(.0))]
    Shutdown(String),
    /// Another refusal.
    #[error("the server refuses the export (error {code:#010x}){}", because(.message))]
    Refused {
        /// A number of [`rep`].
        code: u32,
        /// What the server said, made printable; may be empty.
        message: String,
    },
    /// The server breaks the protocol.
    #[error("the server breaks the NBD protocol: {0}")]
    Protocol(&'static str),
}

fn because(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    ReplyHeader,
    ReplyData { kind: u32, bytes: u32 },
    ExportName,
    Finished,
}

/// The client's side of one handshake. Holds at most [`OPTION_REPLY_BYTES_MAX`] bytes.
#[derive(Debug)]
pub struct Handshake {
    name: String,
    state: State,
    /// The option that is waiting for its replies.
    asked: u32,
    gather: Gather,
    no_zeroes: bool,
    replies: u32,
    size: Option<u64>,
    flags: u16,
    block: BlockSizes,
    structured: bool,
    base_allocation: Option<u32>,
}

type Outcome<T> = Result<T, HandshakeError>;

impl Handshake {
    /// Begin: the server speaks first.
    ///
    /// # Errors
    /// [`HandshakeError::NameTooLong`].
    pub fn new(export: &str) -> Result<Self, HandshakeError> {
        if export.len() > STRING_BYTES_MAX {
            return Err(HandshakeError::NameTooLong);
        }
        Ok(Self {
            name: export.to_owned(),
            state: State::Greeting,
            asked: 0,
            gather: Gather::default(),
            no_zeroes: false,
            replies: 0,
            size: None,
            flags: 0,
            block: BlockSizes::UNSTATED,
            structured: false,
            base_allocation: None,
        })
    }

    /// Take in what the server sent; append what it is to be told to `out`. Tells how many bytes of `input` were consumed:
    /// all, unless the handshake came to its end.
    ///
    /// # Errors
    /// The handshake failed; the connection is to be closed.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), HandshakeError> {
        let mut rest = input;
        loop {
            if self.state == State::Finished {
                return Err(HandshakeError::Protocol("the handshake is over"));
            }
            if !self.gather.fill(&mut rest, self.need()) {
                return Ok((input.len() - rest.len(), Progress::NeedMore));
            }
            let mut message = std::mem::take(&mut self.gather);
            let outcome = self.message(message.bytes(), out);
            message.clear();
            self.gather = message;
            match outcome {
                Ok(None) => {}
                Ok(Some(connected)) => {
                    self.state = State::Finished;
                    return Ok((input.len() - rest.len(), Progress::Ready(connected)));
                }
                Err(error) => {
                    self.state = State::Finished;
                    return Err(error);
                }
            }
        }
    }

    /// Bytes of the next message.
    fn need(&self) -> usize {
        match self.state {
            State::Greeting => GREETING_BYTES,
            State::ReplyHeader => REPLY_HEADER_BYTES,
            State::ReplyData { bytes, .. } => bytes as usize,
            State::ExportName => 10 + if self.no_zeroes { 0 } else { EXPORT_NAME_ZEROES },
            State::Finished => 0,
        }
    }

    fn message(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Outcome<Option<Connected>> {
        let mut reader = Reader::new(bytes);
        match self.state {
            State::Greeting => self.greeting(&mut reader, out).map(|()| None),
            State::ReplyHeader => self.reply_header(&mut reader).map(|()| None),
            State::ReplyData { kind, .. } => {
                self.state = State::ReplyHeader;
                self.reply(kind, bytes, out)
            }
            State::ExportName => self.export_name_reply(&mut reader).map(Some),
            State::Finished => Ok(None),
        }
    }

    fn greeting(&mut self, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Outcome<()> {
        let magic = field(reader.u64())?;
        if magic != INIT_MAGIC {
            return Err(HandshakeError::NotNbd(magic));
        }
        match field(reader.u64())? {
            OPTION_MAGIC => {}
            OLDSTYLE_MAGIC => return Err(HandshakeError::Oldstyle),
            other => return Err(HandshakeError::NotNbd(other)),
        }
        let flags = field(reader.u16())?;
        self.no_zeroes = flags & FLAG_NO_ZEROES != 0;
        let fixed = flags & FLAG_FIXED_NEWSTYLE != 0;
        let no_zeroes = if self.no_zeroes { CLIENT_NO_ZEROES } else { 0 };
        out.put_u32(no_zeroes | if fixed { CLIENT_FIXED_NEWSTYLE } else { 0 });
        match fixed {
            true => self.ask(option::STRUCTURED_REPLY, &[], out),
            false => self.ask_export_name(out),
        }
        Ok(())
    }

    fn ask(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        out.put_u64(OPTION_MAGIC);
        out.put_u32(option);
        out.put_u32(u32::try_from(data.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(data);
        self.asked = option;
        self.state = State::ReplyHeader;
    }

    fn ask_export_name(&mut self, out: &mut Vec<u8>) {
        let name = self.name.clone();
        self.ask(option::EXPORT_NAME, name.as_bytes(), out);
        self.state = State::ExportName;
    }

    fn ask_meta_context(&mut self, out: &mut Vec<u8>) {
        let mut data = self.name_field();
        data.put_u32(1);
        data.put_u32(u32::try_from(BASE_ALLOCATION.len()).unwrap_or(0));
        data.extend_from_slice(BASE_ALLOCATION.as_bytes());
        self.ask(option::SET_META_CONTEXT, &data, out);
    }

    fn ask_go(&mut self, out: &mut Vec<u8>) {
        let mut data = self.name_field();
        data.put_u16(1);
        data.put_u16(info::BLOCK_SIZE);
        self.ask(option::GO, &data, out);
    }

    fn name_field(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(self.name.len() + 32);
        data.put_u32(u32::try_from(self.name.len()).unwrap_or(0));
        data.extend_from_slice(self.name.as_bytes());
        data
    }

    fn reply_header(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        if field(reader.u64())? != OPTION_REPLY_MAGIC {
            return Err(HandshakeError::Protocol("a reply to an option has a bad magic"));
        }
        if field(reader.u32())? != self.asked {
            return Err(HandshakeError::Protocol("a reply belongs to an option that was not sent"));
        }
        let (kind, bytes) = (field(reader.u32())?, field(reader.u32())?);
        if bytes > OPTION_REPLY_BYTES_MAX {
            return Err(HandshakeError::Protocol("a reply to an option is too long"));
        }
        self.replies += 1;
        if self.replies > OPTION_REPLIES_MAX {
            return Err(HandshakeError::Protocol("too many replies to options"));
        }
        self.state = State::ReplyData { kind, bytes };
        Ok(())
    }

    fn reply(&mut self, kind: u32, data: &[u8], out: &mut Vec<u8>) -> Outcome<Option<Connected>> {
        let refused = kind & rep::ERROR_BIT != 0;
        match (self.asked, kind) {
            (option::GO, rep::ACK) => return self.connected().map(Some),
            (option::GO, rep::ERR_UNSUP) => self.ask_export_name(out),
            (option::GO, rep::INFO) => self.info(&mut Reader::new(data))?,
            (option::GO, _) if refused => return Err(refusal(kind, data)),
            (option::STRUCTURED_REPLY, rep::ACK) => {
                self.structured = true;
                self.ask_meta_context(out);
            }
            (option::SET_META_CONTEXT, rep::META_CONTEXT) => self.meta_context(&mut Reader::new(data))?,
            (option::SET_META_CONTEXT, rep::ACK) => self.ask_go(out),
            (option::STRUCTURED_REPLY, _) if refused => self.ask_go(out),
            (option::SET_META_CONTEXT, _) if refused => {
                self.base_allocation = None;
                self.ask_go(out);
            }
            _ => {
                return Err(HandshakeError::Protocol("a reply of a type that does not belong to its option"));
            }
        }
        Ok(None)
    }

    fn meta_context(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        let id = field(reader.u32())?;
        if reader.bytes(BASE_ALLOCATION.len()) != Some(BASE_ALLOCATION.as_bytes()) || reader.remaining() > 0 {
            return Err(HandshakeError::Protocol("a metadata context that was not asked for"));
        }
        self.base_allocation = Some(id);
        Ok(())
    }

    fn info(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        match field(reader.u16())? {
            info::EXPORT => {
                self.size = Some(field(reader.u64())?);
                self.flags = field(reader.u16())?;
                whole(reader)
            }
            info::BLOCK_SIZE => {
                let (min, preferred) = (field(reader.u32())?, field(reader.u32())?);
                self.block = BlockSizes { min, preferred, max: field(reader.u32())? };
                whole(reader)
            }
            // Other information was not asked for, and may be sent all the same.
            _ => Ok(()),
        }
    }

    fn export_name_reply(&mut self, reader: &mut Reader<'_>) -> Outcome<Connected> {
        self.size = Some(field(reader.u64())?);
        self.flags = field(reader.u16())?;
        self.connected()
    }

    fn connected(&self) -> Outcome<Connected> {
        let size = self.size.ok_or(HandshakeError::Protocol("the server does not tell the export's size"))?;
        if i64::try_from(size).is_err() {
            return Err(HandshakeError::Protocol("the export is larger than a file can be"));
        }
        if !self.block.is_valid() {
            return Err(HandshakeError::Protocol("the export's block sizes are not valid"));
        }
        Ok(Connected {
            size,
            flags: self.flags,
            block: self.block,
            structured: self.structured,
            base_allocation: self.base_allocation,
        })
    }
}

/// A field of a message whose length was checked before, or was the server's to choose.
fn field<T>(value: Option<T>) -> Outcome<T> {
    value.ok_or(HandshakeError::Protocol("a reply is shorter than its fields"))
}

fn whole(reader: &Reader<'_>) -> Outcome<()> {
    match reader.remaining() {
        0 => Ok(()),
        _ => Err(HandshakeError::Protocol("a reply is longer than its fields")),
    }
}

/// A refusal of the export, with the server's words made printable.
fn refusal(code: u32, data: &[u8]) -> HandshakeError {
    let text = String::from_utf8_lossy(data);
    let message = truncated(&text, STRING_BYTES_MAX).escape_debug().to_string();
    match code {
        rep::ERR_UNKNOWN => HandshakeError::UnknownExport(message),
        rep::ERR_TLS_REQD => HandshakeError::TlsRequired(message),
        rep::ERR_SHUTDOWN => HandshakeError::Shutdown(message),
        _ => HandshakeError::Refused { code, message },
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
