//! `larder`: our own allocator, and the default.
//!
//! For each tenant it knows, for every mode (replacement, admission, write policy) and size, what its requests would wait and
//! what it would write to the SSD ([`crate::menu`]). It chooses jointly, for all tenants, what minimises the weighted sum
//! of latencies under the size of the cache and a budget of SSD writes: the optimum where that can be proven, else with a
//! bound of what may be missing ([`solver`]). A request counts the same whoever makes it, but for its tenant's weight.
//!
//! - What measurements say of the last prediction corrects the next one (`memory`).
//! - A change must pay for the blocks that have to be filled anew (`hysteresis`).
//! - Reservations restrict what a tenant may be given, or are refused (`promises`, `demanded`, `unmet`).
//! - Tenants with shares divide in proportion what the plan gives them together (`proportional`).
//! - A tenant of which nothing is known gets an equal part; one that is idle is remembered, less and less (`sizes`, `memory`).
//! - What nobody gains from is given away all the same (`spare`).
//!
//! A quota is what a tenant gets back, not what it is held to: what it does not use, others do ([`Layout::Lending`]).
//!
//! The loop ([`crate::control`]) prices SSD writes for it, and then gives no rate of them ([`Profile::prices_writes`]): sizes are chosen as if there were no budget, but for the most of a tenant of which little is worth its price (`sizes`). Where a rate is given it is kept to.

mod demanded;
mod hysteresis;
mod memory;
mod options;
mod promises;
mod proportional;
mod reasons;
mod sizes;
pub mod solver;
mod spare;
mod unmet;

use larder_locality::CurvePolicy;
use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};

use crate::bounds::Bounds;
use crate::optimal::Room;
use crate::{
    AllocError, Allocator, Candidates, Choice, Constraints, Decision, Layout, Mode, Needs, Profile, Tenant,
    WritePolicy,
};
use memory::{Known, Memory};
use proportional::{Kept, Member};
use solver::{Prices, Solved, least_writes, solve};

/// A stream of reads passes by the cache once it is longer: a backup of a whole disk. Shorter ones are left to replacement policies that scans do not harm, and to prices, since files that are
/// read again and again from begin to end are worth their place.
const BYPASS_BYTES: u64 = 128 << 20;

/// What was counted in an epoch counts two thirds in the next: three epochs in all. Fewer, and what comes and goes from one to the next (a loop that is longer than that, a burst) has partitions grow and shrink with it.
const MEMORY: f64 = 2.0 / 3.0;

/// Our own allocator.
#[derive(Clone, Debug, Default)]
pub struct Larder {
    memory: Memory,
}

impl Larder {
    /// Its name.
    pub const NAME: &str = "larder";
}

