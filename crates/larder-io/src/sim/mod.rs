//! Simulated devices, and a simulated host that drives one engine over them: for tests.
//!
//! There is no thread, no clock and no file here: everything follows from a seed, so that a failure is a seed that anyone
//! can replay. Operations end in an order that the seed chooses, move their data when they start or when they end (a
//! device may do either), fail by rate, by range or by script, and tear when they fail.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`SimDevice`] | one device: sparse bytes, operations in flight, a [`FaultModel`] |
//! | [`Memory`] | the guest and staging buffers, which police their use |
//! | [`SimHost`] | a driver for one engine, which polices the engine's side of the contract |
//! | [`Oracle`] | which values each sector may show, given what the guests did |
//! | [`Survivors`] | which values a power cut may leave |
//! | [`Prefix`] | whether a backing alone is its volume after some of its flushes |
//! | [`Rig`] | a host and an oracle together: every reply is checked when it is given |
//!
//! A broken contract panics, and says what was broken: these are tools for tests, and serve no production path.

pub mod ask;
mod contract;
mod device;
mod digest;
mod faults;
mod host;
mod medium;
mod memory;
mod oracle;
mod pool;
mod power;
mod prefix;
mod rig;
mod rng;
mod sparse;
pub mod stamp;
mod survivors;
mod volatile;

pub use device::SimDevice;
pub use digest::Digest;
pub use faults::{DiscardEffect, FaultKind, FaultModel, Strike, Transfer};
pub use host::{Done, HostConfig, PendingOp, SimHost};
pub use memory::{GARBAGE, Memory};
pub use oracle::{FIRST, Oracle, Settled};
pub use pool::SharedSlots;
pub use prefix::Prefix;
pub use rig::Rig;
pub use rng::Rng;
pub use sparse::SparseBytes;
pub use survivors::Survivors;
