//! `scave`: the allocator of S-CAVE (Luo, Ma, Lee, Zhang, Liu, Zhou: "S-CAVE: Effective SSD Caching to Improve Virtual Machine
//! Storage Performance", PACT 2013), Algorithm 1.
//!
//! Once in a time window the tenant whose share of effective cache space (rECS, section IV) rose most gets more, the one
//! whose share fell most gets less, and what exceeds 95 % of the cache is taken from all alike. As long as more than 5 %
//! of the cache is free, nobody is limited; the global cleaner keeps it filled no further ([`Layout::Pooled`]).
//!
//! Where the paper is silent:
//!
//! - A tenant whose limit begins, or that comes while there are limits, starts from the blocks that it occupies.
//! - Recent time windows, over which the allocation unit is averaged, are [`RECENT_WINDOWS`]: the reach of the smoothing,
//!   `1 / (1 - α)`. A unit is rounded up to whole blocks.
//! - A tenant whose rECS was not known before has not changed: its score is 0. So has one of which no block was sampled.
//! - Of equal scores, the first tenant's counts. When all are equal it is both highest and lowest, and is given its unit
//!   and deprived of it again, as the lines say.
//! - Minima and maxima are ours: no line takes a tenant below the one or above the other. The deficit is divided to the
//!   block, the first tenants giving the blocks that cannot be divided, and what one cannot give is taken from the others.

use std::collections::{BTreeMap, VecDeque};

use larder_locality::recs::ALPHA;
use larder_policy::replacement::clock::COUNTER_BITS;
use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};

use crate::bounds::{Bounds, bounds};
use crate::shares::share_out;
use crate::{
    AllocError, Allocator, Constraints, Decision, Findings, Layout, Mode, Needs, Profile, Tenant,
    WritePolicy, own_policy,
};
use words::{Limited, Lowest, Step};

mod words;

/// The paper's m: a tenant that was decreased more often since its last increase is given space back (footnote 4).
pub const DECREASES_MAX: u32 = 5;

/// Time windows whose misses an allocation unit is the mean of.
pub const RECENT_WINDOWS: usize = 5;

/// The cache is one of so many parts: one may be free before there are limits, and stays free under limits (5 %).
const FREE_PART: u64 = 20;

/// S-CAVE's allocator.
///
/// A quota is the most that a tenant may take from the pool. Without limits (one tenant alone, or free space) each is
/// the whole cache, or the tenant's maximum, so that they exceed the cache in sum; under limits they sum to 95 % of it at
/// most. A configured quota is where a tenant starts; it does not bind the decisions.
///
/// A tenant without findings keeps the rECS that it had, is taken to have missed nothing, and to hold what it held.
#[derive(Clone, Debug, Default)]
pub struct Scave {
    vms: BTreeMap<String, Vm>,
}

/// What is remembered of a tenant from one time window to the next.
#[derive(Clone, Debug, Default)]
struct Vm {
    /// `Cache`; none for no limit.
    limit: Option<u64>,
    /// `Eold`; none as long as no block was sampled.
    effective: Option<f64>,
    /// `DCounter`.
    decreases: u32,
    /// Blocks accessed on the backing in recent time windows.
    missed: VecDeque<u64>,
    /// Blocks that it held when it was last looked at.
    resident: u64,
}

impl Scave {
    /// Its name.
    pub const NAME: &str = "scave";

    /// Seconds of a time window (footnote 3).
    pub const WINDOW_SECONDS: f64 = 1.0;
}

impl Allocator for Scave {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(self.clone())
    }

    /// A CLOCK for each tenant (section IV-B) over a pool that a cleaner keeps between 1 and 5 % free (V-B), write-through
    /// without write allocation (V-C), in blocks of 4 KiB, decided about every second.
    fn profile(&self) -> Profile {
        let clock = PolicySpec::Clock { bits: COUNTER_BITS };
        let caching =
            CachingSpec::new(clock, AdmissionSpec::Always).expect("only LARC is particular about admission");
        Profile {
            layout: Layout::Pooled { low: 0.01, high: 0.05 },
            mode: Mode { caching, write: WritePolicy::WriteThroughNoAllocate },
            epoch_seconds: Self::WINDOW_SECONDS,
            own_epoch: true,
            ..Profile::default()
        }
    }

    fn needs(&self, _limited_writes: bool) -> Needs {
        Needs { effective: true, ..Needs::default() }
    }

    /// As in the trait, but that quotas without limits exceed the cache in sum.
    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let mut known = std::mem::take(&mut self.vms);
        let mut vms: Vec<Vm> =
            tenants.iter().map(|tenant| known.remove(tenant.name).unwrap_or_default()).collect();
        vms.iter_mut().zip(tenants).for_each(|(vm, tenant)| vm.look(tenant.findings));
        let cache = u64::from(constraints.cache_blocks);
        let steps = time_window(&mut vms, tenants, cache);
        let own = self.profile().mode.write;
        let decide = |((tenant, vm), step): ((&Tenant<'_>, &Vm), Step)| {
            let (write, policy_words) = own_policy::choose(tenant, constraints, own);
            let most = tenant.goals.max_blocks.map_or(cache, |max| cache.min(max.into()));
            let quota = vm.limit.unwrap_or(most);
            Decision {
                // A limit is within the cache.
                quota_blocks: quota as u32,
                mode: Mode { write, ..tenant.mode },
                predicted: None,
                reason: format!("{}; {policy_words}", step.words(quota)),
            }
        };
        let decisions = tenants.iter().zip(&vms).zip(steps).map(decide).collect();
        self.vms = tenants.iter().map(|tenant| tenant.name.to_owned()).zip(vms).collect();
        Ok(decisions)
    }
}

