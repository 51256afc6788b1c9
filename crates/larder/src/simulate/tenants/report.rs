//! What allocators brought to tenants that share a cache, as tables for people.

use larder_daemon::units::HumanSize;
use larder_sim::tenants::{DecisionRow, TenantResult, TenantsResult};

use super::accuracy::Accuracy;
use super::found::{Found, Group, bytes};
use super::grid::{marked, table};
use super::{pause, promises};
use crate::number::{compact, percent, time};

/// More lines than these are for JSON, unless they are asked for.
const LINES_MAX: usize = 40;

/// Letters of a reason that is not asked for in full.
const REASON_MAX: usize = 90;

/// Everything, in lines of at most `width` columns where the words allow it.
pub fn render(all: &[Found<'_>], reasons: bool, width: u16) -> String {
    all.iter().map(|found| section(found, reasons, width)).collect::<Vec<_>>().join("\n\n")
}

fn section(found: &Found<'_>, reasons: bool, width: u16) -> String {
    let mut text = head(found);
    let lines = found.runs().count() * found.workload.tenants.len();
    text += &format!("\nLatency and hits, all tenants together\n{}", latencies(found, width));
    text += &format!("\nWhat it cost\n{}", costs(found, width));
    let budgets = budgets(found);
    if !budgets.is_empty() {
        let headings = ["cache", "allocator", "allowed", "written", "used"];
        text += &format!("\nBudget of SSD writes\n{}", table(headings, budgets, &[1], width));
    }
    if found.workload.tenants.len() > 1 && lines <= LINES_MAX {
        text += &format!("\nTenants\n{}", tenants(found, width));
    }
    let accuracy = accuracies(found);
    if !accuracy.is_empty() {
        let headings = ["cache", "allocator", "decisions", "latency", "request hit ratio", "SSD writes"];
        text += &format!(
            "\nExpected and achieved: mean absolute errors\n{}",
            table(headings, accuracy, &[1], width)
        );
        text += "  latency and hits: a decision counts as often as requests came under it\n";
    }
    if reasons || lines <= LINES_MAX {
        text += &format!("\nLast decisions\n{}", decisions(found, reasons, width));
    }
    text += &promises::render(found, width);
    text += &failures(found);
    text += &pauses(found);
    let more = if lines > LINES_MAX && !reasons {
        "; --json has the tenants and the decisions, --reasons prints the last of them"
    } else {
        ""
    };
    text + &format!("\n* is the best of its cache. A request hits if the SSD alone serves it{more}.\n")
}

fn head(found: &Found<'_>) -> String {
    let name = found.workload.scenario.as_ref().map_or_else(String::new, |name| format!("scenario {name}: "));
    let count = found.workload.tenants.len();
    let footprint =
        found.footprint_bytes.map_or_else(String::new, |bytes| format!(", footprint {}", HumanSize(bytes)));
    let mut head = format!("{name}{count} {}{footprint}\n", if count == 1 { "tenant" } else { "tenants" });
    for tenant in found.workload.tenants.iter().take(LINES_MAX) {
        head += &format!("  {}: {}\n", tenant.name, crate::metered::short_name(&tenant.trace));
    }
    head
}

/// A size of the cache in the first line of its group; its share of the footprint, where that is known, in the second if there is one: both in one would make
/// some of these tables too wide.
fn size_and_share(found: &Found<'_>, group: &Group<'_>, at: usize) -> String {
    let share = found.share(group.cache_bytes).map(|share| format!("({:.0} %)", share * 100.0));
    match (at, share) {
        (0, Some(share)) if group.runs.len() == 1 => format!("{} {share}", size(group, at)),
        (1, Some(share)) => share,
        _ => size(group, at),
    }
}

pub(super) fn size(group: &Group<'_>, at: usize) -> String {
    if at > 0 { String::new() } else { HumanSize(group.cache_bytes).to_string() }
}

/// A column over the runs of a group: how it reads, what it is, and whether less of it is better; not, where neither is.
type Column = (fn(&TenantsResult) -> String, fn(&TenantsResult) -> f64, Option<bool>);

fn columns<const N: usize, const M: usize>(found: &Found<'_>, columns: [Column; N]) -> Vec<[String; M]> {
    let of_group = |group: &Group<'_>| {
        let cells: Vec<_> = columns
            .iter()
            .map(|&(told, value, lowest)| {
                let cells: Vec<_> = group.runs.iter().map(told).collect();
                let values: Vec<_> = group.runs.iter().map(value).collect();
                lowest.map_or(cells.clone(), |lowest| marked(cells, &values, lowest))
            })
            .collect();
        let row = |at: usize| {
            let fixed = [size_and_share(found, group, at), group.runs[at].allocator.clone()];
            let mut row = fixed.into_iter().chain(cells.iter().map(|cells| cells[at].clone()));
            std::array::from_fn(|_| row.next().unwrap_or_default())
        };
        (0..group.runs.len()).map(row).collect::<Vec<_>>()
    };
    found.groups.iter().flat_map(of_group).collect()
}

