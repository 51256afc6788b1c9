//! `larder curves` and `larder what-if`: what other sizes would bring. Nothing changes by asking.

use comfy_table::{CellAlignment, Table, presets};
use larder_daemon::control::Request;
use larder_daemon::epoch::explore::{ToldCurve, ToldCurves, ToldOutlook, ToldProspect, ToldWhatIf};
use larder_daemon::units::HumanSize;

use crate::cli;
use crate::number::{percent, time};
use crate::output::tell;
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
        tell(over_sizes(curve))?;
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
    tell(before_and_after(&told.tenants))?;
    let all = [told.latency_seconds_now, told.latency_seconds_then].map(seconds);
    tell(format_args!("all requests: {} now, {} then", all[0], all[1]))
}

fn over_sizes(curve: &ToldCurve) -> Table {
    let mut table = table(&["size", "hits", "latency", "SSD writes"]);
    for point in &curve.points {
        table.add_row([
            HumanSize(point.bytes).to_string(),
            percent(Some(point.request_hit_ratio)),
            time(point.latency_seconds),
            rate(Some(point.ssd_write_bytes_per_second)),
        ]);
    }
    aligned(table, 0)
}

fn before_and_after(tenants: &[ToldProspect]) -> Table {
    let header =
        ["tenant", "size now", "then", "hits now", "then", "latency now", "then", "SSD writes now", "then"];
    let mut table = table(&header);
    for ToldProspect { tenant, now, then, .. } in tenants {
        let pair = |of: &dyn Fn(&ToldOutlook) -> String| [of(now), of(then)];
        let columns = [
            pair(&|it| HumanSize(it.quota_bytes).to_string()),
            pair(&|it| percent(it.request_hit_ratio)),
            pair(&|it| seconds(it.latency_seconds)),
            pair(&|it| rate(it.ssd_write_bytes_per_second)),
        ];
        table.add_row(std::iter::once(tenant.clone()).chain(columns.into_iter().flatten()));
    }
    aligned(table, 1)
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(header.to_vec());
    table
}

/// With all columns from this one on at the right.
fn aligned(mut table: Table, from: usize) -> Table {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
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

    fn words(table: &Table, line: usize) -> String {
        let text = table.to_string();
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
