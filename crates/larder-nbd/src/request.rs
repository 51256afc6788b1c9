//! Requests of the transmission phase: the 28-byte header, and what a server has to say about it before it acts.

use crate::ErrorCode;
use crate::consts::{PAYLOAD_BYTES_MAX, REQUEST_BYTES, REQUEST_MAGIC, cflag, tflag};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Data from the export.
    Read,
    /// Data to the export; the payload follows the header.
    Write,
    /// The last request of a connection; has no reply.
    Disconnect,
    /// Make completed writes durable.
    Flush,
    /// Contents no longer needed.
    Trim,
    /// Read ahead.
    Cache,
    /// Make the range read as zeroes.
    WriteZeroes,
    /// Extents of the chosen metadata contexts.
    BlockStatus,
    /// A number that the specification does not list.
    Other(u16),
}

impl Command {
    fn from_wire(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Other(other),
        }
    }

    fn to_wire(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::BlockStatus => 7,
            Self::Other(number) => number,
        }
    }

    /// True for what changes the export's contents.
    fn modifies(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes)
    }
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the client, echoed in the reply.
    pub cookie: u64,
    /// What is asked.
    pub command: Command,
    /// Bits of [`cflag`].
    pub flags: u16,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

/// A client's breach of the protocol after which its stream can no longer be understood: close the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The header does not begin as a request does.
    #[error("request begins with {0:#010x} instead of the request magic")]
    BadMagic(u32),
    /// A write with more payload than was advertised: too much to take in, and too much to skip.
    #[error("write of {length} bytes is longer than the advertised {max}")]
    PayloadTooLong {
        /// Length of the write.
        length: u32,
        /// Largest payload.
        max: u32,
    },
}

/// Why a request is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answer with this error (after skipping the payload, see [`Request::payload_bytes`]).
    Answer(ErrorCode),
    /// Close the connection.
    Close(Violation),
}

/// What requests of one connection are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the export in bytes.
    pub size: u64,
    /// The transmission flags that the client was told: bits of [`tflag`].
    pub flags: u16,
    /// Offsets and lengths must be multiples of it; a power of two.
    pub min_block: u32,
    /// Largest payload in bytes; at most [`PAYLOAD_BYTES_MAX`] counts.
    pub max_payload: u32,
    /// The client chose `base:allocation`.
    pub base_allocation: bool,
}

impl Request {
    /// Read a header.
    ///
    /// # Errors
    /// [`Violation::BadMagic`].
    pub fn parse(header: &[u8; REQUEST_BYTES]) -> Result<Self, Violation> {
        let magic = u32::from_be_bytes(field(header, 0));
        if magic != REQUEST_MAGIC {
            return Err(Violation::BadMagic(magic));
        }
        Ok(Self {
            flags: u16::from_be_bytes(field(header, 4)),
            command: Command::from_wire(u16::from_be_bytes(field(header, 6))),
            cookie: u64::from_be_bytes(field(header, 8)),
            offset: u64::from_be_bytes(field(header, 16)),
            length: u32::from_be_bytes(field(header, 24)),
        })
    }

