//! What `--json` says.

use serde_json::{Value, json};

use super::{FIGURE_5, lab_with};
use crate::lab::Lab;

fn json_of(text: &str) -> Value {
    super::json(&lab_with(&[("t.csv", text)]), &["t.csv", "--format", "msr"])
}

#[test]
fn figure_5_has_its_distances() {
    let report = json_of(FIGURE_5);
    assert_eq!((&report["trd"]["max"], &report["urd"]["max"]), (&json!(4), &json!(1)));
    assert_eq!(report["urd"]["percentiles"], json!({"50": 1, "90": 1, "95": 1, "99": 1, "99.9": 1}));
    assert_eq!(report["trd"]["percentiles"], json!({"50": 1, "90": 4, "95": 4, "99": 4, "99.9": 4}));
    for (key, value) in [
        ("requests", 7),
        ("reads", 1),
        ("writes", 6),
        ("footprint_blocks", 5),
        ("block_bytes", 4096),
        ("wss_blocks", 5),
        ("useful_wss_blocks", 2),
        ("knee_blocks", 2),
    ] {
        assert_eq!(report[key], value, "{key}");
    }
    let classes = &report["classes"];
    let counts = ["cr", "cw", "rar", "raw", "war", "waw"].map(|class| classes[class].as_u64());
    assert_eq!(counts, [0, 5, 0, 1, 0, 1].map(Some));
    assert_eq!(
        (classes["ratios"]["cw"].as_f64(), classes["write_ratio"].as_f64()),
        (Some(5.0 / 7.0), Some(1.0 / 7.0))
    );
    assert_eq!(report["sampling"], json!({"kind": "exact", "rate": 1.0, "sampled_blocks": 5}));
    assert_eq!(report["seconds"], 6.0);
}

#[test]
fn curves_are_those_of_the_simulator() {
    let lab = Lab::new();
    let trace = "gen:zipf:theta=0.9,blocks=300,requests=4000,read=0.6,seed=5";
    let report = super::json(&lab, &[trace]);
    let sizes = report["curves"]["wb"]["sizes"].as_array().expect("a list");
    let asked: Vec<_> =
        sizes.iter().map(|size| (size.as_u64().expect("blocks") * 4096).to_string()).collect();
    for write in ["wb", "wt", "wt-noalloc", "ro"] {
        let simulate = ["simulate", trace, "--policy", "lru", "--write-policy", write, "--json", "--size"];
        let output = lab.larder(&[&simulate[..], &[&asked.join(",")]].concat());
        let runs: Vec<Value> = serde_json::from_slice(&output.stdout).expect("runs");
        assert_eq!(runs.len(), sizes.len());
        let curve = &report["curves"][write];
        for (at, run) in runs.iter().enumerate() {
            for key in [
                "read_hits",
                "write_hits",
                "request_hits",
                "read_request_hits",
                "fills",
                "invalidations",
                "backing_reads",
                "backing_writes",
            ] {
                assert_eq!(curve[key][at], run[key], "{write}, {key} at {}", sizes[at]);
            }
            assert_eq!(curve["ssd_writes"][at], run["ssd_writes"]["total"], "{write} at {}", sizes[at]);
            assert_eq!(
                curve["guest_writes"][at], run["ssd_writes"]["guest_write"],
                "{write} at {}",
                sizes[at]
            );
            for key in ["read_hit_ratio", "request_hit_ratio"] {
                assert_eq!(curve[key][at], run[key], "{write}, {key} at {}", sizes[at]);
            }
        }
    }
}

#[test]
fn curves_of_nothing_and_of_writes_are_flat() {
    for text in ["", "W1", "W1 W2 W1 W1", "R1 R2 R3"] {
        let report = json_of(text);
        for write in ["wb", "wt", "wt-noalloc", "ro", "batched"] {
            let curve = &report["curves"][write];
            let ratios = curve["read_hit_ratio"].as_array().expect("a list");
            assert!(!ratios.is_empty() && ratios.iter().all(|ratio| ratio == 0.0), "{text}: {curve}");
            assert!(
                curve
                    .as_object()
                    .expect("lists")
                    .values()
                    .all(|list| list.as_array().is_some_and(|list| list.len() == ratios.len()))
            );
        }
        assert_eq!(report["urd"], json!({"count": 0, "max": null, "percentiles": null}));
        assert_eq!((&report["useful_wss_blocks"], no_nulls(&report, "")), (&json!(0), true), "{report}");
    }
    assert_eq!(json_of("")["wss_blocks"], 0);
    assert_eq!(json_of("W1 W2 W1")["wss_blocks"], 2);
}

