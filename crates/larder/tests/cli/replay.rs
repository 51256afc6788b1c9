//! `larder replay`: traces on files, what it tells of them, what it refuses, and what it finds when the target does not keep what was written.

mod refused;
mod verify;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::Lab;

const MIB: usize = 1 << 20;

/// How fio's log begins, which also has flushes and discards.
const HEADER: &str = "fio version 3 iolog\n";

/// `W0 R0 W8+16 D0 F`: writes, reads and discards of a block of 4 KiB (or so many), and flushes, as lines of that log, a millisecond apart.
fn lines(text: &str) -> String {
    let line = |(at, word): (u64, &str)| {
        let (kind, place) = word.split_at(1);
        let action = match kind {
            "R" => "read",
            "W" => "write",
            "D" => "trim",
            "F" => "sync",
            other => panic!("{other} is no kind"),
        };
        let place = if place.is_empty() { "0+0" } else { place };
        let (block, blocks) = place.split_once('+').unwrap_or((place, "1"));
        let [offset, len] = [block, blocks].map(|number| number.parse::<u64>().expect("a number") * 4096);
        format!("{} vm {action} {offset} {len}\n", (at + 1) * 1000)
    };
    (0..).zip(text.split_whitespace()).map(line).collect()
}

/// A whole log.
fn log(text: &str) -> String {
    HEADER.to_owned() + &lines(text)
}

/// A folder with the trace `t.log` and a disk of 4 MiB, `disk.img`.
fn lab(text: &str) -> Lab {
    let lab = Lab::new();
    fs::write(lab.path("t.log"), log(text)).expect("write a trace");
    lab.disk("disk.img", 4 * MIB);
    lab
}

