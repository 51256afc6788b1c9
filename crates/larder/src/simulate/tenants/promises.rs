//! What was promised to tenants, what came of it, and what allocators say about it.

use larder_alloc::{Goals, Reservation};
use larder_sim::tenants::{TenantResult, TenantsResult};

use super::found::Found;
use super::grid::table;
use super::report::{last, size};
use crate::number::{compact, time};

/// The heading and a table, or nothing where nothing was promised.
pub fn render(found: &Found<'_>, width: u16) -> String {
    let promised: Vec<(usize, Goals)> = found
        .goals
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, goals)| goals.reservation.is_some() || goals.share.is_some())
        .collect();
    if promised.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    for group in &found.groups {
        for (at, run) in group.runs.iter().enumerate() {
            for (number, &(tenant, goals)) in promised.iter().enumerate() {
                let (cache, allocator) = match number {
                    0 => (size(group, at), run.allocator.clone()),
                    _ => (String::new(), String::new()),
                };
                let result = &run.tenants[tenant];
                let [promise, came] = promise_and_outcome(&goals, result);
                rows.push([cache, allocator, result.name.clone(), promise, came, words(run, tenant, &goals)]);
            }
        }
    }
    let headings = ["cache", "allocator", "tenant", "promised", "came", "what is said of it last"];
    format!("\nPromises\n{}", table(headings, rows, &[1, 2, 5], width))
}

fn promise_and_outcome(goals: &Goals, came: &TenantResult) -> [String; 2] {
    let share = goals.share.map(|share| format!("a share of {share}"));
    let and_share = share.as_ref().map(|share| format!(", {share}")).unwrap_or_default();
    match goals.reservation {
        Some(Reservation::Latency(most)) => {
            [format!("up to {}{and_share}", time(most)), time(came.mean_latency)]
        }
        Some(Reservation::Iops(least)) => {
            let iops = |iops: f64| format!("{} IOPS", compact(iops.round() as u64));
            [format!("{}{and_share}", iops(least)), iops(came.iops)]
        }
        None => [share.unwrap_or_default(), time(came.mean_latency)],
    }
}

/// What the last decision about a tenant says of its promise.
fn words(run: &TenantsResult, tenant: usize, goals: &Goals) -> String {
    let keeps = larder_alloc::by_name(&run.allocator).is_some_and(|it| it.profile().keeps_promises);
    if !keeps {
        return format!("nothing: {} knows no promises", run.allocator);
    }
    let last = last(run).into_iter().find(|row| row.tenant == tenant);
    // Where nothing is predicted, nothing was decided: the tenant has come, or others have, or it was idle.
    let Some(decision) = last.filter(|row| row.predicted_latency.is_some()) else {
        return "nothing: it was idle, or nothing was decided since it came, or others did".into();
    };
    let about = [goals.reservation.map(|_| "reserv"), goals.share.map(|_| "its share of")];
    let said = |about| decision.reason.split("; ").find(|words| words.contains(about));
    let said: Vec<_> = about.into_iter().flatten().filter_map(said).collect();
    if said.is_empty() { "nothing".into() } else { said.join("; ") }
}