impl Allocator for Larder {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(self.clone())
    }

    fn profile(&self) -> Profile {
        // Until something is known about a tenant, it gets what does well with most.
        let mode = Mode { caching: plain(PolicySpec::Lirs), write: WritePolicy::WriteBack };
        let layout = Layout::Lending;
        Profile {
            layout,
            mode,
            memory: MEMORY,
            learns_quickly: true,
            bypass_sequential_bytes: Some(BYPASS_BYTES),
            prices_writes: true,
            keeps_promises: true,
            ..Profile::default()
        }
    }

    /// LRU under every write policy that can be chosen; S3-FIFO and LIRS, which scans do not harm; and where writes to the SSD are limited, LARC, which lets in
    /// only what comes again.
    fn needs(&self, limited_writes: bool) -> Needs {
        let mut curves = vec![CurvePolicy::WriteBack, CurvePolicy::WriteThrough];
        let mut modes =
            vec![(PolicySpec::S3Fifo, WritePolicy::WriteBack), (PolicySpec::Lirs, WritePolicy::WriteBack)];
        if limited_writes {
            curves.push(CurvePolicy::ReadOnly);
            modes.extend([
                (PolicySpec::Larc, WritePolicy::WriteBack),
                (PolicySpec::Larc, WritePolicy::ReadOnly),
            ]);
        }
        Needs {
            curves,
            bank: modes.into_iter().map(|(policy, write)| Mode { caching: plain(policy), write }).collect(),
            effective: false,
        }
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        self.memory.learn(tenants, constraints);
        let known = self.memory.of(tenants);
        let ranges = sizes::ranges(tenants, &known, constraints);
        let room =
            Room { blocks: constraints.cache_blocks.into(), writes: constraints.ssd_writes_per_second };
        let many = options::are_many(&known);
        let offers = promises::offers(tenants, &known, &ranges, constraints, room, many);
        let lists = &offers.lists;
        let mut plan = Plan::of(tenants, lists, room);
        if many {
            plan.bound_by(room, |at, prices| {
                let (tenant, range, limit) = (&tenants[at], ranges[at], offers.limits[at]);
                let all = options::choices(tenant, known[at], range, constraints, limit);
                prices.cheapest(&all).or(prices.cheapest(&lists[at].choices))
            });
        }
        plan.keep_proportions(tenants, &known, lists, room);
        let quotas = quotas(tenants, &known, &ranges, &plan, room);
        let at_price = |at: usize| {
            let most = sizes::most_at_price(&tenants[at], constraints.cache_blocks)?;
            let held = tenants[at].found()?.held_at_price?;
            (most == quotas[at]).then(|| reasons::at_price(held))
        };
        let decide = |at: usize| {
            let share = || {
                let takes_part = proportional::takes_part(&tenants[at], known[at]);
                reasons::of_share(tenants[at].goals.share.filter(|_| takes_part)?, plan.chosen[at].member)
            };
            let words = offers.words[at].clone().or_else(|| at_price(at)).or_else(share);
            reasons::decide(&tenants[at], known[at], &plan, at, quotas[at], words.as_deref())
        };
        let decisions = (0..tenants.len()).map(decide).collect();
        self.memory.promise(tenants, &offers.limits);
        Ok(decisions)
    }
}

/// A replacement policy with the admission that belongs to it.
fn plain(policy: PolicySpec) -> CachingSpec {
    CachingSpec::new(policy, AdmissionSpec::Always).unwrap_or_default()
}

/// What is chosen for one tenant.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    choice: Choice,
    /// Set where its latency is to keep a proportion.
    member: Option<Member>,
}

/// What is chosen for everybody.
struct Plan {
    chosen: Vec<Chosen>,
    /// None where no plan keeps to the budget of writes: then the one that writes the least is taken.
    solved: Option<Solved>,
}

