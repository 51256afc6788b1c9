//! The loop of an epoch without what surrounds it: requests and their latencies in, decisions out.
//!
//! The simulator and the daemon run the same loop. It knows no clock: the caller says when a request took place and asks when the
//! next decision is due ([`ControlLoop::due_seconds`]). What an allocator needs to have observed ([`Needs`]) is
//! observed, and nothing else.
//!
//! What is counted of a tenant fades by the method's `memory` ([`Profile`]) from one whole epoch to the next: by 0, and is forgotten, with most; by less where it goes round for
//! longer than an epoch (`rounds`), by more where it has a reservation. What was measured is that of the epoch alone, but that latencies of which there are few are mixed with those before.
//! An allocator that learns quickly is also asked after a sixteenth, an eighth, a quarter and a half of an epoch from the
//! arrival of a tenant. One that suddenly issues three times the requests per second that were decided by is taken for a newcomer too: what was counted of it
//! before does not count any more (but its blocks keep their history).

use std::ops::Range;

use larder_locality::{Op, Sampling};

use crate::{
    AllocError, Allocator, CacheUse, ConfiguredPolicy, Constraints, Decision, Findings, Goals, Latencies,
    Layout, Measured, Mode, Needs, Objective, Profile, Static, Tenant, WritePolicy,
};
use allowance::Heard;
use budget::{Pace, Part};
use gate::{Gate, Room, Writes};
use observer::Observer;

mod allowance;
mod budget;
mod dry_run;
mod gate;
mod live;
mod observer;
mod room;
mod rounds;

pub use allowance::{BudgetPeriod, BudgetView, GRANT_ALL_SECONDS, GRANT_SECONDS, Limit, Spent};
pub use budget::{BudgetRhythm, CameBlocks, WriteBudget};
pub use dry_run::{DryRunError, Outlook, Prospect};
pub use gate::{Offer, Offers, Shaped};
pub use larder_policy::doors::{Kind, Terms};

/// Blocks of a tenant that are looked at, at most.
pub const SAMPLE_BLOCKS: u32 = 1 << 12;

/// Blocks of the largest of the caches that are simulated in miniature, at most.
pub const BANK_BLOCKS: u32 = 1 << 10;

/// Parts of an epoch after which a newcomer is decided about.
const EARLY: [f64; 4] = [1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0];

/// Looks at the tenants' rates in an epoch.
const LOOKS: f64 = 16.0;

/// What is due within such a part of the time between two looks is due at once.
const NEAR: f64 = 0.25;

/// Prices are found anew after so many seconds at the earliest: that takes a good part of a millisecond for each tenant that is busy.
const PRICE_SECONDS: f64 = 0.9;

/// Nor are they before so many requests came for each tenant that is not idle: fewer change them by little, and to find them takes a simulation about as long as to serve that many.
const PRICE_REQUESTS: u64 = 64;

/// A load is taken to have lasted so long at least, or an epoch where that is shorter: it is known by then what it offers to the SSD, and it may last no longer than a few minutes, however long epochs are.
const LOAD_SECONDS: f64 = 10.0;

/// What is left of what was offered to the SSD until the last look: about an epoch counts.
const FADE: f64 = 1.0 - 1.0 / LOOKS;

/// Of the ages of blocks that are told apart the youngest is such a part of an epoch.
const UNITS: f64 = 64.0;

/// What was counted of a tenant with a reservation weighs so much in the next epoch at most: first accesses of the epochs before, which do not come again, would have it promised less than it
/// can have, and a reservation is to be kept within a few epochs.
const RESERVED_MEMORY: f64 = 0.2;

