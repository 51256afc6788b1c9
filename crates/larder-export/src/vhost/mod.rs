//! The disk of a virtual machine, as a vhost-user-blk device: QEMU, Cloud Hypervisor and others give the guest's memory to this
//! process, and the guest's driver and the reactor talk through queues in it.
//!
//! A volume that is served so has a socket of its own, for one hypervisor at a time. What the hypervisor says there goes through a
//! thread of that connection (`session`, on the `vhost` crate), which tells the reactor when a queue is to be served; all
//! requests are the reactor's ([`VhostFrontend`]). A hypervisor that is gone or misbehaves ends its connection, no more.
//!
//! What a guest writes is copied once to a buffer of ours. Without that, a guest could change a block between its checksum and the device, or between the
//! backing and the cache, and would later read two different things from one place. What it reads, devices write to its memory themselves (`lend`).
//!
//! One file per role: `session` (the hypervisor's messages), `channel` (what it is told), `config` (features, configuration space), `memory` (the
//! guest's), `view` (its bytes by their addresses), `lend` (reads without a copy), `dirty` (which of it was written, for a migration), `fault` (memory that goes away), `frontend` (dispatch of the reactor's calls), `device` (a volume and its queues), `ring` (one queue), `chain` and `request` (descriptors to
//! requests), `record` (what is in flight, for the next daemon), `limits`.

mod chain;
mod channel;
mod config;
mod device;
mod dirty;
mod fault;
mod frontend;
mod lend;
pub mod limits;
mod memory;
mod record;
mod request;
mod ring;
mod session;
mod view;

pub use frontend::{VhostCommand, VhostFrontend, VhostVolume};