    /// Write the header.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut header = [0; REQUEST_BYTES];
        header[0..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        header[4..6].copy_from_slice(&self.flags.to_be_bytes());
        header[6..8].copy_from_slice(&self.command.to_wire().to_be_bytes());
        header[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        header[16..24].copy_from_slice(&self.offset.to_be_bytes());
        header[24..28].copy_from_slice(&self.length.to_be_bytes());
        header
    }

    /// Bytes that follow the header on the wire.
    pub fn payload_bytes(&self) -> u32 {
        if self.command == Command::Write { self.length } else { 0 }
    }

    /// Hold the request against what was negotiated.
    ///
    /// # Errors
    /// The error to answer with, or the reason to close the connection.
    pub fn check(&self, limits: &Limits) -> Result<(), Fault> {
        let max = limits.max_payload.min(PAYLOAD_BYTES_MAX);
        if self.payload_bytes() > max {
            return Err(Fault::Close(Violation::PayloadTooLong { length: self.length, max }));
        }
        self.check_flags(limits)?;
        match self.command {
            Command::Disconnect => Ok(()),
            Command::Flush => self.check_flush(limits),
            _ => self.check_offered(limits).and_then(|()| self.check_range(limits)),
        }
    }

    /// "Command flags": a flag is an error where it is not documented for the command, or was not offered.
    fn check_flags(&self, limits: &Limits) -> Result<(), Fault> {
        let own = match self.command {
            Command::Read if limits.flags & tflag::SEND_DF != 0 => cflag::DF,
            Command::WriteZeroes if limits.flags & tflag::SEND_FAST_ZERO != 0 => {
                cflag::NO_HOLE | cflag::FAST_ZERO
            }
            Command::WriteZeroes => cflag::NO_HOLE,
            Command::BlockStatus => cflag::REQ_ONE,
            _ => 0,
        };
        let fua = if limits.flags & tflag::SEND_FUA != 0 { cflag::FUA } else { 0 };
        refuse_if(self.flags & !(own | fua) != 0, ErrorCode::Invalid)
    }

    fn check_flush(&self, limits: &Limits) -> Result<(), Fault> {
        let offered = limits.flags & tflag::SEND_FLUSH != 0;
        refuse_if(!offered || self.offset != 0 || self.length != 0, ErrorCode::Invalid)
    }

    fn check_offered(&self, limits: &Limits) -> Result<(), Fault> {
        let offered = match self.command {
            Command::Read | Command::Write => true,
            Command::Trim => limits.flags & tflag::SEND_TRIM != 0,
            Command::Cache => limits.flags & tflag::SEND_CACHE != 0,
            Command::WriteZeroes => limits.flags & tflag::SEND_WRITE_ZEROES != 0,
            Command::BlockStatus => limits.base_allocation,
            Command::Disconnect | Command::Flush | Command::Other(_) => false,
        };
        refuse_if(self.command.modifies() && limits.flags & tflag::READ_ONLY != 0, ErrorCode::NotPermitted)?;
        refuse_if(!offered, ErrorCode::Invalid)
    }

    fn check_range(&self, limits: &Limits) -> Result<(), Fault> {
        let inside = self.offset.checked_add(self.length.into()).is_some_and(|end| end <= limits.size);
        let beyond = match self.command {
            Command::Write | Command::WriteZeroes => ErrorCode::NoSpace,
            _ => ErrorCode::Invalid,
        };
        refuse_if(!inside, beyond)?;
        // A length of zero has no documented meaning, and a structured reply cannot carry it.
        refuse_if(self.length == 0, ErrorCode::Invalid)?;
        let aligned =
            (self.offset | u64::from(self.length)) & u64::from(limits.min_block.saturating_sub(1)) == 0;
        refuse_if(!aligned, ErrorCode::Invalid)?;
        let long_read =
            self.command == Command::Read && self.length > limits.max_payload.min(PAYLOAD_BYTES_MAX);
        // EOVERFLOW is for clients that may send DF; the others would not know it.
        let too_long =
            if limits.flags & tflag::SEND_DF != 0 { ErrorCode::Overflow } else { ErrorCode::Invalid };
        refuse_if(long_read, too_long)
    }
}

fn refuse_if(bad: bool, code: ErrorCode) -> Result<(), Fault> {
    if bad { Err(Fault::Answer(code)) } else { Ok(()) }
}

/// `N` bytes of the header at a constant position.
fn field<const N: usize>(header: &[u8; REQUEST_BYTES], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        size: 1 << 20,
        flags: tflag::HAS_FLAGS
            | tflag::SEND_FLUSH
            | tflag::SEND_FUA
            | tflag::SEND_TRIM
            | tflag::SEND_WRITE_ZEROES,
        min_block: 512,
        max_payload: 64 << 10,
        base_allocation: true,
    };

    fn request(command: Command, offset: u64, length: u32) -> Request {
        Request { cookie: 1, command, flags: 0, offset, length }
    }

    fn answer(request: Request, limits: &Limits) -> ErrorCode {
        match request.check(limits) {
            Err(Fault::Answer(code)) => code,
            other => panic!("{other:?}"),
        }
    }

    /// "Request message": magic, flags, type, cookie, offset, length.
    #[test]
    fn a_header_byte_for_byte() {
        let bytes = [
            0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0, 0, 1,
            0, 0, 0, 2, 0, 0, 2, 0,
        ];
        let request = Request {
            cookie: 0x1122_3344_5566_7788,
            command: Command::Write,
            flags: cflag::FUA,
            offset: 0x1_0000_0002,
            length: 512,
        };
        assert_eq!(Request::parse(&bytes), Ok(request));
        assert_eq!(request.encode(), bytes);
    }

    #[test]
    fn a_bad_magic_closes() {
        assert_eq!(Request::parse(&[0; 28]), Err(Violation::BadMagic(0)));
    }

    #[test]
    fn ranges_beyond_the_end() {
        assert_eq!(answer(request(Command::Read, 1 << 20, 512), &LIMITS), ErrorCode::Invalid);
        assert_eq!(answer(request(Command::Write, 1 << 20, 512), &LIMITS), ErrorCode::NoSpace);
        assert_eq!(answer(request(Command::WriteZeroes, (1 << 20) - 512, 1024), &LIMITS), ErrorCode::NoSpace);
        assert_eq!(answer(request(Command::Trim, u64::MAX, 512), &LIMITS), ErrorCode::Invalid);
        assert_eq!(answer(request(Command::BlockStatus, 1 << 20, 512), &LIMITS), ErrorCode::Invalid);
    }

