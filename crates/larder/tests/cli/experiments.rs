//! `larder reproduce` over tenants that share a cache: tables, Markdown, JSON, scenarios of files, errors. All of it on the first few requests.

use std::fs;

use serde_json::Value;

use crate::lab::Lab;

fn reproduce(lab: &Lab, arguments: &[&str]) -> String {
    let output = lab.larder(&[&["reproduce"], arguments, &["--quiet"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(lab: &Lab, arguments: &[&str]) -> Value {
    serde_json::from_str(&reproduce(lab, &[arguments, &["--json"]].concat())).expect("JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

const SCENARIOS: &str = r#"
cache_shares = [0.1, 0.4]
block = "4KiB"
epoch = "2s"
[[scenario]]
name = "two"
tenants = { db = "gen:zipf:theta=1.0,blocks=2000,requests=8000,read=0.6,seed=1", scan = "gen:loop:blocks=1500,requests=8000,seed=2" }
[[scenario]]
name = "other"
tenants = { web = "gen:zipf:theta=0.8,blocks=2000,requests=6000,seed=3" }
"#;

/// A file of scenarios in the lab.
fn scenarios(lab: &Lab) -> String {
    let path = lab.path("scenarios.toml");
    fs::write(&path, SCENARIOS).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

fn latency(row: &Value, allocator: &str) -> f64 {
    let run = list(&row["runs"]).iter().find(|run| run["allocator"] == allocator);
    number(&run.expect("a run")["mean_latency_seconds"])
}

#[test]
fn verdicts_follow_from_the_runs() {
    let lab = Lab::new();
    let report = json(&lab, &["best", "--scenarios", &scenarios(&lab)]);
    let rows = list(&report["figures"]["rows"]);
    assert_eq!(rows.len(), 4);
    for row in rows {
        let all = list(&row["runs"]).iter().map(|run| number(&run["mean_latency_seconds"]));
        let lowest = all.fold(f64::INFINITY, f64::min);
        assert_eq!(row["lowest_latency"], latency(row, "larder") <= lowest * 1.01, "{row}");
        for (key, other, share, verdict) in [
            ("larder_with_eci_writes", "eci", 1.0, "below_eci"),
            ("larder_with_share_of_centaur_writes", "centaur", 0.35, "no_worse_than_centaur"),
        ] {
            let own = number(&row[key]["run"]["mean_latency_seconds"]);
            let other_latency = latency(row, other);
            let wins = if other == "eci" { own < other_latency } else { own <= other_latency };
            assert_eq!(row[verdict], wins, "{row}");
            let written = list(&row["runs"]).iter().find(|run| run["allocator"] == other).expect("a run");
            let budget = number(&row[key]["budget_bytes"]);
            assert!((budget - share * number(&written["ssd_written_bytes"])).abs() < 1.0, "{row}");
        }
    }
    let wins = rows.iter().filter(|row| row["lowest_latency"] == true).count();
    let told = report["closing"][0].as_str().expect("a sentence");
    assert!(told.ends_with(&format!(": {wins} won, {} lost.", rows.len() - wins)), "{told}");
}

#[test]
fn the_same_as_text_and_as_markdown() {
    let lab = Lab::new();
    let one = format!("{}#two", scenarios(&lab));
    let file = lab.path("best.md");
    let option = format!("--markdown={}", file.display());
    let text = reproduce(&lab, &["best", "--scenarios", &one, "--more", &option]);
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    let markdown = fs::read_to_string(file).expect("a file");
    let heading = markdown.lines().find(|line| line.starts_with("| scenario")).expect("a table");
    for name in [
        "larder",
        "unified",
        "static",
        "wss",
        "scave",
        "combined",
        "centaur",
        "eci",
        "optimal",
        "convex-hull",
    ] {
        assert!(heading.contains(&format!("| {name} |")), "{heading}");
    }
    for words in ["won, ", "(c)"] {
        assert!(text.contains(words) && markdown.contains(words), "{text}\n{markdown}");
    }
    assert!(!text.contains("GENERATED") && !text.contains("other"), "{text}");
}

#[test]
fn stand_ins_are_told_as_such() {
    let lab = Lab::new();
    let report = reproduce(&lab, &["best", "-n", "1500"]);
    for words in ["GENERATED", "CUT SHORT: only the first 1,500", "skewed-beside-scan"] {
        assert!(report.contains(words), "{words}: {report}");
    }
}

/// Each experiment of a paper, on little more than nothing: the claims that it has to hold against something.
#[test]
fn every_paper_has_its_claims() {
    let lab = Lab::new();
    for (paper, ids) in [
        ("thesis", &["rate_divided", "rate_unified", "sigma_turns", "server", "readers"][..]),
        ("scave", &["isolation", "gain", "unaffected", "overhead"]),
        ("centaur", &["wastage_grows", "convex_hull", "shares", "latency_reservation", "iops_reservation"]),
        ("eci", &["latency", "per_cost", "writes", "allotted", "same"]),
    ] {
        let report = json(&lab, &[paper, "-n", "2000"]);
        let found: Vec<_> = list(&report["claims"]).iter().filter_map(|claim| claim["id"].as_str()).collect();
        assert!(ids.iter().all(|id| found.contains(id)), "{paper}: {found:?}");
        for claim in list(&report["claims"]) {
            let verdict = claim["verdict"].as_str().expect("a verdict");
            assert!(["holds", "holds in part", "does not hold", "not tested"].contains(&verdict), "{claim}");
            assert!(["paper", "here", "because"].iter().all(|key| claim[key] != ""), "{claim}");
        }
        assert!(report["notes"].to_string().contains("GENERATED"), "{report}");
    }
}

#[test]
fn dividing_keeps_what_a_common_cache_loses() {
    let report = json(&Lab::new(), &["thesis", "-n", "40000"]);
    let rows = list(&report["figures"]["table_4_3"]);
    let of = |row: &Value, key: &str| number(&row["read_hit_ratio_1"][key]);
    let divided = rows.iter().map(|row| of(row, "divided"));
    assert!(divided.clone().all(|ratio| ratio == of(&rows[0], "divided")), "{rows:?}");
    assert!(rows.iter().all(|row| (0.0..=1.0).contains(&of(row, "unified"))), "{rows:?}");
}

#[test]
fn all_tells_each_of_them() {
    let report = json(&Lab::new(), &["all", "-n", "300"]);
    for paper in ["larc", "thesis", "scave", "centaur", "eci", "best"] {
        assert!(report[paper].is_object(), "{paper} is missing");
    }
}

#[test]
fn what_cannot_be_done_is_told_before_the_work() {
    let lab = Lab::new();
    let (bare, empty) = (lab.path("bare.toml"), lab.path(""));
    fs::write(&bare, SCENARIOS.replace("cache_shares = [0.1, 0.4]", "")).expect("a file");
    for (arguments, says) in [
        (&["best", "--json=/nonexistent/x.json"][..], "/nonexistent/x.json cannot be written"),
        (&["eci", "--markdown=/nonexistent/x.md"], "/nonexistent/x.md cannot be written"),
        (&["best", "--scenarios", "/nonexistent/s.toml"], "/nonexistent/s.toml: cannot be read"),
        (&["best", "--scenarios", bare.to_str().expect("UTF-8")], "says nothing about the size of the cache"),
        (&["scave", "--traces", "/nonexistent"], "/nonexistent is no folder"),
        (&["centaur", "--traces", bare.to_str().expect("UTF-8")], "bare.toml is no folder"),
        (&["eci", "--traces", empty.to_str().expect("UTF-8")], "no trace is there that is known by name"),
        (&["all", "--traces", empty.to_str().expect("UTF-8")], "no trace is there that is known by name"),
        (&["thesis", "--traces", empty.to_str().expect("UTF-8")], "no trace is used"),
    ] {
        let output = lab.larder(&[&["reproduce"], arguments, &["--quiet"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.contains("\nhelp: "), "{says} is missing: {said}");
    }
    for usage in [&["best", "--quick", "-n", "5"][..], &["eci", "--json", "--markdown"], &["nobody"]] {
        assert_eq!(lab.larder(&[&["reproduce"], usage].concat()).status.code(), Some(2), "{usage:?}");
    }
}
