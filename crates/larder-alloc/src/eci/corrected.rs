//! `eci` in the daemon: a tenant whose predictions are wrong by more than a tenth is sized by measurement until they are right again.
//!
//! What is predicted and measured is what its reads took (equation 2 over reads alone: of writes the paper says nothing that depends on the size): by the curves of
//! the epoch for the blocks that it held, and by the clock. Where the two differ, the tenant's hits count by as much more, or less, in the sum that is minimised, as its
//! reads took longer or shorter; its predicted latency is corrected alike. Where all wishes fit there is nothing to weigh:
//! everybody has its useful reuse distance, as in the paper.

use std::collections::BTreeMap;

use super::{Eci, Sizes, accesses, read_share};
use crate::correction::{Correction, held_blocks};
use crate::{AllocError, Allocator, Constraints, Decision, Findings, Profile, Tenant};

/// ECI-Cache's allocator, corrected by what is measured.
#[derive(Clone, Debug, Default)]
pub struct CorrectedEci {
    corrections: BTreeMap<String, Correction>,
}

impl CorrectedEci {
    /// Take in what was measured of those that did something, and forget who is gone. Tells by tenant the factor of its predictions, where they are wrong.
    fn learn(&mut self, tenants: &[Tenant<'_>]) -> Vec<Option<f64>> {
        let mut before = std::mem::take(&mut self.corrections);
        let learn = |tenant: &Tenant<'_>| {
            let mut correction = before.remove(tenant.name).unwrap_or_default();
            if let Some((measured, predicted, part)) = tenant.found().and_then(|found| reads(tenant, found)) {
                correction.learn(measured, predicted, part);
            }
            self.corrections.insert(tenant.name.to_owned(), correction);
            correction.if_wrong()
        };
        tenants.iter().map(learn).collect()
    }
}

impl Allocator for CorrectedEci {
    fn name(&self) -> &'static str {
        Eci::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(self.clone())
    }

    fn profile(&self) -> Profile {
        Eci.profile()
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let wrong = self.learn(tenants);
        let sizes = Sizes::of(tenants, constraints);
        let fit = sizes.fit();
        let quotas = match fit {
            true => sizes.wanted.clone(),
            false => sizes.least_latency(tenants, |at| wrong[at].unwrap_or(1.0)),
        };
        let mut decisions = sizes.decisions(tenants, constraints, &quotas);
        for ((decision, tenant), factor) in decisions.iter_mut().zip(tenants).zip(&wrong) {
            let (Some(factor), Some(found)) = (factor, tenant.found()) else { continue };
            let quota = decision.quota_blocks.into();
            if let Some(predicted) = &mut decision.predicted {
                let (share, latency) =
                    (read_share(&found.epoch.classes), predicted_reads(found, quota).unwrap_or(0.0));
                predicted.latency += share * latency * (factor - 1.0);
            }
            let how = if fit { "measured" } else { "sized by measurement" };
            decision.reason += &format!("; {how}: its reads take {factor:.2} times what its curve says");
        }
        Ok(decisions)
    }
}

/// What the reads under the last decision took in the mean, what they take by the curves with the blocks that the tenant held, and the part of an epoch in which that was.
fn reads(tenant: &Tenant<'_>, found: &Findings) -> Option<(f64, f64, f64)> {
    let under = found.under_decision();
    let (hits, misses) = (under.measured.read_hits, under.measured.read_misses);
    let count = hits.count + misses.count;
    let measured = (count > 0).then(|| (hits.seconds + misses.seconds) / count as f64)?;
    Some((measured, predicted_reads(found, held_blocks(tenant))?, under.part))
}

/// What a read takes in the mean with so many blocks; none where nothing was read.
fn predicted_reads(found: &Findings, blocks: u64) -> Option<f64> {
    let (reads, _) = accesses(&found.epoch.classes);
    let hits = (reads > 0).then(|| (found.epoch.hit_curve().hits(blocks) as f64 / reads as f64).min(1.0))?;
    Some(hits * found.latencies.read_hit + (1.0 - hits) * found.latencies.read_miss)
}

#[cfg(test)]
mod tests;
