//! What Centaur remembers from one epoch to the next: what it predicted, whose reservations it let in, and how often
//! those were not met.
//!
//! The paper's loop (sections V-A and VI-A): plan, repartition, measure, until prediction and measurement agree; a
//! reservation for which that does not happen in a number of iterations cannot be met.

use std::collections::BTreeMap;

use crate::centaur::curves::Vm;
use crate::centaur::reservations::Verdict;
use crate::correction::{Correction, held_blocks};
use crate::{Reservation, Tenant};

/// Prediction and measurement agree where they differ by less than this part of the prediction.
pub(super) const AGREES: f64 = 0.05;
/// Epochs in a row in which a reservation may be missed before it is given up.
pub(super) const ITERATIONS_MAX: u32 = 6;

/// What is remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    tenants: BTreeMap<String, Kept>,
    cache_blocks: u32,
    /// Reservations that were let in so far.
    admissions: u64,
}

/// What is remembered of one tenant.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    /// The mean latency expected of the partition that it has.
    predicted: Option<f64>,
    reservation: Option<Reservation>,
    /// The number of its admission.
    admitted: Option<u64>,
    /// Epochs in a row since then in which it was not met.
    missed: u32,
    /// The most that was measured in these, in seconds or IOPS.
    best: Option<f64>,
    /// The blocks that it held at the last decision.
    held: u64,
    /// The measured miss rate as a multiple of what its curve says.
    correction: Correction,
}

impl Kept {
    fn given_up(&self) -> bool {
        self.missed >= ITERATIONS_MAX
    }

    /// So much was measured of what was promised.
    fn hold_to(&mut self, reservation: Reservation, measured: f64) {
        if met(reservation, measured) {
            (self.missed, self.best) = (0, None);
            return;
        }
        let before = self.best.unwrap_or(measured);
        self.missed += 1;
        self.best = Some(match reservation {
            Reservation::Latency(_) => measured.min(before),
            Reservation::Iops(_) => measured.max(before),
        });
    }

    /// The verdict on one that does not ask.
    fn verdict(&self) -> Verdict {
        match self.best {
            Some(best) if self.given_up() => Verdict::GivenUp { best },
            _ => Verdict::None,
        }
    }
}

