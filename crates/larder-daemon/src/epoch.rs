//! The deciding part of the loop of an epoch, as a host needs it: requests and what was measured in, sizes and modes of all tenants out.
//!
//! Decisions are those of [`ControlLoop`], which the simulator runs over traces as well. What is added here is that tenants are known by the place in a list that
//! changes, that they may begin with what they hold, and that each decision is kept beside what came of it ([`crate::decisions`]). It knows no clock, thread or device;
//! what surrounds it in the daemon is in [`crate::analyzer`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use larder_alloc::control::{
    BANK_BLOCKS, BudgetPeriod, BudgetRhythm, BudgetView, ControlConfig, ControlLoop, ControlTenant, Kind,
    Limit, Offers, Shaped, Spent, Terms, WriteBudget,
};
use larder_alloc::{
    AllocError, Allocator, CacheUse, ConfiguredPolicy, Decision, Goals, Latencies, Layout, Measured,
    Objective, Profile, Timed,
};
use larder_engine::{Sharing, Watermarks};
use larder_locality::{Op, Sampling, block_keys, blocks_of};
use larder_policy::spec::CachingSpec;

use crate::actuator::{Arrangement, Step};
use crate::decisions::{Achieved, Decisions, Found, Record};
use crate::record::account::{DecidedTenant, MeasuredRequests, WrittenSsd};

use log::LoopLog;

mod changes;
pub mod explore;
pub mod log;
#[cfg(test)]
mod tests;

/// Blocks of a tenant that its analyzer looks at, at most: a tenant with fewer is analyzed exactly, a larger one from a
/// sample of this size, in some two megabytes.
pub const SAMPLED_BLOCKS: u32 = 1 << 15;

/// Movers come so many times in an epoch: every minute of Centaur's five (section IX).
const MOVES: f64 = 5.0;

/// A request of a tenant, as the monitor saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Which kind of request its tenant's door took it for, where there are doors.
    pub asked: Kind,
    /// When it came, since the loop began.
    pub seconds: f64,
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
    /// Blocks that it may hold, however many are free.
    fn most(&self) -> u32 {
        self.goals.max_blocks.unwrap_or(u32::MAX)
    }

    /// Blocks that it keeps, however seldom it hits them, and that it may hold, however many are free.
    fn bounds(&self) -> (u32, u32) {
        (self.goals.keeps(), self.most())
    }

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
    log: LoopLog,
    /// When movers come next, in seconds.
    movers_due: f64,
    /// What tenants had offered to the SSD when they were asked last, by their places in the control loop.
    offers: HashMap<usize, Box<Offers>>,
    /// What requests took since the last decision as far as offers told it, by the loop's number of their tenant.
    shaped: HashMap<usize, Box<Shaped>>,
    /// What was written to the SSD since the start, as told last where there is a budget; and at the last decision.
    written: WrittenSsd,
    decided_written: WrittenSsd,
}

/// A tenant's place in the control loop, and what was reported of it.
#[derive(Clone, Copy, Debug)]
struct Seat {
    at: usize,
    /// Last, which the loop has absorbed; and for the last decision. Whoever was not heard of yet began with nothing.
    report: Report,
    at_decision: Report,
    /// What it has written, and what it might not: as told last, and at the last decision.
    spent: Option<Spent>,
    decided: Spent,
}

impl Seat {
    fn new(at: usize) -> Self {
        let report = Report::default();
        Self { at, report, at_decision: report, spent: None, decided: Spent::default() }
    }
}

/// What reactors tell of what was written to the SSD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SsdSpending {
    /// By tenant, in their order; nothing of one that its reactor does not know.
    pub tenants: Vec<Option<Spent>>,
    /// Bytes of all tenants since the start, those that have left among them.
    pub bytes: u64,
    /// Bytes of the cache's own records since the start.
    pub record_bytes: u64,
}

