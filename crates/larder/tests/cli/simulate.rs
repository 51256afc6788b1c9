//! `larder simulate`: what it prints and writes, and what it says of a trace or a question that makes no sense.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::lab::Lab;

/// 64 blocks in turn, each read twice at once, then written: three requests a block.
fn trace() -> String {
    let line = |at: u64, kind: &str, block: u64| {
        format!("{},vm,0,{kind},{},4096,0\n", at * 10_000_000, block * 4096)
    };
    (0..64)
        .map(|b| [line(3 * b, "Read", b), line(3 * b + 1, "Read", b), line(3 * b + 2, "Write", b)].concat())
        .collect()
}

fn lab_with(name: &str, content: &str) -> Lab {
    let lab = Lab::new();
    fs::write(lab.path(name), content).expect("write a trace");
    lab
}

/// Run `larder simulate` in the lab's folder.
fn simulate(lab: &Lab, arguments: &[&str]) -> Output {
    command(lab, arguments).stdin(Stdio::null()).output().expect("larder runs")
}

fn command(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("simulate").args(arguments).current_dir(lab.path("."));
    command
}

fn stdout(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn error(output: Output) -> String {
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

fn json(output: Output) -> Vec<serde_json::Value> {
    serde_json::from_str(&stdout(output)).expect("a JSON list")
}

#[test]
fn a_table_tells_what_was_found() {
    let lab = lab_with("t.csv", &trace());
    let text = stdout(simulate(
        &lab,
        &["t.csv", "--policy", "lru+nth:3,lru", "--size", "32KiB,50%", "--write-policy", "wb,ro"],
    ));
    assert_eq!(text, TABLE, "{text}");
    assert_eq!(stdout(simulate(&lab, &["t.csv", "--quiet"])), "");
}

const TABLE: &str = "\
t.csv (msr): 192 requests, 66.67 % reads, footprint 256 KiB

write policy wb
   size  of foot-  policy     request     read    SSD  SSD guest       SSD  backing  backing      dirty
            print                hits     hits  fills     writes   written    reads   writes  evictions
────────────────────────────────────────────────────────────────────────────────────────────────────────
 32 KiB    12.5 %  lru        66.67 %  50.00 %     64         64  512 KiB        64       56         56
                   lru+nth:3   0.00 %   0.00 %      0         64  256 KiB*      128       56         56
128 KiB      50 %  lru        66.67 %  50.00 %     64         64  512 KiB        64       32         32
                   lru+nth:3   0.00 %   0.00 %      0         64  256 KiB*      128       32         32

write policy ro
   size  of foot-  policy     request     read    SSD  SSD guest       SSD  backing  backing      dirty
            print                hits     hits  fills     writes   written    reads   writes  evictions
────────────────────────────────────────────────────────────────────────────────────────────────────────
 32 KiB    12.5 %  lru        33.33 %  50.00 %     64          0  256 KiB        64       64          0
                   lru+nth:3   0.00 %   0.00 %      0          0      0 B*      128       64          0
128 KiB      50 %  lru        33.33 %  50.00 %     64          0  256 KiB        64       64          0
                   lru+nth:3   0.00 %   0.00 %      0          0      0 B*      128       64          0

In blocks of 4 KiB; at each size the most request hits come first, * has the fewest SSD writes.
";

#[test]
fn json_is_a_list_of_runs() {
    let lab = lab_with("t.csv", &trace());
    let runs = json(simulate(
        &lab,
        &["t.csv", "--policy", "lru,fifo+nth:2", "--size", "1MiB,4096", "--write-policy", "wt", "--json"],
    ));
    assert_eq!(runs.len(), 4);
    let run = &runs[0];
    let told = ["policy", "admission", "write_policy"].map(|key| run[key].as_str().expect(key).to_owned());
    assert_eq!(told, ["lru", "always", "wt"]);
    for (key, value) in [
        ("cache_bytes", 4096),
        ("block_bytes", 4096),
        ("requests", 192),
        ("request_hits", 128),
        ("block_reads", 128),
        ("block_writes", 64),
        ("read_hits", 64),
        ("write_hits", 64),
        ("fills", 64),
        ("evictions", 63),
        ("dirty_evictions", 0),
        ("backing_reads", 64),
        ("backing_writes", 64),
        ("footprint_blocks", 64),
    ] {
        assert_eq!(run[key], value, "{key}: {run}");
    }
    assert_eq!(run["ssd_writes"], serde_json::json!({"fill": 64, "guest_write": 64, "total": 128}));
    assert!(run["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0));
    assert_eq!((runs[1]["policy"].as_str(), runs[1]["admission"].as_str()), (Some("fifo"), Some("nth:2")));
    assert_eq!(
        (runs[3]["cache_bytes"].as_u64(), runs[3]["ssd_writes"]["fill"].as_u64()),
        (Some(1 << 20), Some(64))
    );
}

#[test]
fn files_are_written_beside_the_table() {
    let lab = lab_with("t.csv", &trace());
    let arguments =
        ["t.csv", "--json=r.json", "--csv=r.csv", "--interval", "64", "--series", "s.csv", "--plot", "p.svg"];
    let text =
        stdout(simulate(&lab, &[&arguments[..], &["--size", "10%,50%", "--policy", "lru,arc"]].concat()));
    assert!(text.starts_with("t.csv (msr)"), "{text}");
    let read = |name: &str| fs::read_to_string(lab.path(name)).expect(name);
    let runs: Vec<serde_json::Value> = serde_json::from_str(&read("r.json")).expect("JSON");
    assert_eq!((runs.len(), runs[0]["series"].as_array().map(Vec::len)), (4, Some(3)));
    assert!(read("p.svg").starts_with("<svg"));
    for (name, lines) in [("r.csv", 1 + 4), ("s.csv", 1 + 4 * 3)] {
        let csv = read(name);
        let columns: Vec<_> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns.len(), lines, "{csv}");
        assert!(columns.iter().all(|&count| count == columns[0]), "{csv}");
    }
    let series = read("s.csv");
    let second = series.lines().nth(2).expect("an interval");
    assert!(second.starts_with("lru,always,wb,24576,4096,64,64,64,"), "{second}");
}

#[test]
fn csv_goes_to_stdout() {
    let lab = lab_with("t.csv", &trace());
    let csv = stdout(simulate(&lab, &["t.csv", "--csv", "--size", "64KiB"]));
    assert!(csv.starts_with("policy,admission,write_policy,cache_bytes,block_bytes,requests,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 4);
    assert!(
        error(simulate(&lab, &["t.csv", "--csv", "--json"])).contains("help: name a file for one of them")
    );
}

#[test]
fn a_generated_trace_and_many_threads_give_the_same() {
    let lab = Lab::new();
    let arguments = [
        "gen:zipf:theta=1.0,blocks=2000,requests=30000,read=0.7",
        "--policy",
        "all,belady",
        "--csv",
        "--warmup",
        "20%",
    ];
    let without_seconds = |threads| {
        let csv = stdout(simulate(&lab, &[&arguments[..], &["--threads", threads]].concat()));
        csv.lines().map(|line| line.rsplit_once(',').expect("columns").0.to_owned()).collect::<Vec<_>>()
    };
    let one = without_seconds("1");
    assert_eq!(one.len(), 1 + 15 * 7);
    assert!(one[1].contains(",24000,"), "{}", one[1]);
    assert_eq!(one, without_seconds("3"));
}

#[test]
fn stdin_is_a_trace() {
    let lab = Lab::new();
    let run = |arguments: &[&str]| {
        let pipes = |command: &mut Command| {
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("larder starts")
        };
        let mut child = pipes(&mut command(&lab, arguments));
        // It may end before it has read everything.
        let _ = child.stdin.take().expect("piped").write_all(trace().as_bytes());
        child.wait_with_output().expect("larder ends")
    };
    assert_eq!(json(run(&["-", "--size", "64KiB", "--json"]))[0]["request_hits"], 128);
    for needs_two in [
        &["-"][..],
        &["-", "--size", "64KiB", "--warmup", "10%"],
        &["-", "--size", "64KiB", "--policy", "belady"],
    ] {
        assert!(error(run(needs_two)).starts_with("error: stdin can be read only once"), "{needs_two:?}");
    }
}

#[test]
fn windows_line_ends_and_times_out_of_order_change_nothing() {
    let plain = lab_with("t.csv", &trace());
    let windows = lab_with("t.csv", &trace().replace('\n', "\r\n"));
    let mut lines: Vec<_> =
        trace().lines().map(|line| line.split_once(',').expect("columns").1.to_owned()).collect();
    lines
        .iter_mut()
        .enumerate()
        .for_each(|(at, line)| *line = format!("{},{line}", (at as u64 * 7919) % 1000 * 10_000_000));
    let shuffled = lab_with("t.csv", &(lines.join("\n") + "\n"));
    let found = |lab: &Lab| {
        let runs = json(simulate(lab, &["t.csv", "--json"]));
        runs.iter().map(|run| [run["request_hits"].clone(), run["ssd_writes"].clone()]).collect::<Vec<_>>()
    };
    assert_eq!(found(&plain).len(), 4 * 6, "1 % and 2 % are both one block");
    assert_eq!(found(&windows), found(&plain));
    assert_eq!(found(&shuffled), found(&plain));
}

#[test]
fn odd_traces_have_sensible_results() {
    let one = ["t.csv", "--format", "msr", "--policy", "lru,arc,larc,s3-fifo,lirs,mq,w-tinylfu", "--json"];
    let all = |content: &str, more: &[&str]| {
        json(simulate(&lab_with("t.csv", content), &[&one[..], more].concat()))
    };
    let writes = trace().replace("Read", "Write");
    for run in all(&writes, &["--size", "1GiB,4096"]) {
        let expected = if run["policy"] == "larc" { vec![128, 64] } else { vec![128] };
        assert!(expected.iter().any(|&hits| run["request_hits"] == hits), "{run}");
        assert_eq!((&run["read_hit_ratio"], &run["fills"]), (&serde_json::Value::Null, &0.into()));
    }
    let far = format!("0,vm,0,Read,{},4096,0\n0,vm,0,Read,{},8192,0\n", 1u64 << 63, 1u64 << 63);
    for run in all(&far, &["--size", "1GiB"]) {
        assert_eq!((&run["block_reads"], &run["footprint_blocks"]), (&3.into(), &2.into()));
    }
    for run in all("", &["--size", "1GiB"]) {
        assert_eq!((&run["requests"], &run["request_hit_ratio"]), (&0.into(), &serde_json::Value::Null));
    }
}

#[test]
fn what_cannot_be_simulated_is_told() {
    let lab = lab_with("t.csv", &trace());
    fs::write(lab.path("empty.csv"), "").expect("write a trace");
    let bad = trace()
        .lines()
        .enumerate()
        .map(|(at, line)| if at == 99 { "1,2,rubbish\n".into() } else { format!("{line}\n") })
        .collect::<String>();
    fs::write(lab.path("bad.csv"), bad).expect("write a trace");
    for (arguments, what) in [
        (
            &["missing.csv"][..],
            "error: missing.csv: cannot be opened: No such file or directory (os error 2)\nhelp: ",
        ),
        (&["bad.csv", "--format", "msr", "--json"], "error: bad.csv: line 100: "),
        (&["bad.csv", "--format", "msr", "--size", "1MiB", "--json"], "error: bad.csv: line 100: "),
        (
            &["empty.csv", "--format", "msr"],
            "error: empty.csv holds no reads or writes: a share of its footprint is no cache size\nhelp: ",
        ),
        (&["gen:zipf:theta=1.0", "--size", "1MiB"], "error: gen:zipf:theta=1.0: no such workload: phase 1: "),
        (&["t.csv", "--size", "4095"], "error: a cache of 4095 bytes holds no block of 4KiB\nhelp: "),
        (&["t.csv", "--size", "1PiB"], "error: a cache of 274877906944 blocks cannot be simulated"),
        (
            &["t.csv", "--warmup", "1000"],
            "error: nothing is left to count: the warm-up takes all of t.csv\nhelp: ",
        ),
        (
            &["t.csv", "--plot", "p.pdf"],
            "error: p.pdf: unknown extension .pdf; a picture ends in .svg, .png or .html\nhelp: ",
        ),
        (
            &["t.csv", "--json=nowhere/r.json"],
            "error: nowhere/r.json cannot be written: No such file or directory",
        ),
        (&["t.csv", "--csv=."], "error: . cannot be written: is a directory\nhelp: "),
    ] {
        let told = error(simulate(&lab, arguments));
        assert!(told.starts_with(what) && told.contains("\nhelp: "), "{arguments:?}: {told}");
    }
}

#[test]
fn what_is_asked_wrongly_is_a_usage_error() {
    let lab = lab_with("t.csv", &trace());
    for (arguments, what) in [
        (&["t.csv", "--policy", "lruu"][..], "unknown replacement policy `lruu`"),
        (&["t.csv", "--write-policy", "back"], "there are wb, wt, wt-noalloc, ro, wo"),
        (&["t.csv", "--block", "5000"], "a power of two from 512 bytes to 128 KiB"),
        (&["t.csv", "--size", "0%"], "is no share of the footprint"),
        (&["t.csv", "--interval", "0"], "is no length"),
        (&["t.csv", "--format", "mrs"], "is no trace format"),
        (&["t.csv", "--series", "s.csv"], "--interval"),
        (&["t.csv", "--threads", "0"], "--threads"),
        (&["t.csv", "u.csv"], "unexpected argument"),
        (&[], "<TRACE>"),
    ] {
        let output = simulate(&lab, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {told}");
        assert!(told.contains(what), "{arguments:?}: {told}");
    }
}
