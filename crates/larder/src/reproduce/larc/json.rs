//! The report as JSON: blocks, bytes, and shares where 1 is the whole (a gain of 2.5 is one of 250 %).

use serde_json::{Value, json};

use super::change::{Change, Response};
use super::claims::Finding;
use super::report::{PAPER, Report};
use super::study::{BLOCK, Outcome, Point, Study, Tally, WRITE};
use larder_policy::spec::PolicySpec;

/// The report.
pub fn render(report: &Report<'_>) -> String {
    let claims = report.claims.iter().map(|claim| {
        json!({
            "id": claim.id, "claim": claim.text, "paper": claim.paper,
            "whole": finding(&claim.whole), "second_half": claim.half.as_ref().map(finding),
        })
    });
    let value = json!({
        "paper": PAPER,
        "block_bytes": BLOCK.bytes(),
        "write_policy": WRITE.as_str(),
        "larc_admission": report.larc.to_string(),
        "workloads": report.studies.iter().map(study).collect::<Vec<_>>(),
        "claims": claims.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn finding(finding: &Finding) -> Value {
    json!({ "verdict": finding.verdict.as_str(), "here": finding.here, "because": finding.because })
}

fn study(study: &Study) -> Value {
    json!({
        "name": study.workload.name,
        "trace": study.workload.parts.to_string(),
        "generated": study.workload.is_generated(),
        "read_dominated": study.is_read_dominated(),
        "block_read_share": study.read_share,
        "requests": study.summary.requests(),
        "block_accesses": study.summary.block_accesses,
        "footprint_blocks": study.summary.footprint_blocks,
        "re_reference_share": study.re_references(),
        "whole": study.whole.iter().map(point).collect::<Vec<_>>(),
        "second_half": study.half.iter().map(point).collect::<Vec<_>>(),
        "change": study.change.as_ref().map(change),
    })
}

fn point(point: &Point) -> Value {
    json!({
        "cache_blocks": point.cache_blocks,
        "cache_bytes": point.cache_blocks * u64::from(BLOCK.bytes()),
        "policies": point.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        "gain_over_lru": point.gain_over(PolicySpec::Lru),
        "gain_over_arc": point.gain_over(PolicySpec::Arc),
        "saving_over_lru": point.saving(),
    })
}

fn outcome(outcome: &Outcome) -> Value {
    let mut value = tally(&outcome.tally);
    value["policy"] = outcome.policy.name().into();
    value
}

fn tally(tally: &Tally) -> Value {
    json!({
        "block_accesses": tally.accesses,
        "hits": tally.hits,
        "hit_ratio": tally.hit_ratio(),
        "write_hits": tally.write_hits,
        "replacements": tally.replacements,
        "ssd_writes": tally.ssd_writes(),
    })
}

fn change(change: &Change) -> Value {
    let series = change.series.iter().map(|(policy, series)| {
        let Response { before, end, back_after, settled_after, .. } = change.response(*policy);
        json!({
            "policy": policy.name(),
            "before": tally(&before),
            "end": tally(&end),
            "back_after_block_accesses": back_after,
            "settled_after_block_accesses": settled_after,
            "intervals": series.iter().map(tally).collect::<Vec<_>>(),
        })
    });
    json!({
        "cache_blocks": change.cache_blocks,
        "interval_block_accesses": change.every,
        "first_interval_after": change.at,
        "series": series.collect::<Vec<_>>(),
    })
}