fn latencies(found: &Found<'_>, width: u16) -> String {
    const COLUMNS: [Column; 8] = [
        (|run| time(run.total.mean_latency), |run| run.total.mean_latency, Some(true)),
        (
            |run| some(run.total.read_requests, run.total.mean_read_latency),
            |run| run.total.mean_read_latency,
            Some(true),
        ),
        (
            |run| some(run.total.requests - run.total.read_requests, run.total.mean_write_latency),
            |run| run.total.mean_write_latency,
            Some(true),
        ),
        (|run| time(run.total.p50_latency), |run| run.total.p50_latency, Some(true)),
        (|run| time(run.total.p99_latency), |run| run.total.p99_latency, Some(true)),
        (|run| compact(run.total.iops.round() as u64), |run| run.total.iops, Some(false)),
        (|run| percent(Some(run.total.read_hit_ratio)), |run| run.total.read_hit_ratio, Some(false)),
        (|run| percent(Some(run.total.request_hit_ratio)), |run| run.total.request_hit_ratio, Some(false)),
    ];
    let headings = [
        "cache",
        "allocator",
        "mean",
        "mean\nread",
        "mean\nwrite",
        "half\nwithin",
        "99 %\nwithin",
        "IOPS",
        "read hits\n(blocks)",
        "request\nhits",
    ];
    table(headings, columns::<8, 10>(found, COLUMNS), &[1], width)
}

fn costs(found: &Found<'_>, width: u16) -> String {
    const COLUMNS: [Column; 9] = [
        (|run| written(run, run.total.ssd_writes.fill), |_| 0.0, None),
        (|run| written(run, run.total.ssd_writes.guest_write), |_| 0.0, None),
        (|run| written(run, run.total.ssd_writes.promotion), |_| 0.0, None),
        (
            |run| written(run, run.total.ssd_writes.total),
            |run| bytes(run, run.total.ssd_writes.total) as f64,
            Some(true),
        ),
        (
            |run| written(run, run.total.backing_reads),
            |run| bytes(run, run.total.backing_reads) as f64,
            Some(true),
        ),
        (
            |run| written(run, run.total.backing_writes),
            |run| bytes(run, run.total.backing_writes) as f64,
            Some(true),
        ),
        (|run| percent(busy(run, true)), |_| 0.0, None),
        (|run| percent(busy(run, false)), |_| 0.0, None),
        (|run| percent(overhead(run)), |_| 0.0, None),
    ];
    let headings = [
        "cache",
        "allocator",
        "SSD:\nfills",
        "guest\nwrites",
        "promo-\ntions",
        "written\nin all",
        "backing:\nread",
        "\nwritten",
        "SSD\nbusy",
        "backing\nbusy",
        "over-\nhead",
    ];
    table(headings, columns::<9, 11>(found, COLUMNS), &[1], width)
}