/// How far tenants may go with what they write to the SSD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// Each, by their places in the list. Those of which nothing is known are left out.
    Each(Vec<(usize, Limit)>),
    /// All together, as [`SsdSpending::bytes`] counts.
    All(u64),
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
        let log = LoopLog::default();
        let offers = HashMap::new();
        let (written, decided_written) = Default::default();
        let mut new = Self {
            config,
            control,
            tenants,
            seats,
            standings,
            decisions,
            log,
            movers_due,
            offers,
            shaped: HashMap::new(),
            written,
            decided_written,
        };
        new.keep_to_most();
        new.stand();
        Ok(new)
    }

    /// What the SSD may be written from now on.
    pub fn set_budget(&mut self, budget: Option<WriteBudget>, now: f64) {
        self.config.budget = budget;
        self.control.set_budget(budget, now);
        self.forget_offers();
    }

    /// Doors that are taken away count anew when they come again.
    fn forget_offers(&mut self) {
        if !self.prices() {
            self.offers.clear();
        }
    }

    /// So many bytes of the budget were written already in a period that began so many seconds before the start, may be over since, and was the `first` one or not; and what was kept of when what came.
    pub fn resume_budget(
        &mut self,
        written_bytes: f64,
        since_seconds: f64,
        first: bool,
        rhythm: Option<&BudgetRhythm>,
    ) {
        self.control.resume_budget(written_bytes, since_seconds, first, rhythm);
    }

    /// What came in the budget's periods up to now, and when.
    pub fn budget_rhythm(&self, now: f64) -> Option<BudgetRhythm> {
        self.control.budget_rhythm(now)
    }

    /// The budget's period that is under way.
    pub fn budget_period(&self) -> Option<BudgetPeriod> {
        self.control.budget_period()
    }

    /// How far the budget is used up, where there is one.
    pub fn budget(&self, now: f64) -> Option<BudgetView> {
        self.control.budget_view(now)
    }

    /// How far tenants may go with what they write to the SSD: all of them `together` if that can be held, and their doors say what of it is whose. `None` where there is no budget.
    pub fn grant(&mut self, now: f64, spending: &SsdSpending, together: bool) -> Option<Granted> {
        let mut told = Vec::with_capacity(self.seats.len());
        let mut indices = Vec::with_capacity(self.seats.len());
        for (index, (seat, spent)) in self.seats.iter_mut().zip(&spending.tenants).enumerate() {
            let Some(spent) = *spent else { continue };
            seat.spent = Some(spent);
            told.push((seat.at, spent));
            indices.push(index);
        }
        self.written = WrittenSsd { data_bytes: spending.bytes, record_bytes: spending.record_bytes };
        if together && self.prices() {
            let room = self.control.grant_all(now, &told, spending.record_bytes)?;
            return Some(Granted::All(spending.bytes.saturating_add(room)));
        }
        let limits = self.control.grant(now, &told, spending.record_bytes)?;
        Some(Granted::Each(
            indices.into_iter().zip(limits).map(|(index, (_, limit))| (index, limit)).collect(),
        ))
    }

    /// True where writes to the SSD have a price, so that tenants have doors.
    pub fn prices(&self) -> bool {
        self.control.prices()
    }

    /// True where a look or a decision at `now` finds prices anew, by what tenants have offered until then.
    pub fn finds_prices(&self, now: f64) -> bool {
        self.control.finds_prices(now)
    }

    /// What the tenants have offered to the SSD since they have doors, in their order: what is new of it counts when prices are found next.
    pub fn absorb_offers(&mut self, offers: Vec<Option<Box<Offers>>>) {
        for (seat, offers) in self.seats.iter().zip(offers) {
            let Some(offers) = offers else { continue };
            let before = self.offers.get(&seat.at);
            let new =
                before.map_or_else(|| Cow::Borrowed(&*offers), |before| Cow::Owned(offers.since(before)));
            self.control.absorb_offers(seat.at, &new);
            let shaped = self.shaped.entry(seat.at).or_default();
            for (took, more) in shaped.iter_mut().flatten().zip(new.took.iter().flatten()) {
                *took = Timed { count: took.count + more.count, seconds: took.seconds + more.seconds };
            }
            self.offers.insert(seat.at, offers);
        }
    }

    /// On what terms the tenants' requests enter, by their places in the list.
    pub fn terms(&self) -> Vec<(usize, Box<Terms>)> {
        let terms =
            |(index, seat): (usize, &Seat)| Some((index, Box::new(self.control.terms(seat.at)?.clone())));
        self.seats.iter().enumerate().filter_map(terms).collect()
    }

    /// What chooses the blocks of samples.
    pub fn seed(&self) -> u64 {
        self.config.seed
    }

    /// A request. One of an unknown tenant is ignored. Takes time in the number of blocks that it touches.
    pub fn observe(&mut self, access: &Access) {
        let Some(seat) = self.seats.get(access.tenant) else { return };
        let blocks = blocks_of(access.offset, access.len, self.config.block_bytes);
        let keys = block_keys(access.volume, blocks);
        if matches!(access.op, Op::Read | Op::Write) {
            self.control.asked(seat.at, access.asked, keys.clone(), access.seconds);
        }
        if self.control.observe(seat.at, access.op, keys) {
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

    /// Tenants whose rates have changed: what was measured of all is to be reported when they are looked at.
    pub fn changed(&self, now: f64) -> Vec<usize> {
        self.control.changed(now)
    }

    /// What is due without a decision: by what `reports` say that tenants hold, if there are any. Those that have [`changed`](Self::changed) are measured anew from these reports on.
    pub fn look(&mut self, now: f64, changed: &[usize], reports: &[Option<Report>]) {
        let held = Some(self.held_blocks(reports)).filter(|_| !reports.is_empty());
        if changed.is_empty() {
            self.control.look(now, changed, held);
        } else {
            let measured = self.absorb(reports);
            self.control.look(now, changed, held);
            let renewed: Vec<bool> = self.seats.iter().map(|seat| changed.contains(&seat.at)).collect();
            let (written, measured) = (self.written_since(), self.requests_since(&measured));
            self.log.renewed(now, &self.tenants, &self.standings, &measured, &renewed, written);
        }
    }

    /// What tenants hold in all: of those of whom there is no report, what they held by the last one.
    fn held_blocks(&mut self, reports: &[Option<Report>]) -> u64 {
        for (seat, report) in self.seats.iter_mut().zip(reports) {
            if let Some(report) = report {
                seat.report.usage = report.usage;
            }
        }
        self.seats.iter().map(|seat| u64::from(seat.report.usage.resident_blocks)).sum()
    }

    /// What was written to the SSD since the last time.
    fn written_since(&mut self) -> WrittenSsd {
        let before = std::mem::replace(&mut self.decided_written, self.written);
        WrittenSsd {
            data_bytes: self.written.data_bytes.saturating_sub(before.data_bytes),
            record_bytes: self.written.record_bytes.saturating_sub(before.record_bytes),
        }
    }

    /// What was measured of the tenants since the last time, as it is told to those who record.
    fn requests_since(&mut self, measured: &[Measured]) -> Vec<MeasuredRequests> {
        let told = |(seat, measured): (&Seat, &Measured)| {
            let told = MeasuredRequests::of(measured);
            match self.shaped.remove(&seat.at) {
                Some(shaped) => told.with_shapes(&shaped),
                None => told,
            }
        };
        self.seats.iter().zip(measured).map(told).collect()
    }

    /// What was reported of tenants counts for the next decision: what is new of it, by tenant.
    fn absorb(&mut self, reports: &[Option<Report>]) -> Vec<Measured> {
        let mut measured = vec![Measured::default(); self.seats.len()];
        for ((seat, report), new) in self.seats.iter_mut().zip(reports).zip(&mut measured) {
            let Some(report) = report else { continue };
            *new = report.measured.since(&std::mem::replace(&mut seat.report, *report).measured);
            self.control.absorb(seat.at, new);
        }
        measured
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
        let measured = self.absorb(reports);
        for (at, seat) in self.seats.iter_mut().enumerate() {
            let Some(Some(report)) = reports.get(at) else {
                // Its blocks are not free. What it did counts when that is told.
                usages[seat.at] = seat.report.usage.held();
                continue;
            };
            let before = std::mem::replace(&mut seat.at_decision, *report);
            let since = report.measured.since(&before.measured);
            usages[seat.at] = report.usage;
            usages[seat.at].missed_blocks =
                report.usage.missed_blocks.saturating_sub(before.usage.missed_blocks);
            self.decisions.achieved(&self.tenants[at].name, &Achieved::of(&since, report, unix_seconds));
        }
        let decided = self.control.decide(now, &usages).map(|_| ());
        if decided.is_ok() {
            self.say_what_was_refused();
        }
        self.stand();
        let (written, measured) = (self.written_since(), self.requests_since(&measured));
        self.log.decided(now, &self.tenants, &self.standings, &measured, written);
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
                overtaken: false,
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

    /// The last decisions about all tenants together, for those who record.
    pub fn log(&self) -> &LoopLog {
        &self.log
    }

    /// Where every tenant stands, for those who record.
    pub fn stands(&self) -> Vec<DecidedTenant> {
        log::stands(&self.tenants, &self.standings, &[])
    }

    /// Who decides.
    pub fn allocator(&self) -> &'static str {
        self.control.allocator()
    }

    /// What tenants keep at least, and may hold at most, of those for whom it is not what it was before for who had their name.
    pub fn bounds(&self, before: &[LoopTenant]) -> Vec<Step> {
        let of = |name: &str| {
            let tenant = before.iter().find(|tenant| tenant.name == name);
            tenant.map_or((0, u32::MAX), LoopTenant::bounds)
        };
        let others =
            self.tenants.iter().enumerate().filter(|(_, tenant)| of(&tenant.name) != tenant.bounds());
        let step = |(at, tenant): (usize, &LoopTenant)| {
            let (least, most) = tenant.bounds();
            Step::Bounds { tenant: at, least, most }
        };
        others.map(step).collect()
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
            lending: profile.layout == Layout::Lending,
            watermarks: self.watermarks(),
            sharing,
            watches_hits: self.control.needs().effective,
            stream_bypass: profile.bypass_sequential_bytes,
            doors: self.control.prices().then_some(self.config.cache_blocks),
        }
    }

    /// Where a cleaner keeps blocks free: when it begins, and when it ends.
    fn watermarks(&self) -> Option<Watermarks> {
        let blocks = |share: f64| (f64::from(self.config.cache_blocks) * share).ceil() as u32;
        match self.control.profile().layout {
            Layout::Pooled { low, high } => Some(Watermarks { low: blocks(low), high: blocks(high) }),
            _ => None,
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
        self.control.profile().fixed_quotas
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
            let turned_away = spent.turned_away_blocks.saturating_sub(before.turned_away_blocks);
            if refused + diverted + turned_away == 0 {
                continue;
            }
            let Decision { quota_blocks, reason, .. } = &self.control.positions()[seat.at].decision;
            let (quota, mut reason) = (*quota_blocks, reason.clone());
            let kept_out = refused + turned_away;
            reason +=
                &format!("; since the last decision the budget of SSD writes kept {kept_out} blocks out");
            if turned_away > 0 {
                reason += &format!(" ({turned_away} of them since others gain more by a write)");
            }
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
            if position.is_provisional() {
                decision.predicted = None;
            }
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
        for (tenant, seat) in self.tenants.iter().zip(&self.seats) {
            if self.control.positions()[seat.at].is_provisional() {
                self.decisions.overtaken(&tenant.name);
            }
        }
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
