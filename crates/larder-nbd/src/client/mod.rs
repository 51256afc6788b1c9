//! The client's side: the handshake, and the replies of the transmission phase.
//!
//! Requests are written with [`crate::Request::encode`].

mod handshake;
mod outstanding;
mod replies;

pub use handshake::{Connected, Handshake, HandshakeError, Progress};
pub use outstanding::{Outstanding, SPANS_MAX};
pub use replies::{Event, Outstandings, ReplyError, ReplyParser};

/// Longest data of a reply to an option, in bytes. The longest that the specification knows has two strings.
pub const OPTION_REPLY_BYTES_MAX: u32 = 16 << 10;
/// Most replies to options in one handshake.
pub const OPTION_REPLIES_MAX: u32 = 64;
/// Longest chunk of a structured reply that is not data, in bytes.
pub const CHUNK_BYTES_MAX: u32 = 64 << 10;