/// True if nothing is null but what there may be none of.
fn no_nulls(value: &Value, key: &str) -> bool {
    match value {
        Value::Null => ["max", "percentiles", "knee_blocks", "start_seconds", "seconds"].contains(&key),
        Value::Array(list) => list.iter().all(|value| no_nulls(value, key)),
        Value::Object(map) => map.iter().all(|(key, value)| no_nulls(value, key)),
        _ => true,
    }
}

#[test]
fn windows_add_up() {
    let report = super::json(&Lab::new(), &["gen:uniform:blocks=200,requests=3000,read=0.5"]);
    let windows = report["windows"].as_array().expect("a list");
    assert!(windows.len() > 1);
    let sum = |key: &str| windows.iter().map(|window| window[key].as_u64().expect("a count")).sum::<u64>();
    assert_eq!(sum("reads") + sum("writes"), 3000);
    for class in ["cr", "cw", "rar", "raw", "war", "waw"] {
        assert_eq!(sum(class), report["classes"][class].as_u64().expect("a count"), "{class}");
    }
    let hot = report["hot"].as_array().expect("a list");
    let hot_accesses =
        |key: &str| hot.iter().map(|region| region[key].as_u64().expect("a count")).sum::<u64>();
    let reads: u64 = ["cr", "rar", "raw"].map(sum).iter().sum();
    assert_eq!(
        (hot_accesses("reads"), hot_accesses("writes")),
        (reads, 3000 - reads),
        "all are in one region: {hot:?}"
    );
}

#[test]
fn several_traces_are_a_list() {
    let lab = lab_with(&[("a.csv", "R1 R1"), ("b.csv", "W1")]);
    let list = super::json(&lab, &["a.csv", "b.csv", "a.csv"]);
    let list = list.as_array().expect("a list");
    let told: Vec<_> =
        list.iter().map(|report| (report["trace"].as_str(), report["requests"].as_u64())).collect();
    assert_eq!(told, [(Some("a.csv"), Some(2)), (Some("b.csv"), Some(1)), (Some("a.csv"), Some(2))]);
}

#[test]
fn a_sample_tells_what_it_is() {
    let trace = "gen:zipf:theta=0.8,blocks=20000,requests=60000,read=0.7";
    let report = super::json(&Lab::new(), &[trace, "--sample", "512"]);
    assert_eq!(report["sampling"]["kind"], "blocks");
    let sampled = report["sampling"]["sampled_blocks"].as_u64().expect("a count");
    assert!(0 < sampled && sampled <= 512, "{sampled}");
    assert!(report["sampling"]["rate"].as_f64().is_some_and(|rate| 0.0 < rate && rate < 0.1));
    assert!(no_nulls(&report, ""));
    let report = super::json(&Lab::new(), &[trace, "--sample", "10%"]);
    assert_eq!(
        (report["sampling"]["kind"].as_str(), report["sampling"]["rate"].as_f64()),
        (Some("rate"), Some(0.1))
    );
    let exact = super::json(&Lab::new(), &[trace, "--exact"]);
    let last = |report: &Value| {
        report["curves"]["wb"]["hit_ratio"]
            .as_array()
            .and_then(|list| list.last())
            .and_then(Value::as_f64)
            .expect("a ratio")
    };
    assert!((last(&report) - last(&exact)).abs() < 0.05, "{} is far from {}", last(&report), last(&exact));
}

#[test]
fn other_policies_are_estimated() {
    let trace = "gen:zipf:theta=1.0,blocks=4000,requests=40000,read=0.7";
    let report =
        super::json(&Lab::new(), &[trace, "--policy", "lru,larc,s3-fifo+nth:2", "--write-policy", "ro,wt"]);
    let names: Vec<_> = report["estimates"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|estimate| format!("{} {}", estimate["policy"], estimate["write_policy"]).replace('"', ""))
        .collect();
    assert_eq!(names, ["larc wt", "s3-fifo+nth:2 wt", "larc ro", "s3-fifo+nth:2 ro"]);
    assert_eq!(report["curves"].as_object().map(serde_json::Map::len), Some(2));
    let ratios = &report["estimates"][0]["read_hit_ratio"];
    assert!(
        ratios.as_array().is_some_and(|list| list
            .iter()
            .any(|ratio| ratio.as_f64().is_some_and(|ratio| ratio > 0.1 && ratio < 1.0))),
        "{ratios}"
    );
}
