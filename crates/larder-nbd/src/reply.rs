//! Encoders of replies, for the server side.
//!
//! What has a fixed size comes as an array, so that a reply costs no allocation; what has not is appended to a vector.
//! The payload of a read is never here: it goes to the socket straight from where it lies.

use crate::ErrorCode;
use crate::consts::{SIMPLE_REPLY_MAGIC, STRING_BYTES_MAX, STRUCTURED_REPLY_MAGIC, chunk};
use crate::wire::{Put, truncated};

/// Bytes of a simple reply's header.
pub const SIMPLE_BYTES: usize = 16;
/// Bytes of a chunk's header.
pub const CHUNK_BYTES: usize = 20;
/// Bytes in front of the data of an `OFFSET_DATA` chunk.
pub const DATA_BYTES: usize = CHUNK_BYTES + 8;
/// Bytes of an `OFFSET_HOLE` chunk.
pub const HOLE_BYTES: usize = CHUNK_BYTES + 12;
/// Bytes of an `ERROR` chunk without a message.
pub const ERROR_BYTES: usize = CHUNK_BYTES + 6;

/// One extent of a block status reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes; not zero.
    pub length: u32,
    /// Bits of the metadata context, such as [`crate::consts::STATE_HOLE`].
    pub flags: u32,
}

/// A simple reply's header; a successful read's data follows.
pub fn simple(cookie: u64, result: Result<(), ErrorCode>) -> [u8; SIMPLE_BYTES] {
    let error = result.err().map_or(0, ErrorCode::to_wire);
    let mut bytes = [0; SIMPLE_BYTES];
    bytes[0..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// What precedes the data of an `OFFSET_DATA` chunk that is the whole and the last of its reply.
/// `length` bytes of data follow; it is not zero and at most `u32::MAX - 8`.
pub fn data(cookie: u64, offset: u64, length: u32) -> [u8; DATA_BYTES] {
    let mut bytes = [0; DATA_BYTES];
    bytes[..CHUNK_BYTES].copy_from_slice(&header(cookie, chunk::OFFSET_DATA, length.saturating_add(8)));
    bytes[CHUNK_BYTES..].copy_from_slice(&offset.to_be_bytes());
    bytes
}

/// An `OFFSET_HOLE` chunk that is the whole and the last of its reply.
pub fn hole(cookie: u64, offset: u64, length: u32) -> [u8; HOLE_BYTES] {
    let mut bytes = [0; HOLE_BYTES];
    bytes[..CHUNK_BYTES].copy_from_slice(&header(cookie, chunk::OFFSET_HOLE, 12));
    bytes[CHUNK_BYTES..DATA_BYTES].copy_from_slice(&offset.to_be_bytes());
    bytes[DATA_BYTES..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// A last chunk without payload: success.
pub fn none(cookie: u64) -> [u8; CHUNK_BYTES] {
    header(cookie, chunk::NONE, 0)
}

/// A last chunk with an error and no message.
pub fn error(cookie: u64, code: ErrorCode) -> [u8; ERROR_BYTES] {
    let mut bytes = [0; ERROR_BYTES];
    bytes[..CHUNK_BYTES].copy_from_slice(&header(cookie, chunk::ERROR, 6));
    bytes[CHUNK_BYTES..CHUNK_BYTES + 4].copy_from_slice(&code.to_wire().to_be_bytes());
    bytes
}

/// A last chunk with an error and a message for humans (cut after [`STRING_BYTES_MAX`] bytes).
pub fn error_with_message(out: &mut Vec<u8>, cookie: u64, code: ErrorCode, message: &str) {
    let message = truncated(message, STRING_BYTES_MAX);
    let length = u16::try_from(message.len()).unwrap_or(0);
    out.extend_from_slice(&header(cookie, chunk::ERROR, 6 + u32::from(length)));
    out.put_u32(code.to_wire());
    out.put_u16(length);
    out.extend_from_slice(message.as_bytes());
}

/// A `BLOCK_STATUS` chunk that is the last of its reply. `extents` holds at least one and at most 2^28 of them.
pub fn block_status(out: &mut Vec<u8>, cookie: u64, context: u32, extents: &[Extent]) {
    let length = u32::try_from(4 + 8 * extents.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&header(cookie, chunk::BLOCK_STATUS, length));
    out.put_u32(context);
    for extent in extents {
        out.put_u32(extent.length);
        out.put_u32(extent.flags);
    }
}

fn header(cookie: u64, kind: u16, length: u32) -> [u8; CHUNK_BYTES] {
    let mut bytes = [0; CHUNK_BYTES];
    bytes[0..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&chunk::DONE.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..20].copy_from_slice(&length.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: u64 = 0x0102_0304_0506_0708;
    const CHUNK_START: [u8; 4] = [0x66, 0x8e, 0x33, 0xef];

    /// "Simple reply message": magic, error, cookie.
    #[test]
    fn simple_byte_for_byte() {
        assert_eq!(simple(COOKIE, Ok(())), [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(simple(COOKIE, Err(ErrorCode::NoSpace))[4..8], [0, 0, 0, 28]);
    }

    /// "Structured reply chunk message" with `NBD_REPLY_TYPE_OFFSET_DATA`: the length counts the offset.
    #[test]
    fn data_byte_for_byte() {
        let bytes = data(COOKIE, 0x1000, 512);
        assert_eq!(bytes[..4], CHUNK_START);
        assert_eq!(bytes[4..20], [0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 2, 8]);
        assert_eq!(bytes[20..], [0, 0, 0, 0, 0, 0, 0x10, 0]);
    }

    #[test]
    fn hole_and_none_byte_for_byte() {
        let bytes = hole(COOKIE, 0x1000, 512);
        assert_eq!(bytes[4..8], [0, 1, 0, 2]);
        assert_eq!(bytes[16..], [0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 2, 0]);
        assert_eq!(none(COOKIE)[4..], [0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
    }

    /// `NBD_REPLY_TYPE_ERROR` (2^15 + 1): error, length of the message, message.
    #[test]
    fn errors_byte_for_byte() {
        let mut out = Vec::new();
        error_with_message(&mut out, COOKIE, ErrorCode::Invalid, "no");
        assert_eq!(out[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1]);
        assert_eq!(out[16..], [0, 0, 0, 8, 0, 0, 0, 22, 0, 2, b'n', b'o']);
        out.clear();
        error_with_message(&mut out, COOKIE, ErrorCode::Invalid, "");
        assert_eq!(out, error(COOKIE, ErrorCode::Invalid));
    }

    #[test]
    fn long_messages_are_cut() {
        let mut out = Vec::new();
        error_with_message(&mut out, COOKIE, ErrorCode::Io, &"x".repeat(70_000));
        assert_eq!(out.len(), ERROR_BYTES + STRING_BYTES_MAX);
    }

    /// `NBD_REPLY_TYPE_BLOCK_STATUS` (5): context, then length and flags of each extent.
    #[test]
    fn block_status_byte_for_byte() {
        let mut out = Vec::new();
        block_status(
            &mut out,
            COOKIE,
            1,
            &[Extent { length: 512, flags: 0 }, Extent { length: 4096, flags: 3 }],
        );
        assert_eq!(out[4..8], [0, 1, 0, 5]);
        assert_eq!(out[16..], [0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 3]);
    }
}
