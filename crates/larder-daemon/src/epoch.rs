//! The deciding part of the loop of an epoch, as a host needs it: requests and what was measured in, sizes and modes of all tenants out.
//!
//! Decisions are those of [`ControlLoop`], which the simulator runs over traces as well. What is added here is that tenants are known by the place in a list that
//! changes, that they may begin with what they hold, and that each decision is kept beside what came of it ([`crate::decisions`]). It knows no clock, thread or device;
//! what surrounds it in the daemon is in [`crate::analyzer`].

use std::time::Duration;

use larder_alloc::control::{
    BANK_BLOCKS, BudgetView, ControlConfig, ControlLoop, ControlTenant, Limit, Spent, WriteBudget,
};
use larder_alloc::{
    AllocError, Allocator, CacheUse, ConfiguredPolicy, Decision, Goals, Latencies, Layout, Measured,
    Objective, Profile, Static,
};
use larder_engine::Sharing;
use larder_locality::{Op, Sampling, block_keys, blocks_of};
use larder_policy::spec::CachingSpec;

use crate::actuator::Arrangement;
use crate::decisions::{Achieved, Decisions, Found, Record};
use crate::warm_start;

pub mod explore;

/// Blocks of a tenant that its analyzer looks at, at most: a tenant with fewer is analyzed exactly, a larger one from a
/// sample of this size, in some two megabytes.
const SAMPLED_BLOCKS: u32 = 1 << 15;

/// Movers come so many times in an epoch: every minute of Centaur's five (section IX).
const MOVES: f64 = 5.0;

/// A request of a tenant, as the monitor saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Index of the tenant.
    pub tenant: usize,
    /// Any number that tells the tenant's volumes apart.
    pub volume: u16,
    /// What it does.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// What the loop knows of a tenant from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopTenant {
    /// Its name.
    pub name: String,
    /// The quota configured, in blocks, if there is one.
    pub quota_blocks: Option<u32>,
    /// The write policy configured.
    pub write_policy: ConfiguredPolicy,
    /// Replacement and admission, where they are configured: whatever the allocator would choose.
    pub caching: Option<CachingSpec>,
    /// Its partition is filled in batches, or is not: whatever the allocator's system does.
    pub batched: Option<bool>,
    /// What else is wanted for it.
    pub goals: Goals,
}

impl LoopTenant {
    fn control(&self) -> ControlTenant {
        ControlTenant {
            name: self.name.clone(),
            quota_blocks: self.quota_blocks,
            write_policy: self.write_policy,
            goals: self.goals,
        }
    }
}

/// What the loop knows of the cache from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopConfig {
    /// Bytes in a block.
    pub block_bytes: u32,
    /// Blocks of the cache.
    pub cache_blocks: u32,
    /// The least that a tenant gets, in blocks, while the cache has that much for everybody.
    pub min_blocks: u32,
    /// The share of writes to known blocks from which `auto` means `ro`, from 0 to 1.
    pub write_threshold: f64,
    /// `auto` may be `wb`: blocks of the cache may be dirty.
    pub write_back: bool,
    /// What the SSD may be written.
    pub budget: Option<WriteBudget>,
    /// How often is decided, but by a method whose epoch is its own.
    pub epoch: Duration,
    /// Chooses the blocks that large tenants are analyzed by.
    pub seed: u64,
}

/// A tenant's standing at the end of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The epoch at whose end (or in which) it was decided, from 1; 0 for the start.
    pub epoch: u64,
    /// What was decided, and why.
    pub decision: Decision,
    /// A mover fills its partition.
    pub batched: bool,
    /// The size that the useful reuse distance of that epoch asks for, in blocks; 0 where nothing was read again.
    pub urd_blocks: u64,
    /// The size that the plain reuse distance of that epoch asks for, in blocks; 0 where nothing was accessed again.
    pub trd_blocks: u64,
}

/// What only a tenant's reactor knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Its requests, since the start.
    pub measured: Measured,
    /// How it uses its blocks.
    pub usage: CacheUse,
}

/// The loop, and the tenants in the daemon's order.
pub struct EpochLoop {
    config: LoopConfig,
    control: ControlLoop,
    tenants: Vec<LoopTenant>,
    seats: Vec<Seat>,
    standings: Vec<Standing>,
    decisions: Decisions,
    /// When movers come next, in seconds.
    movers_due: f64,
}

/// A tenant's place in the control loop, and what was reported of it last.
#[derive(Clone, Copy, Debug)]
struct Seat {
    at: usize,
    report: Option<Report>,
    /// What it has written, and what it might not: as told last, and at the last decision.
    spent: Option<Spent>,
    decided: Spent,
}

impl Seat {
    fn new(at: usize) -> Self {
        Self { at, report: None, spent: None, decided: Spent::default() }
    }
}

/// What reactors tell of what was written to the SSD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SsdSpending {
    /// By tenant, in their order; nothing of one that its reactor does not know.
    pub tenants: Vec<Option<Spent>>,
    /// Bytes of the cache's own records since the start.
    pub record_bytes: u64,
}

