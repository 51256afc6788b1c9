//! The budget of SSD writes where requests are served elsewhere: what each tenant may write until it is looked at again.
//!
//! The simulator asks for each request. In the daemon reactors serve them, and each tenant there has a limit, as bytes since the start. Every so often
//! ([`GRANT_SECONDS`]) it is told here how far all have come, and what the budget lets be written by now is shared out: to each what it has lately wanted, as far as that goes in proportion to what its
//! decision predicts that it writes; what nobody wanted to all alike, so that nobody who begins to write has nothing.

use super::budget::{BudgetRhythm, Pace, WriteBudget};
use super::{ControlLoop, Gate, Position, least_load_seconds};

/// How often limits are told to each tenant.
pub const GRANT_SECONDS: f64 = 0.5;

/// How often one limit is told to all tenants together.
pub const GRANT_ALL_SECONDS: f64 = 0.1;

/// Of what a tenant may write so much is for newer data of cached blocks alone. What it does not need is granted again.
const FOR_UPDATES: f64 = 0.25;

/// Since demand comes in bursts a tenant is taken to want so many times what it wanted last.
const GROWTH: f64 = 2.0;

/// A tenant of which nothing, or little, is predicted counts with such a part of what an equal division gives.
const LEAST_WEIGHT: f64 = 0.05;

/// How far a tenant has come since the start, by its reactor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Bytes that it has written to the SSD, or is about to.
    pub bytes: u64,
    /// Blocks that did not enter, for the limit.
    pub refused_blocks: u64,
    /// Newer data of cached blocks that went to the backing alone, for the limit.
    pub diverted_blocks: u64,
    /// Blocks that did neither, since their requests are worth less than others (`gate.rs`): no limit would let them in.
    pub turned_away_blocks: u64,
}

impl Spent {
    /// What has come since. Counters that begin anew count from nothing.
    fn since(&self, before: &Self) -> Self {
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self {
            bytes: since(self.bytes, before.bytes),
            refused_blocks: since(self.refused_blocks, before.refused_blocks),
            diverted_blocks: since(self.diverted_blocks, before.diverted_blocks),
            turned_away_blocks: since(self.turned_away_blocks, before.turned_away_blocks),
        }
    }
}

/// How far a tenant may go, in bytes since the start, as [`Spent::bytes`] counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Up to here absent blocks may enter.
    pub admit_bytes: u64,
    /// Up to here newer data of cached blocks is written.
    pub bytes: u64,
}

impl Limit {
    /// Nothing more than has been.
    pub fn none_after(spent: &Spent) -> Self {
        Self { admit_bytes: spent.bytes, bytes: spent.bytes }
    }
}

/// How far the budget is used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetView {
    /// What may be written, in which time.
    pub budget: WriteBudget,
    /// Bytes that were written in this period.
    pub written_bytes: f64,
    /// Seconds until the next period begins.
    pub rest_seconds: f64,
    /// Bytes that may be written at once.
    pub room_bytes: f64,
    /// This period is the first one.
    pub first: bool,
}

/// A period of the budget that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetPeriod {
    /// When it began, in seconds.
    pub began_seconds: f64,
    /// What was written in it.
    pub written_bytes: f64,
    /// It is the first one: the cache was cold, and the budget is spent faster.
    pub first: bool,
}

/// What was heard of the tenants last, by their numbers, and of the cache's own records.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    tenants: Vec<Option<Spent>>,
    records: Option<u64>,
}

impl Heard {
    /// A tenant is gone: another one may have its number.
    pub(super) fn forget(&mut self, tenant: usize) {
        if let Some(heard) = self.tenants.get_mut(tenant) {
            *heard = None;
        }
    }
}

impl ControlLoop {
    /// A loop that is told of writes by [`Self::grant`], rather than request by request, and whose tenants' doors are where their requests are served ([`Self::asked`],
    /// [`Self::absorb_offers`], [`Self::terms`]).
    pub fn granting(mut self) -> Self {
        self.granting = true;
        self.gate = self.gate.take().map(Gate::without_doors);
        self
    }

