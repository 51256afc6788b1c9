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

#[test]
fn a_run_without_requests_is_refused() {
    let lab = Lab::new();
    let output = plan(&lab, &["--set", "gen.start=10s", "--duration", "5s", "--size", "1MiB"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("no read or write comes before the run ends"), "{told}");
}

#[test]
fn an_ssd_without_room_for_the_least_of_its_tenants_is_refused() {
    let lab = Lab::new();
    let output = plan(&lab, &["--size", "16MiB,1MiB", "--min", "10MiB"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("(--min) is 10 MiB together, and the cache has 1 MiB") && told.contains("--size"),
        "{told}"
    );
}

/// As blktrace writes it now and then: one request at the end has a time of its own.
#[test]
fn a_time_that_is_decades_late_is_told() {
    let lab = Lab::new();
    let line = |at: u64, time: u64| format!("{time},a,0,Read,{},4096,0\n", at % 70 * 4096);
    let good: String = (0..2000).map(|at| line(at, at * 10_000_000)).collect();
    fs::write(lab.path("late.csv"), good + &line(1, 12_668_748_890_000_000)).expect("written");
    let output = larder(&lab, &["plan", "late.csv", "--size", "1MiB", "--json"]);
    let found = json(output);
    let pause = &found["without_ssd"]["longest_pause"];
    assert_eq!(number(pause, "from_seconds"), 1999.0);
    let told = "No request comes for 14662d 21h, from 33m 19s after the start on";
    assert!(found["reason"].as_str().is_some_and(|reason| reason.contains(told)), "{found}");
    let table = stdout(larder(
        &lab,
        &["simulate", "--tenant", "a=late.csv", "--cache", "1MiB", "--allocator", "scave,centaur"],
    ));
    assert!(table.contains(told), "{table}");
    let info = stdout(larder(&lab, &["trace", "info", "late.csv"]));
    assert!(
        info.contains("\n  pause          14662d 21h without a request, 33m 19s after the first one\n"),
        "{info}"
    );
    let cut = larder(&lab, &["trace", "cut", "late.csv", "--to", "34m", "--out", "good.csv"]);
    assert!(cut.status.success(), "{cut:?}");
    let info = stdout(larder(&lab, &["trace", "info", "good.csv"]));
    assert!(!info.contains("pause"), "{info}");
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
    let text = stdout(plan(
        &lab,
        &[
            "--size",
            "2MiB,8MiB",
            "--endurance",
            "5000,10000,20000",
            "--price",
            "0.1,0.2,0.4",
            "--html",
            "plan.html",
            "--json=plan.json",
        ],
    ));
    assert!(text.starts_with("gen: 1 tenant, 6,000 requests, footprint "), "{text}");
    assert_eq!(text.lines().filter(|line| line.trim_start().contains("iB*")).count(), 1, "{text}");
    // What there is without an SSD is the first row.
    assert!(text.lines().any(|line| line.trim_start().starts_with("none ")), "{text}");
    assert!(!text.contains("1000 IOPS"), "the traces' times: {text}");
    for part in [
        "5000 DWPD",
        "10000 DWPD",
        "20000 DWPD",
        "\n* ",
        " mean latency ",
        " lives ",
        " without an SSD)",
        " A day is reckoned from a run of ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = fs::read_to_string(lab.path("plan.html")).expect("a page");
    for part in ["Which SSD to buy as a cache", "<svg", "<table", "5000\u{a0}DWPD"] {
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
        assert!(offer["price_per_iops"].is_null(), "every SSD has the IOPS of the trace: {offer}");
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
fn a_budget_is_kept_in_a_closed_loop() {
    let lab = Lab::new();
    let arguments =
        ["--closed", "8", "--size", "1MiB,2MiB", "--endurance", "20000,60000", "--price", "1", "--json"];
    let found = json(plan(&lab, &arguments));
    let offers = found["offers"].as_array().expect("offers");
    for offer in offers {
        assert!(number(offer, "unlimited_years") < 5.0, "not bound: {offer}");
        // The limited run is another length than the unlimited one.
        assert!((5.0 * 0.98..5.6).contains(&number(offer, "years")), "{offer}");
        let per_iops = number(offer, "price") / number(offer, "iops");
        assert!((number(offer, "price_per_iops") / per_iops - 1.0).abs() < 1e-9, "{offer}");
    }
}

#[test]
fn what_does_nothing_is_not_bought() {
    let lab = Lab::new();
    let found = json(plan(&lab, &["--endurance", "1DWPD,0.1TBW/5y,0.1TB", "--json"]));
    assert!(found["recommended"].is_null(), "{found}");
    let reason = found["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("None of them is worth anything: "), "{reason}");
    let tenant = format!("t={TRACE}");
    let bare = [
        "simulate",
        "--tenant",
        &tenant,
        "--cache",
        "8MiB",
        "--epoch",
        "1s",
        "--ssd-write-budget",
        "0",
        "--json",
    ];
    let bare = json(larder(&lab, &bare));
    let latency = number(&bare["runs"][0]["total"], "mean_latency");
    assert!((number(&found["without_ssd"], "mean_latency_seconds") / latency - 1.0).abs() < 1e-9, "{found}");
}

#[test]
fn sizes_are_those_that_were_asked_for() {
    let lab = Lab::new();
    let text = stdout(plan(&lab, &["--size", "0.02GB,50MB,64MiB", "--endurance", "1e6"]));
    for part in ["20 MB*", "50 MB ", "64 MiB "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let scenario =
        format!("cache_shares = [0.5]\n[[scenario]]\nname = \"s\"\ntenants = {{ t = \"{TRACE}\" }}\n");
    fs::write(lab.path("s.toml"), scenario).expect("a scenario");
    let found = json(larder(&lab, &["plan", "--scenario", "s.toml", "--endurance", "1e6", "--json"]));
    let offers = found["offers"].as_array().expect("offers");
    let half = number(&found, "footprint_bytes") / 2.0;
    assert!(offers.len() == 1 && (number(&offers[0], "size_bytes") - half).abs() <= 4096.0, "{found}");
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
        (
            &[
                "plan",
                "--tenant",
                "a=gen:uniform:blocks=9,requests=9",
                "--set",
                "a.quota=1GiB",
                "--size",
                "1MiB",
            ],
            "larder, cache of 1 MiB: ",
        ),
        (&["plan", TRACE, "--html", "nowhere/p.html"], "nowhere/p.html cannot be written: "),
    ] {
        let output = larder(&lab, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}: {told}");
        assert!(
            told.starts_with(&format!("error: {what}")) && told.contains("\nhelp: "),
            "{arguments:?}: {told}"
        );
        assert!(!told.contains("name another --allocator"), "plan has no such option: {told}");
    }
    for (arguments, what) in [
        (&["plan"][..], "<TRACE>"),
        (&["plan", TRACE, "--endurance", "5GB"], "600TB/5"),
        (&["plan", TRACE, "--endurance", "1e300"], "600TB/5"),
        (&["plan", TRACE, "--years", "1e300"], "up to 1000"),
        (&["plan", TRACE, "--worth", "0"], "above 0"),
        (&["plan", TRACE, "--price", "0.1,0"], "leave --price out"),
    ] {
        let output = larder(&lab, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(what), "{arguments:?}: {told}");
    }
}
