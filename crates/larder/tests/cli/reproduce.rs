//! `larder reproduce larc`: generated workloads, recorded ones where they are at hand, files that are asked for, errors.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::lab::Lab;

/// Traces that are no part of the project: tests go on without them.
const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");

fn larc(lab: &Lab, arguments: &[&str]) -> String {
    let output = lab.larder(&[&["reproduce", "larc", "--quiet"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// What must hold in any report.
fn check(report: &Value) {
    for workload in list(&report["workloads"]) {
        for point in list(&workload["whole"]).iter().chain(list(&workload["second_half"])) {
            check_point(point);
        }
        let [whole, half] =
            ["whole", "second_half"].map(|part| number(&workload[part][0]["policies"][0]["block_accesses"]));
        assert_eq!(whole, number(&workload["block_accesses"]));
        assert!(0 < half && half < whole, "{half} of {whole}");
    }
    for claim in list(&report["claims"]) {
        let verdict = claim["whole"]["verdict"].as_str().expect("a verdict");
        assert!(["holds", "holds in part", "does not hold", "not tested"].contains(&verdict), "{claim}");
    }
}

fn check_point(point: &Value) {
    let of = |name: &str| {
        list(&point["policies"]).iter().find(|policy| policy["policy"] == name).expect("a policy")
    };
    for policy in list(&point["policies"]) {
        let [accesses, hits, write_hits, replacements, writes] =
            ["block_accesses", "hits", "write_hits", "replacements", "ssd_writes"]
                .map(|key| number(&policy[key]));
        assert_eq!(writes, write_hits + replacements, "{policy}");
        match policy["policy"] == "larc" {
            true => assert!(replacements <= accesses - hits, "{policy}"),
            false => assert_eq!(replacements, accesses - hits, "{policy}"),
        }
    }
    let [lru, larc] = ["lru", "larc"].map(|name| number(&of(name)["ssd_writes"]));
    let saving = point["saving_over_lru"].as_f64().expect("LRU writes");
    assert!((saving - (1.0 - larc as f64 / lru as f64)).abs() < 1e-9, "{point}");
}

#[test]
fn generated_workloads_are_told_as_such() {
    let lab = Lab::new();
    let quick = ["--limit", "30000", "--sizes", "5%,20%"];
    let text = larc(&lab, &quick);
    for words in [
        "GENERATED",
        "zipf-reads, whole trace",
        "zipf-writes, second half",
        "The change, in a cache of",
        "up to 94.5 %",
    ] {
        assert!(text.contains(words), "{words} is missing: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
    let report: Value = serde_json::from_str(&larc(&lab, &[&quick[..], &["--json"]].concat())).expect("JSON");
    check(&report);
    let dominated = list(&report["workloads"]).iter().map(|workload| workload["read_dominated"].as_bool());
    assert_eq!(dominated.collect::<Vec<_>>(), [Some(true), Some(false), Some(true)]);
    assert!(list(&report["workloads"]).iter().all(|workload| workload["generated"] == true));
    let change = &report["workloads"][2]["change"];
    let larc = list(&change["series"]).iter().find(|series| series["policy"] == "larc").expect("LARC");
    assert!(list(&larc["intervals"]).len() as u64 > number(&change["first_interval_after"]));
}

#[test]
fn help_names_the_paper_and_the_options() {
    let help = larc(&Lab::new(), &["--help"]);
    for word in [
        "MSST 2013",
        "--trace ",
        "--traces",
        "--change",
        "--sizes",
        "--belady",
        "--json",
        "--plot",
        "--limit",
        "Examples:",
    ] {
        assert!(help.contains(word), "{word} is missing: {help}");
    }
}

#[test]
fn the_same_bytes_on_any_number_of_threads() {
    let lab = Lab::new();
    let run = |threads| {
        larc(&lab, &["--limit", "5000", "--sizes", "10%", "--belady", "--json", "--threads", threads])
    };
    assert_eq!(run("1"), run("3"));
}

#[test]
fn files_are_written_where_they_are_asked_for() {
    let lab = Lab::new();
    let (json, plot) = (lab.path("larc.json"), lab.path("larc.svg"));
    let json_option = format!("--json={}", json.display());
    let plot_path = plot.to_str().expect("UTF-8");
    let text = larc(
        &lab,
        &[
            "--limit",
            "5000",
            "--trace",
            "z=gen:zipf:theta=1,blocks=400,requests=9000",
            &json_option,
            "--plot",
            plot_path,
        ],
    );
    assert!(text.contains("z, whole trace") && !text.contains("GENERATED"), "{text}");
    let report: Value = serde_json::from_str(&fs::read_to_string(json).expect("a file")).expect("JSON");
    assert_eq!(report["workloads"][0]["requests"], 5000);
    assert!(fs::read_to_string(lab.path("larc-z.svg")).expect("a picture").starts_with("<svg"));
    assert!(!plot.exists());
}

#[test]
fn recorded_traces_where_they_are_at_hand() {
    if !Path::new(TRACES).is_dir() {
        eprintln!("no traces at {TRACES}: the recorded ones are left out");
        return;
    }
    let report = larc(&Lab::new(), &["--traces", TRACES, "--limit", "20000", "--sizes", "5%,20%", "--json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    check(&report);
    let names: Vec<_> =
        list(&report["workloads"]).iter().filter_map(|workload| workload["name"].as_str()).collect();
    assert!(names.contains(&"web") && names.contains(&"ws_con"), "{names:?}");
    assert!(list(&report["workloads"]).iter().all(|workload| workload["generated"] == false));
}

#[test]
fn what_cannot_be_done_is_told_before_the_work() {
    let lab = Lab::new();
    let empty = lab.path("");
    for (arguments, says) in [
        (&["--plot", "larc.pdf"][..], "a picture ends in .svg, .png or .html"),
        (&["--json=/nonexistent/x.json"], "/nonexistent/x.json cannot be written"),
        (&["--trace", "a=/nonexistent/x.csv"], "/nonexistent/x.csv: cannot be opened"),
        (&["--traces", empty.to_str().expect("UTF-8")], "no trace is there that is known by name"),
        (&["--trace", "a=x", "--trace", "a=y"], "two traces are called a"),
    ] {
        let output = lab.larder(&[&["reproduce", "larc", "--quiet"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.contains("\nhelp: "), "{says} is missing: {said}");
    }
    let usage = lab.larder(&["reproduce", "larc", "--trace", "no-name"]);
    assert_eq!(usage.status.code(), Some(2));
}