/// What the loop knows of the cache from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlConfig {
    /// Bytes in a block.
    pub block_bytes: u32,
    /// Blocks of the cache.
    pub cache_blocks: u32,
    /// The least that a tenant gets, in blocks, while the cache has that much for everybody.
    pub min_blocks: u32,
    /// The share of writes to known blocks from which `auto` means `ro`, from 0 to 1.
    pub write_threshold: f64,
    /// The cache can hold dirty blocks.
    pub write_back: bool,
    /// What is to be minimised, where the allocator lets that be chosen.
    pub objective: Objective,
    /// What the SSD may be written.
    pub budget: Option<WriteBudget>,
    /// Seconds between decisions.
    pub epoch_seconds: f64,
    /// What requests take before any was measured.
    pub nominal: Latencies,
    /// Which blocks the analyzers look at.
    pub sampling: Sampling,
    /// Blocks of the largest miniature cache.
    pub bank_blocks: u32,
    /// Chooses the blocks of the samples.
    pub seed: u64,
}

/// What the loop knows of a tenant from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlTenant {
    /// Its name.
    pub name: String,
    /// The quota configured, in blocks, if there is one.
    pub quota_blocks: Option<u32>,
    /// The write policy configured.
    pub write_policy: ConfiguredPolicy,
    /// What else is wanted for it.
    pub goals: Goals,
}

/// What served a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// The SSD alone, a read.
    ReadHit,
    /// The backing, a read.
    ReadMiss,
    /// The SSD alone, a write.
    CachedWrite,
    /// The backing, a write.
    BackingWrite,
}

/// Where a tenant stands since the last decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// What was decided; a tenant that is not there has no blocks.
    pub decision: Decision,
    /// What was found at that decision.
    pub findings: Option<Findings>,
    /// The tenant is there.
    pub present: bool,
    /// Blocks that were decided: it may have others until the next decision.
    pub decided_blocks: u32,
}

impl Position {
    /// Others have come or gone since, or its limits are others: what was predicted is not of the size that it has.
    pub fn is_provisional(&self) -> bool {
        self.decision.quota_blocks != self.decided_blocks
    }
}

/// The loop: monitors and analyzers of all tenants, and the allocator.
pub struct ControlLoop {
    config: ControlConfig,
    profile: Profile,
    allocator: Box<dyn Allocator + Send>,
    /// What is observed for it.
    needs: Needs,
    tenants: Vec<ControlTenant>,
    observers: Vec<Observer>,
    /// Tenants that are gone for good: their numbers are free.
    removed: Vec<usize>,
    positions: Vec<Position>,
    pace: Option<Pace>,
    /// What each tenant may write, where there is a budget.
    parts: Vec<Part>,
    /// What deserves to be written, where there is a budget and the method prices writes.
    gate: Option<Gate>,
    /// What is written is told by and by ([`Self::grant`]).
    granting: bool,
    /// What was told last.
    heard: Heard,
    /// Of the cache's own records, for each block of data.
    record_share: f64,
    /// When the next whole epoch ends.
    epoch_end: f64,
    /// When was decided last.
    decided: Option<f64>,
    /// Decisions before that, in rising order.
    early: Vec<f64>,
    /// When the tenants' rates are looked at next, and prices found.
    look: f64,
    /// Prices are to be found whatever came.
    unpriced: bool,
    /// Requests since they were found.
    asked: u64,
    epoch: u64,
}

impl ControlLoop {
    /// A loop at its start, at 0 seconds, without any tenant being there.
    pub fn new(
        config: ControlConfig,
        allocator: Box<dyn Allocator + Send>,
        profile: Profile,
        tenants: Vec<ControlTenant>,
    ) -> Self {
        let needs = needs(&*allocator, &config, tenants.iter());
        let observers = (0..).zip(&tenants).map(|(at, _)| Observer::new(&config, &needs, at)).collect();
        let nothing =
            Decision { quota_blocks: 0, mode: profile.mode, predicted: None, reason: String::new() };
        let absent = Position { decision: nothing, findings: None, present: false, decided_blocks: 0 };
        let positions = vec![absent; tenants.len()];
        let unit = least_load_seconds(&config, &profile);
        let pace = config.budget.map(|budget| Pace::new(budget, config.block_bytes, unit, 0.0));
        let parts = vec![Part::default(); tenants.len()];
        let gate = gate(&config, &profile, tenants.len(), 0.0);
        let epoch_end = config.epoch_seconds;
        let look = if profile.learns_quickly { epoch_end / LOOKS } else { f64::INFINITY };
        let early = Vec::new();
        Self {
            config,
            profile,
            allocator,
            needs,
            tenants,
            observers,
            removed: Vec::new(),
            positions,
            pace,
            parts,
            gate,
            granting: false,
            heard: Heard::default(),
            record_share: 0.0,
            epoch_end,
            decided: None,
            early,
            look,
            unpriced: true,
            asked: 0,
            epoch: 0,
        }
    }