impl Vm {
    /// What a time window told, but for the rECS, which lines 2 to 10 do not ask for.
    fn look(&mut self, findings: Option<&Findings>) {
        let missed = findings.map_or(0, |findings| findings.usage.missed_blocks);
        self.missed.push_back(missed);
        if self.missed.len() > RECENT_WINDOWS {
            self.missed.pop_front();
        }
        self.resident = findings.map_or(self.resident, |findings| findings.usage.resident_blocks.into());
    }

    /// `AllocUnit`: blocks accessed on the backing in the mean of recent time windows.
    fn unit(&self) -> u64 {
        let missed = self.missed.iter().fold(0, |sum: u64, &missed| sum.saturating_add(missed));
        missed.div_ceil((self.missed.len() as u64).max(1))
    }

    /// Lines 13 to 15: what the window told about the tenant's use of its blocks.
    fn assess(&mut self, tenant: &Tenant<'_>) -> Limited {
        let mut score = 0.0;
        if let Some(sampled) = tenant.findings.and_then(|findings| findings.usage.effective) {
            let old = self.effective.unwrap_or(sampled);
            // Line 13 with its terms in another order, so that what did not change scores 0 to the last bit.
            let new = old + (sampled - old) * (1.0 - ALPHA);
            score = new - old;
            self.effective = Some(new);
        }
        Limited { effective: self.effective, score, ..Limited::default() }
    }
}

/// Algorithm 1: the tenants' limits for the next time window, and what happened to each.
fn time_window(vms: &mut [Vm], tenants: &[Tenant<'_>], cache: u64) -> Vec<Step> {
    if vms.len() == 1 {
        return unlimited(vms, Step::Alone); // Lines 2 to 5.
    }
    let free = cache.saturating_sub(vms.iter().map(|vm| vm.resident).sum());
    if free.saturating_mul(FREE_PART) > cache {
        return unlimited(vms, Step::Free { free, cache }); // Lines 7 to 10.
    }
    let bounds = bounds(tenants, limited_blocks(cache));
    let mut sizes: Vec<u64> = vms.iter().map(|vm| vm.limit.unwrap_or(vm.resident)).collect();
    let mut changes: Vec<Limited> =
        vms.iter_mut().zip(tenants).map(|(vm, tenant)| vm.assess(tenant)).collect(); // Lines 12 to 16.
    raise_highest(vms, &mut sizes, &mut changes); // Lines 18 to 21.
    change_lowest(vms, &mut sizes, &mut changes); // Lines 23 to 32.
    sizes.iter_mut().zip(&bounds).for_each(|(size, bounds)| *size = bounds.clamp(*size));
    share_deficit(&mut sizes, &mut changes, &bounds, limited_blocks(cache)); // Lines 34 to 39.
    vms.iter_mut().zip(sizes).for_each(|(vm, size)| vm.limit = Some(size));
    changes.into_iter().map(Step::Limited).collect()
}

/// What limits may sum to: 95 % of the cache.
fn limited_blocks(cache: u64) -> u64 {
    cache - cache.div_ceil(FREE_PART)
}

/// Lines 3 and 8: `Cache = ∞` for all.
fn unlimited(vms: &mut [Vm], step: Step) -> Vec<Step> {
    vms.iter_mut().for_each(|vm| vm.limit = None);
    vec![step; vms.len()]
}

/// Lines 18 to 21: a unit more for the highest score.
fn raise_highest(vms: &mut [Vm], sizes: &mut [u64], changes: &mut [Limited]) {
    let Some(max) = first(changes, f64::gt) else { return };
    let unit = vms[max].unit();
    sizes[max] = sizes[max].saturating_add(unit);
    changes[max].raised = Some(unit);
    vms[max].decreases = 0;
}

/// Lines 23 to 32: a unit less for the lowest score, or two units back where it was decreased too often.
fn change_lowest(vms: &mut [Vm], sizes: &mut [u64], changes: &mut [Limited]) {
    let Some(min) = first(changes, f64::lt) else { return };
    let vm = &mut vms[min];
    if vm.decreases > DECREASES_MAX {
        let blocks = vm.unit().saturating_mul(2);
        sizes[min] = sizes[min].saturating_add(blocks);
        changes[min].lowest = Some(Lowest::Back { blocks, count: vm.decreases });
        vm.decreases = 0;
    } else {
        let blocks = vm.unit();
        sizes[min] = sizes[min].saturating_sub(blocks);
        vm.decreases += 1;
        changes[min].lowest = Some(Lowest::Less { blocks, count: vm.decreases });
    }
}

/// The first tenant whose score none of the others is beyond.
fn first(changes: &[Limited], beyond: fn(&f64, &f64) -> bool) -> Option<usize> {
    let better = |best: usize, at: usize| beyond(&changes[at].score, &changes[best].score);
    (0..changes.len()).reduce(|best, at| if better(best, at) { at } else { best })
}

/// Lines 34 to 39: what exceeds `blocks` is given back by all alike.
fn share_deficit(sizes: &mut [u64], changes: &mut [Limited], bounds: &[Bounds], blocks: u64) {
    let sum: u64 = sizes.iter().sum();
    let mut given = vec![0; sizes.len()];
    let can: Vec<u64> = sizes.iter().zip(bounds).map(|(size, bounds)| size - bounds.least).collect();
    share_out(sum.saturating_sub(blocks), &mut given, &can);
    for ((size, change), given) in sizes.iter_mut().zip(changes).zip(given) {
        *size -= given;
        change.given = given;
    }
}

#[cfg(test)]
mod tests;
