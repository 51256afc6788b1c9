//! A change must pay for what it costs.
//!
//! A block that changes hands is worth nothing to its new holder until it is filled: for each, one request waits for the
//! backing that would be a hit later, while the old holder's hits are gone at once. So a partition that grows is charged with two misses for each
//! block that it does not hold yet (a change may have to be taken back), up to what the growth saves (it is never worse off than before), spread over the time in
//! which the change must pay. The charge is part of what a choice costs: every exchange of blocks is weighed by itself, and what stands costs nothing extra.
//!
//! How long a change may take to pay: a tenant that has been there for some epochs is expected to stay for as many,
//! one at least and [`EPOCHS_MAX`] at most.
//!
//! Another mode must promise to be better by [`MODE_MARGIN`]: curves differ by less for no reason. One with another write policy must be so by
//! [`WRITE_MARGIN`]. Blocks stay when the mode changes, and what is dirty and may not be any more is cleaned behind the tenant's back.

use larder_locality::EpochFindings;

use super::memory::{Known, held_blocks};
use crate::menu::{Point, Way};
use crate::{Constraints, Mode, Tenant};

/// Epochs that a change may take to pay, at most.
const EPOCHS_MAX: f64 = 8.0;
/// What another mode must be better by, as a share of the latency.
const MODE_MARGIN: f64 = 0.01;
/// What another write policy must be better by: who takes the writes changes what both devices do, which no curve knows.
const WRITE_MARGIN: f64 = 0.05;

/// A change that turns out to be wrong is taken back: blocks are filled twice.
const BOTH_WAYS: f64 = 2.0;

/// What a tenant has now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    mode: Mode,
    held: u64,
    /// Seconds of latency of a request that one block not held costs.
    per_block: f64,
}

impl Standing {
    pub(super) fn of(tenant: &Tenant<'_>, known: &Known, constraints: &Constraints) -> Self {
        let epoch = constraints.epoch_seconds;
        let horizon = known.seconds.clamp(epoch, epoch * EPOCHS_MAX);
        let requests = horizon * known.menu.requests_per_second;
        let miss = tenant
            .found()
            .map_or(0.0, |findings| (findings.latencies.read_miss - findings.latencies.read_hit).max(0.0));
        // A miss of a request fills as many blocks as it reads; a write fills its blocks for nothing.
        let misses = tenant.active().map_or(0.0, reads_per_access);
        let per_block = if requests > 0.0 { BOTH_WAYS * miss * misses / requests } else { 0.0 };
        Self { mode: tenant.mode, held: held_blocks(tenant), per_block }
    }

    /// Changes to the sizes of one way.
    pub(super) fn to(&self, way: &Way) -> Change {
        let margin = match way.mode == self.mode {
            true => 0.0,
            false if way.mode.write == self.mode.write => MODE_MARGIN,
            false => WRITE_MARGIN,
        };
        Change { margin, held: self.held, latency: way.at(self.held).latency, per_block: self.per_block }
    }
}

/// Reads, as requests, for each block that is accessed: taken to have as many blocks as other requests.
fn reads_per_access(epoch: &EpochFindings) -> f64 {
    let total = epoch.classes.total();
    let writes = epoch.classes.cw + epoch.classes.war + epoch.classes.waw;
    let reads = if total > 0 { 1.0 - writes as f64 / total as f64 } else { 1.0 };
    reads * epoch.requests as f64 / epoch.accesses.max(1) as f64
}

/// What stands, seen from one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    margin: f64,
    held: u64,
    /// That of the blocks held.
    latency: f64,
    per_block: f64,
}

impl Change {
    /// What a change to a partition of the way costs, in seconds of latency of a request.
    pub(super) fn cost(&self, to: &Point) -> f64 {
        let grown = to.blocks.saturating_sub(self.held) as f64;
        let saved = (self.latency - to.latency).max(0.0);
        self.margin * to.latency + saved.min(grown * self.per_block)
    }
}