    /// Tenants have come at `now`. Until the next decision each has its configured quota, or else an equal part of what is divided of the cache, for which those that were there
    /// before give up blocks in proportion to what they have, but not their least. Where quotas are fixed they are what is configured. The allocator is not asked. What was observed for tenants that are [removed](Self::remove) alone is not any more.
    ///
    /// # Errors
    /// When the configured quotas exceed the cache.
    pub fn arrive(&mut self, tenants: &[usize], now: f64) -> Result<&[Position], AllocError> {
        // Not when somebody is removed: in the same moment somebody else may come for whom as much is needed.
        self.observe_what_is_needed(now);
        if tenants.is_empty() {
            // Whether something else is wanted of those who are there was told before (`change`).
            return Ok(&self.positions);
        }
        for &tenant in tenants {
            let Some(position) = self.positions.get_mut(tenant) else { continue };
            position.present = true;
            self.parts[tenant] = Part::default();
            position.decision.mode =
                first_mode(&self.profile, &self.config, self.tenants[tenant].write_policy);
            self.observers[tenant].restart(now);
            if let Some(gate) = &mut self.gate {
                gate.restart(tenant, now);
            }
        }
        self.learn_quickly(now);
        let constraints = self.constraints();
        // What all share is not divided.
        let cache_blocks = match self.profile.layout {
            Layout::Combined { partitioned } => (f64::from(constraints.cache_blocks) * partitioned) as u32,
            _ => constraints.cache_blocks,
        };
        let constraints = Constraints { cache_blocks, ..constraints };
        let (there, inputs) = self.inputs(&[]);
        // Those who were there before are asked to make room in proportion to what they have: a newcomer's part is what it would be of an equal division.
        let equal = Static.allocate(&inputs, &constraints)?;
        let names: Vec<_> = there.iter().map(|&at| tenants.contains(&at)).collect();
        let quotas = match self.profile.fixed_quotas {
            true => equal.iter().map(|decision| decision.quota_blocks).collect(),
            false => room::make(&inputs, &equal, &names, cache_blocks),
        };
        for ((&at, quota), equal) in there.iter().zip(quotas).zip(equal) {
            let is_new = tenants.contains(&at);
            let decision = &mut self.positions[at].decision;
            let is_other = decision.quota_blocks != quota && self.profile.layout != Layout::Unified;
            if is_new || is_other {
                let equal = (is_new || self.profile.fixed_quotas).then_some(equal);
                decision.reason = room::reason(decision.quota_blocks, quota, equal);
            }
            decision.quota_blocks = quota;
        }
        Ok(&self.positions)
    }

    /// A tenant is gone: its blocks are free from now on.
    pub fn leave(&mut self, tenant: usize) {
        if let Some(position) = self.positions.get_mut(tenant) {
            position.present = false;
            position.decision.quota_blocks = 0;
            position.decision.predicted = None;
            position.findings = None;
        }
    }

    /// A tenant's request for blocks with consecutive keys. True when so many are gathered that [`Self::analyze`] had better be called, in a moment
    /// when nobody waits.
    #[inline]
    pub fn observe(&mut self, tenant: usize, op: Op, keys: Range<u64>) -> bool {
        self.observers.get_mut(tenant).is_some_and(|observer| observer.observe(op, keys))
    }

