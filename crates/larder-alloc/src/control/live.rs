//! What an operator changes while the loop runs: tenants that come for the first time or go for good, what is wanted for them, and who decides.
//!
//! The simulator knows all of this beforehand; the daemon does not. What is measured of a tenant comes from its reactor's counters here, not request by request.

use super::budget::Part;
use super::observer::Observer;
use super::{ControlLoop, ControlTenant, Gate, LOOKS, Position, first_mode, gate, least_load_seconds, needs};
use crate::{AllocError, Allocator, Decision, Measured, Mode, Needs, Profile, Static};

impl ControlLoop {
    /// A tenant that is not there yet ([`ControlLoop::arrive`]): its number, which may be that of one that was removed.
    pub fn add(&mut self, tenant: ControlTenant) -> usize {
        let mode = first_mode(&self.profile, &self.config, tenant.write_policy);
        let decision = Decision { quota_blocks: 0, mode, predicted: None, reason: String::new() };
        let position = Position { decision, findings: None, present: false, decided_blocks: 0 };
        let at = self.removed.pop().unwrap_or(self.tenants.len());
        if at == self.tenants.len() {
            self.tenants.push(tenant);
            self.observers.push(Observer::new(&self.config, &self.needs, at as u64));
            self.positions.push(position);
            self.parts.push(Part::default());
            if let Some(gate) = &mut self.gate {
                gate.add();
            }
        } else {
            self.tenants[at] = tenant;
            self.positions[at] = position;
        }
        at
    }

    /// A tenant is gone for good: nothing of it is remembered. What was observed for it alone is until the next [arrival](Self::arrive), be it of nobody.
    pub fn remove(&mut self, tenant: usize, now: f64) {
        if tenant >= self.tenants.len() || self.removed.contains(&tenant) {
            return;
        }
        self.leave(tenant);
        self.heard.forget(tenant);
        self.observers[tenant] = Observer::new(&self.config, &self.needs, tenant as u64);
        self.parts[tenant] = Part::default();
        if let Some(gate) = &mut self.gate {
            gate.restart(tenant, now);
        }
        self.removed.push(tenant);
    }

    /// This is wanted for a tenant; where that is something else than before, decisions about it are due soon, from an allocator that learns quickly. Another write policy holds at once. What has to be observed for it is from the next [arrival](Self::arrive) on, be it of nobody: of several changes at once it may be the same as before.
    pub fn change(&mut self, tenant: usize, wanted: ControlTenant, now: f64) {
        let Some(known) = self.tenants.get_mut(tenant).filter(|known| **known != wanted) else { return };
        if known.write_policy != wanted.write_policy {
            let mode = first_mode(&self.profile, &self.config, wanted.write_policy);
            self.positions[tenant].decision.mode.write = mode.write;
        }
        *known = wanted;
        self.unpriced = true;
        self.learn_quickly(now);
    }

    /// Another allocator decides from now on, as `profile` says. Tenants keep their quotas until its first decision, which is due when its first epoch is
    /// over, or earlier where it learns quickly; what was observed counts on where it needs the same.
    pub fn switch(&mut self, allocator: Box<dyn Allocator + Send>, profile: Profile, now: f64) {
        (self.allocator, self.profile) = (allocator, profile);
        self.config.epoch_seconds = profile.epoch_seconds;
        self.epoch_end = now + profile.epoch_seconds;
        self.look = if profile.learns_quickly { now + profile.epoch_seconds / LOOKS } else { f64::INFINITY };
        self.renew_gate(now);
        self.parts.fill(Part::default());
        self.early.clear();
        self.observe_what_is_needed(now);
        for (at, position) in self.positions.iter_mut().enumerate() {
            position.decision.mode = first_mode(&profile, &self.config, self.tenants[at].write_policy);
            position.decision.predicted = None;
            if position.present {
                let quota = position.decision.quota_blocks;
                let name = self.allocator.name();
                position.decision.reason = format!("{quota} blocks until the first decision of {name}");
            }
        }
        self.decided = None;
        self.learn_quickly(now);
    }

    /// What is offered is priced anew, if at all.
    fn renew_gate(&mut self, now: f64) {
        let gate = gate(&self.config, &self.profile, self.tenants.len(), now);
        self.unpriced = true;
        let unit = least_load_seconds(&self.config, &self.profile);
        if let Some(pace) = &mut self.pace {
            pace.set_unit(unit, now);
        }
        self.gate = if self.granting { gate.map(Gate::without_doors) } else { gate };
        for at in 0..self.tenants.len() {
            if let Some(gate) = &mut self.gate {
                gate.restart(at, now);
            }
        }
    }

    /// What is observed for who decides.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// The name of who decides.
    pub fn allocator(&self) -> &'static str {
        self.allocator.name()
    }

    /// Requests of a tenant were served, and took so long: what was measured since the last time. What it wrote to the SSD is told by [`Self::grant`].
    pub fn absorb(&mut self, tenant: usize, measured: &Measured) {
        if let Some(observer) = self.observers.get_mut(tenant) {
            observer.absorb(measured);
        }
    }

    /// Until the next decision a tenant has this quota, for this reason.
    pub fn set_quota(&mut self, tenant: usize, blocks: u32, reason: String) {
        if let Some(position) = self.positions.get_mut(tenant) {
            position.decision.quota_blocks = blocks;
            position.decision.reason = reason;
        }
    }

    /// Until the next decision a tenant's cache works so.
    pub fn set_mode(&mut self, tenant: usize, mode: Mode) {
        if let Some(position) = self.positions.get_mut(tenant) {
            position.decision.mode = mode;
        }
    }

    /// What `static` would give each tenant, by its number; nothing to those who are not there.
    ///
    /// # Errors
    /// When the configured quotas exceed the cache.
    pub fn static_quotas(&self) -> Result<Vec<u32>, AllocError> {
        let (there, inputs) = self.inputs(&[]);
        let decisions = Static.allocate(&inputs, &self.constraints())?;
        let mut quotas = vec![0; self.tenants.len()];
        there.into_iter().zip(decisions).for_each(|(at, decision)| quotas[at] = decision.quota_blocks);
        Ok(quotas)
    }

    /// Observe what the allocator needs to know of these tenants; where that is something else than before, counts of all begin anew.
    pub(super) fn observe_what_is_needed(&mut self, now: f64) {
        let known = self.tenants.iter().enumerate().filter(|(at, _)| !self.removed.contains(at));
        let needs = needs(&*self.allocator, &self.config, known.map(|(_, tenant)| tenant));
        if needs == self.needs {
            return;
        }
        self.needs = needs;
        for (at, observer) in (0..).zip(&mut self.observers) {
            observer.redesign(&self.config, &self.needs, at, now);
        }
    }
}

#[cfg(test)]
mod tests;
