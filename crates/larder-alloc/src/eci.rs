//! `eci`: the allocator of ECI-Cache (Ahmadian et al., 2018), section 5, algorithms 1 to 4.
//!
//! Each tenant wants its largest useful reuse distance and one block: an LRU cache of that size serves every read that
//! any cache could (the paper's own example: a URD of 1 gives 2 blocks). Where all wishes fit, they are granted to the
//! block, and the rest of the cache stays free. Where they do not, the sum of latencies
//! `h·T_ssd + (1 - h)·T_hdd` (equation 2) is minimised under the cache's size, each tenant between its minimum and its
//! wish. `T_ssd` and `T_hdd` are the same for all tenants, so that this is the largest sum of hit ratios, whatever they
//! are.
//!
//! The paper hands the problem to MATLAB's `fmincon`, on the grounds that it is convex; a step function is not. Here
//! it is solved as what it is ([`crate::division`]). As in Algorithm 4, whose objective includes the unused space, the
//! cache is then used up: what brings no hits by the last epoch's curves is shared out equally below the wishes.
//!
//! The paper trusts the curves. [`CorrectedEci`], which the daemon runs, does not where they are wrong (`corrected`).

mod corrected;

use larder_locality::{ClassCounts, EpochFindings};

use crate::bounds::bounds;
use crate::division::divide;
use crate::hull::{Choice, GAIN_UNIT};
use crate::shares::share_out;
use crate::words::grouped;
use crate::{
    AllocError, Allocator, Constraints, Decision, Findings, Mode, Prediction, Profile, Tenant, WritePolicy,
    write_policy,
};

pub use corrected::CorrectedEci;

/// ECI-Cache's allocator.
///
/// Every tenant gets at least its minimum, or the N-th part of the cache where N tenants' minima exceed it. A tenant
/// that was idle gets just that: the paper leaves it out and takes its space back. A configured quota is where a tenant
/// starts; it does not bind the decisions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Eci;

impl Eci {
    /// Its name.
    pub const NAME: &str = "eci";
}

impl Allocator for Eci {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(*self)
    }

    /// Blocks of 8 KiB, 10 minutes, and write-back at the start (section 6.3).
    fn profile(&self) -> Profile {
        Profile { block_bytes: 8192, epoch_seconds: 600.0, ..Profile::default() }
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let sizes = Sizes::of(tenants, constraints);
        let quotas = match sizes.fit() {
            true => sizes.wanted.clone(),
            false => sizes.least_latency(tenants, |_| 1.0),
        };
        Ok(sizes.decisions(tenants, constraints, &quotas))
    }
}

/// The sizes of Algorithm 4, by tenant, in blocks.
struct Sizes {
    /// `lowerBound`: c_min.
    least: Vec<u64>,
    /// `upperBound`: size_urd, no less than c_min, no more than the tenant's maximum and the cache.
    wanted: Vec<u64>,
    cache: u64,
}