    /// A mover has filled the tenants' caches: what it would have moved counts from now on ([`Op::Populate`]).
    pub fn populate(&mut self) {
        for (observer, position) in self.observers.iter_mut().zip(&self.positions) {
            if position.present {
                observer.observe(Op::Populate, 0..0);
            }
        }
    }

    /// Analyze the requests of a tenant that were gathered.
    pub fn analyze(&mut self, tenant: usize) {
        if let Some(observer) = self.observers.get_mut(tenant) {
            observer.analyze();
        }
    }

    /// A tenant's request was served, and took so many seconds.
    #[inline]
    pub fn served(&mut self, tenant: usize, by: ServedBy, seconds: f64) {
        if let Some(observer) = self.observers.get_mut(tenant) {
            observer.served(by, seconds);
        }
    }

    /// Dirty blocks of a tenant left and are written back, and a request of it waited so many seconds for that.
    #[inline]
    pub fn written_back(&mut self, tenant: usize, blocks: u64, seconds: f64) {
        if let Some(observer) = self.observers.get_mut(tenant) {
            observer.written_back(blocks, seconds);
        }
        if let Some(gate) = &mut self.gate {
            gate.waited(tenant, blocks, seconds);
        }
    }

    /// Blocks of a tenant were written to the SSD.
    #[inline]
    pub fn ssd_written(&mut self, tenant: usize, blocks: u64) {
        if let Some(observer) = self.observers.get_mut(tenant) {
            observer.ssd_written(blocks);
        }
        if let Some(pace) = &mut self.pace {
            pace.written(blocks as f64 * (1.0 + self.record_share));
            if let Some(part) = self.parts.get_mut(tenant) {
                part.written(blocks);
            }
        }
    }

    /// May blocks of a tenant be written to the SSD at `now`, or is the budget, or its part of it, used up for the time being?
    #[inline]
    fn may_write(&self, tenant: usize, now: f64) -> bool {
        let Some(pace) = &self.pace else { return true };
        pace.open(now) && self.parts.get(tenant).is_none_or(|part| part.open(now))
    }

    /// A tenant's request for these blocks comes at `now`: of which kind it is, and whether what misses of it may be written to the SSD.
    pub fn ask(&mut self, tenant: usize, write: bool, keys: &[u64], now: f64) -> (Kind, bool) {
        let may = self.may_write(tenant, now);
        match &mut self.gate {
            Some(gate) => {
                let (kind, enters) = gate.ask(tenant, write, keys, now);
                (kind, enters && may)
            }
            None => (Kind::default(), may),
        }
    }

    /// A request of a `kind` that was told by [`Self::ask`] was served, took so many seconds, and wrote so many blocks to the SSD, or would have.
    #[inline]
    pub fn offered(&mut self, tenant: usize, kind: Kind, by: ServedBy, blocks: Offer, seconds: f64) {
        if let Some(gate) = &mut self.gate {
            gate.served(tenant, kind, by, blocks, seconds);
        }
    }

    /// A tenant's request for these blocks came at `now`, where doors are elsewhere ([`Self::granting`]); there it was found to be of this kind.
    pub fn asked(&mut self, tenant: usize, kind: Kind, keys: Range<u64>, now: f64) {
        if let Some(gate) = &mut self.gate {
            // A request has far fewer blocks than memory can count.
            let blocks = (keys.end - keys.start) as usize;
            gate.observe(tenant, kind, (0..blocks).map(|at| keys.start + at as u64), now);
        }
    }

    /// What a tenant offered to the SSD since the last time, likewise.
    pub fn absorb_offers(&mut self, tenant: usize, offers: &Offers) {
        if let Some(gate) = &mut self.gate {
            gate.absorb(tenant, offers);
        }
    }

    /// On what terms a tenant's requests enter, by kind, where writes are priced: since the last [look](Self::look).
    pub fn terms(&self, tenant: usize) -> Option<&Terms> {
        self.gate.as_ref()?.terms(tenant)
    }

