//! What `--verify` finds.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{command, lab, lines, log, overwrite, replay, replay_json};

#[test]
fn a_target_that_keeps_what_is_written_passes() {
    let lab = lab("R0");
    let spec = "gen:uniform:blocks=512,requests=20000,read=0.5,seed=3";
    for closed in ["1", "64"] {
        let arguments =
            [spec, "--to", "disk.img", "--closed", closed, "--destroy-data", "--verify", "--json"];
        let output = replay(&lab, &arguments);
        assert!(output.status.success(), "{output:?}");
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let number = |path: &str| told.pointer(path).and_then(Value::as_u64).expect(path);
        assert_eq!(number("/reads/requests") + number("/writes/requests"), 20_000);
        assert!(number("/verification/checked_sectors") > 8 * 1000, "{told:#}");
        assert_eq!(number("/verification/read_back_sectors"), 512 * 8);
        assert_eq!(number("/verification/wrong_sectors"), 0);
    }
}

#[test]
fn reads_alone_are_checked_where_that_is_wanted() {
    let lab = lab("W0 W1 W2 W3 R0 R1 R2 R3 R9");
    let arguments =
        ["t.log", "--to", "disk.img", "--closed", "1", "--destroy-data", "--verify=reads", "--json"];
    let output = replay(&lab, &arguments);
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let verification = &told["verification"];
    // What was not written is not checked.
    assert_eq!(
        (&verification["checked_sectors"], &verification["read_back_sectors"]),
        (&32.into(), &0.into())
    );
}

/// The block that is changed, by bytes and by the first of its sectors.
const BLOCK: u64 = 7 * 4096;

/// Write a block, wait until it is on the disk, change it behind the replay's back, and let it be read: what it says, and its JSON.
fn changed_behind_its_back(verify: &str, change: impl FnOnce(&Path)) -> (String, Value) {
    let lab = lab("R0");
    let common = ["-", "--format", "fio", "--to", "disk.img", "--closed", "1", "--destroy-data"];
    let mut command =
        command(&lab, &[&common[..], &["--seed", "5", "--json=out.json", "--quiet", verify]].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("larder runs");
    let mut trace = child.stdin.take().expect("piped");
    // A pipe is read ahead: what follows the first write pushes it through, lines that say nothing among it.
    let filler = format!("1 {} open\n", "x".repeat(1000)).repeat(700);
    let begin = format!("{}{filler}", log(&format!("W7 {}", "W0 ".repeat(1200))));
    trace.write_all(begin.as_bytes()).expect("it reads");
    let (disk, began) = (lab.path("disk.img"), Instant::now());
    while !fs::read(&disk).expect("a disk")[BLOCK as usize..].starts_with(b"larder") {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is written");
        assert_eq!(child.try_wait().expect("a child"), None);
        sleep(Duration::from_millis(5));
    }
    change(&disk);
    trace.write_all(lines("R7").as_bytes()).expect("it reads");
    drop(trace);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let json = fs::read(lab.path("out.json")).expect("told");
    (String::from_utf8(output.stderr).expect("UTF-8"), serde_json::from_slice(&json).expect("JSON"))
}

#[test]
fn a_corrupted_target_is_found_by_the_reads_of_the_trace() {
    let (told, json) =
        changed_behind_its_back("--verify=reads", |disk| overwrite(disk, BLOCK + 512, &[0; 512]));
    let expected = "error: 1 sectors of disk.img do not hold what was written:\n  at byte 29184: expected write 1, found zeroes\nhelp: ";
    assert!(told.starts_with(expected), "{told}");
    let wrong = &json["verification"]["first_wrong"][0];
    assert_eq!((&wrong["offset_bytes"], &wrong["expected_writes"]), (&29184.into(), &serde_json::json!([1])));
    assert_eq!((&wrong["found"], &json["verification"]["wrong_sectors"]), (&"zeroes".into(), &1.into()));
}

#[test]
fn a_single_bit_is_found_by_the_check_at_the_end_too() {
    let (told, json) = changed_behind_its_back("--verify", |disk| {
        let byte = fs::read(disk).expect("a disk")[BLOCK as usize + 300];
        overwrite(disk, BLOCK + 300, &[byte ^ 4]);
    });
    let line = "at byte 28672: expected write 1, found write 1 with damage from byte 300 of the sector on\n";
    assert_eq!(told.matches(line).count(), 2, "by the trace's read and at the end: {told}");
    assert_eq!(json["verification"]["wrong_sectors"], 2);
}

#[test]
fn what_another_replay_wrote_is_told_from_ones_own() {
    let (told, _) = changed_behind_its_back("--verify=reads", |disk| {
        let other = lab("W7+8");
        replay_json(&other, &["--destroy-data", "--seed", "6"]);
        let stamps = fs::read(other.path("disk.img")).expect("a disk");
        overwrite(disk, BLOCK, &stamps[BLOCK as usize..][..512]);
    });
    assert!(
        told.contains("at byte 28672: expected write 1, found a write of another replay, with the seed 6\n"),
        "{told}"
    );
}
