//! What changes between decisions: tenants come and go, other things are wanted for them, another allocator takes over. What each has until the next decision.

use std::time::Duration;

use larder_alloc::{AllocError, Allocator, Decision, Layout};

use crate::warm_start;

use super::{EpochLoop, LoopTenant, MOVES, Report, Seat, profile};

impl EpochLoop {
    /// The tenants hold some blocks already, in their order: before the first decision they keep them, as far as the cache reaches,
    /// unless their quotas are fixed.
    pub fn start_warm(&mut self, held_blocks: &[u32]) {
        if self.has_fixed_quotas() || self.control.profile().layout == Layout::Unified {
            return;
        }
        let (cold, own) = (self.quotas(), self.own_blocks());
        let mine: Vec<u32> = held_blocks.iter().map(|&held| self.own_part(held)).collect();
        let mine = self.to_keep(&mine);
        let quotas = warm_start::quotas(own, self.config.min_blocks, &cold, &mine);
        for ((at, quota), held) in quotas.into_iter().enumerate().zip(held_blocks) {
            let mut reason = self.standings[at].decision.reason.clone();
            if *held > 0 && quota != cold[at] {
                reason = format!("{quota} blocks: it held {held} when the cache was opened; {reason}");
            }
            self.control.set_quota(self.seats[at].at, quota, reason);
        }
        self.keep_to_most();
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
                self.control.remove(seat.at, now);
                self.offers.remove(&seat.at);
                self.shaped.remove(&seat.at);
                self.decisions.forget(&self.tenants[at].name);
            }
        }
        let (mut seats, mut new) = (Vec::with_capacity(tenants.len()), Vec::new());
        for (tenant, place) in tenants.iter().zip(&places) {
            seats.push(match place {
                Some(at) => {
                    let before = &self.tenants[*at];
                    if (before.write_policy, before.caching) != (tenant.write_policy, tenant.caching) {
                        self.decisions.overtaken(&tenant.name);
                    }
                    if before != tenant {
                        self.control.change(self.seats[*at].at, tenant.control(), now);
                    }
                    self.seats[*at]
                }
                None => {
                    let at = self.control.add(tenant.control());
                    new.push(at);
                    Seat::new(at)
                }
            });
        }
        (self.tenants, self.seats) = (tenants, seats);
        let position = |seat: &Seat| &self.control.positions()[seat.at];
        let decided: Vec<String> =
            self.seats.iter().map(|seat| position(seat).decision.reason.clone()).collect();
        // Where nobody is new, too: what was observed for those who are gone is not needed any more.
        self.control.arrive(&new, now)?;
        if !others && !self.has_fixed_quotas() {
            // Who is here keeps what was decided until the next decision, as far as it may.
            self.keep_to_most();
            self.stand();
            return Ok(());
        }
        let cold = self.control.static_quotas()?;
        let cold: Vec<u32> = self.seats.iter().map(|seat| self.own_part(cold[seat.at])).collect();
        let min_blocks = self.config.min_blocks;
        let quotas = match self.has_fixed_quotas() {
            true => cold,
            false => warm_start::quotas(self.own_blocks(), min_blocks, &cold, &self.to_keep(&held)),
        };
        let stays = places.iter().zip(held).zip(decided);
        for ((seat, ((place, held), decided)), quota) in self.seats.iter().zip(stays).zip(quotas) {
            let before = &self.control.positions()[seat.at].decision.reason;
            let reason = match place {
                None => format!("{quota} blocks until the first epoch is over; {before}"),
                Some(_) if held != quota && others => format!("{quota} blocks: tenants have come or gone"),
                Some(_) if held != quota => format!("{quota} blocks as configured now"),
                Some(_) => decided,
            };
            self.control.set_quota(seat.at, quota, reason);
        }
        self.keep_to_most();
        self.stand();
        Ok(())
    }

    /// Of what tenants hold, what they may keep: the rest is for others.
    fn to_keep(&self, held_blocks: &[u32]) -> Vec<u32> {
        held_blocks.iter().zip(&self.tenants).map(|(&held, tenant)| held.min(tenant.most())).collect()
    }

    /// Nobody has more than its maximum, which may be less than when was decided, and than what it holds.
    pub(super) fn keep_to_most(&mut self) {
        // There a quota says nothing; where it is fixed it goes before a maximum.
        if self.has_fixed_quotas() || self.control.profile().layout == Layout::Unified {
            return;
        }
        for (seat, tenant) in self.seats.iter().zip(&self.tenants) {
            let Decision { quota_blocks, .. } = self.control.positions()[seat.at].decision;
            if quota_blocks > tenant.most() {
                let most = tenant.most();
                self.control.set_quota(
                    seat.at,
                    most,
                    format!("{most} blocks: its maximum, until the next decision"),
                );
            }
        }
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
        self.tenants.iter().for_each(|tenant| self.decisions.overtaken(&tenant.name));
        self.forget_offers();
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
        self.keep_to_most();
        self.stand();
        Ok(())
    }

    /// The part of the cache that is divided is another: quotas until the first decision, for tenants that hold some blocks. `fixed` is what `static` would give those of the control loop.
    fn divide_anew(&mut self, fixed: &[u32], held: &[u32]) {
        let cold: Vec<u32> = self.seats.iter().map(|seat| self.own_part(fixed[seat.at])).collect();
        let mine: Vec<u32> = held.iter().map(|&held| self.own_part(held)).collect();
        let mine = self.to_keep(&mine);
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
}