    /// True where writes to the SSD are priced.
    pub fn prices(&self) -> bool {
        self.gate.is_some()
    }

    /// Price what is offered to the SSD, now that tenants hold so many blocks.
    fn price(&mut self, now: f64, held_blocks: u64) {
        let Some(gate) = &mut self.gate else { return };
        let free = u64::from(self.config.cache_blocks).saturating_sub(held_blocks);
        let write = |position: &Position| position.present.then_some(position.decision.mode.write);
        let writes: Vec<_> = self.positions.iter().map(write).collect();
        // A decision may come soon after a look, and where epochs are short not every look finds prices.
        let looks = gate.since_priced(now) / (self.config.epoch_seconds / LOOKS);
        let (cache_blocks, fade) = (self.config.cache_blocks, FADE.powf(looks));
        if let Some(pace) = &mut self.pace {
            pace.offered(&gate.offered(&writes), now);
        }
        let may = self.pace.as_ref().map_or(Writes::ANY, |pace| pace.writes(now, self.config.epoch_seconds));
        // Where hardly anybody asked for anything prices stay.
        let enough = PRICE_REQUESTS * gate.busy(&writes).max(1);
        match std::mem::take(&mut self.unpriced) || self.asked >= enough {
            true => {
                self.asked = 0;
                gate.price(now, may, Room { cache_blocks, free }, fade, &writes);
            }
            false => gate.wait(now, may.period, fade, &writes),
        }
    }

    /// Blocks that may be written to the SSD at `now`, for those who write many at once.
    pub fn blocks_to_write(&self, now: f64) -> u64 {
        self.pace.as_ref().map_or(u64::MAX, |pace| pace.room(now))
    }

    /// When something is due: a decision, a look at the tenants' rates, or the begin of another period of the budget.
    pub fn due_seconds(&self) -> f64 {
        self.decision_seconds().min(self.look_seconds())
    }

    /// When something other than a decision is due.
    pub fn look_seconds(&self) -> f64 {
        let period_end = self.pace.as_ref().map_or(f64::INFINITY, Pace::period_end);
        self.rates_seconds().min(period_end)
    }

    /// When the rates are looked at. A decision looks at them, too: what is due about the same time is left to it, so that it does not matter which of the two comes first by a hair.
    fn rates_seconds(&self) -> f64 {
        let is_near = (self.look - self.decision_seconds()).abs() < self.near();
        if is_near { f64::INFINITY } else { self.look }
    }

    /// True if a decision is due ([`Self::decide`]); otherwise [`Self::look`] does what is due.
    pub fn must_decide(&self, now: f64) -> bool {
        now >= self.decision_seconds()
    }

    fn decision_seconds(&self) -> f64 {
        self.early.first().copied().unwrap_or(f64::INFINITY).min(self.epoch_end)
    }

    /// Decisions are due soon. One that would come about the same time as another is left to that: tenants that come one after the other are decided about together.
    fn learn_quickly(&mut self, now: f64) {
        if !self.profile.learns_quickly {
            return;
        }
        for due in EARLY.map(|part| now + part * self.config.epoch_seconds) {
            let is_near = |other: f64| (other - due).abs() < self.near();
            if !is_near(self.epoch_end) && !self.early.iter().any(|&other| is_near(other)) {
                self.early.push(due);
            }
        }
        self.early.sort_by(f64::total_cmp);
    }

    /// What is no further apart is due about the same time.
    fn near(&self) -> f64 {
        self.config.epoch_seconds / LOOKS * NEAR
    }

