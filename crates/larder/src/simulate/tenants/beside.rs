//! A run beside the daemon whose requests it simulates: the same decisions, the same hits?

use larder_alloc::Measured;
use larder_daemon::record::account::{Account, DecidedTenant, MeasuredRequests};
use larder_sim::tenants::{DecisionRow, TenantsResult};
use serde::Serialize;

use super::found::Found;
use super::grid;
use super::like::Like;
use crate::number::percent;

/// A tenant in both, from the daemon's first decision in the recording to its last.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Beside {
    /// The tenant.
    pub tenant: String,
    /// Decisions of the daemon.
    pub decisions: u64,
    /// Those in which the run gave the tenant the same size, write policy, replacement and admission.
    pub same_decisions: u64,
    /// Requests that the daemon counted.
    pub daemon_requests: u64,
    /// Requests of the run.
    pub requests: u64,
    /// Those that the SSD served alone, 0 to 1, in the daemon; none without requests.
    pub daemon_request_hit_ratio: Option<f64>,
    /// The same in the run.
    pub request_hit_ratio: Option<f64>,
}

/// All tenants of a run under the daemon's own allocator.
pub fn beside(account: &Account, run: &TenantsResult) -> Vec<Beside> {
    let of = |(at, tenant): (usize, &larder_sim::tenants::TenantResult)| {
        // The first row is of the time before the first decision.
        let rows: Vec<&DecisionRow> = run.decisions.iter().filter(|row| row.tenant == at).skip(1).collect();
        compare(&tenant.name, &rows, &told(account, &tenant.name))
    };
    run.tenants.iter().enumerate().map(of).collect()
}

/// The decisions about a tenant, each with what was measured since the one before.
fn told(account: &Account, name: &str) -> Vec<DecidedTenant> {
    let mut told = Vec::new();
    let mut measured = Measured::default();
    for decided in &account.decisions {
        let Some(tenant) = decided.tenants.iter().find(|it| it.name == name) else { continue };
        measured.add(&tenant.measured.measured());
        if !decided.is_renewal() {
            let measured = MeasuredRequests::of(&std::mem::take(&mut measured));
            told.push(DecidedTenant { measured, ..tenant.clone() });
        }
    }
    told
}

/// The same for people; nothing where there is nothing to compare with.
pub fn table(all: &[Found<'_>], like: &Like, width: u16) -> String {
    let rows: Vec<_> = all.iter().flat_map(Found::runs).flat_map(|run| like.beside(run)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let headings =
        ["tenant", "decisions", "the same", "requests:\ndaemon", "\nhere", "request hits:\ndaemon", "\nhere"];
    let row = |it: &Beside| {
        [
            it.tenant.clone(),
            it.decisions.to_string(),
            it.same_decisions.to_string(),
            it.daemon_requests.to_string(),
            it.requests.to_string(),
            percent(it.daemon_request_hit_ratio),
            percent(it.request_hit_ratio),
        ]
    };
    let text = grid::table(headings, rows.iter().map(row), &[0], width);
    format!("\nBeside the daemon, from its first decision on\n{text}")
}

fn compare(name: &str, rows: &[&DecisionRow], told: &[DecidedTenant]) -> Beside {
    let same = |(row, told): &(&&DecisionRow, &DecidedTenant)| {
        (row.quota_blocks, &row.write_policy, &row.caching)
            == (told.quota_blocks, &told.write_policy, &told.caching)
    };
    // What the daemon measured before a decision belongs to the one before it.
    let between = rows.iter().zip(told.iter().skip(1));
    let (mut requests, mut hits, mut daemon_requests, mut daemon_hits) = (0, 0.0, 0, 0);
    for (row, told) in between {
        let measured = told.measured.measured();
        daemon_requests += measured.requests();
        daemon_hits += measured.read_hits.count + measured.cached_writes.count;
        requests += row.achieved.requests;
        hits += row.achieved.request_hit_ratio.unwrap_or(0.0) * row.achieved.requests as f64;
    }
    let ratio = |hits: f64, of: u64| (of > 0).then(|| hits / of as f64);
    Beside {
        tenant: name.to_owned(),
        decisions: told.len() as u64,
        same_decisions: rows.iter().zip(told).filter(same).count() as u64,
        daemon_requests,
        requests,
        daemon_request_hit_ratio: ratio(daemon_hits as f64, daemon_requests),
        request_hit_ratio: ratio(hits, requests),
    }
}
