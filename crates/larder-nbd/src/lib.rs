//! The NBD protocol, both ends, as parsers and encoders without I/O.
//!
//! Bytes go in, events and bytes come out; sockets, buffers and time belong to the driver. Every machine here consumes its
//! input in chunks of any size, holds a bounded number of bytes whatever the peer sends, and turns every violation of the
//! protocol into a typed error.
//!
//! Section names in comments are those of `doc/proto.md` of the NBD project, the protocol's specification.

// The tests may unwrap.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod client;
pub mod consts;
mod error;
mod export;
pub mod reply;
mod request;
pub mod server;
pub mod uri;
mod wire;

pub use error::ErrorCode;
pub use export::{BlockSizes, ExportInfo, Exports};
pub use request::{Command, Fault, Limits, Request, Violation};
pub use uri::{Address, Uri, UriError};