    /// Nobody has asked for anything for long, nor will before `until`: epochs that end before the last one then are over without a decision, and count for nothing in what is measured. False where there is none.
    pub fn pass_over(&mut self, until: f64) -> bool {
        let epochs = ((until - self.epoch_end) / self.config.epoch_seconds).floor();
        if epochs.is_nan() || epochs < 1.0 {
            return false;
        }
        self.epoch_end += epochs * self.config.epoch_seconds;
        self.epoch += epochs as u64;
        self.early.retain(|&due| due > self.epoch_end);
        self.look = self.look.max(self.epoch_end);
        if let Some(pace) = &mut self.pace {
            pace.turn(self.epoch_end);
        }
        let seconds = epochs * self.config.epoch_seconds;
        self.decided = self.decided.map(|decided| decided + seconds);
        self.observers.iter_mut().for_each(|it| it.pass_over(seconds));
        if let Some(gate) = &mut self.gate {
            gate.pass_over(self.epoch_end, self.pace.as_ref().map(Pace::whole_period));
        }
        true
    }

    /// Tenants that do far more than what was decided by, if it is time to look at their rates.
    pub fn changed(&self, now: f64) -> Vec<usize> {
        if now < self.rates_seconds() {
            return Vec::new();
        }
        let observed = self.positions.iter().zip(&self.observers).enumerate();
        observed
            .filter(|(_, (it, observer))| it.present && observer.has_changed(now))
            .map(|(at, _)| at)
            .collect()
    }

    /// What is due without a decision: another period of the budget begins, or the rates of the tenants that are there are looked at. Those that have changed
    /// ([`Self::changed`], after which all that was measured so far is to be absorbed) are learned anew, and decisions are due soon. `held_blocks` of the cache are tenants'; where that is not known
    /// no prices are found.
    pub fn look(&mut self, now: f64, changed: &[usize], held_blocks: Option<u64>) {
        if let Some(pace) = &mut self.pace {
            pace.turn(now);
        }
        if now >= self.rates_seconds() {
            self.look_at_rates(now, held_blocks);
        }
        for &at in changed {
            if let Some(observer) = self.observers.get_mut(at) {
                observer.restart(now);
            }
        }
        if !changed.is_empty() {
            self.learn_quickly(now);
        }
    }

