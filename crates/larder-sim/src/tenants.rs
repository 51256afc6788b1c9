//! Tenants that share one SSD: each replays its trace against a cache that an allocator divides, over devices that take time.
//!
//! [`simulate_tenants`] runs one allocator ([`larder_alloc`]) over the tenants' traces, with the loop of an epoch that belongs to it
//! ([`larder_alloc::control`]). A run is deterministic: same traces, same plan, same result, but for the processor time that it took.
//!
//! # The model
//!
//! * A tenant issues its requests at the times of its trace (open loop), or keeps so many outstanding (closed loop). It is there from its start to its stop or
//!   the end of its trace; then its blocks are free.
//! * A request is cut into blocks, and the cache decides as in [`simulate`](crate::simulate()). What hits is one read of the SSD; each run of blocks that miss is one read
//!   of the backing, and so are several with 16 KiB at most of cached blocks between two, which are read with them and thrown away, as in the daemon; what enters is one write of the SSD, for which nobody waits. A write goes to the SSD, the backing or both, as the write policy says. The request is done
//!   when all that it waits for is.
//! * A mover, where the allocator's system has one, brings in what it wants in its own time: a few reads of the backing at a time for each tenant.
//! * Dirty blocks are written back when they leave, by a cleaner for each tenant that takes up a half of what the backing serves at a time. Nobody waits for that,
//!   until a sixteenth of the cache is waiting: then a request that makes more leave waits until it is less.
//! * Where nobody has asked for anything for 256 epochs, nothing is decided until just before somebody does.
//! * Where the SSD may not be written for the time being (a budget), nothing enters, and writes go to the backing alone.
//! * Discards and flushes take no time.
//! * A device ([`DeviceSpec`]) serves so many operations at once, first come, first served; an operation that goes on where one of the last ones ended is sequential.
//! * Where the requests are those of a daemon that was recorded ([`Recorded`]), they take what they took there in the mean of an epoch, and it is decided when it was there.
//! * A decision takes no time. A partition that shrinks gives its blocks up at once; where quotas are lent, when somebody wants them.

mod arrivals;
mod batched;
mod combined;
mod device;
mod hindsight;
mod latency;
mod lending;
mod machine;
mod plan;
mod pooled;
mod result;
mod run;
mod store;
mod traffic;

#[cfg(test)]
mod tests;

pub use device::{DeviceSpec, Op, UnknownDevice};
pub use hindsight::{Hindsight, hindsight};
pub use plan::{Backing, Caching, Pace, Recorded, RecordedDecision, TenantPlan, TenantsPlan};
pub use result::{
    Achieved, AllowedWrites, DayWrites, DecisionRow, DeviceUse, Pause, SsdWritesByCause, TenantResult,
    TenantsResult,
};
pub use run::{TenantsError, simulate_tenants};