impl EpochLoop {
    /// A loop at its start, 0 seconds: every tenant stands where the static allocator puts it, which is its configured quota or an
    /// equal share of the rest.
    ///
    /// # Errors
    /// When the configured quotas exceed the cache.
    pub fn new(
        config: LoopConfig,
        allocator: Box<dyn Allocator + Send>,
        tenants: Vec<LoopTenant>,
    ) -> Result<Self, AllocError> {
        let profile = profile(&config, allocator.profile());
        let all = tenants.iter().map(LoopTenant::control).collect();
        let control = ControlLoop::new(control_config(&config, &profile), allocator, profile, all);
        let mut control = control.granting();
        let places: Vec<usize> = (0..tenants.len()).collect();
        control.arrive(&places, 0.0)?;
        let seats = places.into_iter().map(Seat::new).collect();
        let decisions = Decisions::default();
        let standings = Vec::new();
        let movers_due = config.epoch.as_secs_f64() / MOVES;
        let mut new = Self { config, control, tenants, seats, standings, decisions, movers_due };
        new.stand();
        Ok(new)
    }

    /// The tenants hold some blocks already, in their order: before the first decision they keep them, as far as the cache reaches,
    /// unless their quotas are fixed.
    pub fn start_warm(&mut self, held_blocks: &[u32]) {
        if self.has_fixed_quotas() || self.control.profile().layout == Layout::Unified {
            return;
        }
        let (cold, own) = (self.quotas(), self.own_blocks());
        let mine: Vec<u32> = held_blocks.iter().map(|&held| self.own_part(held)).collect();
        let quotas = warm_start::quotas(own, self.config.min_blocks, &cold, &mine);
        for ((at, quota), held) in quotas.into_iter().enumerate().zip(held_blocks) {
            let mut reason = self.standings[at].decision.reason.clone();
            if *held > 0 && quota != cold[at] {
                reason = format!("{quota} blocks: it held {held} when the cache was opened; {reason}");
            }
            self.control.set_quota(self.seats[at].at, quota, reason);
        }
        self.stand();
    }

    /// Tenants have come, or gone, or others things are wanted for them: from now on it is these. Whoever stays is known by its name, and keeps what was learned of it, and its
    /// quota as far as the cache reaches; newcomers begin as after a warm start. Where quotas are fixed they are what is configured.
    ///
    /// # Errors
    /// When the configured quotas exceed the cache: then nothing has changed.
    pub fn set_tenants(&mut self, tenants: Vec<LoopTenant>, now: f64) -> Result<(), AllocError> {
        let configured = tenants.iter().filter_map(|tenant| tenant.quota_blocks);
        let (wanted_blocks, cache_blocks) =
            (configured.map(u64::from).sum::<u64>(), self.config.cache_blocks);
        if wanted_blocks > cache_blocks.into() {
            return Err(AllocError::QuotasExceedCache { wanted_blocks, cache_blocks });
        }
        let known = |name: &str| self.tenants.iter().position(|tenant| tenant.name == name);
        let places: Vec<Option<usize>> = tenants.iter().map(|tenant| known(&tenant.name)).collect();
        let held: Vec<u32> =
            places.iter().map(|at| at.map_or(0, |at| self.standings[at].decision.quota_blocks)).collect();
        let others = tenants.len() != self.tenants.len() || places.contains(&None);
        for (at, seat) in self.seats.iter().enumerate() {
            if !places.contains(&Some(at)) {
                self.control.remove(seat.at);
                self.decisions.forget(&self.tenants[at].name);
            }
        }
        let (mut seats, mut new) = (Vec::with_capacity(tenants.len()), Vec::new());
        for (tenant, place) in tenants.iter().zip(&places) {
            seats.push(match place {
                Some(at) => {
                    if self.tenants[*at] != *tenant {
                        self.control.change(self.seats[*at].at, tenant.control(), now);
                    }
                    self.seats[*at]
                }
                None => {
                    let at = self.control.add(tenant.control(), now);
                    new.push(at);
                    Seat::new(at)
                }
            });
        }
        (self.tenants, self.seats) = (tenants, seats);
        self.control.arrive(&new, now)?;
        if !others && !self.has_fixed_quotas() {
            // Who is here keeps what was decided until the next decision.
            self.stand();
            return Ok(());
        }
        let cold = self.control.static_quotas()?;
        let cold: Vec<u32> = self.seats.iter().map(|seat| self.own_part(cold[seat.at])).collect();
        let min_blocks = self.config.min_blocks;
        let quotas = match self.has_fixed_quotas() {
            true => cold,
            false => warm_start::quotas(self.own_blocks(), min_blocks, &cold, &held),
        };
        for (((seat, place), held), quota) in self.seats.iter().zip(&places).zip(held).zip(quotas) {
            let before = &self.control.positions()[seat.at].decision.reason;
            let reason = match place {
                None => format!("{quota} blocks until the first epoch is over; {before}"),
                Some(_) if held != quota && others => format!("{quota} blocks: tenants have come or gone"),
                Some(_) if held != quota => format!("{quota} blocks as configured now"),
                Some(_) => before.clone(),
            };
            self.control.set_quota(seat.at, quota, reason);
        }
        self.stand();
        Ok(())
    }