    /// True where a look or a decision at `now` finds prices anew.
    pub fn finds_prices(&self, now: f64) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.since_priced(now) >= PRICE_SECONDS)
    }

    fn look_at_rates(&mut self, now: f64, held_blocks: Option<u64>) {
        self.asked += self.observers.iter().map(Observer::since_look).sum::<u64>();
        if let Some(held_blocks) = held_blocks.filter(|_| self.finds_prices(now)) {
            self.price(now, held_blocks);
        }
        self.look = now + self.config.epoch_seconds / LOOKS;
        self.observers.iter_mut().for_each(|observer| observer.looked(now));
    }

    /// Decide for all tenants that are there. `usages` tells by tenant how it uses its cache; those that it does not reach hold what they did at the last decision.
    ///
    /// # Errors
    /// When the allocator cannot decide; then every tenant keeps what it has, and the epoch counts all the same.
    pub fn decide(&mut self, now: f64, usages: &[CacheUse]) -> Result<&[Position], AllocError> {
        let whole = now >= self.epoch_end;
        while self.epoch_end <= now {
            self.epoch_end += self.config.epoch_seconds;
        }
        self.early.retain(|&due| due > now);
        self.epoch += u64::from(whole);
        if let Some(pace) = &mut self.pace {
            pace.turn(now);
        }
        // Of whom nothing is told now, what was told last: its blocks are not free.
        let known = (usages.len()..self.tenants.len()).map(|at| self.last_usage(at));
        let usages: Vec<CacheUse> = usages.iter().copied().chain(known).collect();
        let mut found: Vec<_> =
            (0..self.tenants.len()).map(|at| self.find(at, now, &usages, whole)).collect();
        self.find_held(now, &mut found);
        if let Some(gate) = &mut self.gate {
            let idle = self.observers.iter().enumerate().filter(|(_, observer)| observer.is_forgotten());
            idle.for_each(|(at, _)| gate.forget(at, self.pace.is_some(), now));
        }
        let until_next = self.decision_seconds() - now;
        // Where writes have their price, all ways to run a partition keep to the budget.
        let unpriced = self.pace.as_ref().filter(|_| self.gate.is_none());
        let constraints = Constraints {
            ssd_writes_per_second: unpriced.map(|pace| pace.rate(now, until_next)),
            passed_seconds: self.decided.replace(now).map(|before| now - before),
            ..self.constraints()
        };
        let decided = {
            let (there, inputs) = inputs(&self.tenants, &self.positions, &self.config, &found);
            self.allocator.allocate(&inputs, &constraints).map(|decisions| (there, decisions))
        };
        let kept_to = self.share_written(now, decided.as_ref().map_or(&[][..], |(_, decisions)| decisions));
        let decided = decided.map(|(there, decisions)| {
            for (at, mut decision) in there.into_iter().zip(decisions) {
                if let Some(predicted) = &mut decision.predicted {
                    predicted.ssd_writes_per_second *= kept_to;
                }
                let rate = decision.predicted.map(|predicted| predicted.ssd_writes_per_second);
                if self.gate.is_none() {
                    self.parts[at] = Part::new(rate, now, self.config.epoch_seconds);
                }
                self.positions[at].decided_blocks = decision.quota_blocks;
                self.positions[at].decision = decision;
            }
        });
        for (position, found) in self.positions.iter_mut().zip(found) {
            position.findings = found;
        }
        if self.profile.learns_quickly {
            let held_blocks = usages.iter().map(|usage| u64::from(usage.resident_blocks)).sum();
            self.unpriced = true;
            self.look_at_rates(now, Some(held_blocks));
        }
        decided.map(|()| &self.positions[..])
    }

    /// The share of the SSD writes predicted by these decisions that their price lets in.
    fn share_written(&self, now: f64, decisions: &[Decision]) -> f64 {
        let (Some(_), Some(pace)) = (&self.gate, &self.pace) else { return 1.0 };
        let wanted: f64 = decisions
            .iter()
            .filter_map(|decision| decision.predicted)
            .map(|it| it.ssd_writes_per_second)
            .sum();
        let rate = pace.rate(now, self.config.epoch_seconds);
        if wanted > rate { rate / wanted } else { 1.0 }
    }

    /// The tenants, as given.
    pub fn tenants(&self) -> &[ControlTenant] {
        &self.tenants
    }

    /// Where the tenants stand.
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// Whole epochs that are over.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What the cache has to be like.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What a tenant's requests were measured to take since the last whole epoch.
    pub fn measured(&self, tenant: usize) -> Measured {
        self.observers.get(tenant).map(Observer::measured).unwrap_or_default()
    }

    /// Bytes of memory that monitors and analyzers hold, and what prices writes.
    pub fn memory_bytes(&self) -> usize {
        self.observers.iter().map(Observer::memory_bytes).sum::<usize>()
            + self.gate.as_ref().map_or(0, Gate::memory_bytes)
    }

    /// What a tenant held at the last decision.
    fn last_usage(&self, at: usize) -> CacheUse {
        self.positions[at].findings.as_ref().map(|found| found.usage.held()).unwrap_or_default()
    }

    fn find(&mut self, at: usize, now: f64, usages: &[CacheUse], whole: bool) -> Option<Findings> {
        if !self.positions[at].present {
            return None;
        }
        let goals = self.tenants[at].goals;
        let most = if goals.reservation.is_some() { RESERVED_MEMORY } else { 1.0 };
        let memory = whole.then_some(self.profile.memory.min(most));
        let promised = goals.is_promise();
        let (nominal, epoch_seconds) = (self.config.nominal, self.config.epoch_seconds);
        let mut found = self.observers[at].findings(now, nominal, epoch_seconds, memory, promised);
        found.usage = usages.get(at).copied().unwrap_or_default();
        Some(found)
    }

    /// What each tenant would hold at the price of SSD writes, where there is a budget of them. Of one that asked for nothing since the last decision nothing tells how much it will use.
    fn find_held(&self, now: f64, found: &mut [Option<Findings>]) {
        let (Some(gate), Some(_)) = (&self.gate, &self.pace) else { return };
        let there: Vec<bool> = found.iter().map(Option::is_some).collect();
        let Some(held) = gate.held(now, self.config.cache_blocks, &there) else { return };
        for (found, held) in found.iter_mut().zip(held) {
            if let Some(found) = found.as_mut().filter(|it| it.under_decision().measured.requests() > 0) {
                found.held_at_price = held.map(|held| held as u32);
            }
        }
    }

    fn constraints(&self) -> Constraints {
        Constraints {
            cache_blocks: self.config.cache_blocks,
            block_bytes: self.config.block_bytes,
            write_threshold: self.config.write_threshold,
            write_back: self.config.write_back,
            ssd_writes_per_second: None,
            objective: self.config.objective,
            epoch_seconds: self.config.epoch_seconds,
            passed_seconds: None,
        }
    }

    fn inputs<'a>(&'a self, found: &'a [Option<Findings>]) -> (Vec<usize>, Vec<Tenant<'a>>) {
        inputs(&self.tenants, &self.positions, &self.config, found)
    }
}

