//! A change must pay for what it costs.
//!
//! The old holder's hits are gone at once; the new holder's come by and by, as its misses fill the blocks: at a steady rate of misses what a larger partition saves
//! rises in proportion, until the partition is full. So a growth is credited with what it saves in the mean over the time in which it must pay: all of it but for half of the time
//! to fill, or less than half where the time does not suffice ([`lost`]). The time counts twice, since a change may have to be taken back. It is never worse off than before, and what
//! stands costs nothing extra.
//!
//! How long a change may take to pay: a tenant that has been there for some epochs is expected to stay for as many,
//! one at least and [`EPOCHS_MAX`] at most.
//!
//! Another mode must promise to be better by [`MODE_MARGIN`]: curves of samples differ by less for no reason, and of several that are as good the one that promises most is the one that is wrong most. One with another write policy must be so by
//! [`WRITE_MARGIN`]. Blocks stay when the mode changes, and what is dirty and may not be any more is cleaned behind the tenant's back.

use larder_locality::EpochFindings;

use super::memory::Known;
use crate::correction::held_blocks;
use crate::menu::{Point, Way};
use crate::{Constraints, Mode, Tenant};

/// Epochs that a change may take to pay, at most.
const EPOCHS_MAX: f64 = 8.0;
/// What another mode must be better by, as a share of the latency.
const MODE_MARGIN: f64 = 0.03;
/// What another write policy must be better by: who takes the writes changes what both devices do, which no curve knows.
const WRITE_MARGIN: f64 = 0.05;

/// A change that turns out to be wrong is taken back: blocks are filled twice.
const BOTH_WAYS: f64 = 2.0;

/// What a tenant has now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    mode: Mode,
    held: u64,
    /// Blocks that are filled, if all requests miss, while a change must pay.
    filled: f64,
}

impl Standing {
    pub(super) fn of(tenant: &Tenant<'_>, known: &Known, constraints: &Constraints) -> Self {
        let epoch = constraints.epoch_seconds;
        let horizon = known.seconds.clamp(epoch, epoch * EPOCHS_MAX);
        let blocks = tenant.active().map_or(0.0, blocks_per_request);
        let filled = horizon * known.menu.requests_per_second * blocks / BOTH_WAYS;
        Self { mode: tenant.mode, held: held_blocks(tenant), filled }
    }

    /// Changes to the sizes of one way.
    pub(super) fn to(&self, way: &Way) -> Change {
        let margin = match way.mode == self.mode {
            true => 0.0,
            false if way.mode.write == self.mode.write => MODE_MARGIN,
            false => WRITE_MARGIN,
        };
        let now = way.at(self.held);
        let filled = self.filled * (1.0 - now.request_hit_ratio);
        Change { margin, held: self.held, latency: now.latency, filled }
    }
}

/// Blocks of a request.
fn blocks_per_request(epoch: &EpochFindings) -> f64 {
    epoch.accesses as f64 / epoch.requests.max(1) as f64
}

/// The share of what a growth saves that is lost while it is filled, where that takes so many times the time in which it must pay.
fn lost(times: f64) -> f64 {
    if times <= 1.0 { times / 2.0 } else { 1.0 - 0.5 / times }
}

/// What stands, seen from one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    margin: f64,
    held: u64,
    /// That of the blocks held.
    latency: f64,
    /// Blocks that are filled while the change must pay.
    filled: f64,
}

impl Change {
    /// What a change to a partition of the way costs, in seconds of latency of a request.
    pub(super) fn cost(&self, to: &Point) -> f64 {
        let grown = to.blocks.saturating_sub(self.held) as f64;
        let saved = (self.latency - to.latency).max(0.0);
        let charge = if grown > 0.0 { saved * lost(grown / self.filled) } else { 0.0 };
        self.margin * to.latency + charge
    }
}