    /// What the SSD may be written from now on. What was written in a period of the same length counts on; another one begins now, and is not spent as fast as that of a cold cache.
    pub fn set_budget(&mut self, budget: Option<WriteBudget>, now: f64) {
        if self.config.budget == budget {
            return;
        }
        self.config.budget = budget;
        let (block_bytes, unit) = (self.config.block_bytes, least_load_seconds(&self.config, &self.profile));
        self.pace = budget.map(|budget| match &self.pace {
            Some(pace) => pace.changed(budget, block_bytes, now),
            // The cache is not cold, nor has the load just begun.
            None => Pace::new(budget, block_bytes, unit, now).of_warm_cache(),
        });
        self.heard = Heard::default();
        self.unpriced = true;
        self.observe_what_is_needed(now);
    }

    /// The run may be over at any time: the budget is spent evenly, and what is not spent may be later on.
    pub fn spend_evenly(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.spend_evenly();
        }
    }

    /// The run is over after so many seconds: a period of the budget in which it ends, but the first, has no more than its part of it.
    pub fn ends_at(&mut self, seconds: f64) {
        if let Some(pace) = &mut self.pace {
            pace.ends_at(seconds);
        }
    }

    /// So much was written in a period that began before this loop did, may be over since, and was the `first` one or not; and what was kept of when what came in it and before.
    pub fn resume_budget(
        &mut self,
        written_bytes: f64,
        since_seconds: f64,
        first: bool,
        rhythm: Option<&BudgetRhythm>,
    ) {
        let block_bytes = f64::from(self.config.block_bytes);
        if let Some(pace) = &mut self.pace {
            pace.resume(written_bytes / block_bytes, since_seconds, first, rhythm);
        }
    }

    /// What came in the budget's periods up to now, and when: to be kept over restarts.
    pub fn budget_rhythm(&self, now: f64) -> Option<BudgetRhythm> {
        self.pace.as_ref().map(|pace| pace.rhythm(now))
    }

    /// How far the budget is used up, where there is one.
    pub fn budget_view(&self, now: f64) -> Option<BudgetView> {
        let (budget, pace) = (self.config.budget?, self.pace.as_ref()?);
        let block_bytes = f64::from(self.config.block_bytes);
        Some(BudgetView {
            budget,
            written_bytes: pace.written_blocks() * block_bytes,
            rest_seconds: (pace.period_end() - now).max(0.0),
            room_bytes: pace.room(now) as f64 * block_bytes,
            first: pace.is_first(),
        })
    }

    /// The period that is under way.
    pub fn budget_period(&self) -> Option<BudgetPeriod> {
        self.pace.as_ref().map(|pace| pace.period(f64::from(self.config.block_bytes)))
    }

    /// The period that is under way is this one, whatever was written here so far.
    pub fn follow_budget(&mut self, period: BudgetPeriod) {
        if let Some(pace) = &mut self.pace {
            pace.follow(period, f64::from(self.config.block_bytes));
        }
    }

    /// From now on the cache's own records take so much for each block of data ([`Self::ssd_written`]), and count against the budget.
    pub fn set_record_share(&mut self, share: f64) {
        self.record_share = share;
    }

    /// What all tenants together may still write, in bytes, where doors say what of it is whose ([`Self::prices`]). Otherwise as [`Self::grant`].
    pub fn grant_all(&mut self, now: f64, spent: &[(usize, Spent)], record_bytes: u64) -> Option<u64> {
        self.account(now, spent, record_bytes)?;
        let block_bytes = u64::from(self.config.block_bytes);
        self.pace.as_ref().map(|pace| pace.room(now) * block_bytes)
    }

    /// What tenants have done since the last time, which counts against the budget; `None` where there is none.
    fn account(&mut self, now: f64, spent: &[(usize, Spent)], record_bytes: u64) -> Option<Vec<Spent>> {
        let block_bytes = f64::from(self.config.block_bytes);
        let pace = self.pace.as_mut()?;
        self.heard.tenants.resize(self.positions.len(), None);
        let since = |now: &Spent, before: Option<Spent>| before.map_or(Spent::default(), |it| now.since(&it));
        let came: Vec<Spent> = spent
            .iter()
            .map(|&(at, spent)| {
                since(&spent, self.heard.tenants.get_mut(at).and_then(|it| it.replace(spent)))
            })
            .collect();
        let records = self.heard.records.replace(record_bytes);
        let records = records.map_or(0, |before| record_bytes.checked_sub(before).unwrap_or(record_bytes));
        let bytes = came.iter().map(|it| it.bytes).sum::<u64>() + records;
        pace.written_bytes(bytes as f64, block_bytes);
        pace.turn(now);
        Some(came)
    }

    /// Tenants have come so far (those of which nothing is known are left out), and so many bytes of the cache's own records were written since the start: how far each may go. `None`
    /// where there is no budget.
    ///
    /// The first time that a tenant is heard of nothing of what it has spent counts: that was before.
    pub fn grant(
        &mut self,
        now: f64,
        spent: &[(usize, Spent)],
        record_bytes: u64,
    ) -> Option<Vec<(usize, Limit)>> {
        let block_bytes = f64::from(self.config.block_bytes);
        let came = self.account(now, spent, record_bytes)?;
        let pace = self.pace.as_ref()?;
        let room = pace.room(now) as f64 * block_bytes;
        let wanted = |it: &Spent| {
            GROWTH * (it.bytes as f64 + (it.refused_blocks + it.diverted_blocks) as f64 * block_bytes)
        };
        let wanted: Vec<f64> = came.iter().map(wanted).collect();
        let weights = weights(spent.iter().filter_map(|(at, _)| self.positions.get(*at)));
        let shares = share(room, &wanted, &weights);
        let limit = |(&(at, spent), share): (&(usize, Spent), f64)| {
            let bytes = spent.bytes + share as u64;
            (at, Limit { admit_bytes: spent.bytes + (share * (1.0 - FOR_UPDATES)) as u64, bytes })
        };
        Some(spent.iter().zip(shares).map(limit).collect())
    }
}

