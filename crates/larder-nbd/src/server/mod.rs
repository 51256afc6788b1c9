//! The server's side of the handshake: fixed newstyle.

mod answer;
mod handshake;
mod options;

pub use handshake::{Handshake, HandshakeError, Negotiated, Progress};

/// Longest data of an option that is read, in bytes. An option that is longer is skipped and refused.
/// Room for 15 strings of the longest kind; real options take less than a hundred bytes.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Longest data of an option that is skipped, in bytes. A longer one ends the connection.
pub const OPTION_SKIP_BYTES_MAX: u32 = 1 << 20;
/// Most options in one handshake. Clients use four to eight.
pub const OPTIONS_MAX: u32 = 64;
/// Most queries in one metadata context option.
pub const META_QUERIES_MAX: u32 = 32;
/// Most information requests in one `INFO` or `GO`. The specification knows four.
pub const INFO_REQUESTS_MAX: u16 = 64;
/// Most bytes that one handshake answers, beyond which it ends. A list of ten thousand exports fits.
pub const HANDSHAKE_REPLY_BYTES_MAX: usize = 1 << 20;
