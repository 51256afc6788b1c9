//! `larder curves` and `larder what-if`: what other sizes would bring. Nothing changes by asking.

use larder_daemon::control::Request;
use larder_daemon::epoch::explore::{ToldCurve, ToldCurves, ToldOutlook, ToldProspect, ToldWhatIf};
use larder_daemon::units::HumanSize;

use crate::cli;
use crate::columns::Columns;
use crate::number::{percent, time};
use crate::output::{print, tell};
use crate::problem::Problem;
use crate::status;

/// `larder curves`: a table for each way in which the tenant's cache can work.
pub fn curves(options: &cli::Curves) -> Result<(), Problem> {
    let socket = status::socket(&options.daemon)?;
    let told: ToldCurves = status::obeyed(&socket, &format!("curves {}", options.tenant))?;
    if options.json {
        return tell(format_args!("{:#}", serde_json::json!(told)));
    }
    let quota = HumanSize(told.quota_bytes);
    tell(format_args!("{}: {:.1} requests/s; it has {quota}", told.tenant, told.requests_per_second))?;
    for curve in &told.curves {
        tell(format_args!("\n{}, {}", curve.caching, curve.write_policy))?;
        print(&over_sizes(curve))?;
    }
    Ok(())
}

/// `larder what-if`: what becomes of each tenant.
pub fn what_if(options: &cli::WhatIf) -> Result<(), Problem> {
    let socket = status::socket(&options.daemon)?;
    let told: ToldWhatIf = status::obeyed(&socket, &Request::what_if_line(&options.tenant, options.size))?;
    if options.json {
        return tell(format_args!("{:#}", serde_json::json!(told)));
    }
    print(&before_and_after(&told.tenants))?;
    let all = [told.latency_seconds_now, told.latency_seconds_then].map(seconds);
    tell(format_args!("all requests: {} now, {} then", all[0], all[1]))
}

fn over_sizes(curve: &ToldCurve) -> String {
    let mut table = Columns::new(["size", "hits", "latency", "SSD writes"]).plain();
    for point in &curve.points {
        table.row([
            HumanSize(point.bytes).to_string(),
            percent(Some(point.request_hit_ratio)),
            time(point.latency_seconds),
            rate(Some(point.ssd_write_bytes_per_second)),
        ]);
    }
    table.text(usize::MAX)
}

fn before_and_after(tenants: &[ToldProspect]) -> String {
    let header =
        ["tenant", "size now", "then", "hits now", "then", "latency now", "then", "SSD writes now", "then"];
    let mut table = Columns::new(header).words([0]).plain();
    for ToldProspect { tenant, now, then, .. } in tenants {
        let pair = |of: &dyn Fn(&ToldOutlook) -> String| [of(now), of(then)];
        let columns = [
            pair(&|it| HumanSize(it.quota_bytes).to_string()),
            pair(&|it| percent(it.request_hit_ratio)),
            pair(&|it| seconds(it.latency_seconds)),
            pair(&|it| rate(it.ssd_write_bytes_per_second)),
        ];
        table.row(std::iter::once(tenant.clone()).chain(columns.into_iter().flatten()));
    }
    table.text(usize::MAX)
}

fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), time)
}

fn rate(bytes_per_second: Option<f64>) -> String {
    // Rounded: a rate has no meaning below a byte.
    bytes_per_second.map_or("-".into(), |rate| format!("{}/s", HumanSize(rate.round() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, line: usize) -> String {
        text.lines().nth(line).expect("a line").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_told_is_a_row() {
        let prospect: ToldProspect = serde_json::from_str(
            r#"{ "tenant": "db", "requests_per_second": 9.0,
                "now": { "quota_bytes": 1048576, "caching": "lru", "write_policy": "wb", "request_hit_ratio": 0.5, "latency_seconds": 0.002, "ssd_write_bytes_per_second": 4096.4 },
                "then": { "quota_bytes": 0, "caching": "lru", "write_policy": "wb", "request_hit_ratio": null, "latency_seconds": null, "ssd_write_bytes_per_second": null } }"#,
        )
        .expect("as it is told");
        let row = words(&before_and_after(&[prospect]), 1);
        assert_eq!(row, "db 1 MiB 0 B 50.00 % - 2.000 ms - 4 KiB/s -");
        let curve: ToldCurve = serde_json::from_str(
            r#"{ "caching": "lirs", "write_policy": "wt", "points": [
                { "bytes": 4096, "request_hit_ratio": 0.25, "latency_seconds": 0.01, "ssd_write_bytes_per_second": 0.0 } ] }"#,
        )
        .expect("as it is told");
        assert_eq!(words(&over_sizes(&curve), 1), "4 KiB 25.00 % 10.00 ms 0 B/s");
    }
}
