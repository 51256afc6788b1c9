//! How long a run is, as far as is known beforehand, and what that makes of a budget of SSD writes that is told by the day.

use larder_alloc::control::WriteBudget;
use larder_sim::tenants::TenantsPlan;

use crate::problem::Problem;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Seconds that it takes at most, where that is known.
    pub seconds: Option<f64>,
    /// All requests may be done before.
    pub may_end_early: bool,
}

impl Length {
    /// Where all requests come at once nothing tells what part of a day, or of anything else by time, is theirs.
    pub fn check(self) -> Result<(), Problem> {
        if self.seconds == Some(0.0) {
            let what = "all requests come at the same time: nothing tells which part of a day's SSD writes is theirs";
            return Err(Problem::new(what, "keep a number of them outstanding instead: --closed 8"));
        }
        Ok(())
    }

    /// A run under what may be written in a day. Its last day, if it is not a whole one, has its part of that; where the run may end at any time, or nobody knows when, it is spent evenly.
    pub fn under(self, day: WriteBudget, plan: TenantsPlan) -> TenantsPlan {
        TenantsPlan {
            budget: Some(of_a_run(day, self.seconds)),
            spends_evenly: self.may_end_early || self.seconds.is_none(),
            ends_seconds: self.seconds,
            ..plan
        }
    }
}

/// A run that is shorter than the budget's period has its part of it: otherwise the whole day's writes could fall into a minute.
fn of_a_run(budget: WriteBudget, seconds: Option<f64>) -> WriteBudget {
    match seconds {
        Some(seconds) if seconds > 0.0 && seconds < budget.period_seconds => {
            of_whole_run(budget.bytes * seconds / budget.period_seconds, seconds)
        }
        _ => budget,
    }
}

/// What comes at the very end of a run is still of its budget's period, which ends so many seconds later: a look that is due within a nanosecond is made before it.
pub const AFTER_LAST: f64 = 1e-6;

/// What may be written in a whole run of so many seconds.
pub fn of_whole_run(bytes: f64, seconds: f64) -> WriteBudget {
    WriteBudget { bytes, period_seconds: seconds + AFTER_LAST }
}