    /// Another allocator decides from now on, this often. Until its first decision every tenant has the quota that it had, or what it holds (`reports`, in the tenants' order) where
    /// tenants shared a partition; where quotas are fixed then, those.
    ///
    /// # Errors
    /// When the configured quotas exceed the cache: then nothing has changed.
    pub fn switch(
        &mut self,
        allocator: Box<dyn Allocator + Send>,
        epoch: Duration,
        now: f64,
        reports: &[Option<Report>],
    ) -> Result<(), AllocError> {
        let fixed = self.control.static_quotas()?;
        let shared = self.shares();
        self.config.epoch = epoch;
        let profile = profile(&self.config, allocator.profile());
        self.control.switch(allocator, profile, now);
        self.movers_due = now + profile.epoch_seconds / MOVES;
        if self.has_fixed_quotas() {
            for seat in &self.seats {
                let quota = fixed[seat.at];
                self.control.set_quota(seat.at, quota, format!("{quota} blocks, from now on fixed"));
            }
        } else if shared || self.shares() {
            let held = |(at, quota): (usize, u32)| match reports.get(at) {
                Some(Some(report)) if shared => report.usage.resident_blocks,
                _ => quota,
            };
            let held: Vec<u32> = self.quotas().into_iter().enumerate().map(held).collect();
            self.divide_anew(&fixed, &held);
        }
        self.stand();
        Ok(())
    }

    /// The part of the cache that is divided is another: quotas until the first decision, for tenants that hold some blocks. `fixed` is what `static` would give those of the control loop.
    fn divide_anew(&mut self, fixed: &[u32], held: &[u32]) {
        let cold: Vec<u32> = self.seats.iter().map(|seat| self.own_part(fixed[seat.at])).collect();
        let mine: Vec<u32> = held.iter().map(|&held| self.own_part(held)).collect();
        let quotas = warm_start::quotas(self.own_blocks(), self.config.min_blocks, &cold, &mine);
        let name = self.control.allocator();
        for ((seat, quota), held) in self.seats.iter().zip(quotas).zip(held) {
            let reason = match self.control.profile().layout {
                Layout::Unified => {
                    format!("one cache of {} blocks serves all tenants", self.config.cache_blocks)
                }
                _ => format!("{quota} blocks until the first decision of {name}: it held {held}"),
            };
            self.control.set_quota(seat.at, quota, reason);
        }
    }

    /// What the SSD may be written from now on.
    pub fn set_budget(&mut self, budget: Option<WriteBudget>, now: f64) {
        self.config.budget = budget;
        self.control.set_budget(budget, now);
    }

    /// So many bytes of the budget were written already in a period that began so many seconds before the start.
    pub fn resume_budget(&mut self, written_bytes: f64, since_seconds: f64) {
        self.control.resume_budget(written_bytes, since_seconds);
    }

    /// How far the budget is used up, where there is one.
    pub fn budget(&self, now: f64) -> Option<BudgetView> {
        self.control.budget_view(now)
    }

    /// How far tenants may go with what they write to the SSD, by their places in the list. Those of which nothing is known are left out; all, where there is no budget.
    pub fn grant(&mut self, now: f64, spending: &SsdSpending) -> Vec<(usize, Limit)> {
        let mut told = Vec::with_capacity(self.seats.len());
        let mut indices = Vec::with_capacity(self.seats.len());
        for (index, (seat, spent)) in self.seats.iter_mut().zip(&spending.tenants).enumerate() {
            let Some(spent) = *spent else { continue };
            seat.spent = Some(spent);
            told.push((seat.at, spent));
            indices.push(index);
        }
        let limits = self.control.grant(now, &told, spending.record_bytes).unwrap_or_default();
        indices.into_iter().zip(limits).map(|(index, (_, limit))| (index, limit)).collect()
    }

    /// A request. One of an unknown tenant is ignored. Takes time in the number of blocks that it touches.
    pub fn observe(&mut self, access: &Access) {
        let Some(seat) = self.seats.get(access.tenant) else { return };
        let blocks = blocks_of(access.offset, access.len, self.config.block_bytes);
        if self.control.observe(seat.at, access.op, block_keys(access.volume, blocks)) {
            self.control.analyze(seat.at);
        }
    }

    /// When something is due, in seconds since the start: [`EpochLoop::look`], or a decision, or movers come.
    pub fn due_seconds(&self) -> f64 {
        let movers = self.standings.iter().any(|standing| standing.batched);
        self.control.due_seconds().min(if movers { self.movers_due } else { f64::INFINITY })
    }

    /// True if movers come now: what they are to move in counts from now on.
    pub fn movers_come(&mut self, now: f64) -> bool {
        if now < self.movers_due {
            return false;
        }
        self.movers_due = now + self.control.profile().epoch_seconds / MOVES;
        self.control.populate();
        true
    }

    /// True if a decision is due.
    pub fn must_decide(&self, now: f64) -> bool {
        self.control.must_decide(now)
    }

    /// What is due without a decision.
    pub fn look(&mut self, now: f64) {
        self.control.look(now);
    }

