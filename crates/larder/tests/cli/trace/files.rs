//! The files that commands write: whole or not at all, and never over another without a word.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::bench::{Bench, MSR};

#[test]
fn a_bad_line_leaves_nothing_behind() {
    let bench = Bench::with_traces();
    bench.write("bad.csv", format!("{MSR}128166372040000000,web,0,Raed,0,4096,100\n"));
    let expected = "error: bad.csv: line 6: Type is \"Raed\", expected Read or Write (format msr)\n\
        help: mend that place; if the trace is in another format, name it with --format\n";
    for words in [
        "convert --format msr bad.csv out.csv",
        "convert --format msr bad.csv out.parquet",
        "convert --format msr bad.csv out.oracleGeneral",
        "cut --format msr bad.csv --out out.csv",
        "merge --format msr msr.csv bad.csv --out out.csv",
        "split --format msr bad.csv --by volume --out-dir parts",
        "split --format msr bad.csv --by time --every 1s --out-dir parts",
        "info --format msr bad.csv",
    ] {
        assert_eq!(bench.bad(words), expected, "{words}");
        assert_eq!(bench.names("."), ["bad.csv", "disk.fio", "msr.csv"], "{words}");
    }
}

#[test]
fn files_are_replaced_by_force_alone() {
    let bench = Bench::with_traces();
    bench.write("out.csv", "old");
    let expected =
        "error: out.csv: exists already\nhelp: write to another file, or replace it with --force\n";
    for words in ["convert msr.csv out.csv", "cut msr.csv --out out.csv", "merge msr.csv --out out.csv"] {
        assert_eq!((bench.bad(words).as_str(), bench.read("out.csv").as_str()), (expected, "old"), "{words}");
        bench.good(&format!("{words} --force"));
        assert_eq!(bench.info("out.csv")["requests"], 5, "{words}");
        bench.write("out.csv", "old");
    }
    fs::create_dir(bench.path("parts")).expect("a directory");
    bench.write("parts/db.csv", "old");
    let complaint = bench.bad("split msr.csv --by tenant --out-dir parts");
    assert!(complaint.starts_with("error: parts/db.csv: exists already\n"), "{complaint}");
    assert_eq!(
        (bench.names("parts"), bench.read("parts/db.csv")),
        (vec!["db.csv".to_owned()], "old".to_owned())
    );
}

#[test]
fn a_trace_is_not_written_over_itself() {
    let bench = Bench::with_traces();
    symlink("msr.csv", bench.path("link.csv")).expect("a link");
    fs::hard_link(bench.path("msr.csv"), bench.path("hard.csv")).expect("a link");
    for words in [
        "convert --force msr.csv msr.csv",
        "convert --force msr.csv ./msr.csv",
        "convert --force link.csv msr.csv",
        "convert --force msr.csv link.csv",
        "convert --force msr.csv hard.csv",
        "cut --force msr.csv --out msr.csv",
        "merge --force disk.fio msr.csv --out msr.csv",
    ] {
        let complaint = bench.bad(words);
        assert!(complaint.contains(": is the trace that is read ("), "{words}: {complaint}");
        assert!(complaint.ends_with("\nhelp: write to another file\n"), "{words}: {complaint}");
        assert_eq!(bench.read("msr.csv"), MSR, "{words}");
    }
    bench.write("web_0.csv", MSR);
    let complaint = bench.bad("split --force web_0.csv --by volume --out-dir .");
    assert!(
        complaint.starts_with("error: ./web_0.csv: is the trace that is read (web_0.csv)\n"),
        "{complaint}"
    );
    assert_eq!(bench.read("web_0.csv"), MSR);
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let bench = Bench::new();
    for signal in ["INT", "TERM", "HUP"] {
        let mut command = bench.command("convert --to msr --format msr - out.csv");
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("larder starts");
        let mut stdin = child.stdin.take().expect("piped");
        // Once the file is there, signals are listened to.
        let start = Instant::now();
        while bench.names(".").is_empty() {
            assert!(start.elapsed() < Duration::from_secs(60), "nothing is written");
            stdin.write_all(MSR.as_bytes()).expect("it reads");
            stdin.flush().expect("it reads");
        }
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        // More to read, so that it comes to look at the signal.
        while stdin.write_all(MSR.repeat(1000).as_bytes()).is_ok() {}
        let output = child.wait_with_output().expect("larder ends");
        let expected = "error: interrupted by a signal\nhelp: nothing was written; run it again\n";
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr)),
            (Some(1), expected.into())
        );
        assert_eq!(bench.names("."), [""; 0], "{signal}");
    }
}

#[test]
fn devices_are_written_to_as_they_are() {
    let bench = Bench::with_traces();
    assert_eq!(bench.good("convert --to msr msr.csv /dev/null").1, "5 requests written to /dev/null (msr)\n");
    let full = bench.bad("convert --to msr msr.csv /dev/full");
    let expected = "error: /dev/full: cannot be written: No space left on device (os error 28)\n\
        help: make room, or write to another device\n";
    assert_eq!(full, expected);
    let full = fs::File::options().write(true).open("/dev/full").expect("a device");
    let output = bench.command("head msr.csv").stdout(full).output().expect("larder runs");
    let expected = "error: stdout: cannot be written: No space left on device (os error 28)\nhelp: check where it goes\n";
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(1), expected.into()));
}
