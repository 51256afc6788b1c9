//! The tables: mean latencies of all allocators, `larder` under the two budgets, and how often it won.

use larder_daemon::units::HumanSize;
use larder_sim::tenants::TenantsResult;
use serde_json::{Value, json};

use super::ALLOCATORS;
use super::rows::{Budgeted, Row, SHARE_OF_CENTAUR, written};
use super::verdicts::Verdicts;
use crate::reproduce::common::Common;
use crate::reproduce::larc::short;
use crate::reproduce::report::Report;
use crate::reproduce::sheet::Sheet;

/// The three questions, in words.
const QUESTIONS: [&str; 3] = [
    "(a) without a budget of SSD writes, larder has the lowest mean latency of all (within 1 % counts as the same)",
    "(b) with ECI-Cache's SSD writes as its budget, larder has a lower mean latency than ECI-Cache",
    "(c) with 35 % of Centaur's SSD writes as its budget, larder's mean latency is no higher than Centaur's",
];

/// Everything that is told.
pub fn report(rows: &[Row], common: &Common, generated: bool) -> Report {
    let verdicts: Vec<_> = rows.iter().map(Verdicts::of).collect();
    let is_generated = generated.then(|| {
        "GENERATED: no file of scenarios was named, so these are made-up workloads. Give --scenarios FILE, or --traces DIR with a \
         scenarios.toml in it."
            .to_owned()
    });
    let notes = [Some(devices(common)), is_generated, common.cut_short()];
    Report {
        title: "Who divides a cache best: mean latencies under every allocator, and larder under budgets of SSD writes".into(),
        notes: notes.into_iter().flatten().collect(),
        sheets: vec![latencies(rows, &verdicts), budgets(rows, &verdicts)],
        closing: closing(&verdicts),
        figures: json!({ "rows": rows.iter().zip(&verdicts).map(|(row, verdicts)| figures(row, *verdicts)).collect::<Vec<_>>() }),
        ..Report::default()
    }
}

fn devices(common: &Common) -> String {
    let of = |device: Option<String>, default: &str| device.unwrap_or_else(|| default.to_owned());
    format!(
        "One {} SSD in front of one {} that all tenants share; requests come at the times of the traces. Block and epoch are the \
         scenario's for all allocators; scave keeps its windows of 1 s.",
        of(common.ssd.map(|ssd| ssd.to_string()), "nvme"),
        of(common.backing.map(|backing| backing.to_string()), "san"),
    )
}

fn latencies(rows: &[Row], verdicts: &[Verdicts]) -> Sheet {
    let names = rows.first().map_or(&[][..], |row| &row.runs);
    let names = names.iter().map(|run| run.allocator.replace("convex-", "convex-\n"));
    let headings =
        ["scenario".to_owned(), "cache".to_owned()].into_iter().chain(names).chain(["(a)".to_owned()]);
    let caption = "Mean latency of a request in ms, over all tenants; cache as a share of their joint footprint. *: the lowest. (a): larder has \
                   the lowest, or is within 1 % of it.";
    let mut sheet = Sheet::new(caption, 1, headings);
    for (at, (row, verdicts)) in rows.iter().zip(verdicts).enumerate() {
        let cells = marked(&row.runs);
        sheet.row(head(rows, at).into_iter().chain(cells).chain([answer(verdicts.lowest)]));
    }
    sheet
}

fn budgets(rows: &[Row], verdicts: &[Verdicts]) -> Sheet {
    let headings = [
        "scenario",
        "cache",
        "eci,\nms",
        "eci,\nwritten",
        "larder,\nms",
        "budget\nused",
        "(b)",
        "centaur,\nms",
        "centaur,\nwritten",
        "larder,\nms",
        "budget\nused",
        "at best,\nms",
        "(c)",
    ];
    let caption = format!(
        "larder under budgets: (b) with all that eci wrote to the SSD, (c) with {} of what centaur wrote; and how much of the budget it used. At best: the least \
         that any cache could bring with the budget of (c), had it known all requests beforehand, with room for everything and nobody waiting.",
        short(SHARE_OF_CENTAUR)
    );
    let mut sheet = Sheet::new(caption, 1, headings);
    for (at, (row, verdicts)) in rows.iter().zip(verdicts).enumerate() {
        let eci = beside(row.of(larder_alloc::Eci::NAME), &row.as_eci, verdicts.below_eci);
        let [latency, bytes, own, used, answer] =
            beside(row.of(larder_alloc::Centaur::NAME), &row.below_centaur, verdicts.no_worse_than_centaur);
        let centaur = [latency, bytes, own, used, milliseconds(row.below_centaur.least_latency), answer];
        sheet.row(head(rows, at).into_iter().chain(eci).chain(centaur));
    }
    sheet
}

