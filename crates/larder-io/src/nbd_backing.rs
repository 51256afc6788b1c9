//! A backing behind an NBD server: connected and checked at start, then driven on the reactor's ring (by the offline tools with blocking calls: `blocking`).
//!
//! When the server goes away, what is in flight fails, and a helper thread tries to connect again, at growing intervals. What is asked
//! meanwhile waits for the attempt under way, so a server that is restarted quickly is hardly noticed.
//!
//! A server that went away may have lost what it had answered and not flushed: then the next flush fails, and nothing cached of the volume is
//! trusted any more. A server that is there and does not answer is waited for without a limit, and the log says so.

mod batch;
mod blocking;
mod connect;
#[cfg(test)]
pub(crate) mod fake_server;
mod job;
mod link;
mod outage;
mod reconnect;
mod runner;
mod silence;
mod unflushed;

pub(crate) use batch::SendBatch;
pub(crate) use blocking::BlockingNbd;
pub use connect::{NbdBacking, NbdError, NbdErrorKind};
pub(crate) use runner::NbdRunner;
