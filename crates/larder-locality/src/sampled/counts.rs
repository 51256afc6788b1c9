//! What a sampled analysis counted, apart from it: to be added to what others counted, and to draw curves of.

use crate::lane::{Scaled, Totals};
use crate::{ClassCounts, CurvePolicy, PolicyCurves};

use super::classes::Classes;

/// The counts of an analysis at one moment.
#[derive(Clone, Debug)]
pub struct SampledCounts {
    pub(super) totals: Totals,
    pub(super) classes: Classes,
    /// One for each lane.
    pub(super) lanes: Vec<Scaled>,
    /// Policies and the numbers of their lanes.
    pub(super) policies: Vec<(CurvePolicy, usize)>,
}

/// Counts of different policies cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the counts are not of the same policies")]
pub struct PoliciesDiffer;

impl SampledCounts {
    /// Add the counts of another analysis of the same policies: of other tenants, of another time. Of two samples of the
    /// *same* accesses, taken with different seeds, halve both first ([`SampledCounts::decay`]): the sum is their mean.
    ///
    /// # Errors
    /// The other analysis is of other policies. Nothing changes then.
    pub fn merge(&mut self, other: &Self) -> Result<(), PoliciesDiffer> {
        if self.policies != other.policies {
            return Err(PoliciesDiffer);
        }
        self.totals.merge(&other.totals);
        self.classes.merge(&other.classes);
        self.lanes.iter_mut().zip(&other.lanes).for_each(|(lane, other)| lane.merge(other));
        Ok(())
    }

    /// Multiply all counts.
    pub fn decay(&mut self, factor: f64) {
        self.totals.decay(factor);
        self.classes.decay(factor);
        self.lanes.iter_mut().for_each(|lane| lane.decay(factor));
    }

    /// The curves, in the order in which the policies were given.
    pub fn curves(&self) -> Vec<PolicyCurves> {
        let curves = |&(policy, lane): &(CurvePolicy, usize)| {
            PolicyCurves::new(policy, self.lanes[lane].counted_of(&self.totals))
        };
        self.policies.iter().map(curves).collect()
    }

    /// Block accesses by request class. Their sum is exact.
    pub fn classes(&self) -> ClassCounts {
        self.classes.counts(&self.totals)
    }

    /// Accesses and requests in all: exact.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}