    #[test]
    fn lengths_and_alignment() {
        assert_eq!(request(Command::Read, 512, 512).check(&LIMITS), Ok(()));
        assert_eq!(answer(request(Command::Read, 512, 0), &LIMITS), ErrorCode::Invalid);
        assert_eq!(answer(request(Command::Read, 1, 512), &LIMITS), ErrorCode::Invalid);
        assert_eq!(answer(request(Command::Write, 0, 513), &LIMITS), ErrorCode::Invalid);
        assert_eq!(request(Command::Trim, 0, 1 << 20).check(&LIMITS), Ok(()));
    }

    #[test]
    fn payloads_too_long() {
        let long = (64 << 10) + 512;
        assert_eq!(answer(request(Command::Read, 0, long), &LIMITS), ErrorCode::Invalid);
        let with_df = Limits { flags: LIMITS.flags | tflag::SEND_DF, ..LIMITS };
        assert_eq!(answer(request(Command::Read, 0, long), &with_df), ErrorCode::Overflow);
        let violation = Violation::PayloadTooLong { length: long, max: 64 << 10 };
        assert_eq!(request(Command::Write, 0, long).check(&LIMITS), Err(Fault::Close(violation)));
    }

    #[test]
    fn flags_belong_to_their_commands() {
        let flagged = |command, flags| Request { flags, ..request(command, 0, 512) };
        assert_eq!(flagged(Command::Read, cflag::FUA).check(&LIMITS), Ok(()));
        assert_eq!(flagged(Command::WriteZeroes, cflag::NO_HOLE | cflag::FUA).check(&LIMITS), Ok(()));
        assert_eq!(flagged(Command::BlockStatus, cflag::REQ_ONE).check(&LIMITS), Ok(()));
        assert_eq!(answer(flagged(Command::Write, cflag::NO_HOLE), &LIMITS), ErrorCode::Invalid);
        assert_eq!(answer(flagged(Command::Read, cflag::DF), &LIMITS), ErrorCode::Invalid);
        assert_eq!(answer(flagged(Command::WriteZeroes, cflag::FAST_ZERO), &LIMITS), ErrorCode::Invalid);
        assert_eq!(answer(flagged(Command::Read, 1 << 9), &LIMITS), ErrorCode::Invalid);
        let without_fua = Limits { flags: tflag::HAS_FLAGS, ..LIMITS };
        assert_eq!(answer(flagged(Command::Write, cflag::FUA), &without_fua), ErrorCode::Invalid);
    }

    #[test]
    fn commands_not_offered() {
        let bare = Limits { flags: tflag::HAS_FLAGS, base_allocation: false, ..LIMITS };
        for command in
            [Command::Trim, Command::WriteZeroes, Command::Cache, Command::BlockStatus, Command::Other(99)]
        {
            assert_eq!(answer(request(command, 0, 512), &bare), ErrorCode::Invalid);
        }
        assert_eq!(answer(request(Command::Flush, 0, 0), &bare), ErrorCode::Invalid);
        assert_eq!(request(Command::Flush, 0, 0).check(&LIMITS), Ok(()));
        assert_eq!(answer(request(Command::Flush, 512, 0), &LIMITS), ErrorCode::Invalid);
        assert_eq!(request(Command::Disconnect, 0, 0).check(&bare), Ok(()));
    }

    #[test]
    fn a_read_only_export_is_not_written() {
        let read_only = Limits { flags: LIMITS.flags | tflag::READ_ONLY, ..LIMITS };
        for command in [Command::Write, Command::Trim, Command::WriteZeroes] {
            assert_eq!(answer(request(command, 0, 512), &read_only), ErrorCode::NotPermitted);
        }
        assert_eq!(request(Command::Read, 0, 512).check(&read_only), Ok(()));
    }

    proptest! {
        #[test]
        fn headers_round_trip(number: u16, cookie: u64, flags: u16, offset: u64, length: u32) {
            let request = Request { cookie, command: Command::from_wire(number), flags, offset, length };
            prop_assert_eq!(Request::parse(&request.encode()), Ok(request));
        }

        #[test]
        fn what_passes_lies_inside(number in 0u16..9, flags in 0u16..32, offset in 0u64..1 << 21, length in 0u32..1 << 21) {
            let request = Request { cookie: 0, command: Command::from_wire(number), flags, offset, length };
            let bare = matches!(request.command, Command::Flush | Command::Disconnect);
            if request.check(&LIMITS).is_ok() && !bare {
                prop_assert!(offset + u64::from(length) <= LIMITS.size && length > 0);
                prop_assert_eq!((offset | u64::from(length)) % 512, 0);
                prop_assert!(request.payload_bytes() <= LIMITS.max_payload);
            }
        }
    }
}