fn command(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command
        .arg("replay")
        .args(arguments)
        .current_dir(lab.path("."))
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

/// Run `larder replay` in the lab's folder.
fn replay(lab: &Lab, arguments: &[&str]) -> Output {
    command(lab, arguments).output().expect("larder runs")
}

/// The same on `disk.img` in closed loop, with JSON.
fn replay_json(lab: &Lab, arguments: &[&str]) -> Value {
    let common = ["t.log", "--to", "disk.img", "--closed", "4", "--json"];
    let output = replay(lab, &[&common, arguments].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = OpenOptions::new().write(true).open(path).expect("open a disk");
    file.write_all_at(bytes, offset).expect("write to it");
}

#[test]
fn a_trace_is_replayed_and_counted() {
    let lab = lab("W0 W8+16 R0 R8+2 F D100 R500");
    let before = fs::read(lab.path("disk.img")).expect("a disk");
    let told = replay_json(&lab, &["--destroy-data", "--flush-every", "1", "--seed", "9"]);
    for (path, expected) in [
        ("/trace", "t.log".into()),
        ("/format", "fio".into()),
        ("/target_bytes", (4 * MIB).into()),
        ("/pace/loop", "closed".into()),
        ("/pace/outstanding", 4.into()),
        ("/ended_by", "trace".into()),
        ("/reads/requests", 3.into()),
        ("/reads/bytes", (4 * 4096).into()),
        ("/writes/requests", 2.into()),
        ("/writes/bytes", (17 * 4096).into()),
        ("/writes/errors", 0.into()),
        ("/flushes/requests", 3.into()),
        ("/discards/requests", 1.into()),
        ("/lateness_seconds", Value::Null),
        ("/seed", 9.into()),
        ("/verification", Value::Null),
    ] {
        assert_eq!(told.pointer(path), Some(&expected), "{path}: {told:#}");
    }
    let latency = |path| told.pointer(path).and_then(Value::as_f64).expect(path);
    assert!(latency("/reads/latency_seconds/p50") <= latency("/reads/latency_seconds/max"));
    assert!(latency("/writes/latency_seconds/mean") > 0.0);
    let after = fs::read(lab.path("disk.img")).expect("a disk");
    let changed: Vec<usize> =
        (0..4 * MIB / 4096).filter(|at| before[at * 4096..][..4096] != after[at * 4096..][..4096]).collect();
    let expected: Vec<usize> = [0].into_iter().chain(8..24).chain([100]).collect();
    assert_eq!(changed, expected, "what was written or discarded, and nothing else");
}

#[test]
fn the_same_seed_writes_the_same() {
    let disk = |seed: &str| {
        let lab = lab("W0 W8+16");
        replay_json(&lab, &["--destroy-data", "--seed", seed]);
        fs::read(lab.path("disk.img")).expect("a disk")
    };
    assert!(disk("1") == disk("1") && disk("1") != disk("2"));
}

#[test]
fn reads_alone_leave_the_target_as_it_is() {
    let lab = lab("W0 R0 F D8 R9 R10");
    let mut permissions = fs::metadata(lab.path("disk.img")).expect("a disk").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(lab.path("disk.img"), permissions).expect("read-only");
    let before = lab.fingerprint();
    let told = replay_json(&lab, &["--reads-only"]);
    assert_eq!(lab.fingerprint(), before);
    assert_eq!((&told["reads"]["requests"], &told["left_out_requests"]), (&3.into(), &3.into()));
    assert_eq!(told["writes"]["requests"], 0);
}

#[test]
fn a_trace_of_reads_needs_no_consent() {
    let lab = lab("R0 R1 R2+3");
    assert_eq!(replay_json(&lab, &[])["reads"]["requests"], 3);
}

#[test]
fn open_loop_keeps_the_times_of_the_trace() {
    let lab = lab("R0 R1 R2 R3 R4 R5");
    let told = |rate: &str| {
        let output = replay(&lab, &["t.log", "--to", "disk.img", "--rate", rate, "--json"]);
        assert!(output.status.success(), "{output:?}");
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(told["reads"]["requests"], 6);
        assert!(told["lateness_seconds"]["max"].as_f64().expect("a time") > 0.0, "{told:#}");
        told
    };
    // The last of them is due 5 ms after the first: it is not sent before, however fast the machine is.
    let seconds = |told: &Value| told["seconds"].as_f64().expect("a time");
    let half = told("0.5x");
    assert!(seconds(&half) >= 0.01, "{half:#}");
    assert_eq!(half.pointer("/pace/rate"), Some(&0.5.into()));
    assert!(seconds(&told("1")) >= 0.005);
}

#[test]
fn the_table_says_it_in_words() {
    let lab = lab("W0 R0 W1 R1");
    let output = replay(&lab, &["t.log", "--to", "disk.img", "--destroy-data", "--verify", "--rate", "2"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for words in [
        "t.log (fio) on disk.img (4 MiB): open loop at 2 times the trace's speed, ",
        "99.9 %",
        "reads",
        "writes",
        "sent after their time: mean ",
        "16 read again at the end; 0 wrong",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("discards") && output.stderr.is_empty(), "{text}");
}

#[test]
fn limits_end_a_replay() {
    let lab = lab("R0 R1 F R2 R3");
    assert_eq!(replay_json(&lab, &["--destroy-data", "-n", "3"])["reads"]["requests"], 3);
    fs::write(lab.path("slow.csv"), "1,vm,0,Read,0,4096,0\n36000000001,vm,0,Read,0,4096,0\n")
        .expect("a trace");
    let output =
        replay(&lab, &["slow.csv", "--to", "disk.img", "--duration", "10ms", "--json", "--reads-only"]);
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["ended_by"], &told["reads"]["requests"]), (&"duration".into(), &1.into()));
}

#[test]
fn what_lies_behind_the_end_is_folded_where_that_is_wanted() {
    let lab = lab("W1024 W1023+2 R1024 R0");
    let told = replay_json(&lab, &["--destroy-data", "--wrap", "--verify"]);
    assert_eq!(told["wrapped_requests"], 3);
    // The second write is two: one at the end, one at the beginning.
    assert_eq!((&told["writes"]["requests"], &told["writes"]["bytes"]), (&3.into(), &(3 * 4096).into()));
    assert_eq!(told["verification"]["read_back_sectors"], 16);
}

#[test]
fn volumes_lie_side_by_side_or_are_chosen() {
    let lab = lab("R0");
    let trace = "1,a,0,Write,0,4096,0\n2,b,0,Write,0,4096,0\n3,b,0,Read,0,4096,0\n4,a,0,Read,0,4096,0\n";
    fs::write(lab.path("t.log"), trace).expect("a trace");
    let told = replay_json(&lab, &["--destroy-data", "--verify"]);
    assert_eq!(
        (&told["writes"]["requests"], &told["verification"]["read_back_sectors"]),
        (&2.into(), &16.into())
    );
    let told = replay_json(&lab, &["--destroy-data", "--verify", "--volume", "b_0"]);
    assert_eq!(
        (&told["writes"]["requests"], &told["verification"]["read_back_sectors"]),
        (&1.into(), &8.into())
    );
}

#[test]
fn a_trace_comes_through_a_pipe() {
    let lab = lab("R0");
    let arguments = ["-", "--to", "disk.img", "--closed", "2", "--destroy-data", "--verify", "--json"];
    let mut command = command(&lab, &arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("larder runs");
    child.stdin.take().expect("piped").write_all(log("W0 R0 W1 R1").as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["trace"], &told["writes"]["requests"]), (&"stdin".into(), &2.into()));
}

#[test]
fn a_signal_ends_it_and_what_was_done_is_told() {
    let lab = lab("R0");
    fs::write(lab.path("slow.log"), format!("{HEADER}0 vm write 0 4096\n3600000000 vm read 0 4096\n"))
        .expect("a trace");
    let arguments = ["slow.log", "--to", "disk.img", "--destroy-data", "--verify", "--json"];
    let mut command = command(&lab, &arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("larder runs");
    let began = Instant::now();
    while !fs::read(lab.path("disk.img")).expect("a disk").starts_with(b"larder") {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is written");
        sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stderr.starts_with(b"error: ended by a signal\nhelp: "), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["ended_by"], &told["writes"]["requests"]), (&"signal".into(), &1.into()));
}