/// What might be written to the SSD, where that is limited, and what was.
fn budgets(found: &Found<'_>) -> Vec<[String; 5]> {
    let row = |group: &Group<'_>, at: usize| {
        let run = &group.runs[at];
        let budget = run.ssd_write_budget?;
        let (allowed, written) = (HumanSize(budget.bytes as u64), written(run, run.total.ssd_writes.total));
        let used = percent(Some(budget.used));
        Some([size(group, at), run.allocator.clone(), allowed.to_string(), written, used])
    };
    let of_group =
        |group: &Group<'_>| (0..group.runs.len()).filter_map(|at| row(group, at)).collect::<Vec<_>>();
    found.groups.iter().flat_map(of_group).collect()
}

/// The mean over so many requests.
fn some(requests: u64, mean: f64) -> String {
    if requests > 0 { time(mean) } else { "-".into() }
}

fn written(run: &TenantsResult, blocks: u64) -> String {
    HumanSize(bytes(run, blocks)).to_string()
}

/// How busy the SSD was, or the busiest of the other devices.
pub fn busy(run: &TenantsResult, ssd: bool) -> Option<f64> {
    let devices = run.devices.iter().filter(|device| (device.name == "ssd") == ssd);
    devices.map(|device| device.busy).max_by(f64::total_cmp)
}

/// The share of the processor's time that monitor, analyzer and allocator took.
fn overhead(run: &TenantsResult) -> Option<f64> {
    (run.cpu_seconds > 0.0).then(|| run.control_cpu_seconds / run.cpu_seconds)
}

fn tenants(found: &Found<'_>, width: u16) -> String {
    let headings = [
        "cache",
        "allocator",
        "tenant",
        "mean",
        "half\nwithin",
        "99 %\nwithin",
        "IOPS",
        "read hits\n(blocks)",
        "request\nhits",
        "SSD\nwritten",
        "quota\n(mean)",
        "held\n(mean)",
    ];
    let of_run = |first: String, run: &TenantsResult| {
        let row = |at: usize, tenant: &TenantResult| {
            let fixed =
                if at > 0 { [String::new(), String::new()] } else { [first.clone(), run.allocator.clone()] };
            tenant_row(fixed, run, tenant)
        };
        run.tenants.iter().enumerate().map(|(at, tenant)| row(at, tenant)).collect::<Vec<_>>()
    };
    let of_group = |group: &Group<'_>| {
        let runs = group.runs.iter().enumerate();
        runs.flat_map(|(at, run)| of_run(size(group, at), run)).collect::<Vec<_>>()
    };
    table(headings, found.groups.iter().flat_map(of_group), &[1, 2], width) + &held_above(found)
}

/// Why tenants hold more than their quotas, or have none at times, if that is so: a line for each allocator.
fn held_above(found: &Found<'_>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for run in found.runs() {
        let holds_more =
            |tenant: &TenantResult| tenant.mean_occupied_blocks.round() > tenant.mean_quota_blocks.round();
        let why = match run.allocator.as_str() {
            _ if run.decisions.iter().any(|row| row.unlimited) => {
                "sets no limit at times: what is held counts as the quota then"
            }
            _ if !run.tenants.iter().any(holds_more) => continue,
            "combined" => "has, beside the quotas, a part of the cache for all: more is held than they say",
            "unified" => "has one cache for all: its quotas are equal parts, and nobody's limits",
            _ => "lends what others have no use for as yet: more can be held than the quota",
        };
        let line = format!("  {} {why}\n", run.allocator);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.concat()
}

fn tenant_row([cache, allocator]: [String; 2], run: &TenantsResult, tenant: &TenantResult) -> [String; 12] {
    let mean = |blocks: f64| HumanSize(bytes(run, blocks.round() as u64)).to_string();
    [
        cache,
        allocator,
        tenant.name.clone(),
        time(tenant.mean_latency),
        time(tenant.p50_latency),
        time(tenant.p99_latency),
        compact(tenant.iops.round() as u64),
        percent(Some(tenant.read_hit_ratio)),
        percent(Some(tenant.request_hit_ratio)),
        written(run, tenant.ssd_writes.total),
        mean(tenant.mean_quota_blocks),
        mean(tenant.mean_occupied_blocks),
    ]
}

