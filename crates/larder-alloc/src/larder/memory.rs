//! What is remembered of a tenant from one epoch to the next.

use std::collections::{BTreeMap, BTreeSet};

use super::demanded::Demanded;
use super::unmet::Unmet;
use crate::choices::points;
use crate::correction::{Correction, held_blocks};
use crate::menu::Menu;
use crate::{Choice, Constraints, Findings, Measured, Tenant};

/// Once what was counted of an idle tenant has faded away, what is known of it counts so much less after every epoch.
const FADE: f64 = 0.5;

/// A correction is the mean of so many epochs: that of one with a burst, alone, would have the tenant's latencies count twice as much in the next, and half in the one after.
const CORRECTED_EPOCHS: u32 = 4;

/// That of a tenant with a promise, which is to be kept within a few epochs.
const PROMISED_EPOCHS: u32 = 2;

/// What is known of one tenant.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// What it can get, by the last epoch in which it did something. Empty where it never did anything.
    pub(super) menu: Menu,
    /// What of it still counts, 0 to 1: 1 for a tenant that did something that still counts.
    pub(super) weight: f64,
    /// Seconds since it came.
    pub(super) seconds: f64,
    /// It has not been there for a whole epoch, and others were there before.
    pub(super) fresh: bool,
    /// The measured latency as a multiple of what the curves alone predict.
    pub(super) correction: Correction,
    /// What came of the requests per second that it was promised.
    pub(super) demanded: Demanded,
    /// Whether what it was promised comes.
    pub(super) unmet: Unmet,
}

impl Default for Known {
    fn default() -> Self {
        let correction = Correction::of_epochs(CORRECTED_EPOCHS);
        Self {
            menu: Menu::default(),
            weight: 0.0,
            seconds: 0.0,
            fresh: false,
            correction,
            demanded: Demanded::default(),
            unmet: Unmet::default(),
        }
    }
}

impl Known {
    /// Nothing can be said about the tenant: it never did anything, or there is no curve of the write policy configured for it.
    pub(super) fn says_nothing_of(&self, tenant: &Tenant<'_>) -> bool {
        points(tenant, &self.menu, 0, 0).next().is_none()
    }

    /// The factor of its predicted latencies.
    pub(super) fn factor(&self) -> f64 {
        self.correction.factor()
    }

    /// Requests that miss, with what was chosen.
    pub(super) fn misses_per_second(&self, choice: &Choice) -> f64 {
        let way = self.menu.ways.get(choice.way as usize);
        let missed = way.map_or(0.0, |way| 1.0 - way.at(choice.blocks).request_hit_ratio);
        self.menu.requests_per_second * self.weight * missed
    }

    /// Blocks that go to the SSD with a partition of `quota` blocks in the way that was chosen.
    pub(super) fn writes_per_second(&self, choice: &Choice, quota: u64) -> f64 {
        let way = self.menu.ways.get(choice.way as usize);
        way.filter(|_| quota != choice.blocks).map_or(choice.writes, |way| way.at(quota).ssd_writes)
    }

    fn learn(&mut self, tenant: &Tenant<'_>, findings: &Findings, constraints: &Constraints) {
        self.menu = Menu::of(findings, constraints.write_back);
        self.weight = 1.0;
        self.correction.limit_epochs(if tenant.goals.is_promise() {
            PROMISED_EPOCHS
        } else {
            CORRECTED_EPOCHS
        });
        let under = findings.under_decision();
        self.demanded.learn(tenant.goals.reservation, &under, constraints.epoch_seconds);
        self.unmet.learn(tenant.goals.reservation, &under, constraints.epoch_seconds);
        if let Some((measured, predicted)) = self.measured_and_predicted(tenant, &under.measured) {
            self.correction.learn(measured, predicted, under.part);
        }
    }

    /// The latency under the decision that ended, and what its curves say of the partition that the tenant had.
    fn measured_and_predicted(&self, tenant: &Tenant<'_>, measured: &Measured) -> Option<(f64, f64)> {
        let measured = measured.mean_latency()?;
        let way = self.menu.ways.iter().find(|way| way.mode == tenant.mode)?;
        Some((measured, way.latency_between(held_blocks(tenant))))
    }
}

/// What is known of all tenants, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    known: BTreeMap<String, Known>,
}

impl Memory {
    /// Take in what was found, and forget the tenants that are gone.
    pub(super) fn learn(&mut self, tenants: &[Tenant<'_>], constraints: &Constraints) {
        let epoch = constraints.epoch_seconds;
        let passed = constraints.passed_seconds.unwrap_or(epoch);
        // An epoch that was cut short, since a tenant came, fades that much less.
        let fade = if epoch > 0.0 { FADE.powf(passed / epoch) } else { FADE };
        let here: BTreeSet<&str> = tenants.iter().map(|tenant| tenant.name).collect();
        self.known.retain(|name, _| here.contains(name.as_str()));
        for tenant in tenants {
            // One that is new came after the last decision.
            let new = tenant.findings.filter(|_| !self.known.contains_key(tenant.name));
            let known = self.known.entry(tenant.name.to_owned()).or_default();
            known.seconds += new.map_or(passed, |findings| findings.measured_seconds.min(passed));
            match tenant.found() {
                Some(findings) => known.learn(tenant, findings, constraints),
                None => known.weight *= fade,
            }
        }
        // Where all have come at the same time nobody is known better than others.
        let longest = self.known.values().map(|known| known.seconds).fold(0.0, f64::max);
        self.known.values_mut().for_each(|known| known.fresh = known.seconds < epoch.min(longest));
    }

    /// To these tenants these latencies were promised for the requests per second that they reserved; infinite ones where nothing was.
    pub(super) fn promise(&mut self, tenants: &[Tenant<'_>], limits: &[f64]) {
        for (tenant, &limit) in tenants.iter().zip(limits) {
            if let Some(known) = self.known.get_mut(tenant.name) {
                known.demanded.promise(tenant.goals.reservation, limit);
                known.unmet.promise(tenant.goals.reservation, limit);
            }
        }
    }

    /// What is known of the tenants, in their order.
    pub(super) fn of<'a>(&'a self, tenants: &[Tenant<'_>]) -> Vec<&'a Known> {
        tenants.iter().filter_map(|tenant| self.known.get(tenant.name)).collect()
    }
}