/// How much tenants count beside each other: by what is predicted that they write, where that is known of all.
fn weights<'p>(positions: impl Iterator<Item = &'p Position>) -> Vec<f64> {
    let rate = |position: &Position| position.decision.predicted.map(|it| it.ssd_writes_per_second);
    let rates: Vec<Option<f64>> = positions.map(rate).collect();
    let sum: f64 = rates.iter().flatten().sum();
    if rates.contains(&None) || sum <= 0.0 {
        return vec![1.0; rates.len()];
    }
    let least = LEAST_WEIGHT * sum / rates.len() as f64;
    rates.iter().map(|rate| rate.unwrap_or(0.0).max(least)).collect()
}

/// Share `room` out: to each what it wants, in proportion to the weights where that is too much; what is left to all alike. The sum is no more than `room`.
fn share(room: f64, wanted: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; wanted.len()];
    let mut left = room;
    // Whoever has what it wants leaves the rest to the others: at least one such in each round, or it is the last.
    let mut open: Vec<usize> = (0..wanted.len()).filter(|&at| wanted[at] > 0.0).collect();
    while left > 0.0 && !open.is_empty() {
        let sum: f64 = open.iter().map(|&at| weights[at]).sum();
        let part = |at: usize| left * weights[at] / sum;
        let (content, short): (Vec<_>, Vec<_>) = open.iter().partition(|&&at| wanted[at] <= part(at));
        if content.is_empty() {
            short.iter().for_each(|&at| shares[at] = part(at));
            return shares;
        }
        for at in content {
            shares[at] = wanted[at];
            left -= wanted[at];
        }
        open = short;
    }
    let each = left.max(0.0) / wanted.len().max(1) as f64;
    shares.iter().map(|share| share + each).collect()
}

#[cfg(test)]
mod tests;
