//! The budget of SSD writes in a line for people.

use std::time::Duration;

use larder_daemon::status::{TenantStatus, WriteBudgetStatus};
use larder_daemon::units::{HumanDuration, HumanSize};

use crate::number::grouped;

/// How far it is used up, and what it has cost.
pub fn line(budget: &WriteBudgetStatus, tenants: &[TenantStatus]) -> String {
    let rest = Duration::try_from_secs_f64(budget.rest_seconds).unwrap_or_default();
    let sum = |of: fn(&TenantStatus) -> u64| grouped(tenants.iter().map(of).sum());
    format!(
        "SSD write budget {}: {} of {} written, {} to go; {} blocks kept out, {} writes passed by",
        budget.configured,
        HumanSize(budget.written_bytes),
        HumanSize(budget.bytes),
        HumanDuration(rest),
        sum(|tenant| tenant.budget_refused_blocks + tenant.budget_turned_away_blocks),
        sum(|tenant| tenant.budget_diverted_blocks),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_in_a_line() {
        let budget = WriteBudgetStatus {
            configured: "4GiB/day".into(),
            bytes: 4 << 30,
            period_seconds: 86_400.0,
            written_bytes: 3 << 30,
            left_bytes: 1 << 30,
            room_bytes: 1 << 20,
            rest_seconds: 7200.0,
        };
        let said = line(&budget, &[]);
        assert!(said.starts_with("SSD write budget 4GiB/day: 3 GiB of 4 GiB written, "), "{said}");
        assert!(said.ends_with(" to go; 0 blocks kept out, 0 writes passed by"), "{said}");
    }
}
