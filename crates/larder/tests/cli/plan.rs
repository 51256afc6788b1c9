//! `larder plan`: which SSD it says to buy, and whether a simulation agrees.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::lab::Lab;

const TRACE: &str = "gen:zipf:theta=1.0,blocks=2000,requests=6000,read=0.7,interval=1ms";

fn larder(lab: &Lab, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments).current_dir(lab.path(".")).stdin(Stdio::null());
    command.output().expect("larder runs")
}

fn plan(lab: &Lab, more: &[&str]) -> Output {
    larder(lab, &[&["plan", TRACE, "--epoch", "1s"], more].concat())
}

fn stdout(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(output: Output) -> Value {
    serde_json::from_str(&stdout(output)).expect("JSON")
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"))
}

#[test]
fn a_table_and_a_page_tell_what_to_buy() {
    let lab = Lab::new();
    let text = stdout(plan(&lab, &["--price", "0.1,0.2,0.4", "--html", "plan.html", "--json=plan.json"]));
    assert!(text.starts_with("gen: 1 tenant, 6,000 requests, footprint "), "{text}");
    assert_eq!(text.lines().filter(|line| line.trim_start().contains("iB*")).count(), 1, "{text}");
    for part in ["0.3 DWPD", "1 DWPD", "3 DWPD", "\n* ", " mean latency ", " lives "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = fs::read_to_string(lab.path("plan.html")).expect("a page");
    for part in ["Which SSD to buy as a cache", "<svg", "<table", "3\u{a0}DWPD"] {
        assert!(page.contains(part), "{part}");
    }
    let found: Value =
        serde_json::from_str(&fs::read_to_string(lab.path("plan.json")).expect("JSON")).expect("JSON");
    assert!(page.contains(found["reason"].as_str().expect("a reason")));
    assert!(text.contains(found["reason"].as_str().expect("a reason")));
}

#[test]
fn numbers_belong_together() {
    let lab = Lab::new();
    let sizes = ["--size", "1MiB,4MiB", "--endurance", "2000,100TB/5", "--price", "0.5", "--json"];
    let found = json(plan(&lab, &sizes));
    let offers = found["offers"].as_array().expect("offers");
    let told: Vec<_> =
        offers.iter().map(|offer| (offer["size_bytes"].as_u64(), offer["endurance"].as_str())).collect();
    let sizes = [1 << 20, 4 << 20].map(Some);
    let classes = [Some("2000 DWPD"), Some("100 TB/5 y")];
    assert_eq!(
        told,
        [(sizes[0], classes[0]), (sizes[0], classes[1]), (sizes[1], classes[0]), (sizes[1], classes[1])]
    );
    for offer in offers {
        let (size, per_day) = (number(offer, "size_bytes"), number(offer, "ssd_write_bytes_per_day"));
        let rated = if offer["endurance"] == "2000 DWPD" { 2000.0 * size * 365.25 * 5.0 } else { 1e14 };
        assert!((number(offer, "rated_bytes") / rated - 1.0).abs() < 1e-9, "{offer}");
        assert!((number(offer, "years") / (rated / per_day / 365.25) - 1.0).abs() < 1e-9, "{offer}");
        let price = size / f64::from(1 << 30) * 0.5;
        assert!((number(offer, "price") / price - 1.0).abs() < 1e-9, "{offer}");
        assert!(
            (number(offer, "price_per_iops") / (price / number(offer, "iops")) - 1.0).abs() < 1e-9,
            "{offer}"
        );
        assert!(number(offer, "years") >= 5.0 * 0.98, "kept to its endurance: {offer}");
        assert!(number(offer, "unlimited_ssd_write_bytes_per_day") >= per_day * 0.999, "{offer}");
    }
    let recommended = &found["recommended"];
    assert!(offers.contains(recommended));
    assert!(
        found["reason"]
            .as_str()
            .expect("a reason")
            .contains(recommended["endurance"].as_str().expect("a class"))
    );
    let kept = offers.iter().any(|offer| number(offer, "unlimited_years") < 5.0);
    assert!(kept, "no endurance bound anything: {found}");
}

#[test]
fn a_simulation_counts_what_was_forecast() {
    let lab = Lab::new();
    for endurance in ["1000000", "2000"] {
        let found = json(plan(&lab, &["--size", "2MiB", "--endurance", endurance, "--json"]));
        let tenant = format!("t={TRACE}");
        let same = [
            "simulate",
            "--tenant",
            &tenant,
            "--cache",
            "2MiB",
            "--allocator",
            "larder",
            "--epoch",
            "1s",
            "--json",
        ];
        let run = &json(larder(&lab, &[&same[..], &["--dwpd", endurance]].concat()))["runs"][0];
        let written = number(&run["total"]["ssd_writes"], "total") * number(run, "block_bytes");
        let per_day = written / number(run, "seconds") * 86_400.0;
        let forecast = number(&found["offers"][0], "ssd_write_bytes_per_day");
        assert!((per_day / forecast - 1.0).abs() < 0.1, "{endurance}: {per_day} {forecast}");
    }
}

#[test]
fn what_cannot_be_planned_is_told() {
    let lab = Lab::new();
    fs::write(lab.path("empty.csv"), "").expect("a trace");
    for (arguments, what) in [
        (&["plan", TRACE, "--price", "1,2"][..], "2 prices do not fit 3 endurances"),
        (&["plan", "empty.csv", "--format", "msr"], "the traces of empty hold no reads or writes"),
        (&["plan", "missing.csv"], "missing.csv: cannot be opened: "),
        (&["plan", "-"], "tenant stdin: stdin can be read only once"),
        (&["plan", TRACE, "--html", "nowhere/p.html"], "nowhere/p.html cannot be written: "),
    ] {
        let output = larder(&lab, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}: {told}");
        assert!(
            told.starts_with(&format!("error: {what}")) && told.contains("\nhelp: "),
            "{arguments:?}: {told}"
        );
    }
    for (arguments, what) in [
        (&["plan"][..], "<TRACE>"),
        (&["plan", TRACE, "--endurance", "5TB"], "600TB/5"),
        (&["plan", TRACE, "--worth", "0"], "above 0"),
    ] {
        let output = larder(&lab, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(what), "{arguments:?}: {told}");
    }
}