/// A line for each run that predicted anything.
fn accuracies(found: &Found<'_>) -> Vec<[String; 6]> {
    let of_run = |first: String, run: &TenantsResult| {
        let accuracy = Accuracy::of(run);
        let points = accuracy
            .request_hit_ratio
            .map_or_else(|| "-".into(), |points| format!("{:.2} points", points * 100.0));
        (accuracy.decisions > 0).then(|| {
            [
                first,
                run.allocator.clone(),
                accuracy.decisions.to_string(),
                percent(accuracy.latency),
                points,
                percent(accuracy.ssd_writes),
            ]
        })
    };
    let of_group = |group: &Group<'_>| {
        group.runs.iter().filter_map(|run| of_run(size(group, 0), run)).collect::<Vec<_>>()
    };
    found.groups.iter().flat_map(of_group).collect()
}

fn decisions(found: &Found<'_>, whole: bool, width: u16) -> String {
    let headings = ["cache", "allocator", "tenant", "at", "size", "how", "because"];
    let of_run = |first: String, run: &TenantsResult| {
        let row = |at: usize, decision: &DecisionRow| {
            let fixed =
                if at > 0 { [String::new(), String::new()] } else { [first.clone(), run.allocator.clone()] };
            decision_row(fixed, run, decision, whole)
        };
        last(run).into_iter().enumerate().map(|(at, decision)| row(at, decision)).collect::<Vec<_>>()
    };
    let of_group = |group: &Group<'_>| {
        let runs = group.runs.iter().enumerate();
        runs.flat_map(|(at, run)| of_run(size(group, at), run)).collect::<Vec<_>>()
    };
    table(headings, found.groups.iter().flat_map(of_group), &[1, 2, 5, 6], width)
}

/// The last decision about each tenant.
pub(super) fn last(run: &TenantsResult) -> Vec<&DecisionRow> {
    (0..run.tenants.len())
        .filter_map(|tenant| run.decisions.iter().rev().find(|row| row.tenant == tenant))
        .collect()
}

fn decision_row(
    [cache, allocator]: [String; 2],
    run: &TenantsResult,
    row: &DecisionRow,
    whole: bool,
) -> [String; 7] {
    let tenant = run.tenants.get(row.tenant).map_or_else(String::new, |tenant| tenant.name.clone());
    let size = if row.unlimited {
        "no limit".to_owned()
    } else {
        HumanSize(bytes(run, row.quota_blocks.into())).to_string()
    };
    let reason = if whole { row.reason.clone() } else { shortened(&row.reason) };
    [
        cache,
        allocator,
        tenant,
        format!("{:.0} s", row.seconds),
        size,
        format!("{} {}", row.write_policy, row.caching),
        reason,
    ]
}

fn shortened(reason: &str) -> String {
    if reason.chars().count() <= REASON_MAX {
        return reason.to_owned();
    }
    reason.chars().take(REASON_MAX - 2).collect::<String>().trim_end().to_owned() + " …"
}

/// The first run speaks for all: they have the same requests.
fn pauses(found: &Found<'_>) -> String {
    let told = found.runs().next().and_then(|run| pause::told(run.longest_pause, run.seconds));
    told.map_or_else(String::new, |told| format!("\n{told}\n"))
}

fn failures(found: &Found<'_>) -> String {
    let failed = found.runs().filter(|run| run.failed_decisions > 0);
    let line = |run: &TenantsResult| {
        let why = run.failure.as_deref().unwrap_or("unknown");
        format!(
            "\n{} at {}: {} decisions failed, the last one because {why}\n",
            run.allocator,
            HumanSize(run.cache_bytes),
            run.failed_decisions
        )
    };
    failed.map(line).collect()
}
