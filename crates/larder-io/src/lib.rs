//! Everything that touches devices and sockets: the reactors that drive the engine, on io_uring.
//!
//! A reactor ([`ReactorBuilder`]) is a thread with a ring of its own, an engine, the backings of its volumes, its handle on the
//! cache device, and a [`Frontend`] that serves guests. Nothing of it is shared on the hot path: other threads reach it through a
//! mailbox ([`Handle`]), and cache slots move between reactors through the [`SharedPool`] in batches.
//!
//! Memory under I/O has one owner: the operation's slot, or a region that counts the operations on it. It cannot go, or go to
//! somebody else, before the kernel is done with it; what a frontend lends ([`Loan`]) stays where it is until then. [`sim`] has simulated devices for tests of the engine.

mod backing;
mod buffer;
mod cache_device;
mod command;
mod context;
mod driver;
mod driver_command;
mod error_log;
mod extents;
mod file;
mod frontend;
mod histogram;
mod identity;
mod inherited;
mod lane;
mod loan;
mod mailbox;
mod memory;
mod monitor;
mod nbd_backing;
pub mod offline;
mod plain_disk;
mod probe;
mod reactor;
mod requests;
mod ring;
mod send_list;
pub mod sim;
mod slots;
mod socket;
mod spin;
mod stats;
mod sys;
mod table;

pub use backing::{Backing, BackingError};
pub use buffer::{BUFFER_ALIGN, BUFFER_MAX, BUFFER_MIN, Buffer, BufferPool};
pub use cache_device::{CacheDevice, CacheError, CachePlan, CacheSpec, HEADER_BYTES, new_uuid};
pub use context::Context;
pub use driver_command::DRIVER_COMMAND_BYTES;
pub use file::{FileDevice, OpenError};
pub use frontend::{Event, Extent, Frontend, GuestRequest, VolumeInfo};
pub use histogram::Histogram;
pub use identity::{backing_of, is_same_disk};
pub use inherited::inherited_descriptors;
pub use loan::{Lender, Loan};
pub use mailbox::{
    AttachError, DrainCommand, Handle, HandleError, Inbox, NewTenant, NewVolume, Told, VolumeError, mailbox,
};
pub use monitor::{MONITOR_BATCH, MonitorRecord, MonitorSink, monitor_clock_ns};
pub use nbd_backing::{NbdBacking, NbdError, NbdErrorKind};
pub use plain_disk::{DiskEnd, DiskRequest, PlainDisk};
pub use probe::{refuses_direct, ring_works};
pub use reactor::{ReactorBuilder, ReactorConfig, ReactorError, ReactorThread};
pub use requests::{Latencies, RequestCount, RequestStats};
pub use send_list::{SEND_HEADER_BYTES, SEND_SEGMENTS, SendList};
pub use slots::SharedPool;
pub use socket::{SOCKETS_MAX, SocketId};
pub use stats::{
    DeviceStats, LostSize, ReactorSnapshot, Served, Spending, TenantOffers, TenantSnapshot, TenantSpending,
    TenantUse, UnfinishedDevice, VolumeSnapshot,
};
pub use sys::give_memory_back;
