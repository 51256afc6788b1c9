//! Budgets of SSD writes in simulations, and what `larder plan` says of the same runs.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::lab::Lab;

const MIB: f64 = 1048576.0;

fn larder(lab: &Lab, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments).current_dir(lab.path(".")).stdin(Stdio::null());
    command.output().expect("larder runs")
}

fn json(lab: &Lab, arguments: &[&str]) -> Value {
    let output = larder(lab, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// Bytes written to the SSD in the first run, and how long that is.
fn simulated(lab: &Lab, arguments: &[&str]) -> (f64, f64) {
    let run = &json(lab, &[&["simulate"], arguments].concat())["runs"][0];
    let written = number(&run["total"]["ssd_writes"], "total") * number(run, "block_bytes");
    (written, number(run, "seconds"))
}

/// Two hours of load, most of a day in which little comes, and two hours of the next day.
const MORE_THAN_A_DAY: &str = "a=gen:zipf:theta=0.9,blocks=20000,read=0.5,seed=1,requests=14400,interval=500ms\
    +zipf:theta=0.9,blocks=20000,read=0.5,seed=2,requests=800,interval=100s\
    +zipf:theta=0.9,blocks=20000,read=0.5,seed=3,requests=14400,interval=500ms";

#[test]
fn the_last_hours_of_a_run_have_no_whole_days_writes() {
    let lab = Lab::new();
    let run = ["--tenant", MORE_THAN_A_DAY, "--cache", "8MiB", "--dwpd", "1"];
    let (written, seconds) = simulated(&lab, &run);
    assert!(seconds > 90_000.0, "{seconds}");
    let rated = 8.0 * MIB * seconds / 86_400.0;
    assert!(written < 1.02 * rated && written > 0.8 * rated, "{written} {rated}");
    // The first day has what it had.
    let (first, _) = simulated(&lab, &[&run[..], &["--duration", "1d"]].concat());
    assert!(first <= 8.0 * MIB * 1.02 && written - first <= 1.02 * (rated - 8.0 * MIB), "{first} {written}");
    let found = json(&lab, &["plan", "--tenant", MORE_THAN_A_DAY, "--size", "8MiB", "--endurance", "1"]);
    let forecast = number(&found["offers"][0], "ssd_write_bytes_per_day");
    assert!((forecast / (written / seconds * 86_400.0) - 1.0).abs() < 1e-9, "{forecast} {written}");
}

#[test]
fn what_may_be_written_is_told_beside_what_was() {
    let lab = Lab::new();
    let run = ["simulate", "--tenant", MORE_THAN_A_DAY, "--cache", "8MiB"];
    let told = json(&lab, &[&run[..], &["--dwpd", "1"]].concat());
    let (run_told, budget) = (&told["runs"][0], &told["runs"][0]["ssd_write_budget"]);
    assert_eq!((number(budget, "period_bytes"), number(budget, "period_seconds")), (8.0 * MIB, 86_400.0));
    let allowed = 8.0 * MIB * number(run_told, "seconds") / 86_400.0;
    assert!((number(budget, "bytes") / allowed - 1.0).abs() < 1e-3, "{budget} {allowed}");
    let written = number(&run_told["total"]["ssd_writes"], "total") * number(run_told, "block_bytes");
    assert!((number(budget, "used") - written / number(budget, "bytes")).abs() < 1e-9, "{budget}");
    let whole = json(&lab, &[&run[..], &["--ssd-write-budget", "4MiB"]].concat());
    let budget = &whole["runs"][0]["ssd_write_budget"];
    assert_eq!(number(budget, "bytes"), 4.0 * MIB);
    assert!(number(budget, "used") > 0.5 && number(budget, "used") <= 1.0, "{budget}");
    let text = String::from_utf8(larder(&lab, &[&run[..], &["--ssd-write-budget", "4MiB"]].concat()).stdout);
    let text = text.expect("text");
    assert!(text.contains("Budget of SSD writes") && text.contains("4.0 MiB"), "{text}");
    let free = json(&lab, &run);
    assert!(free["runs"][0].get("ssd_write_budget").is_none(), "{free}");
}

/// One request each second for an hour, from that second on, each for a block of its own.
fn hour(lab: &Lab, name: &str, from: u64) {
    let second = |at: u64| format!("{},a,0,Write,{},4096,0\n", (from + at) * 10_000_000, at * 4096);
    fs::write(lab.path(name), (0..3600).map(second).collect::<String>()).expect("written");
}

#[test]
fn a_run_over_aligned_traces_lasts_until_the_end_of_the_last_one() {
    let lab = Lab::new();
    hour(&lab, "early.csv", 1_000_000);
    hour(&lab, "late.csv", 1_000_000 + 5 * 3600);
    let run = ["--tenant", "a=early.csv", "--tenant", "b=late.csv", "--aligned", "--cache", "32MiB"];
    let (written, seconds) = simulated(&lab, &[&run[..], &["--ssd-write-budget", "4MiB"]].concat());
    assert!((6.0 * 3600.0 - 2.0..6.0 * 3600.0).contains(&seconds), "{seconds}");
    assert!(written <= 4.0 * MIB && written > 3.0 * MIB, "{written}");
    // A quarter of a day.
    let (written, _) = simulated(&lab, &[&run[..], &["--dwpd", "0.5"]].concat());
    assert!(written <= 4.0 * MIB && written > 3.0 * MIB, "{written}");
}

#[test]
fn requests_that_all_come_at_once_have_no_part_of_a_day() {
    let lab = Lab::new();
    let line = |at: u64| format!("70000000,a,0,Write,{},4096,0\n", at * 4096);
    fs::write(lab.path("still.csv"), (0..2000).map(line).collect::<String>()).expect("written");
    let simulate = ["simulate", "--tenant", "a=still.csv", "--cache", "4MiB"];
    let plan = ["plan", "--tenant", "a=still.csv", "--size", "4MiB"];
    let budgets: [&[&str]; 3] =
        [&["--dwpd", "1"], &["--tbw", "1", "--years", "5"], &["--ssd-write-budget", "1MiB"]];
    for arguments in budgets.map(|budget| [&simulate[..], budget].concat()).into_iter().chain([plan.to_vec()])
    {
        let output = larder(&lab, &arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains("all requests come at the same time") && told.contains("--closed 8"), "{told}");
    }
    // In a closed loop they take their time.
    let (written, seconds) =
        simulated(&lab, &[&simulate[1..], &["--dwpd", "1000", "--closed", "8"]].concat());
    assert!(written <= 4000.0 * MIB * seconds / 86_400.0 + 4096.0, "{written} {seconds}");
}

#[test]
fn terabytes_last_for_as_long_as_the_ssd_is_to_live() {
    let lab = Lab::new();
    let trace = "a=gen:zipf:theta=0.9,blocks=20000,read=0.5,requests=40000,interval=1s";
    let plan = ["plan", "--tenant", trace, "--size", "16MiB", "--endurance", "0.01TBW/5y,0.01TBW"];
    for years in ["2", "5", "8"] {
        let found = json(&lab, &[&plan[..], &["--years", years]].concat());
        let (lives, years) =
            (found["offers"].as_array().expect("offers"), years.parse::<f64>().expect("years"));
        for offer in lives {
            assert!(number(offer, "unlimited_years") < years, "not bound: {offer}");
            assert!((years * 0.98..years * 1.2).contains(&number(offer, "years")), "{years}: {offer}");
        }
    }
}

#[test]
fn an_ssd_that_is_written_too_much_on_one_day_is_planned_with_its_budget() {
    let lab = Lab::new();
    // Most of what is written comes in the first hours of two days.
    let trace = "a=gen:zipf:theta=0.9,blocks=20000,read=0.5,seed=1,requests=14400,interval=500ms\
        +zipf:theta=0.9,blocks=20000,read=0.5,seed=2,requests=1656,interval=100s";
    let plan = ["plan", "--tenant", trace, "--size", "32MiB"];
    let found = json(&lab, &[&plan[..], &["--endurance", "1,1.2,100"]].concat());
    let offers = found["offers"].as_array().expect("offers");
    let lasts = |offer: &Value| number(offer, "unlimited_years") >= 5.0;
    assert!(lasts(&offers[0]) && lasts(&offers[2]), "{found}");
    for (offer, budget) in offers.iter().zip([Some(1.0), Some(1.2), None]) {
        assert_eq!(offer["budget_bytes_per_day"].as_f64(), budget.map(|it| it * 32.0 * MIB), "{offer}");
        let dwpd = offer["endurance"].as_str().and_then(|it| it.split(' ').next()).expect("DWPD");
        let (written, seconds) = simulated(&lab, &["--tenant", trace, "--cache", "32MiB", "--dwpd", dwpd]);
        let forecast = number(offer, "ssd_write_bytes_per_day") * seconds / 86_400.0;
        assert!(budget.is_none() || (forecast / written - 1.0).abs() < 1e-9, "{offer} {written}");
    }
    let text = larder(&lab, &[&plan[..], &["--endurance", "1,100"]].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("(write_budget = \"unlimited\"): 32 MiB at 100 DWPD; on no day is it "), "{text}");
}
