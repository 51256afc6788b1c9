//! A backing behind an NBD server: connected and checked at start, then driven on the reactor's ring.
//!
//! When the server goes away, what is in flight fails, and a helper thread tries to connect again, at growing intervals. What is asked
//! meanwhile waits for the attempt under way, so a server that is restarted quickly is hardly noticed.

mod batch;
mod connect;
mod job;
mod link;
mod reconnect;
mod runner;

pub(crate) use batch::SendBatch;
pub use connect::{NbdBacking, NbdError, NbdErrorKind};
pub(crate) use runner::NbdRunner;
