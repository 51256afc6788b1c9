//! `centaur`: the allocator of Centaur (Koller, Mashtizadeh, Rangaswami 2015), sections V and VI.
//!
//! At the end of every epoch each tenant's miss rate curve, by requests and for batched population, becomes a curve of
//! latency (equation 1) or of 1 / IOPS (equation 2) ([`curves`]); simulated annealing searches for the partitioning
//! with the least sum ([`annealing`]). Measured latencies change with the partitioning, so that it is planned, carried
//! out and measured again until measured and predicted latencies agree; then it stands until they do not, or until
//! another would gain more than they may differ by ([`memory`]).
//!
//! Reservations modify the curves, after admission control ([`reservations`]). Shares are another method, which takes the
//! place of the search ([`fairness`]): as in the paper the two are not used together. Where a tenant has a share, those
//! with shares divide among themselves what they have, the others keep their quotas, and reservations and the objective are
//! not looked at. With the objective of IOPS, shares are of IOPS, else of latency. In the paper each move is followed by a
//! measurement (section VIII-C: 10 MB, every 5 seconds); here all are played through on curves of LRU, from which a cache
//! may be far, so that what was measured of the partition that stood corrects the curve first ([`Vm::lesson`]). Section VI-A
//! has no such thing for reservations: they go by the curves.
//!
//! An idle tenant costs nothing at any size: it gets its minimum, and its part of what brings nobody anything. The weight
//! of a tenant multiplies its term of the sum.

mod annealing;
mod convex_hull;
mod curves;
mod fairness;
mod memory;
mod partition;
mod reservations;
mod words;

use larder_locality::CurvePolicy;
use larder_policy::WritePolicy;
use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};

use crate::bounds::{Bounds, bounds};
use crate::menu::Point;
use crate::own_policy;
use crate::words::grouped;
use crate::{
    AllocError, Allocator, Constraints, Decision, Mode, Needs, Objective, Population, Prediction, Profile,
    Tenant,
};
use annealing::{Step, anneal};
use curves::{Curve, Vm};
use memory::{AGREES, Memory};
use partition::{filled, fitted};
use reservations::Verdict;
use words::Why;

pub use convex_hull::ConvexHull;

/// Centaur's allocator.
///
/// Every tenant gets at least its minimum, or the N-th part of the cache where N tenants' minima exceed it, and at most
/// its maximum; the quotas sum to the cache unless all maxima are reached. A configured quota is where a tenant starts; it
/// does not bind the decisions.
#[derive(Clone, Debug, Default)]
pub struct Centaur {
    memory: Memory,
}

impl Centaur {
    /// Its name.
    pub const NAME: &str = "centaur";
}

impl Allocator for Centaur {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(self.clone())
    }

    fn profile(&self) -> Profile {
        Profile { keeps_promises: true, ..profile() }
    }

    fn needs(&self, _limited_writes: bool) -> Needs {
        needs()
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let mut host = Host::of(tenants, constraints);
        self.memory.refresh(tenants, constraints.cache_blocks);
        self.memory.learn(tenants, &host.vms);
        let plan = match tenants.iter().any(|tenant| tenant.goals.share.is_some()) {
            true => {
                host.correct(&self.memory);
                host.fair()
            }
            false => self.cheapest(&host),
        };
        let decisions = host.decisions(plan);
        for (tenant, decision) in tenants.iter().zip(&decisions) {
            self.memory.expect(tenant.name, decision.predicted.map(|predicted| predicted.latency));
        }
        Ok(decisions)
    }
}

impl Centaur {
    /// Section V, under the reservations of section VI-A.
    fn cheapest(&mut self, host: &Host<'_>) -> Plan {
        let Host { tenants, vms, constraints, .. } = host;
        self.memory.hold_to_promises(tenants, vms);
        let deviation = self.memory.deviation(tenants, vms);
        let asking = self.memory.asking(tenants);
        let standing = self.memory.verdicts(tenants);
        let verdicts =
            reservations::admit(tenants, vms, &host.bounds, host.cache_blocks(), &asking, standing);
        self.memory.admit(tenants, &verdicts);
        let costs: Vec<_> = host.costs(&verdicts);
        let (sizes, why) = host.plan(&costs, deviation);
        let words = tenants.iter().enumerate().map(|(at, tenant)| {
            let measured = self.measured_words(tenant.name, vms[at].as_ref());
            let reservation = tenant.goals.reservation;
            let verdict = reservation.and_then(|reservation| words::verdict(reservation, verdicts[at]));
            let what = match vms[at] {
                Some(_) => format!("for {}", words::objective(constraints.objective)),
                None => "idle, or its curve unknown: the minimum and what brings nobody anything".to_owned(),
            };
            [Some(what), Some(words::why(why)), measured, verdict].into_iter().flatten().collect::<Vec<_>>()
        });
        Plan { words: words.map(|parts| parts.join("; ")).collect(), sizes }
    }