    /// Decide for all tenants. `reports` are those of the tenants in their order, where there are any. `unix_seconds` is the time of the day.
    ///
    /// # Errors
    /// When the allocator cannot decide; then every tenant keeps what it has, and the epoch counts all the same.
    pub fn decide(
        &mut self,
        now: f64,
        unix_seconds: f64,
        reports: &[Option<Report>],
    ) -> Result<&[Standing], AllocError> {
        let mut usages = vec![CacheUse::default(); self.control.tenants().len()];
        for (at, seat) in self.seats.iter_mut().enumerate() {
            let Some(Some(report)) = reports.get(at) else { continue };
            // What was before the first report has its place in no epoch.
            let before = seat.report.replace(*report);
            let since = before.map_or(Measured::default(), |before| report.measured.since(&before.measured));
            self.control.absorb(seat.at, &since);
            usages[seat.at] = report.usage;
            usages[seat.at].missed_blocks =
                report.usage.missed_blocks.saturating_sub(before.map_or(0, |it| it.usage.missed_blocks));
            self.decisions.achieved(&self.tenants[at].name, &Achieved::of(&since, report, unix_seconds));
        }
        let decided = self.control.decide(now, &usages).map(|_| ());
        if decided.is_ok() {
            self.say_what_was_refused();
        }
        self.stand();
        decided?;
        for (tenant, (seat, standing)) in self.tenants.iter().zip(self.seats.iter().zip(&self.standings)) {
            let found = self.control.positions()[seat.at].findings.as_ref();
            self.decisions.record(Record {
                tenant: tenant.name.clone(),
                unix_seconds,
                epoch: standing.epoch,
                allocator: self.control.allocator().to_owned(),
                found: found.map(Found::of),
                decision: standing.decision.clone(),
                achieved: None,
            });
        }
        Ok(&self.standings)
    }

    /// The tenants, as given.
    pub fn tenants(&self) -> &[LoopTenant] {
        &self.tenants
    }

    /// Where the tenants stand since the last decision.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The last decisions, and what came of them.
    pub fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// Who decides.
    pub fn allocator(&self) -> &'static str {
        self.control.allocator()
    }

    /// What the reactors have to be told of the allocator's system.
    pub fn arrangement(&self) -> Arrangement {
        let profile = self.control.profile();
        let (all, caching) = (self.config.cache_blocks, self.shared_caching());
        let sharing = match profile.layout {
            Layout::Unified => Sharing::All { blocks: all, caching },
            Layout::Combined { .. } => Sharing::Spill { blocks: all - self.own_blocks(), caching },
            Layout::Partitioned | Layout::Lending | Layout::Pooled { .. } => Sharing::Off,
        };
        Arrangement {
            lending: matches!(profile.layout, Layout::Lending | Layout::Pooled { .. }),
            sharing,
            watches_hits: self.control.needs().effective,
            stream_bypass: profile.bypass_sequential_bytes,
        }
    }

    /// True if tenants share a partition.
    pub fn shares(&self) -> bool {
        matches!(self.control.profile().layout, Layout::Unified | Layout::Combined { .. })
    }

    /// How a partition that tenants share replaces and admits: as is configured of all of them, or else as the allocator has it.
    fn shared_caching(&self) -> CachingSpec {
        let first = self.tenants.first().and_then(|tenant| tenant.caching);
        let agreed = first.filter(|&first| self.tenants.iter().all(|tenant| tenant.caching == Some(first)));
        agreed.unwrap_or(self.control.profile().mode.caching)
    }

    /// Of so many blocks those of partitions of the tenants' own.
    fn own_part(&self, blocks: u32) -> u32 {
        match self.control.profile().layout {
            Layout::Combined { partitioned } => (f64::from(blocks) * partitioned) as u32,
            _ => blocks,
        }
    }

    fn own_blocks(&self) -> u32 {
        self.own_part(self.config.cache_blocks)
    }

    /// Seconds of an epoch.
    pub fn epoch_seconds(&self) -> f64 {
        self.control.profile().epoch_seconds
    }

    /// Epochs that are over.
    pub fn epoch(&self) -> u64 {
        self.control.epoch()
    }

    /// Bytes of memory that the analyzers hold.
    pub fn memory_bytes(&self) -> usize {
        self.control.memory_bytes()
    }

    fn has_fixed_quotas(&self) -> bool {
        self.control.allocator() == Static::NAME
    }

    fn quotas(&self) -> Vec<u32> {
        self.standings.iter().map(|standing| standing.decision.quota_blocks).collect()
    }

    /// Whoever might not write all to the SSD that it would have since the last decision is told so.
    fn say_what_was_refused(&mut self) {
        for seat in &mut self.seats {
            let Some(spent) = seat.spent else { continue };
            let before = std::mem::replace(&mut seat.decided, spent);
            let refused = spent.refused_blocks.saturating_sub(before.refused_blocks);
            let diverted = spent.diverted_blocks.saturating_sub(before.diverted_blocks);
            if refused + diverted == 0 {
                continue;
            }
            let Decision { quota_blocks, reason, .. } = &self.control.positions()[seat.at].decision;
            let (quota, mut reason) = (*quota_blocks, reason.clone());
            reason +=
                &format!("; since the last decision the budget of SSD writes kept {refused} blocks out");
            if diverted > 0 {
                reason += &format!(", and {diverted} writes to cached blocks went to the backing alone");
            }
            self.control.set_quota(seat.at, quota, reason);
        }
    }

    /// Take over where the control loop has the tenants.
    fn stand(&mut self) {
        let standing = |(tenant, seat): (&LoopTenant, &Seat)| {
            let position = &self.control.positions()[seat.at];
            let (mut decision, found) = (position.decision.clone(), position.findings.as_ref());
            let caching = match self.control.profile().layout {
                Layout::Unified => Some(self.shared_caching()),
                _ => tenant.caching,
            };
            if let Some(caching) = caching.filter(|&caching| caching != decision.mode.caching) {
                decision.mode.caching = caching;
                // That was predicted of another cache.
                decision.predicted = None;
            }
            if tenant.caching.is_some_and(|own| own != decision.mode.caching) {
                decision.reason += "; its own replacement and admission are not those of the one cache";
            }
            let layout = self.control.profile().layout;
            let shares = matches!(layout, Layout::Unified | Layout::Combined { .. });
            let batches =
                matches!(self.control.profile().population, larder_alloc::Population::Batched { .. });
            Standing {
                epoch: self.control.epoch(),
                decision,
                // Where tenants share a partition, misses fill it.
                batched: !shares && tenant.batched.unwrap_or(batches),
                urd_blocks: found.map_or(0, |found| found.epoch.urd_blocks()),
                trd_blocks: found.map_or(0, |found| found.epoch.trd_blocks()),
            }
        };
        self.standings = self.tenants.iter().zip(&self.seats).map(standing).collect();
    }
}