/// Scenario and share; the name of a scenario stands in its first row.
fn head(rows: &[Row], at: usize) -> [String; 2] {
    let is_first = at == 0 || rows[at - 1].scenario != rows[at].scenario;
    let name = if is_first { rows[at].scenario.clone() } else { String::new() };
    [name, format!("{:.0} %", rows[at].share * 100.0)]
}

/// Latency and SSD writes of one, latency and used budget of `larder`, and the answer.
fn beside(other: Option<&TenantsResult>, own: &Budgeted, wins: bool) -> [String; 5] {
    let latency = other.map_or("-".into(), |run| milliseconds(run.total.mean_latency));
    let bytes = other.map_or("-".into(), |run| HumanSize(written(run) as u64).to_string());
    let used = own.used().map_or("-".into(), |used| format!("{:.0} %", used * 100.0));
    [latency, bytes, milliseconds(own.run.total.mean_latency), used, answer(wins)]
}

/// Mean latencies, a `*` behind the lowest of those that are compared.
fn marked(runs: &[TenantsResult]) -> Vec<String> {
    let of = |run: &TenantsResult| run.total.mean_latency;
    let compared = runs.iter().filter(|run| ALLOCATORS.contains(&run.allocator.as_str()));
    let lowest = compared.map(of).fold(f64::INFINITY, f64::min);
    runs.iter().map(|run| milliseconds(of(run)) + if of(run) == lowest { "*" } else { " " }).collect()
}

/// Four digits.
fn milliseconds(seconds: f64) -> String {
    let milliseconds = seconds * 1e3;
    let digits = match milliseconds {
        ms if ms < 9.9995 => 3,
        ms if ms < 99.995 => 2,
        ms if ms < 999.95 => 1,
        _ => 0,
    };
    format!("{milliseconds:.digits$}")
}

fn answer(wins: bool) -> String {
    if wins { "yes" } else { "NO" }.into()
}

/// Wins and losses.
fn closing(verdicts: &[Verdicts]) -> Vec<String> {
    let line = |(at, question): (usize, &str)| {
        let wins = verdicts.iter().filter(|verdicts| verdicts.all()[at]).count();
        format!("{question}: {wins} won, {} lost.", verdicts.len() - wins)
    };
    QUESTIONS.into_iter().enumerate().map(line).collect()
}

fn figures(row: &Row, verdicts: Verdicts) -> Value {
    json!({
        "scenario": row.scenario,
        "cache_share": row.share,
        "cache_bytes": row.cache_bytes,
        "runs": row.runs.iter().map(run).collect::<Vec<_>>(),
        "larder_with_eci_writes": budgeted(&row.as_eci),
        "larder_with_share_of_centaur_writes": budgeted(&row.below_centaur),
        "lowest_latency": verdicts.lowest,
        "below_eci": verdicts.below_eci,
        "no_worse_than_centaur": verdicts.no_worse_than_centaur,
    })
}

fn run(run: &TenantsResult) -> Value {
    json!({
        "allocator": run.allocator,
        "mean_latency_seconds": run.total.mean_latency,
        "p50_latency_seconds": run.total.p50_latency,
        "p99_latency_seconds": run.total.p99_latency,
        "read_hit_ratio_blocks": run.total.read_hit_ratio,
        "ssd_written_bytes": written(run),
        "seconds": run.seconds,
        "failed_decisions": run.failed_decisions,
    })
}

fn budgeted(own: &Budgeted) -> Value {
    json!({ "budget_bytes": own.budget_bytes, "budget_used": own.used(), "least_latency_seconds": own.least_latency, "run": run(&own.run) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wins_and_losses_are_counted() {
        let verdicts = |lowest, below_eci| Verdicts { lowest, below_eci, no_worse_than_centaur: true };
        let lines = closing(&[verdicts(true, false), verdicts(false, false), verdicts(true, true)]);
        let ends = lines.iter().filter_map(|line| line.rsplit_once(": ")).map(|(_, end)| end);
        assert_eq!(ends.collect::<Vec<_>>(), ["2 won, 1 lost.", "1 won, 2 lost.", "3 won, 0 lost."]);
    }

    #[test]
    fn latencies_have_four_digits() {
        let told = [1.23456e-4, 0.0123456, 0.999_96, 12.0].map(milliseconds);
        assert_eq!(told, ["0.123", "12.35", "1000", "12000"]);
    }
}