    fn measured_words(&self, name: &str, vm: Option<&Vm<'_>>) -> Option<String> {
        let (measured, predicted) = (vm?.measured_latency?, self.memory.predicted(name)?);
        let (measured, predicted) = (words::time(measured), words::time(predicted));
        Some(format!("measured {measured} where {predicted} were predicted"))
    }
}

/// What a tenant's partition of any size would do, by these curves; none where they say nothing of it.
pub(crate) fn points(tenant: &Tenant<'_>) -> Option<Vec<Point>> {
    let vm = Vm::of(tenant)?;
    let point = |blocks| {
        let Prediction { latency, request_hit_ratio, ssd_writes_per_second } = vm.predict(blocks);
        Point { blocks, latency, ssd_writes: ssd_writes_per_second, request_hit_ratio }
    };
    Some(vm.latency().points().iter().map(|&(blocks, _)| point(blocks)).collect())
}

/// Blocks of 128 KiB of aging-LFU caches under write-back, filled by a mover every minute; 5 minutes (section VIII-A).
fn profile() -> Profile {
    // Every replacement may stand behind an admission policy that lets every block in.
    let caching = CachingSpec::new(PolicySpec::AgingLfu, AdmissionSpec::Always).unwrap_or_default();
    Profile {
        population: Population::Batched { seconds: 60.0 },
        mode: Mode { caching, write: WritePolicy::WriteBack },
        block_bytes: 128 << 10,
        epoch_seconds: 300.0,
        ..Profile::default()
    }
}

fn needs() -> Needs {
    Needs { curves: vec![CurvePolicy::Batched], ..Needs::default() }
}

/// The sizes of the tenants' partitions, and why.
struct Plan {
    sizes: Vec<u64>,
    words: Vec<String>,
}

/// All that an epoch's decision is made of.
struct Host<'a> {
    tenants: &'a [Tenant<'a>],
    constraints: &'a Constraints,
    /// What the tenants did; none for the idle ones.
    vms: Vec<Option<Vm<'a>>>,
    bounds: Vec<Bounds>,
}

