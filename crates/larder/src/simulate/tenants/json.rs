//! The runs as JSON.

use larder_sim::tenants::TenantsResult;
use serde::Serialize;

use super::beside::Beside;
use super::found::Found;
use super::like::Like;
use crate::problem::Problem;

#[derive(Serialize)]
struct All<'a> {
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    footprint_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside_daemon: Vec<Beside>,
    #[serde(flatten)]
    result: &'a TenantsResult,
}

/// One object with a list of runs.
pub fn render(all: &[Found<'_>], like: Option<&Like>) -> Result<String, Problem> {
    let runs = all.iter().flat_map(|found| {
        let scenario = found.workload.scenario.as_deref();
        found.runs().map(move |result| Run {
            scenario,
            footprint_bytes: found.footprint_bytes,
            beside_daemon: like.map_or_else(Vec::new, |like| like.beside(result)),
            result,
        })
    });
    let json = serde_json::to_string_pretty(&All { runs: runs.collect() });
    json.map(|json| json + "\n")
        .map_err(|error| Problem::new(error, "tell the authors: results always fit JSON"))
}
