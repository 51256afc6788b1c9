//! `larder simulate --tenant …`: what it tells of tenants that share a cache, and what it says of a question that makes no sense.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::lab::Lab;

const SKEWED: &str = "db=gen:zipf:theta=1.0,blocks=2000,requests=8000,read=0.7,interval=1ms,seed=1";
const EVEN: &str = "web=gen:uniform:blocks=1000,requests=8000,read=0.7,interval=1ms,seed=2";

/// Run `larder simulate` in the lab's folder.
fn simulate(lab: &Lab, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("simulate").args(arguments).current_dir(lab.path(".")).stdin(Stdio::null());
    command.output().expect("larder runs")
}

fn both(lab: &Lab, more: &[&str]) -> Output {
    simulate(lab, &[&["--tenant", SKEWED, "--tenant", EVEN, "--epoch", "1s"], more].concat())
}

fn stdout(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The runs, without the times that the processor took.
fn runs(output: Output) -> Vec<Value> {
    let json: Value = serde_json::from_str(&stdout(output)).expect("JSON");
    let mut runs = json["runs"].as_array().expect("a list").clone();
    for run in &mut runs {
        for key in ["cpu_seconds", "control_cpu_seconds"] {
            assert!(run[key].as_f64().is_some_and(|seconds| seconds >= 0.0), "{key}");
            run[key] = Value::Null;
        }
    }
    runs
}

#[test]
fn tables_compare_allocators() {
    let lab = Lab::new();
    let text = stdout(both(&lab, &["--cache", "10%,1MiB", "--allocator", "larder,eci,static"]));
    for part in [
        "2 tenants, footprint ",
        "  web: gen:uniform:blocks=1000,",
        "\nLatency and hits, all tenants together\n",
        "\nWhat it cost\n",
        "\nTenants\n",
        "\nExpected and achieved: mean absolute errors\n",
        "\nLast decisions\n",
        "* is the best of its cache.",
        "(10 %)",
        " ms*",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for allocator in ["larder", "eci", "static"] {
        let lines = text.lines().filter(|line| line.split_whitespace().any(|word| word == allocator)).count();
        assert!(lines >= 2 * 4, "{allocator}: {text}");
    }
    assert!(text.contains(" …"), "long reasons are cut: {text}");
    assert!(!stdout(both(&lab, &["--cache", "1MiB", "--allocator", "eci", "--reasons"])).contains(" …"));
    assert_eq!(stdout(both(&lab, &["--cache", "1MiB", "--quiet"])), "");
}

#[test]
fn the_share_of_a_cache_stands_below_its_size() {
    let text = stdout(both(&Lab::new(), &["--cache", "10%", "--allocator", "larder,eci"]));
    let cost = text.split("\nWhat it cost\n").nth(1).expect("a table");
    let rows: Vec<_> = cost.lines().skip(3).take(2).map(str::trim_start).collect();
    assert!(rows[0].contains(" MiB  larder ") || rows[0].contains(" KiB  larder "), "{text}");
    assert!(rows[1].starts_with("(10 %)  eci "), "{text}");
}

#[test]
fn a_tenant_without_a_limit_has_what_it_holds() {
    let lab = Lab::new();
    let run = &runs(both(&lab, &["--cache", "8MiB", "--allocator", "scave", "--json"]))[0];
    let rows = run["decisions"].as_array().expect("a list");
    assert!(rows.iter().any(|row| row["unlimited"] == true), "{rows:?}");
    let quotas = run["tenants"].as_array().expect("a list").iter();
    let quotas: f64 = quotas.map(|tenant| tenant["mean_quota_blocks"].as_f64().expect("blocks")).sum();
    assert!(quotas <= 2048.0, "{quotas} of 2,048 blocks");
    let text = stdout(both(&lab, &["--cache", "8MiB", "--allocator", "scave,combined"]));
    for part in ["  scave sets no limit at times", "  combined has, beside", "no limit  "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn json_is_the_same_whatever_the_threads() {
    let lab = Lab::new();
    let of = |threads| {
        runs(both(&lab, &["--cache", "1MiB,10%", "--allocator", "wss,eci", "--json", "--threads", threads]))
    };
    let one = of("1");
    assert_eq!(one, of("3"));
    let told: Vec<_> = one
        .iter()
        .map(|run| format!("{} {}", run["allocator"].as_str().expect("a name"), run["cache_bytes"]))
        .collect();
    assert_eq!(told[2], "wss 1048576");
    assert_eq!(told[3], "eci 1048576");
    assert_eq!(told.len(), 4);
    for run in &one {
        assert_eq!(run["total"]["requests"], 16_000);
        assert_eq!(run["tenants"][1]["name"], "web");
        let footprint = run["footprint_bytes"].as_f64().expect("known");
        assert!(footprint < 3000.0 * 4096.0 && footprint > 1500.0 * 4096.0);
        assert_eq!(run.get("scenario"), None);
    }
    let share =
        one[0]["cache_bytes"].as_f64().expect("bytes") / one[0]["footprint_bytes"].as_f64().expect("bytes");
    assert!((share - 0.1).abs() < 1e-3, "{share}");
}

#[test]
fn one_tenant_alone_has_what_one_cache_has() {
    let lab = Lab::new();
    let trace = SKEWED.split_once('=').expect("a trace").1;
    let alone =
        simulate(&lab, &[trace, "--policy", "arc", "--size", "1MiB", "--write-policy", "wt", "--json"]);
    let alone: Vec<Value> = serde_json::from_str(&stdout(alone)).expect("a list");
    let shared = ["--allocator", "static", "--cache", "1MiB", "--block", "4KiB", "--policy", "arc"];
    let shared =
        [&["--tenant", SKEWED, "--write-policy", "wt", "--set", "db.write=wt", "--json"], &shared[..]];
    let shared = &runs(simulate(&lab, &shared.concat()))[0]["tenants"][0];
    for key in ["requests", "block_reads", "read_hits", "block_writes", "backing_reads", "backing_writes"] {
        assert_eq!(alone[0][key], shared[key], "{key}");
    }
    for key in ["fill", "guest_write", "total"] {
        assert_eq!(alone[0]["ssd_writes"][key], shared["ssd_writes"][key], "{key}");
    }
}

#[test]
fn what_is_said_about_a_tenant_holds() {
    let lab = Lab::new();
    let of = |settings: &str| {
        let run = both(
            &lab,
            &["--cache", "2MiB", "--allocator", "static", "--block", "4KiB", "--json", "--set", settings],
        );
        runs(run).remove(0)
    };
    let usual = of("db.weight=1");
    let seconds = |run: &Value, tenant: usize| run["tenants"][tenant]["seconds"].as_f64().expect("seconds");
    assert!((seconds(&usual, 0) - 8.0).abs() < 0.1);
    assert!((seconds(&of("db.rate=4"), 0) - 2.0).abs() < 0.1);
    let quota = of("db.quota=512KiB,web.quota=1MiB");
    let first = |at: usize| quota["decisions"][at]["quota_blocks"].as_u64().expect("blocks");
    assert_eq!((first(0), first(1)), (128, 256));
    let stopped = of("web.stop=2s,db.start=1s");
    let requests = stopped["tenants"][1]["requests"].as_u64().expect("requests");
    assert!((1990..=2010).contains(&requests), "{requests}");
    let repeated = of("web.loop=yes,web.stop=20s")["tenants"][1]["requests"].as_u64().expect("requests");
    assert!((19_990..=20_010).contains(&repeated), "{repeated}");
    let closed = of("db.outstanding=1");
    assert!(seconds(&closed, 0) > seconds(&usual, 0), "one after the other is slower than one a millisecond");
}

const SCENARIOS: &str = r#"
cache_shares = [0.1, 0.5]
block = "8KiB"
epoch = "2s"
[[scenario]]
name = "first"
tenants = { db = "traces/db.csv", other = { trace = "gen:uniform:blocks=100,requests=500,interval=1ms", start = "1s" } }
[[scenario]]
name = "second"
cache_shares = [0.2]
tenants = { db = "traces/db.csv" }
"#;

#[test]
fn a_file_of_scenarios_is_run() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("experiments/traces")).expect("a folder");
    fs::write(lab.path("experiments/all.toml"), SCENARIOS).expect("scenarios");
    let lines: String = (0..400u64)
        .map(|at| format!("{},vm,{},Read,{},4096,0\n", at * 100_000, at % 2, at % 100 * 8192))
        .collect();
    fs::write(lab.path("experiments/traces/db.csv"), lines).expect("a trace");
    let all =
        runs(simulate(&lab, &["--scenario", "experiments/all.toml", "--allocator", "static", "--json"]));
    let told: Vec<_> = all
        .iter()
        .map(|run| {
            (run["scenario"].as_str().expect("a name"), run["cache_bytes"].as_u64().expect("bytes") / 8192)
        })
        .collect();
    // Two volumes with 50 blocks each, and at most a hundred 4 KiB blocks of the other in fifty.
    assert_eq!(told, [("first", 15), ("first", 75), ("second", 20)]);
    assert!(all.iter().all(|run| run["block_bytes"] == 8192 && run["epoch_seconds"] == 2.0));
    let one = ["--scenario", "experiments/all.toml#second", "--cache", "1MiB", "--allocator", "static,eci"];
    let text = stdout(simulate(&lab, &one));
    assert!(
        text.starts_with("scenario second: 1 tenant\n  db: db.csv\n") && text.contains("1 MiB"),
        "{text}"
    );
    for (scenario, what) in [
        ("experiments/all.toml#third", "no scenario is called \"third\"; there are first, second"),
        ("nowhere.toml", "nowhere.toml: cannot be read: "),
        ("experiments/traces/db.csv", "experiments/traces/db.csv: "),
    ] {
        let told = error(simulate(&lab, &["--scenario", scenario]));
        assert!(told.starts_with("error: ") && told.contains(what) && told.contains("\nhelp: "), "{told}");
    }
}

#[test]
fn a_budget_of_ssd_writes_is_kept() {
    let lab = Lab::new();
    let written = |more: &[&str]| {
        let all = runs(both(&lab, &[&["--cache", "2MiB", "--allocator", "larder", "--json"], more].concat()));
        let run = &all[0];
        run["total"]["ssd_writes"]["total"].as_u64().expect("blocks")
            * run["block_bytes"].as_u64().expect("bytes")
    };
    let (free, budget) = (written(&[]), 4u64 << 20);
    assert!(free > budget * 2, "{free}");
    assert!(written(&["--ssd-write-budget", "4MiB"]) <= budget + budget / 50);
    // 8 s of a day: 21600 drive writes a day are 2 of them in 8 s.
    assert!(written(&["--dwpd", "21600"]) <= budget + budget / 50);
}

#[test]
fn what_may_be_written_in_a_day_is_kept_to_in_a_closed_loop_however_short_it_is() {
    let lab = Lab::new();
    let closed = ["--cache", "2MiB", "--allocator", "larder,eci", "--closed", "4", "--json"];
    let mebibytes = |run: &Value| {
        let blocks = run["total"]["ssd_writes"]["total"].as_f64().expect("blocks");
        blocks * run["block_bytes"].as_f64().expect("bytes") / f64::from(1 << 20)
    };
    // Neither is as long as that.
    for longer in [&[][..], &["--duration", "1h"], &["--set", "db.stop=1h,web.stop=1h"]] {
        for run in runs(both(&lab, &[&closed[..], &["--dwpd", "21600"], longer].concat())) {
            let (written, seconds) = (mebibytes(&run), run["seconds"].as_f64().expect("seconds"));
            let may = seconds / 2.0;
            assert!(written <= may * 1.02 + 0.1 && written > may * 0.5, "{written} MiB in {seconds} s");
        }
    }
    // A mover that comes now and then writes what it may have by then.
    let moved = ["--cache", "2MiB", "--allocator", "centaur", "--mover", "500ms", "--closed", "4", "--json"];
    let run = &runs(both(&lab, &[&moved[..], &["--dwpd", "21600"]].concat()))[0];
    assert!(mebibytes(run) > run["seconds"].as_f64().expect("seconds") * 0.2, "{run}");
    assert!(runs(both(&lab, &closed)).iter().all(|run| mebibytes(run) > 10.0));
}

#[test]
fn promises_are_told_beside_what_came_of_them() {
    let lab = Lab::new();
    let promise =
        |what: &str| stdout(both(&lab, &["--cache", "1MiB", "--allocator", "larder,eci", "--set", what]));
    let (refused, granted) = (promise("db.latency=1us"), promise("db.latency=10s"));
    for (text, said) in [(&refused, "refused: "), (&granted, "granted")] {
        assert!(text.contains("\nPromises\n") && text.contains(said), "{text}");
        assert!(text.contains("nothing: eci knows no promises"), "{text}");
    }
    assert!(!stdout(both(&lab, &["--cache", "1MiB"])).contains("Promises"));
}

#[test]
fn traces_without_times_or_requests_and_impossible_minima_are_refused() {
    let lab = Lab::new();
    fs::write(lab.path("keys.lis"), "1 1 0 0\n2 1 0 1\n1 1 0 2\n").expect("a trace");
    fs::write(lab.path("empty.csv"), "").expect("a trace");
    let keys = ["--tenant", "a=keys.lis", "--cache", "1MiB"];
    let told = error(simulate(&lab, &keys));
    assert!(
        told.contains("tenant a: keys.lis has no times at which") && told.contains("--closed 8"),
        "{told}"
    );
    stdout(simulate(&lab, &[&keys[..], &["--closed", "2"]].concat()));
    stdout(simulate(&lab, &[&keys[..], &["--set", "a.outstanding=2"]].concat()));
    let told = error(simulate(&lab, &["--tenant", "a=empty.csv", "--cache", "1MiB"]));
    assert!(told.contains("no read or write came of a"), "{told}");
    stdout(both(&lab, &["--cache", "8MiB", "--min", "5MiB", "--set", "db.stop=2s,web.start=3s"]));
    let told = error(both(&lab, &["--cache", "8MiB", "--min", "5MiB"]));
    assert!(told.contains("(--min) is 10 MiB together, and the cache has 8 MiB"), "{told}");
    let told = error(both(&lab, &["--cache", "16MiB", "--min", "5MiB", "--allocator", "static,combined"]));
    assert!(
        told.contains("is 10 MiB together, and the part of the cache that combined divides has 8 MiB"),
        "{told}"
    );
}

/// Discards take no time where requests come one after the other, and are none of those that `-n` counts.
#[test]
fn a_trace_of_discards_alone_ends_though_it_is_looped() {
    let lab = Lab::new();
    let discard = |at: u64| format!("{at} /dev/a trim {} 4096\n", at * 4096);
    let discards: String = (0..10).map(discard).collect();
    let log = format!("fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n{discards}10 /dev/a close\n");
    fs::write(lab.path("discards.fio"), log).expect("a trace");
    let looped = ["--tenant", "d=discards.fio", "--tenant", SKEWED, "--cache", "1MiB", "--set", "d.loop=yes"];
    stdout(simulate(&lab, &[&looped[..], &["--closed", "2", "--duration", "1s"]].concat()));
    stdout(simulate(&lab, &[&looped[..], &["-n", "100"]].concat()));
}

#[test]
fn pictures_are_drawn() {
    let lab = Lab::new();
    stdout(both(&lab, &["--cache", "1MiB", "--allocator", "eci,static", "--plot", "new/folder"]));
    stdout(both(&lab, &["--cache", "1MiB", "--allocator", "eci", "--plot", "out.html"]));
    for file in ["new/folder/eci-1MiB.svg", "new/folder/static-1MiB.svg", "new/folder/latency-1MiB.svg"] {
        let svg = fs::read_to_string(lab.path(file)).expect(file);
        assert!(svg.starts_with("<svg") && svg.contains(">db<") | svg.contains("db: mean latency"), "{file}");
    }
    // Its three panels show the same time at the same place.
    let svg = fs::read_to_string(lab.path("new/folder/eci-1MiB.svg")).expect("a picture");
    let ticks = svg.lines().flat_map(|line| line.split("<text ")).filter(|text| text.contains(">2 s</text>"));
    let places: Vec<_> = ticks.map(|text| text.split("y=").next().expect("its x")).collect();
    assert!(places.len() == 3 && places.iter().all(|place| *place == places[0]), "{places:?}");
    for file in ["out-eci-1MiB.html", "out-latency-1MiB.html"] {
        assert!(lab.path(file).exists(), "{file}");
    }
}

fn error(output: Output) -> String {
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn what_cannot_be_simulated_is_told() {
    let lab = Lab::new();
    fs::write(lab.path("empty.csv"), "").expect("a trace");
    fs::write(lab.path("bad.csv"), "0,vm,0,Read,0,4096,0\n1,2,rubbish\n").expect("a trace");
    let db = ["--tenant", SKEWED];
    for (arguments, what) in [
        (&["--cache", "1MiB", "--tenant", "a=missing.csv"][..], "missing.csv: cannot be opened: "),
        (&["--cache", "1MiB", "--tenant", "a=-"], "tenant a: stdin can be read only once"),
        (&["--cache", "1MiB", "--tenant", SKEWED], "two tenants are called db"),
        (&["--cache", "1MiB", "--tenant", "a=gen:zipf:theta=1"], "gen:zipf:theta=1: no such workload: "),
        (&["--cache", "1MiB", "--tenant", "a=bad.csv", "--format", "msr"], "tenant a: bad.csv: line 2: "),
        (&[], "nothing tells how large the cache is that db share"),
        (&["--cache", "1MiB", "--set", "web.rate=2"], "--set web.rate=2: no tenant is called web"),
        (&["--cache", "1MiB", "--set", "db.rate=2,db.rate=3"], "tenant db: rate is said twice"),
        (
            &["--cache", "1MiB", "--set", "db.rate=2,db.outstanding=3"],
            "tenant db: rate is for the times of a trace",
        ),
        (&["--cache", "1MiB", "--set", "db.loop=yes"], "tenant db: it goes on for ever"),
        (
            &["--cache", "1MiB", "--policy", "lru,arc"],
            "tenants that share a cache follow one replacement policy",
        ),
        (&["--cache", "1MiB", "--policy", "belady"], "belady has to know the trace beforehand"),
        (
            &["--cache", "1MiB", "--write-policy", "wb,wt"],
            "tenants that share a cache start under one write policy",
        ),
        (
            &["--cache", "1MiB", "--closed", "2", "--ssd-write-budget", "1MiB"],
            "--ssd-write-budget is for the whole run",
        ),
        (&["--cache", "100"], "a cache of 100 bytes holds no block of 4KiB"),
        (
            &["--cache", "1MiB", "--allocator", "static", "--set", "db.quota=2MiB"],
            "static, cache of 1 MiB: the configured quotas want ",
        ),
        (&["--cache", "1MiB", "--json=nowhere/r.json"], "nowhere/r.json cannot be written: "),
        (&["--cache", "1MiB", "--plot", "p.pdf"], "p.pdf: unknown extension .pdf"),
    ] {
        let told = error(simulate(&lab, &[&db, arguments].concat()));
        assert!(
            told.starts_with(&format!("error: {what}")) && told.contains("\nhelp: "),
            "{arguments:?}: {told}"
        );
    }
    let told = error(simulate(&lab, &["--tenant", "a=empty.csv", "--format", "msr", "--cache", "10%"]));
    assert!(told.starts_with("error: the traces of a hold no reads or writes"), "{told}");
}

#[test]
fn what_is_asked_wrongly_is_a_usage_error() {
    let lab = Lab::new();
    let db = ["--tenant", SKEWED, "--cache", "1MiB"];
    for (arguments, what) in [
        (&["t.csv"][..], "cannot be used with"),
        (&["--size", "1MiB"], "cannot be used with"),
        (&["--warmup", "5"], "cannot be used with"),
        (&["--csv"], "cannot be used with"),
        (&["--allocator", "nobody"], "nobody is no allocator; there are "),
        (&["--set", "db.speed=2"], "speed is nothing that can be said about a tenant"),
        (&["--set", "db"], "write NAME.KEY=VALUE"),
        (&["--tenant", "gen:uniform:blocks=1,requests=1"], "is no name of a tenant"),
        (&["--ssd", "tape"], "\"tape\" is no device"),
        (&["--epoch", "0s"], "0s is less than a millisecond"),
        (&["--mover", "1ns"], "1ns is less than a millisecond"),
        (&["--duration", "0s"], "is no time at all"),
        (&["--duration", "900000h"], "is more than a hundred years"),
        (&["--set", "db.start=5200000h"], "is more than a hundred years"),
        (&["--rate", "1e-20"], "is not from 0.000001 to 1000000"),
        (&["--set", "db.rate=1e7"], "is not from 0.000001 to 1000000"),
        (&["--tbw", "5"], "--years"),
        (&["--dwpd", "1", "--ssd-write-budget", "1MiB"], "cannot be used with"),
        (&["--closed", "2", "--rate", "2"], "cannot be used with"),
        (&["--objective", "fame"], "there are mean-latency, "),
    ] {
        usage(&simulate(&lab, &[&db, arguments].concat()), what);
    }
    for option in [
        &["--cache", "1MiB"][..],
        &["--allocator", "eci"],
        &["--epoch", "5s"],
        &["--backing-each"],
        &["--set", "a.rate=2"],
    ] {
        usage(&simulate(&lab, &[&["t.csv"], option].concat()), "--tenant");
    }
}

fn usage(output: &Output, what: &str) {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{what}: {told}");
    assert!(told.contains(what), "{what}: {told}");
}
