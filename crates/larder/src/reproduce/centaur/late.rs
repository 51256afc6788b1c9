//! What a tenant had in the second half of a run, in which decisions have settled. Nothing, where requests end before a decision is made there.

use larder_sim::tenants::{DecisionRow, TenantsResult};

use crate::reproduce::claim::Claim;

/// How a cell reads of which nothing was measured.
pub const NOTHING: &str = "-";

/// Mean seconds of a tenant's requests.
pub fn latency(run: &TenantsResult, tenant: usize) -> Option<f64> {
    let weighed = epochs(run, tenant).filter_map(|row| Some((row.achieved.latency?, row.achieved.iops)));
    let (sum, weight) =
        weighed.fold((0.0, 0.0), |(sum, weight), (latency, iops)| (sum + latency * iops, weight + iops));
    (weight > 0.0).then(|| sum / weight)
}

/// A tenant's requests per second.
pub fn iops(run: &TenantsResult, tenant: usize) -> Option<f64> {
    let measured = epochs(run, tenant).filter(|row| row.achieved.latency.is_some());
    let rates: Vec<_> = measured.map(|row| row.achieved.iops).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

fn epochs(run: &TenantsResult, tenant: usize) -> impl Iterator<Item = &DecisionRow> {
    run.decisions.iter().filter(move |row| row.tenant == tenant && row.seconds >= run.seconds / 2.0)
}

/// Which part of runs is told of, after "the": those of so many seconds were to last `wanted`.
pub fn half(lasted: impl IntoIterator<Item = f64>, wanted: f64) -> String {
    let shortest = lasted.into_iter().fold(wanted, f64::min);
    // A run ends with its last request, which may be a little before its time.
    if shortest >= 0.99 * wanted {
        return format!("second half of {wanted} s");
    }
    let ended = crate::number::time(shortest);
    format!("second half of runs that end with their requests, the first after {ended} instead of {wanted} s")
}

/// A claim about runs in whose second half nothing was measured.
pub fn untested(claim: Claim) -> Claim {
    Claim { because: "the requests are at an end before anything is measured".into(), ..claim }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_ends_early_is_told() {
        assert_eq!(half([600.0, 599.9, 600.1], 600.0), "second half of 600 s");
        assert!(half([600.0, 2.5], 600.0).contains("the first after 2.500 s instead of 600 s"));
    }
}
