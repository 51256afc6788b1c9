//! What would be, were a tenant's part of the cache another: the curves by which is decided, and a dry run of the allocator. Nothing changes by asking.
//!
//! Expectations are those of the curves alone, for the parts that the tenants have now as for those that they would have, so that the two can be compared. An allocator
//! that learns from its mistakes (`larder`) predicts something else by as much as it was wrong before.

use super::ControlLoop;
use crate::menu::{Menu, Point, Way};
use crate::{
    AllocError, Constraints, Decision, Findings, Goals, Measured, Mode, SinceDecision, Tenant, centaur,
};

/// What a tenant's partition is like, and does.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// Its blocks.
    pub quota_blocks: u32,
    /// How it works.
    pub mode: Mode,
    /// What it does by the tenant's curves; none of a tenant that did nothing lately.
    pub expected: Option<Point>,
}

/// What becomes of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Prospect {
    /// Its number.
    pub tenant: usize,
    /// Its requests per second.
    pub requests_per_second: f64,
    /// As it is.
    pub now: Outlook,
    /// As it would be.
    pub then: Outlook,
}

/// Why nothing can be told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DryRunError {
    /// There is no decision yet, or the tenant did nothing in the epoch before it.
    #[error(
        "nothing is known of it yet: it did nothing in the epoch before the last decision, or none is over"
    )]
    NothingFound,
    /// Who decides wants no curves.
    #[error("{allocator} decides without curves")]
    NoCurves {
        /// Who decides.
        allocator: &'static str,
    },
    /// The cache has less.
    #[error("the cache has {cache_blocks} blocks, and not {blocks}")]
    TooLarge {
        /// What was asked about.
        blocks: u64,
        /// What there is.
        cache_blocks: u32,
    },
    /// The others cannot be decided about.
    #[error(transparent)]
    Undecided(#[from] AllocError),
}

impl ControlLoop {
    /// The ways in which a tenant's partition can be run, by what was found at the last decision: for each mode what every size does.
    ///
    /// # Errors
    /// Where nothing was found.
    pub fn ways(&self, tenant: usize) -> Result<Menu, DryRunError> {
        if self.needs.curves.is_empty() && self.needs.bank.is_empty() {
            return Err(DryRunError::NoCurves { allocator: self.allocator() });
        }
        let inputs = self.last_inputs();
        let input = inputs.iter().find(|(at, _)| *at == tenant).ok_or(DryRunError::NothingFound)?;
        let menu = menu(&input.1, self.config.write_back);
        if menu.ways.is_empty() { Err(DryRunError::NothingFound) } else { Ok(menu) }
    }

    /// What becomes of all tenants that are there if one of them has so many blocks from now on, and the allocator divides the rest among the others.
    ///
    /// # Errors
    /// Where nothing was found about the tenant, the cache is smaller, or the allocator cannot decide about the others.
    pub fn what_if(&self, tenant: usize, blocks: u64) -> Result<Vec<Prospect>, DryRunError> {
        let cache_blocks = self.config.cache_blocks;
        let given = u32::try_from(blocks).ok().filter(|given| *given <= cache_blocks);
        let given = given.ok_or(DryRunError::TooLarge { blocks, cache_blocks })?;
        self.ways(tenant)?;
        let inputs = self.last_inputs();
        let (one, others): (Vec<_>, Vec<_>) = inputs.into_iter().partition(|(at, _)| *at == tenant);
        let alone = one.into_iter().map(|(at, input)| (at, alone(input, given)));
        let mut all = self.rehearse(alone.collect(), given)?;
        // It has them, whether it would be content with fewer or not.
        all.iter_mut().for_each(|(_, _, decision)| decision.quota_blocks = given);
        all.extend(self.rehearse(others, cache_blocks - given)?);
        all.sort_by_key(|(at, ..)| *at);
        let prospect = |(at, input, decision): (usize, Tenant<'_>, Decision)| {
            let menu = menu(&input, self.config.write_back);
            Prospect {
                tenant: at,
                requests_per_second: menu.requests_per_second,
                now: outlook(&menu, input.quota_blocks, input.mode),
                then: outlook(&menu, decision.quota_blocks, decision.mode),
            }
        };
        Ok(all.into_iter().map(prospect).collect())
    }

    /// What a copy of the allocator decides about these tenants, were the cache of this size.
    fn rehearse<'a>(
        &self,
        inputs: Vec<(usize, Tenant<'a>)>,
        cache_blocks: u32,
    ) -> Result<Vec<(usize, Tenant<'a>, Decision)>, AllocError> {
        // Nothing has happened since the last decision: what it learned is not to be learned twice.
        let constraints = Constraints { cache_blocks, passed_seconds: Some(0.0), ..self.constraints() };
        let nothing = SinceDecision { measured: Measured::default(), seconds: 0.0, part: 0.0 };
        // Nor is it known what would be worth writing to a cache that is divided otherwise.
        let known = |(_, input): &(usize, Tenant<'_>)| {
            input.findings.map(|found| Findings {
                since_decision: Some(nothing),
                held_at_price: None,
                ..found.clone()
            })
        };
        let found: Vec<_> = inputs.iter().map(known).collect();
        let with = inputs.iter().zip(&found);
        let tenants: Vec<_> =
            with.map(|((_, input), found)| Tenant { findings: found.as_ref(), ..*input }).collect();
        let decisions = self.allocator.fork().allocate(&tenants, &constraints)?;
        Ok(inputs.into_iter().zip(decisions).map(|((at, input), decision)| (at, input, decision)).collect())
    }

    /// The tenants that are there, with what was found at the last decision, and their numbers.
    fn last_inputs(&self) -> Vec<(usize, Tenant<'_>)> {
        let (there, inputs) = self.inputs(&[]);
        let found = |at: usize| self.positions[at].findings.as_ref();
        let with = there.into_iter().zip(inputs);
        with.map(|(at, input)| (at, Tenant { findings: found(at), ..input })).collect()
    }
}

/// A tenant that has a cache of this size to itself, whatever is wanted of its size otherwise.
fn alone(input: Tenant<'_>, blocks: u32) -> Tenant<'_> {
    let goals = Goals { max_blocks: None, ..input.goals };
    Tenant { goals, min_blocks: input.min_blocks.min(blocks), configured_quota_blocks: None, ..input }
}

/// All that is known of what a tenant's partition would do: Centaur's curves are of batched population alone.
fn menu(input: &Tenant<'_>, write_back: bool) -> Menu {
    let Some(findings) = input.found() else { return Menu::default() };
    let mut menu = Menu::of(findings, write_back);
    if menu.ways.is_empty()
        && let Some(points) = centaur::points(input)
    {
        menu.ways.push(Way { mode: input.mode, points });
    }
    menu
}

fn outlook(menu: &Menu, quota_blocks: u32, mode: Mode) -> Outlook {
    // Some allocators go by the curves of another cache than they make.
    let way = menu.ways.iter().find(|way| way.mode == mode);
    let way = way.or_else(|| menu.ways.iter().find(|way| way.mode.write == mode.write));
    let expected = way.or(menu.ways.first()).map(|way| way.at(quota_blocks.into()));
    Outlook { quota_blocks, mode, expected }
}

#[cfg(test)]
mod tests;
