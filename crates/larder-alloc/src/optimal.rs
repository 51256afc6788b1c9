//! `optimal`: of all sizes, write policies and admissions that the menus offer, the exactly best combination: the
//! reference that other allocators are held against, for small numbers of tenants.
//!
//! The weighted sum of the tenants' latencies, each times its requests per second, is the least that can be had under
//! the size of the cache, the tenants' minima, maxima and reservations, and the budget of SSD writes. It is the best by
//! the curves of the last epoch: what the next one brings nobody knows. Nothing is remembered, and a change costs
//! nothing.

mod prices;
mod promises;
mod solve;

use larder_locality::CurvePolicy;
use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};

use self::promises::{Plan, plan};
pub use self::solve::{COMBINATIONS_MAX, FRONT_MAX, Room, Solution, Unsolved, solve, solve_within, thrifty};
use crate::bounds::bounds;
use crate::menu::{Menu, Point};
use crate::shares::share_out;
use crate::words::grouped;
use crate::{
    AllocError, Allocator, Choice, ConfiguredPolicy, Constraints, Decision, Mode, Needs, Prediction, Profile,
    Tenant, WritePolicy,
};

/// The exact reference.
///
/// Blocks that would bring nothing by the curves are shared out equally, as far as the maxima allow. A reservation that
/// cannot be met is refused, and the reason says what can be had; of several that can be met alone, but not together,
/// those of the first tenants are granted. Where every combination exceeds the budget of writes, the one that
/// writes the least is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Optimal;

impl Optimal {
    /// Its name.
    pub const NAME: &str = "optimal";
}

impl Allocator for Optimal {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(*self)
    }

    fn profile(&self) -> Profile {
        Profile { keeps_promises: true, ..Profile::default() }
    }

    /// LRU under every write policy, and the same behind LARC's and a second-access admission.
    fn needs(&self, _limited_writes: bool) -> Needs {
        let admissions = [AdmissionSpec::Larc, AdmissionSpec::Nth(2)];
        let cachings = admissions.into_iter().filter_map(|one| CachingSpec::new(PolicySpec::Lru, one).ok());
        let writes = [WritePolicy::WriteBack, WritePolicy::WriteThrough, WritePolicy::ReadOnly];
        Needs {
            curves: vec![
                CurvePolicy::WriteBack,
                CurvePolicy::WriteThrough,
                CurvePolicy::WriteThroughNoAllocate,
                CurvePolicy::ReadOnly,
            ],
            bank: cachings.flat_map(|caching| writes.map(|write| Mode { caching, write })).collect(),
            ..Needs::default()
        }
    }

    /// # Errors
    /// [`AllocError::TooLarge`]
    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let sizes = bounds(tenants, constraints.cache_blocks.into());
        // No bound is larger than the cache.
        let fitting: Vec<_> = tenants
            .iter()
            .zip(&sizes)
            .map(|(&tenant, size)| Tenant { min_blocks: size.least as u32, ..tenant })
            .collect();
        let menu = |tenant: &Tenant<'_>| {
            tenant.found().map(|found| Menu::of(found, constraints.write_back)).unwrap_or_default()
        };
        let menus: Vec<_> = tenants.iter().map(menu).collect();
        let plan = plan(&fitting, &menus, constraints)?;

        let mut quotas: Vec<_> = plan.choices.iter().map(|choice| choice.blocks).collect();
        let most: Vec<_> = sizes.iter().map(|size| size.most).collect();
        let spare = u64::from(constraints.cache_blocks) - quotas.iter().sum::<u64>();
        share_out(spare, &mut quotas, &most);
        let decide = |(at, tenant): (usize, &Tenant<'_>)| decision(tenant, &menus[at], &plan, at, quotas[at]);
        Ok(tenants.iter().enumerate().map(decide).collect())
    }
}

fn decision(tenant: &Tenant<'_>, menu: &Menu, plan: &Plan, at: usize, quota: u64) -> Decision {
    let choice = &plan.choices[at];
    let spare = quota - choice.blocks;
    // A quota is no larger than the cache.
    let quota_blocks = quota as u32;
    let Some(way) = menu.ways.get(choice.way as usize) else {
        let write = match tenant.configured_policy {
            ConfiguredPolicy::Fixed(policy) => policy,
            ConfiguredPolicy::Auto => tenant.mode.write,
        };
        let known = if tenant.found().is_some() { "no curves of" } else { "idle in" };
        let reason = format!(
            "{known} this epoch: the minimum of {} blocks, and {} spare ones; {} under {write} as before",
            grouped(choice.blocks),
            grouped(spare),
            tenant.mode.caching
        );
        return Decision { quota_blocks, mode: Mode { write, ..tenant.mode }, predicted: None, reason };
    };
    let point = way.at(choice.blocks);
    let reason = format!("{}; {}", words(way.mode, choice, &point, spare), plan.words(at));
    let predicted = Prediction {
        latency: point.latency,
        request_hit_ratio: point.request_hit_ratio,
        ssd_writes_per_second: point.ssd_writes,
    };
    Decision { quota_blocks, mode: way.mode, predicted: Some(predicted), reason }
}

/// `1,000 blocks as lru under wb, and 24 spare ones: 0.52 ms and 13 SSD writes/s expected`
fn words(mode: Mode, choice: &Choice, point: &Point, spare: u64) -> String {
    format!(
        "{} blocks as {} under {}, and {} spare ones: {:.3} ms and {:.0} SSD writes/s expected",
        grouped(choice.blocks),
        mode.caching,
        mode.write,
        grouped(spare),
        point.latency * 1000.0,
        point.ssd_writes
    )
}

#[cfg(test)]
mod against;
#[cfg(test)]
mod tests;