impl Plan {
    fn of(tenants: &[Tenant<'_>], lists: &[Candidates], room: Room) -> Self {
        let solved = solve(lists, room, Some(standing(tenants, lists)));
        let picks = match &solved {
            Some(solved) => Some(solved.picks.clone()),
            None => least_writes(lists, room.blocks),
        };
        // The smallest choices fit the cache, so that there always is a plan.
        let picks = picks.unwrap_or_else(|| vec![0; lists.len()]);
        let choice = |(list, pick): (&Candidates, u32)| list.choices[pick as usize];
        let chosen = lists.iter().zip(picks).map(choice).map(|choice| Chosen { choice, member: None });
        Self { chosen: chosen.collect(), solved }
    }

    /// The plan was made of a part of the choices: how good it is among all plans, by what each tenant's cheapest choice costs at the prices.
    fn bound_by(&mut self, room: Room, cheapest: impl Fn(usize, Prices) -> Option<f64>) {
        let Some(solved) = &mut self.solved else { return };
        let cheapest = (0..self.chosen.len()).filter_map(|at| cheapest(at, solved.prices));
        solved.bound = solver::bound(cheapest, room, solved.prices).min(solved.cost);
    }

    /// Divide what the tenants with shares have, and what nobody gains from, in their proportions.
    fn keep_proportions(
        &mut self,
        tenants: &[Tenant<'_>],
        known: &[&Known],
        lists: &[Candidates],
        room: Room,
    ) {
        let all = tenants.iter().zip(known).zip(&self.chosen);
        let others = all.filter(|((tenant, known), _)| !proportional::takes_part(tenant, known));
        let (blocks, writes) = others.fold((0, 0.0), |(blocks, writes), (_, chosen)| {
            (blocks + chosen.choice.blocks, writes + chosen.choice.writes)
        });
        let left = Room { blocks: room.blocks - blocks, writes: room.writes.map(|most| most - writes) };
        let prices = self.solved.as_ref().map_or(Prices::default(), |solved| solved.prices);
        for member in proportional::divide(tenants, known, lists, left, prices) {
            self.chosen[member.tenant] = Chosen { choice: member.choice, member: Some(member) };
        }
    }
}

/// The plan that changes no quota for the larger, the cheapest one for each tenant.
fn standing(tenants: &[Tenant<'_>], lists: &[Candidates]) -> Vec<u32> {
    let pick = |(tenant, list): (&Tenant<'_>, &Candidates)| {
        let held = u64::from(tenant.quota_blocks);
        let smaller = (0u32..).zip(&list.choices).take_while(|(_, choice)| choice.blocks <= held);
        smaller.min_by(|a, b| a.1.cost.total_cmp(&b.1.cost)).map_or(0, |(pick, _)| pick)
    };
    tenants.iter().zip(lists).map(pick).collect()
}

/// The choices' sizes, and what they leave of the cache.
///
/// A larger partition may write more to the SSD, where LARC lets more in: what would break the budget is not given.
fn quotas(tenants: &[Tenant<'_>], known: &[&Known], ranges: &[Bounds], plan: &Plan, room: Room) -> Vec<u64> {
    let chosen = &plan.chosen;
    let sizes: Vec<u64> = chosen.iter().map(|chosen| chosen.choice.blocks).collect();
    let left = room.blocks - sizes.iter().sum::<u64>();
    let held: Vec<u64> = tenants.iter().map(|tenant| tenant.quota_blocks.into()).collect();
    let misses: Vec<f64> =
        known.iter().zip(chosen).map(|(known, chosen)| known.misses_per_second(&chosen.choice)).collect();
    let mut most: Vec<u64> =
        tenants.iter().zip(ranges).map(|(tenant, range)| spare::most(tenant, range.least, room)).collect();
    let useful = |(tenant, range): (&Tenant<'_>, &Bounds)| {
        let cache = room.blocks.try_into().unwrap_or(u32::MAX);
        sizes::most_at_price(tenant, cache).map_or(u64::MAX, |most| most.max(range.least))
    };
    let useful: Vec<u64> = tenants.iter().zip(ranges).map(useful).collect();
    // Each turn takes another tenant out at least.
    for _ in 0..=tenants.len() {
        let mut quotas = sizes.clone();
        let would_change = |at: usize| chosen[at].member.is_some_and(|member| member.kept != Kept::TooSlow);
        let kept: Vec<u64> = (0..most.len())
            .map(|at| if would_change(at) { sizes[at] } else { most[at].min(useful[at]) })
            .collect();
        let left = spare::give(left, &mut quotas, &held, &kept, &misses);
        spare::give(left, &mut quotas, &held, &most, &misses);
        let written = |at: usize| known[at].writes_per_second(&chosen[at].choice, quotas[at]);
        let all: f64 = (0..quotas.len()).map(written).sum();
        let mut more = (0..quotas.len()).filter(|&at| written(at) > chosen[at].choice.writes);
        match more.next() {
            Some(at) if room.writes.is_some_and(|budget| all > budget) => most[at] = sizes[at],
            _ => return quotas,
        }
    }
    sizes
}

#[cfg(test)]
mod tests;