impl<'a> Host<'a> {
    fn of(tenants: &'a [Tenant<'a>], constraints: &'a Constraints) -> Self {
        let cache_blocks = constraints.cache_blocks.into();
        let mut bounds = bounds(tenants, cache_blocks);
        bounds.iter_mut().for_each(|bounds| bounds.most = bounds.most.min(cache_blocks));
        Self { tenants, constraints, vms: tenants.iter().map(Vm::of).collect(), bounds }
    }

    fn cache_blocks(&self) -> u64 {
        self.constraints.cache_blocks.into()
    }

    /// The sizes that the tenants have now.
    fn current(&self) -> Vec<u64> {
        self.tenants.iter().map(|tenant| tenant.quota_blocks.into()).collect()
    }

    /// Each tenant's term of the sum; none for idle ones.
    fn costs(&self, verdicts: &[Verdict]) -> Vec<Option<Curve>> {
        let cost = |((vm, tenant), verdict): ((&Option<Vm<'_>>, &Tenant<'_>), &Verdict)| {
            let cost = vm.as_ref()?.cost(self.constraints.objective).times(tenant.goals.weight);
            Some(match verdict {
                Verdict::Kept { needed } => cost.reserved(*needed),
                _ => cost,
            })
        };
        self.vms.iter().zip(self.tenants).zip(verdicts).map(cost).collect()
    }

    /// The sizes with the least sum of costs, or those that there are, where they stand.
    fn plan(&self, costs: &[Option<Curve>], deviation: Option<f64>) -> (Vec<u64>, Why) {
        let steps: Vec<_> =
            costs.iter().zip(&self.bounds).map(|(cost, b)| steps(cost.as_ref(), *b)).collect();
        let bounds: Vec<_> = steps
            .iter()
            .zip(&self.bounds)
            .map(|(list, bounds)| Bounds { least: list[0].blocks, ..*bounds })
            .collect();
        let current = self.current();
        let sizes = anneal(&steps, self.cache_blocks(), &current);
        let planned = filled(sizes, &bounds, self.cache_blocks());
        let (now, then) = (sum(costs, &current), sum(costs, &planned));
        let gain = if now > 0.0 { 1.0 - then / now } else { 0.0 };
        let why = match deviation {
            None => Why::First,
            _ if fitted(&current, &bounds, self.cache_blocks()) != current => Why::Unfit,
            Some(part) if part >= AGREES => Why::Deviates(part),
            Some(_) if gain >= AGREES => Why::Gains(gain),
            Some(_) => Why::Stands,
        };
        (if why == Why::Stands { current } else { planned }, why)
    }

    /// Trust the curves as far as measurement bears them out.
    fn correct(&mut self, memory: &Memory) {
        for (tenant, vm) in self.tenants.iter().zip(&mut self.vms) {
            *vm = vm.map(|vm| vm.corrected(memory.correction(tenant.name)));
        }
    }

    /// Section VI-B.
    fn fair(&self) -> Plan {
        let start = fitted(&self.current(), &self.bounds, self.cache_blocks());
        let members: Vec<_> = self.tenants.iter().enumerate().filter_map(|(at, _)| self.member(at)).collect();
        let bounds: Vec<_> = members.iter().map(|member| self.bounds[member.0]).collect();
        let sizes: Vec<_> = members.iter().map(|member| start[member.0]).collect();
        let scaled: Vec<_> = members.iter().map(|member| member.1.clone()).collect();
        let fair = fairness::equalize(&scaled, &bounds, &sizes);
        let mut sizes = start;
        members.iter().zip(&fair.sizes).for_each(|(member, &size)| sizes[member.0] = size);
        let words = (0..sizes.len()).map(|at| self.share_words(at, fair.spread)).collect();
        Plan { sizes, words }
    }

    /// A tenant that has a share and did something: which, and its curve, scaled.
    fn member(&self, at: usize) -> Option<(usize, Curve)> {
        let (share, vm) = (self.tenants[at].goals.share?, self.vms[at].as_ref()?);
        let curve = match self.constraints.objective {
            Objective::Iops => vm.seconds_per_request(),
            _ => vm.latency(),
        };
        Some((at, curve.times(share)))
    }

    fn share_words(&self, at: usize, spread: f64) -> String {
        let goals = self.tenants[at].goals;
        let words = match (goals.share, &self.vms[at]) {
            (None, _) => "no share configured: keeps its quota beside those that have one".to_owned(),
            (Some(_), None) => "idle, or its curve unknown: keeps its quota".to_owned(),
            (Some(share), Some(_)) if spread <= fairness::EQUAL => {
                format!("for its share of {share}: scaled by the shares, the tenants' curves meet")
            }
            (Some(share), Some(_)) => {
                let apart = words::percent(spread);
                format!(
                    "for its share of {share}, as near as sizes allow: scaled by the shares, the tenants stay {apart} apart"
                )
            }
        };
        let wrong = self.vms[at].as_ref().and_then(|vm| vm.correction.if_wrong());
        let corrected = wrong.map(|factor| {
            format!("its curve corrected, {} of the misses that it says having come", words::percent(factor))
        });
        let reserved =
            goals.reservation.map(|_| "its reservation is not looked at while there are shares".to_owned());
        [Some(words), corrected, reserved].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    fn decisions(&self, plan: Plan) -> Vec<Decision> {
        let Plan { sizes, words } = plan;
        let decide = |(at, why): (usize, String)| {
            let predicted = self.vms[at].as_ref().map(|vm| vm.predict(sizes[at]));
            self.decision(at, sizes[at], predicted, &why)
        };
        words.into_iter().enumerate().map(decide).collect()
    }

    fn decision(&self, at: usize, size: u64, predicted: Option<Prediction>, why: &str) -> Decision {
        let tenant = &self.tenants[at];
        let (write, policy_words) = own_policy::choose(tenant, self.constraints, WritePolicy::WriteBack);
        let mut reason = format!("{} of {} blocks", grouped(size), grouped(self.cache_blocks()));
        if let (Some(vm), Some(predicted)) = (&self.vms[at], predicted) {
            let time = words::time;
            let (latency, ssd, disk) = (predicted.latency, vm.ssd, vm.disk);
            reason += &format!(
                ", {} expected (miss ratio {:.2}, SSD {}, disk {})",
                time(latency),
                1.0 - predicted.request_hit_ratio,
                time(ssd),
                time(disk)
            );
        }
        // A size is no larger than the cache.
        Decision {
            quota_blocks: size as u32,
            mode: Mode { write, ..tenant.mode },
            predicted,
            reason: format!("{reason}: {why}; {policy_words}"),
        }
    }
}

/// What the search may choose from: the least size whose cost is finite, and all steps above it that bring something.
fn steps(cost: Option<&Curve>, bounds: Bounds) -> Vec<Step> {
    let Some(cost) = cost else { return vec![Step { blocks: bounds.least, cost: 0.0 }] };
    let finite = cost.first_within(f64::MAX).unwrap_or(0);
    let least = bounds.clamp(finite);
    let mut steps = vec![Step { blocks: least, cost: cost.at(least) }];
    for &(blocks, cost) in cost.points().iter().filter(|point| point.0 > least && point.0 <= bounds.most) {
        if cost < steps[steps.len() - 1].cost {
            steps.push(Step { blocks, cost });
        }
    }
    steps
}

/// The sum of all costs.
fn sum(costs: &[Option<Curve>], sizes: &[u64]) -> f64 {
    costs.iter().zip(sizes).filter_map(|(cost, &size)| Some(cost.as_ref()?.at(size))).sum()
}

#[cfg(test)]
mod tests;
