//! `larder decisions`: what was decided about tenants, what was expected, and what came.

use larder_daemon::decisions::{ToldDecision, ToldDecisions};
use larder_daemon::units::HumanSize;

use crate::cli;
use crate::columns::Columns;
use crate::output::{print, tell};
use crate::problem::Problem;
use crate::status;

/// Of one tenant all that is kept, or of each the last.
pub fn show(options: &cli::Decisions) -> Result<(), Problem> {
    let socket = status::socket(&options.daemon)?;
    let of = |name: &str| status::obeyed::<ToldDecisions>(&socket, &format!("decisions {name}"));
    let status = status::asked(&socket)?;
    let told = match &options.tenant {
        Some(name) => vec![of(name)?],
        None => status.tenants.iter().map(|tenant| of(&tenant.name)).collect::<Result<_, _>>()?,
    };
    if options.json {
        return told.iter().try_for_each(|told| tell(format_args!("{:#}", serde_json::json!(told))));
    }
    let block = u64::from(status.cache.block_bytes);
    let rows: Vec<(&str, &ToldDecision)> = told
        .iter()
        .flat_map(|told| {
            let from = if options.tenant.is_some() { 0 } else { told.decisions.len().saturating_sub(1) };
            told.decisions[from..].iter().map(|decision| (told.tenant.as_str(), decision))
        })
        .collect();
    if rows.is_empty() {
        return tell("nothing was decided yet: the first epoch is not over");
    }
    print(&table(&rows, block))?;
    let last = rows.iter().rev().take(if options.tenant.is_some() { 1 } else { rows.len() });
    last.rev().try_for_each(|(name, decision)| tell(format_args!("{name}: {}", decision.reason)))
}

fn table(rows: &[(&str, &ToldDecision)], block: u64) -> String {
    let header = [
        "tenant",
        "epoch",
        "by",
        "quota",
        "policy",
        "caching",
        "expected",
        "came",
        "error",
        "hits expected",
        "came",
    ];
    let mut table = Columns::new(header).words([0, 2, 4, 5]).plain();
    for (name, decision) in rows {
        let size = HumanSize(u64::from(decision.quota_blocks) * block);
        table.row([
            (*name).to_owned(),
            decision.epoch.to_string(),
            decision.allocator.clone(),
            size.to_string(),
            decision.write_policy.clone(),
            decision.caching.clone(),
            milliseconds(decision.predicted_latency_seconds),
            milliseconds(decision.achieved.and_then(|came| came.latency_seconds)),
            if decision.overtaken { "changed".into() } else { signed_percent(decision.latency_error) },
            percent(decision.predicted_request_hit_ratio),
            percent(decision.achieved.and_then(|came| came.request_hit_ratio)),
        ]);
    }
    table.text(usize::MAX)
}

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), |seconds| format!("{:.3} ms", seconds * 1e3))
}

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{:.1} %", ratio * 100.0))
}

fn signed_percent(part: Option<f64>) -> String {
    part.map_or("-".into(), |part| format!("{:+.0} %", part * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_a_row() {
        let decision: ToldDecision = serde_json::from_str(
            r#"{ "unix_seconds": 1.0, "epoch": 3, "allocator": "larder", "found": null, "quota_blocks": 256, "write_policy": "wt",
                "caching": "lirs", "predicted_latency_seconds": 0.002, "predicted_request_hit_ratio": 0.5, "predicted_ssd_blocks_per_second": 1.0,
                "achieved": { "until_unix_seconds": 2.0, "requests": 9, "latency_seconds": 0.0025, "request_hit_ratio": null, "ssd_blocks_written": 4, "occupied_blocks": 5 },
                "latency_error": 0.25, "hit_ratio_error": null, "reason": "so" }"#,
        )
        .expect("as it is told");
        let text = table(&[("db", &decision)], 4096);
        let row = text.lines().nth(1).expect("a row").split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(row, "db 3 larder 1 MiB wt lirs 2.000 ms 2.500 ms +25 % 50.0 % -");
        let overtaken = ToldDecision { latency_error: None, overtaken: true, ..decision };
        assert!(table(&[("db", &overtaken)], 4096).contains("2.500 ms  changed"));
    }
}