/// What has to be observed of these tenants.
fn needs<'t>(
    allocator: &dyn Allocator,
    config: &ControlConfig,
    mut tenants: impl Iterator<Item = &'t ControlTenant>,
) -> Needs {
    let fixed =
        |tenant: &ControlTenant| tenant.write_policy == ConfiguredPolicy::Fixed(WritePolicy::ReadOnly);
    allocator.needs(config.budget.is_some() || !config.write_back || tenants.any(fixed))
}

/// Seconds that a load is taken to have lasted at least: for ever where nothing has a price, for all that comes would be written while a load has just begun.
fn least_load_seconds(config: &ControlConfig, profile: &Profile) -> f64 {
    if profile.prices_writes { config.epoch_seconds.min(LOAD_SECONDS) } else { f64::INFINITY }
}

/// What prices what is offered to the SSD, with doors of its own.
fn gate(config: &ControlConfig, profile: &Profile, tenants: usize, now: f64) -> Option<Gate> {
    let ControlConfig { cache_blocks, block_bytes, nominal, epoch_seconds, .. } = *config;
    profile
        .prices_writes
        .then(|| Gate::new(tenants, cache_blocks, block_bytes, nominal, epoch_seconds / UNITS, now))
}

/// How a tenant's cache works before the first decision.
fn first_mode(profile: &Profile, config: &ControlConfig, configured: ConfiguredPolicy) -> Mode {
    let write = match (configured, profile.mode.write) {
        (ConfiguredPolicy::Fixed(write), _) => write,
        (_, WritePolicy::WriteBack) if !config.write_back => WritePolicy::WriteThrough,
        (_, write) => write,
    };
    Mode { write, ..profile.mode }
}

/// The tenants that are there, as an allocator sees them, and their indices. A free function, so that the allocator can be borrowed beside it.
fn inputs<'a>(
    tenants: &'a [ControlTenant],
    positions: &'a [Position],
    config: &ControlConfig,
    found: &'a [Option<Findings>],
) -> (Vec<usize>, Vec<Tenant<'a>>) {
    let input = |(at, (tenant, position)): (usize, (&'a ControlTenant, &'a Position))| {
        let input = Tenant {
            name: &tenant.name,
            quota_blocks: position.decision.quota_blocks,
            mode: position.decision.mode,
            findings: found.get(at).and_then(Option::as_ref),
            configured_policy: tenant.write_policy,
            configured_quota_blocks: tenant.quota_blocks,
            min_blocks: config.min_blocks,
            goals: tenant.goals,
        };
        (at, input)
    };
    let there = tenants.iter().zip(positions).enumerate().filter(|(_, (_, position))| position.present);
    there.map(input).unzip()
}

#[cfg(test)]
mod tests;