impl Memory {
    /// Forget who is gone, and what was found out under other conditions: a reservation that was given up asks again
    /// when tenants, reservations or the cache have changed.
    pub(super) fn refresh(&mut self, tenants: &[Tenant<'_>], cache_blocks: u32) {
        let before = std::mem::take(&mut self.tenants);
        let mut same = self.cache_blocks == cache_blocks && before.len() == tenants.len();
        self.cache_blocks = cache_blocks;
        for tenant in tenants {
            let reservation = tenant.goals.reservation;
            let kept = before.get(tenant.name).copied().unwrap_or_default();
            let same_promise = kept.reservation == reservation;
            same &= same_promise && before.contains_key(tenant.name);
            let kept = match same_promise {
                true => kept,
                false => Kept { reservation, admitted: None, missed: 0, best: None, ..kept },
            };
            self.tenants.insert(tenant.name.to_owned(), kept);
        }
        if !same {
            let given_up = self.tenants.values_mut().filter(|kept| kept.given_up());
            given_up.for_each(|kept| (kept.admitted, kept.missed, kept.best) = (None, 0, None));
        }
    }

    /// Hold the curves of the epoch against what was measured in it.
    pub(super) fn learn(&mut self, tenants: &[Tenant<'_>], vms: &[Option<Vm<'_>>]) {
        for (tenant, vm) in tenants.iter().zip(vms) {
            let Some(kept) = self.tenants.get_mut(tenant.name) else { continue };
            if let Some(lesson) = vm.as_ref().and_then(|vm| vm.lesson(kept.held)) {
                // Nothing is learned of nothing, but that no request missed is to be learned.
                let measured = lesson.measured.max(f64::MIN_POSITIVE);
                kept.correction.learn(measured, lesson.expected, lesson.part);
            }
            kept.held = held_blocks(tenant);
        }
    }

    /// What is known of the tenant's curve.
    pub(super) fn correction(&self, name: &str) -> Correction {
        self.tenants.get(name).map_or_else(Correction::default, |kept| kept.correction)
    }

    /// Hold what was measured against the reservations that were let in before.
    pub(super) fn hold_to_promises(&mut self, tenants: &[Tenant<'_>], vms: &[Option<Vm<'_>>]) {
        for (tenant, vm) in tenants.iter().zip(vms) {
            let Some(kept) = self.tenants.get_mut(tenant.name) else { continue };
            let (Some(reservation), Some(vm)) = (tenant.goals.reservation, vm) else { continue };
            let Some(measured) = vm.measured(reservation) else { continue };
            if kept.admitted.is_some() && !kept.given_up() {
                kept.hold_to(reservation, measured);
            }
        }
    }

    /// The largest difference between what was predicted of a tenant and what was measured, as a part of the
    /// prediction; none where something was measured that nothing had been predicted of.
    pub(super) fn deviation(&self, tenants: &[Tenant<'_>], vms: &[Option<Vm<'_>>]) -> Option<f64> {
        let mut largest = 0.0f64;
        for (tenant, vm) in tenants.iter().zip(vms) {
            let Some(vm) = vm else { continue };
            let predicted = self.predicted(tenant.name)?;
            let measured = vm.measured_latency.unwrap_or(predicted);
            largest = largest.max((measured - predicted).abs() / predicted.max(f64::MIN_POSITIVE));
        }
        Some(largest)
    }

    /// The mean latency that was predicted of a tenant.
    pub(super) fn predicted(&self, name: &str) -> Option<f64> {
        self.tenants.get(name).and_then(|kept| kept.predicted)
    }

    /// The verdicts on those tenants that do not ask for admission.
    pub(super) fn verdicts(&self, tenants: &[Tenant<'_>]) -> Vec<Verdict> {
        let verdict =
            |tenant: &Tenant<'_>| self.tenants.get(tenant.name).map_or(Verdict::None, Kept::verdict);
        tenants.iter().map(verdict).collect()
    }

    /// The tenants whose reservations ask for admission: first those that were let in, in that order, then the others.
    pub(super) fn asking(&self, tenants: &[Tenant<'_>]) -> Vec<usize> {
        let kept = |at: &usize| self.tenants.get(tenants[*at].name).copied().unwrap_or_default();
        let asks = |at: &usize| tenants[*at].goals.reservation.is_some() && !kept(at).given_up();
        let mut asking: Vec<usize> = (0..tenants.len()).filter(asks).collect();
        asking.sort_by_key(|at| kept(at).admitted.unwrap_or(u64::MAX));
        asking
    }

    /// Remember who is let in. Who was before stays so: the plan's forecast may do better again.
    pub(super) fn admit(&mut self, tenants: &[Tenant<'_>], verdicts: &[Verdict]) {
        for (tenant, verdict) in tenants.iter().zip(verdicts) {
            let Some(kept) = self.tenants.get_mut(tenant.name) else { continue };
            if matches!(verdict, Verdict::Kept { .. }) && kept.admitted.is_none() {
                kept.admitted = Some(self.admissions);
                self.admissions += 1;
            }
        }
    }

    /// Remember what is expected of a tenant now.
    pub(super) fn expect(&mut self, name: &str, latency: Option<f64>) {
        if let Some(kept) = self.tenants.get_mut(name) {
            kept.predicted = latency;
        }
    }
}

/// Whether a promise was kept, but for what prediction and measurement may differ by.
fn met(reservation: Reservation, measured: f64) -> bool {
    match reservation {
        Reservation::Latency(seconds) => measured <= seconds * (1.0 + AGREES),
        Reservation::Iops(iops) => measured >= iops * (1.0 - AGREES),
    }
}
