//! The whole engine in simulation: devices with write caches that lose power, one thread, simulated time, one seed; and an oracle that
//! knows what a disk may show.
//!
//! A *history* follows from its seed alone. A [`Plan`] says what it starts with: block and sector size, tenants with their quotas and
//! policies, volumes of odd sizes, how devices behave. A [`Script`] says what happens: requests, time, faults, crashes, all as
//! data. [`play`] plays it on a [`World`], which holds every reply against [`larder_io::sim::Oracle`] and
//! [`larder_io::sim::Survivors`]: they know nothing of caches and write policies, only that what a flush covers stays, that a sector
//! has one of the values that its history allows, and that a value once seen after a crash is the value from then on. After each life the
//! offline check of the cache may find nothing that the faults have not put there.
//!
//! Whatever is wrong panics, here or in the engine's own checks; [`play`] turns that into a [`Violation`] that names the seed. [`soak`]
//! plays many. With the feature `planted` a bug can be planted, to see that it is found.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod caught;
mod fault;
mod plan;
mod play;
mod script;
mod soak;
mod trace;
mod world;

pub use fault::{Counts, Fault, Faults};
pub use plan::{Disk, POLICIES, Plan, Tenant, is_through};
pub use play::{Options, Outcome, Violation, play, told};
pub use script::{Act, Ask, Change, End, Harm, Life, Part, Script};
pub use soak::{Soaked, soak};
pub use trace::Trace;
pub use world::World;