/// How an allocator's system is run here.
fn profile(config: &LoopConfig, theirs: Profile) -> Profile {
    let epoch_seconds = if theirs.own_epoch { theirs.epoch_seconds } else { config.epoch.as_secs_f64() };
    Profile { block_bytes: config.block_bytes, epoch_seconds, ..theirs }
}

fn control_config(config: &LoopConfig, profile: &Profile) -> ControlConfig {
    let LoopConfig {
        block_bytes, cache_blocks, min_blocks, write_threshold, write_back, budget, seed, ..
    } = *config;
    ControlConfig {
        block_bytes,
        cache_blocks,
        min_blocks,
        write_threshold,
        write_back,
        objective: Objective::default(),
        budget,
        epoch_seconds: profile.epoch_seconds,
        nominal: Latencies::default(),
        sampling: Sampling::Blocks(SAMPLED_BLOCKS),
        bank_blocks: BANK_BLOCKS,
        seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_alloc::WritePolicy;

    const BLOCK: u64 = 4096;

    fn config(cache_blocks: u32) -> LoopConfig {
        LoopConfig {
            block_bytes: BLOCK as u32,
            cache_blocks,
            min_blocks: 2,
            write_threshold: 0.5,
            write_back: false,
            budget: None,
            epoch: Duration::from_secs(100),
            seed: 1,
        }
    }

    fn tenant(name: &str, quota_blocks: Option<u32>) -> LoopTenant {
        LoopTenant {
            name: name.into(),
            quota_blocks,
            write_policy: ConfiguredPolicy::Auto,
            caching: None,
            batched: None,
            goals: Goals::default(),
        }
    }

    fn eci(cache_blocks: u32, quotas: &[Option<u32>]) -> EpochLoop {
        let allocator = larder_alloc::by_name("eci").expect("known");
        let tenants =
            (0..).zip(quotas).map(|(at, quota): (u8, _)| tenant(&format!("t{at}"), *quota)).collect();
        EpochLoop::new(config(cache_blocks), allocator, tenants).expect("fits")
    }

    fn access(tenant: usize, op: Op, block: u64) -> Access {
        Access { tenant, volume: 0, op, offset: block * BLOCK, len: BLOCK }
    }

    /// The epoch ends.
    fn end(epochs: &mut EpochLoop) -> Result<&[Standing], AllocError> {
        let now = epochs.due_seconds();
        epochs.decide(now, 0.0, &[])
    }

    fn quotas(epochs: &EpochLoop) -> Vec<u32> {
        epochs.standings().iter().map(|standing| standing.decision.quota_blocks).collect()
    }

    #[test]
    fn the_start_is_as_configured_and_the_rest_is_shared() {
        assert_eq!(quotas(&eci(100, &[Some(40), None, None])), [40, 30, 30]);
        let allocator = larder_alloc::by_name("static").expect("known");
        let error = EpochLoop::new(config(100), allocator, vec![tenant("t", Some(101))]).err();
        assert!(matches!(error, Some(AllocError::QuotasExceedCache { .. })));
    }

    #[test]
    fn tenants_are_told_how_far_they_may_go_and_why_they_were_held_back() {
        let mut epochs = eci(100, &[None, None]);
        assert_eq!((epochs.grant(0.0, &SsdSpending::default()), epochs.budget(0.0)), (vec![], None));
        let budget = WriteBudget { bytes: (1000 * BLOCK) as f64, period_seconds: 1000.0 };
        epochs.set_budget(Some(budget), 0.0);
        let spent = |blocks: u64, refused_blocks, diverted_blocks| {
            Some(Spent { bytes: blocks * BLOCK, refused_blocks, diverted_blocks })
        };
        let spending = |b, record_bytes| SsdSpending { tenants: vec![None, b], record_bytes };
        let limits = epochs.grant(0.0, &spending(spent(7, 0, 0), 5));
        // All that may be written at once, for the only one that is known; what was before does not count.
        assert_eq!(limits, [(1, Limit { admit_bytes: 7 * BLOCK + 75 * BLOCK / 2, bytes: 57 * BLOCK })]);
        epochs.grant(50.0, &spending(spent(27, 3, 2), 5 + BLOCK));
        assert_eq!(epochs.budget(50.0).expect("there is one").written_bytes, (21 * BLOCK) as f64);
        end(&mut epochs).expect("decides");
        let reason = |epochs: &EpochLoop, at: usize| epochs.standings()[at].decision.reason.clone();
        let said = "since the last decision the budget of SSD writes kept 3 blocks out, and 2 writes to cached blocks went to the backing alone";
        assert!(reason(&epochs, 1).ends_with(said), "{}", reason(&epochs, 1));
        assert!(!reason(&epochs, 0).contains("budget"), "{}", reason(&epochs, 0));
        end(&mut epochs).expect("decides");
        assert!(!reason(&epochs, 1).contains("budget"), "{}", reason(&epochs, 1));
    }

    #[test]
    fn a_warm_start_keeps_what_is_held_unless_quotas_are_fixed() {
        let mut epochs = eci(100, &[None, None]);
        epochs.start_warm(&[70, 0]);
        assert_eq!(quotas(&epochs), [70, 30]);
        assert!(epochs.standings()[0].decision.reason.starts_with("70 blocks: it held 70"));
        let allocator = larder_alloc::by_name("static").expect("known");
        let tenants = vec![tenant("a", None), tenant("b", None)];
        let mut fixed = EpochLoop::new(config(100), allocator, tenants).expect("fits");
        fixed.start_warm(&[70, 0]);
        assert_eq!(quotas(&fixed), [50, 50]);
    }

    #[test]
    fn who_stays_keeps_what_was_learned_of_it() {
        let named = |names: &[&str]| names.iter().map(|name| tenant(name, None)).collect::<Vec<_>>();
        let allocator = larder_alloc::by_name("eci").expect("known");
        let mut epochs = EpochLoop::new(config(100), allocator, named(&["a", "b"])).expect("fits");
        for _ in 0..2 {
            (0..60).for_each(|block| epochs.observe(&access(1, Op::Read, block)));
        }
        // The first leaves, and another comes before the other: what this one has read goes with it.
        epochs.set_tenants(named(&["c", "b"]), 10.0).expect("fits");
        assert_eq!(quotas(&epochs).iter().sum::<u32>(), 100);
        assert!(epochs.standings()[0].decision.reason.starts_with("50 blocks until the first epoch is over"));
        let urds: Vec<_> = end(&mut epochs).expect("decided").iter().map(|s| s.urd_blocks).collect();
        assert_eq!(urds, [0, 60]);
        assert_eq!(quotas(&epochs), [2, 60]);
        // A newcomer takes from the rest first; quotas that are fixed are what they are.
        epochs.set_tenants(named(&["c", "b", "d"]), 110.0).expect("fits");
        let seen = quotas(&epochs);
        assert!(seen[1] == 60 && seen[2] > 2 && seen.iter().sum::<u32>() <= 100, "{seen:?}");
        let allocator = larder_alloc::by_name("static").expect("known");
        let mut fixed = EpochLoop::new(config(90), allocator, named(&["a", "b"])).expect("fits");
        fixed.set_tenants(named(&["a", "b", "c"]), 10.0).expect("fits");
        assert_eq!(quotas(&fixed), [30, 30, 30]);
        assert_eq!(fixed.standings()[0].decision.reason, "30 blocks: tenants have come or gone");
    }

    #[test]
    fn sizes_follow_what_is_read_again() {
        let mut epochs = eci(100, &[None, None]);
        for _ in 0..2 {
            (0..10).for_each(|block| epochs.observe(&access(0, Op::Read, block)));
            (0..50).for_each(|block| epochs.observe(&access(1, Op::Read, block)));
        }
        let standings = end(&mut epochs).expect("decided");
        let seen: Vec<_> =
            standings.iter().map(|s| (s.epoch, s.urd_blocks, s.decision.quota_blocks)).collect();
        assert_eq!(seen, [(1, 10, 10), (1, 50, 50)]);
        // Nothing happens in the second epoch: both fall back to the minimum.
        assert_eq!(end(&mut epochs).map(|s| s[0].epoch), Ok(2));
        assert_eq!(quotas(&epochs), [2, 2]);
    }

    /// One block less, and an LRU cache serves nothing of it.
    #[test]
    fn a_loop_gets_its_last_block_too() {
        let mut epochs = eci(10_000, &[None]);
        for _ in 0..3 {
            (0..3000).for_each(|block| epochs.observe(&access(0, Op::Read, block)));
        }
        assert_eq!(end(&mut epochs).map(|s| (s[0].urd_blocks, s[0].decision.quota_blocks)), Ok((3000, 3000)));
    }

    #[test]
    fn writers_become_read_only_and_come_back() {
        let mut epochs = eci(100, &[None]);
        for op in [Op::Write, Op::Read] {
            for _ in 0..9 {
                (0..4).for_each(|block| epochs.observe(&access(0, op, block)));
            }
            end(&mut epochs).expect("decided");
            let policy = epochs.standings()[0].decision.mode.write;
            let expected = if op == Op::Write { WritePolicy::ReadOnly } else { WritePolicy::WriteThrough };
            assert_eq!(policy, expected);
        }
    }

    #[test]
    fn volumes_of_a_tenant_are_told_apart() {
        let mut epochs = eci(100, &[None]);
        epochs.observe(&access(0, Op::Read, 7));
        epochs.observe(&Access { volume: 1, ..access(0, Op::Read, 7) });
        epochs.observe(&access(0, Op::Read, 7));
        assert_eq!(end(&mut epochs).map(|standings| standings[0].urd_blocks), Ok(2));
    }

    #[test]
    fn figure_5_of_eci_cache() {
        let mut epochs = eci(100, &[None]);
        for (kind, block) in [('W', 1), ('W', 2), ('R', 1), ('W', 3), ('W', 4), ('W', 5), ('W', 2)] {
            let op = if kind == 'W' { Op::Write } else { Op::Read };
            epochs.observe(&access(0, op, block));
        }
        let standing = end(&mut epochs).expect("decided")[0].clone();
        assert_eq!((standing.trd_blocks, standing.urd_blocks), (5, 2));
    }

    #[test]
    fn a_small_cache_learns_what_a_far_larger_one_would_bring() {
        let mut epochs = eci(100, &[None]);
        for _ in 0..2 {
            (0..100_000).for_each(|block| epochs.observe(&access(0, Op::Read, block)));
        }
        let urd_blocks = end(&mut epochs).expect("decided")[0].urd_blocks;
        // From a sample of a third of the blocks.
        assert!((98_000..102_000).contains(&urd_blocks), "{urd_blocks}");
    }

    #[test]
    fn memory_stays_bounded_however_much_a_tenant_touches() {
        let mut epochs = eci(100, &[None]);
        (0..400_000).for_each(|block| epochs.observe(&access(0, Op::Write, block)));
        assert!(epochs.memory_bytes() < 4 << 20, "{} bytes", epochs.memory_bytes());
    }

    #[test]
    fn a_request_far_out_takes_no_longer_than_others() {
        let mut epochs = eci(100, &[None]);
        let far = access(0, Op::Read, (1 << 49) - 1);
        epochs.observe(&Access { volume: 1, len: 2 * BLOCK, ..far });
        assert_eq!(end(&mut epochs).map(|standings| standings[0].urd_blocks), Ok(0));
    }

    #[test]
    fn an_unknown_tenant_is_ignored() {
        let mut epochs = eci(100, &[None]);
        epochs.observe(&access(9, Op::Read, 0));
        assert!(end(&mut epochs).is_ok());
    }

    #[test]
    fn every_allocator_decides_and_follows_another() {
        let mut epochs = eci(1000, &[None, None]);
        let mut now = 0.0;
        for name in ["larder", "centaur", "unified", "scave", "combined", "wss", "static", "eci"] {
            let allocator = larder_alloc::by_name(name).expect("known");
            let before = quotas(&epochs);
            epochs.switch(allocator, Duration::from_secs(100), now, &[]).expect("fits");
            assert!(
                ["static", "combined", "wss"].contains(&name) || quotas(&epochs) == before,
                "{name}: nothing changes before a decision"
            );
            for block in (0..300).chain(0..300) {
                epochs.observe(&access(0, Op::Read, block));
                epochs.observe(&access(1, Op::Write, block));
            }
            now = epochs.due_seconds();
            while epochs.movers_come(now) && !epochs.must_decide(now) {
                now = epochs.due_seconds();
            }
            assert!(epochs.must_decide(now) || name == "larder", "{name}");
            epochs.decide(now, 7.0, &[]).expect("decides");
            let last = epochs.decisions().of("t0").next_back().expect("kept").clone();
            assert_eq!((last.allocator.as_str(), last.unix_seconds), (name, 7.0));
            assert_eq!(last.decision.quota_blocks, quotas(&epochs)[0]);
        }
    }

    #[test]
    fn tenants_that_share_are_told_so_and_keep_what_they_held_when_they_no_longer_do() {
        let allocator = |name| larder_alloc::by_name(name).expect("known");
        let hour = Duration::from_secs(3600);
        let held = |blocks| {
            let usage = CacheUse { resident_blocks: blocks, effective: None, missed_blocks: 0 };
            Some(Report { measured: Measured::default(), usage })
        };
        let lru = CachingSpec::default();
        let mut epochs = eci(1000, &[Some(600), None]);
        assert_eq!(epochs.arrangement().sharing, Sharing::Off);
        epochs.switch(allocator("unified"), hour, 1.0, &[]).expect("fits");
        assert_eq!(epochs.arrangement().sharing, Sharing::All { blocks: 1000, caching: lru });
        assert_eq!(epochs.standings()[0].decision.reason, "one cache of 1000 blocks serves all tenants");
        epochs.decide(3601.0, 1.0, &[]).expect("decides");
        assert_eq!(quotas(&epochs), [500, 500], "in name");
        epochs.switch(allocator("combined"), hour, 3602.0, &[held(100), held(900)]).expect("fits");
        assert_eq!(epochs.arrangement().sharing, Sharing::Spill { blocks: 500, caching: lru });
        assert_eq!(quotas(&epochs), [50, 450], "half of what they hold, in the half that is divided");
        epochs.switch(allocator("larder"), hour, 3603.0, &[held(150), held(700)]).expect("fits");
        assert_eq!((epochs.arrangement().sharing, epochs.arrangement().lending), (Sharing::Off, true));
        let seen = quotas(&epochs);
        assert!(seen[0] >= 150 && seen[1] >= 700 && seen.iter().sum::<u32>() <= 1000, "{seen:?}");
        assert!(epochs.standings()[1].decision.reason.ends_with("decision of larder: it held 700"));
        // A newcomer's part is of what is divided.
        epochs.switch(allocator("combined"), hour, 3604.0, &[]).expect("fits");
        epochs.set_tenants(["t0", "t1", "t2"].map(|name| tenant(name, None)).to_vec(), 3605.0).expect("fits");
        let seen = quotas(&epochs);
        assert!(seen[2] > 0 && seen.iter().sum::<u32>() <= 500, "{seen:?}");
    }

    #[test]
    fn one_cache_for_all_replaces_as_all_want_it() {
        let caching: CachingSpec = "arc".parse().expect("known");
        let arc = Some(caching);
        let tenants = |second| {
            vec![
                LoopTenant { caching: arc, ..tenant("a", None) },
                LoopTenant { caching: second, ..tenant("b", None) },
            ]
        };
        let loop_of = |second| {
            let unified = larder_alloc::by_name("unified").expect("known");
            EpochLoop::new(config(100), unified, tenants(second)).expect("fits")
        };
        let same = loop_of(arc);
        assert_eq!(same.arrangement().sharing, Sharing::All { blocks: 100, caching });
        assert!(!same.standings()[0].decision.reason.contains("its own replacement"));
        let other = loop_of(None);
        let lru = CachingSpec::default();
        assert_eq!(other.arrangement().sharing, Sharing::All { blocks: 100, caching: lru });
        assert_eq!(other.standings()[0].decision.mode.caching, lru);
        let reasons = [0, 1].map(|at| other.standings()[at].decision.reason.contains("its own replacement"));
        assert_eq!(reasons, [true, false]);
    }

    #[test]
    fn what_reactors_report_is_held_against_what_was_decided() {
        let mut epochs = eci(1000, &[None]);
        let timed = |count| larder_alloc::Timed { count, seconds: count as f64 * 1e-3 };
        let report = |hits, misses| {
            let measured =
                Measured { read_hits: timed(hits), read_misses: timed(misses), ..Measured::default() };
            let usage = CacheUse { resident_blocks: 7, effective: None, missed_blocks: misses };
            Some(Report { measured, usage })
        };
        // What came before the first decision belongs to none.
        epochs.decide(100.0, 1.0, &[report(10, 10)]).expect("decides");
        epochs.decide(200.0, 2.0, &[report(40, 20)]).expect("decides");
        let first = epochs.decisions().of("t0").next().expect("kept");
        let came = first.achieved.expect("it is over");
        assert_eq!((came.requests, came.request_hit_ratio, came.occupied_blocks), (40, Some(0.75), 7));
        assert_eq!(came.until_unix_seconds, 2.0);
    }

    #[test]
    fn what_is_wanted_of_a_tenant_moves_no_quota_but_a_fixed_one() {
        let mut epochs = eci(100, &[None, None]);
        (0..2).for_each(|_| (0..10).for_each(|block| epochs.observe(&access(0, Op::Read, block))));
        end(&mut epochs).expect("decided");
        let before = epochs.standings().to_vec();
        let wanted = |quota| {
            let goals = Goals { weight: 3.0, ..Goals::default() };
            let write_policy = ConfiguredPolicy::Fixed(WritePolicy::ReadOnly);
            vec![LoopTenant { goals, write_policy, ..tenant("t0", quota) }, tenant("t1", None)]
        };
        epochs.set_tenants(wanted(Some(80)), 110.0).expect("fits");
        assert_eq!(quotas(&epochs), [10, 2]);
        let after = epochs.standings();
        assert_eq!(after[0].decision.mode.write, WritePolicy::ReadOnly);
        assert_eq!(after[1], before[1]);
        let allocator = larder_alloc::by_name("static").expect("known");
        let tenants = vec![tenant("t0", None), tenant("t1", None)];
        let mut fixed = EpochLoop::new(config(100), allocator, tenants).expect("fits");
        fixed.set_tenants(wanted(Some(80)), 10.0).expect("fits");
        assert_eq!(quotas(&fixed), [80, 20]);
        assert_eq!(fixed.standings()[1].decision.reason, "20 blocks as configured now");
    }

    #[test]
    fn a_configured_replacement_stands() {
        let caching = "arc".parse().expect("known");
        let mine = LoopTenant { caching: Some(caching), ..tenant("mine", None) };
        let allocator = larder_alloc::by_name("larder").expect("known");
        let epochs = EpochLoop::new(config(100), allocator, vec![mine, tenant("free", None)]).expect("fits");
        let seen: Vec<_> = epochs.standings().iter().map(|it| it.decision.mode.caching.to_string()).collect();
        assert_eq!(seen, ["arc", "s3-fifo"]);
    }

    #[test]
    fn movers_come_five_times_in_an_epoch_where_a_partition_is_filled_by_one() {
        let allocator = larder_alloc::by_name("eci").expect("known");
        let by_mover = LoopTenant { batched: Some(true), ..tenant("a", None) };
        let mut epochs =
            EpochLoop::new(config(100), allocator, vec![by_mover, tenant("b", None)]).expect("fits");
        let batched: Vec<_> = epochs.standings().iter().map(|standing| standing.batched).collect();
        assert_eq!((batched, epochs.due_seconds()), (vec![true, false], 20.0));
        assert!(!epochs.movers_come(19.0));
        assert!(epochs.movers_come(20.0));
        assert_eq!(epochs.due_seconds(), 40.0);
        // Centaur's are for all tenants but those that say otherwise.
        let centaur = larder_alloc::by_name("centaur").expect("known");
        epochs.switch(centaur, Duration::from_secs(50), 20.0).expect("fits");
        assert!(epochs.standings().iter().all(|standing| standing.batched));
        assert_eq!(epochs.due_seconds(), 30.0);
        let by_misses = LoopTenant { batched: Some(false), ..tenant("b", None) };
        epochs.set_tenants(vec![by_misses], 20.0).expect("fits");
        assert!(!epochs.standings()[0].batched);
    }
}