impl Sizes {
    fn of(tenants: &[Tenant<'_>], constraints: &Constraints) -> Self {
        let cache = u64::from(constraints.cache_blocks);
        let bounds = bounds(tenants, cache);
        let wish = |tenant: &Tenant<'_>| tenant.active().map_or(0, EpochFindings::urd_blocks);
        let wanted = tenants.iter().zip(&bounds).map(|(tenant, bounds)| bounds.clamp(wish(tenant))).collect();
        Self { least: bounds.iter().map(|bounds| bounds.least).collect(), wanted, cache }
    }

    /// The sum of the wishes.
    fn wanted_in_all(&self) -> u64 {
        self.wanted.iter().fold(0, |sum, &wanted| sum.saturating_add(wanted))
    }

    fn fit(&self) -> bool {
        self.wanted_in_all() <= self.cache
    }

    /// `calculateEffSize`: the sizes with the least total latency that fill the cache.
    ///
    /// `weight` says by tenant how much its hits count, 2 at most.
    fn least_latency(&self, tenants: &[Tenant<'_>], weight: impl Fn(usize) -> f64) -> Vec<u64> {
        let budget = self.cache - self.least.iter().sum::<u64>();
        let choices: Vec<_> = (0..tenants.len())
            .map(|at| choices(&tenants[at], self.least[at], self.wanted[at], weight(at)))
            .collect();
        let above = divide(&choices, budget);
        let mut quotas: Vec<_> = self.least.iter().zip(&above).map(|(least, above)| least + above).collect();
        share_out(budget - above.iter().sum::<u64>(), &mut quotas, &self.wanted);
        quotas
    }

    /// What follows of these sizes.
    fn decisions(&self, tenants: &[Tenant<'_>], constraints: &Constraints, quotas: &[u64]) -> Vec<Decision> {
        let decide = |(at, tenant): (usize, &Tenant<'_>)| {
            let (write, policy_words) = write_policy::choose(tenant, constraints);
            let reason = format!("{}; {policy_words}", self.words(at, tenant, quotas[at]));
            let mode = Mode { write, ..tenant.mode };
            let predicted = tenant.found().map(|found| predict(found, write, quotas[at]));
            // A quota is no larger than the cache.
            Decision { quota_blocks: quotas[at] as u32, mode, predicted, reason }
        };
        tenants.iter().enumerate().map(decide).collect()
    }

    /// Why a tenant gets `quota` blocks.
    fn words(&self, at: usize, tenant: &Tenant<'_>, quota: u64) -> String {
        let quota_words = grouped(quota);
        let Some(findings) = tenant.active() else {
            return format!(
                "idle in this epoch: its space goes back, but for the minimum of {quota_words} blocks"
            );
        };
        let Some(urd) = findings.urd_max else {
            let history = grouped(findings.history_blocks);
            return format!(
                "no read came back within {history} blocks (the history kept): the minimum of {quota_words} blocks"
            );
        };
        let wish = format!("URD {} ({} blocks)", grouped(urd), grouped(findings.urd_blocks()));
        let all = format!(
            "the tenants together want {} of {} blocks",
            grouped(self.wanted_in_all()),
            grouped(self.cache)
        );
        if findings.urd_blocks() <= self.least[at] {
            return format!("{wish} is within the minimum of {quota_words} blocks");
        }
        if self.fit() {
            return match self.wanted[at] < findings.urd_blocks() {
                true => format!("{wish} is above the maximum of {quota_words} blocks: {all}"),
                false => format!("{wish} fits: {all}"),
            };
        }
        let curve = findings.hit_curve();
        let (expected, most) = (curve.ratio(quota), curve.ratio(u64::MAX));
        format!(
            "{wish} does not fit: {all}; {quota_words} give the least total latency (hit ratio {expected:.2} of {most:.2})"
        )
    }
}

/// Equations 2 and 3 for one tenant.
///
/// `T_ssd` is what a read takes that the SSD serves, for hits are reads. `T_hdd` is what reads and writes take on the
/// backing, in the mix of the epoch: as in the paper, all that is no hit is the backing's, even writes under write-back.
/// Hits are counted by block. Equation 3 counts the SSD writes of caches without capacity misses: `CR` of all, and `CW`, `WAR`
/// and `WAW` of those that cache writes; here reads that miss for want of room are added to `CR`.
fn predict(found: &Findings, write: WritePolicy, quota: u64) -> Prediction {
    let (classes, latencies) = (&found.epoch.classes, &found.latencies);
    let (reads, writes) = accesses(classes);
    let read_share = read_share(classes);
    let t_ssd = latencies.read_hit;
    let t_hdd = read_share * latencies.read_miss + (1.0 - read_share) * latencies.backing_write;

    let curve = found.epoch.hit_curve();
    let hits = curve.ratio(quota).min(1.0);
    let fills = reads.saturating_sub(curve.hits(quota));
    let cached = if write == WritePolicy::ReadOnly { 0 } else { writes };
    let written = if quota > 0 { fills + cached } else { 0 };
    Prediction {
        latency: hits * t_ssd + (1.0 - hits) * t_hdd,
        request_hit_ratio: hits,
        ssd_writes_per_second: written as f64 / found.seconds.max(f64::MIN_POSITIVE),
    }
}

/// Reads and writes of blocks.
fn accesses(classes: &ClassCounts) -> (u64, u64) {
    (classes.cr + classes.useful(), classes.cw + classes.war + classes.waw)
}

/// The share of the accesses that are reads.
fn read_share(classes: &ClassCounts) -> f64 {
    let (reads, writes) = accesses(classes);
    if reads + writes > 0 { reads as f64 / (reads + writes) as f64 } else { 0.0 }
}

/// What a tenant can get above its minimum, up to its wish: the steps of its hit curve, each hit counting so much.
fn choices(tenant: &Tenant<'_>, least: u64, wanted: u64, weight: f64) -> Vec<Choice> {
    let Some(findings) = tenant.active() else { return vec![Choice::NOTHING] };
    let curve = findings.hit_curve();
    let accesses = u128::from(curve.accesses());
    // A share of the accesses in whole numbers, which no rounding makes fall.
    let unit = (weight * GAIN_UNIT as f64) as u128;
    let gain = |hits: u64| (u128::from(hits).min(accesses) * unit / accesses) as u64;
    let floor = gain(curve.hits(least));
    let mut choices = vec![Choice::NOTHING];
    for &(blocks, hits) in curve.steps().iter().filter(|step| least < step.0 && step.0 <= wanted) {
        let choice = Choice { blocks: blocks - least, gain: gain(hits) - floor };
        // So many accesses that a step is less than the unit: it is joined to the next one.
        if choice.gain > choices[choices.len() - 1].gain {
            choices.push(choice);
        }
    }
    choices
}

#[cfg(test)]
mod pseudocode;
#[cfg(test)]
mod tests;
