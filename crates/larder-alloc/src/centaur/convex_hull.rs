//! `convex-hull`: the partitioning that Centaur is held against (section IV-A; Suh, Rudolph, Devadas 2004).
//!
//! 1. All partitions begin at their least.
//! 2. Each tenant's curve is replaced by its convex minorant.
//! 3. The tenant whose minorant falls most by the next block gets it.
//! 4. That is repeated until no block is left.
//!
//! A segment of a minorant is straight: the tenant with the steepest one gets block after block until its end, so that
//! whole segments are given in the order of their slopes, and the last one in part. That part may bring nothing, where
//! the curve runs above its minorant (Figure 5): it is what Centaur avoids. What is left when all curves are flat is
//! shared out equally.
//!
//! The curves are those of the objective, as with `centaur`; the paper's are of misses.

use crate::bounds::Bounds;
use crate::centaur::annealing::Step;
use crate::centaur::partition::filled;
use crate::centaur::reservations::Verdict;
use crate::centaur::{Host, Plan, needs, profile, steps, words};
use crate::division::steepest_first;
use crate::hull::{Choice, GAIN_UNIT};
use crate::{AllocError, Allocator, Constraints, Decision, Needs, Profile, Tenant};

/// The convex-hull approach, on Centaur's curves and with Centaur's cache. It knows neither reservations nor shares.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConvexHull;

impl ConvexHull {
    /// Its name.
    pub const NAME: &str = "convex-hull";
}

impl Allocator for ConvexHull {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn fork(&self) -> Box<dyn Allocator + Send> {
        Box::new(*self)
    }

    fn profile(&self) -> Profile {
        profile()
    }

    fn needs(&self, _limited_writes: bool) -> Needs {
        needs()
    }

    fn allocate(
        &mut self,
        tenants: &[Tenant<'_>],
        constraints: &Constraints,
    ) -> Result<Vec<Decision>, AllocError> {
        let host = Host::of(tenants, constraints);
        let costs = host.costs(&vec![Verdict::None; tenants.len()]);
        // The minorant is that of the whole curve, whatever the tenant may have of it.
        let whole = |bounds: &Bounds| Bounds { most: u64::MAX, ..*bounds };
        let steps: Vec<_> =
            costs.iter().zip(&host.bounds).map(|(cost, b)| steps(cost.as_ref(), whole(b))).collect();
        let sizes = by_hulls(&steps, &host.bounds, host.cache_blocks());
        let objective = words::objective(constraints.objective);
        let reason = format!("for {objective} by the convex hulls of the curves");
        Ok(host.decisions(Plan { sizes, words: vec![reason; tenants.len()] }))
    }
}

/// Steps 1 to 4.
fn by_hulls(steps: &[Vec<Step>], bounds: &[Bounds], cache_blocks: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = bounds.iter().map(|bounds| bounds.least).collect();
    let mut left = cache_blocks - sizes.iter().sum::<u64>();
    for segment in steepest_first(&gains(steps)) {
        let room = bounds[segment.tenant].most - sizes[segment.tenant];
        let blocks = segment.blocks.min(left).min(room);
        sizes[segment.tenant] += blocks;
        left -= blocks;
    }
    filled(sizes, bounds, cache_blocks)
}

/// What each step gains over the first, in whole numbers: the largest cost of all is [`GAIN_UNIT`].
fn gains(steps: &[Vec<Step>]) -> Vec<Vec<Choice>> {
    let largest = steps.iter().map(|list| list[0].cost).fold(f64::MIN_POSITIVE, f64::max);
    let choices = |list: &Vec<Step>| {
        let first = list[0];
        let mut choices = vec![Choice::NOTHING];
        for step in list {
            let gain = ((first.cost - step.cost) / largest * GAIN_UNIT as f64) as u64;
            // A gain of less than the unit is joined to the next one.
            if gain > choices[choices.len() - 1].gain {
                choices.push(Choice { blocks: step.blocks - first.blocks, gain });
            }
        }
        choices
    };
    steps.iter().map(choices).collect()
}
