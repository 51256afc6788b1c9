//! The protocol's numbers, as the specification gives them ("Values"), and the limits that this crate adds.

/// First eight bytes of a server: `NBDMAGIC`.
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second eight bytes of a newstyle server, and first of every option: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Second eight bytes of an oldstyle server.
pub const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// First eight bytes of every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First four bytes of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First four bytes of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First four bytes of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag: the server answers unknown options instead of closing.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag: the 124 zero bytes after `EXPORT_NAME` may be left out.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;
/// Client flag: answers [`FLAG_FIXED_NEWSTYLE`].
pub const CLIENT_FIXED_NEWSTYLE: u32 = 1 << 0;
/// Client flag: answers [`FLAG_NO_ZEROES`].
pub const CLIENT_NO_ZEROES: u32 = 1 << 1;
/// Zero bytes that follow the answer to `EXPORT_NAME` unless both sides agreed to leave them out.
pub const EXPORT_NAME_ZEROES: usize = 124;

/// Options that a client may send.
pub mod option {
    /// Choose an export and start transmission; cannot be refused but by closing.
    pub const EXPORT_NAME: u32 = 1;
    /// Give up.
    pub const ABORT: u32 = 2;
    /// Name the exports.
    pub const LIST: u32 = 3;
    /// Upgrade to TLS.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export and start transmission.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Name the metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub mod rep {
    /// Done.
    pub const ACK: u32 = 1;
    /// One export.
    pub const SERVER: u32 = 2;
    /// One piece of information about an export.
    pub const INFO: u32 = 3;
    /// One metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// The bit that all errors have.
    pub const ERROR_BIT: u32 = 1 << 31;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = ERROR_BIT | 1;
    /// The option is forbidden here.
    pub const ERR_POLICY: u32 = ERROR_BIT | 2;
    /// The option's data is malformed.
    pub const ERR_INVALID: u32 = ERROR_BIT | 3;
    /// TLS is required first.
    pub const ERR_TLS_REQD: u32 = ERROR_BIT | 5;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = ERROR_BIT | 6;
    /// The server is shutting down.
    pub const ERR_SHUTDOWN: u32 = ERROR_BIT | 7;
    /// The client has to ask for block sizes.
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR_BIT | 8;
    /// The option is too large to process.
    pub const ERR_TOO_BIG: u32 = ERROR_BIT | 9;
}

/// Types of information about an export, in `INFO` and `GO`.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The canonical name.
    pub const NAME: u16 = 1;
    /// Text for humans.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum block size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: what an export can do.
pub mod tflag {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// `FLUSH` is there.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The FUA flag is there.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Schedule as for a hard disk.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// `TRIM` is there.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` is there.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The DF flag is there; only with structured replies.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers the writes of all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// `CACHE` is there.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The FAST_ZERO flag is there.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Flags of a request.
pub mod cflag {
    /// Reply only when durable.
    pub const FUA: u16 = 1 << 0;
    /// Keep the range allocated (`WRITE_ZEROES`).
    pub const NO_HOLE: u16 = 1 << 1;
    /// At most one content chunk (`READ`).
    pub const DF: u16 = 1 << 2;
    /// At most one extent (`BLOCK_STATUS`).
    pub const REQ_ONE: u16 = 1 << 3;
    /// Fail rather than write slowly (`WRITE_ZEROES`).
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of a structured reply.
pub mod chunk {
    /// Chunk flag: the last of its reply.
    pub const DONE: u16 = 1 << 0;
    /// No payload.
    pub const NONE: u16 = 0;
    /// Offset and data.
    pub const OFFSET_DATA: u16 = 1;
    /// Offset and length of zeroes.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents of one metadata context.
    pub const BLOCK_STATUS: u16 = 5;
    /// The bit that all errors have.
    pub const ERROR_BIT: u16 = 1 << 15;
    /// An error.
    pub const ERROR: u16 = ERROR_BIT | 1;
    /// An error at an offset.
    pub const ERROR_OFFSET: u16 = ERROR_BIT | 2;
}

/// The metadata context that tells which parts are allocated and which read as zeroes.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The number by which our server's replies name [`BASE_ALLOCATION`].
pub const BASE_ALLOCATION_ID: u32 = 1;
/// Extent flag of `base:allocation`: not allocated.
pub const STATE_HOLE: u32 = 1 << 0;
/// Extent flag of `base:allocation`: reads as zeroes.
pub const STATE_ZERO: u32 = 1 << 1;

/// Longest string that the protocol allows, in bytes ("Terminology": names, descriptions, messages).
pub const STRING_BYTES_MAX: usize = 4096;
/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 28;
/// Largest payload of one read or write, in bytes. 32 MiB is what every client may count on
/// ("Block size constraints") where nothing else was agreed.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
