//! `larder trace head`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::bench::{Bench, MSR};

#[test]
fn the_first_requests_as_a_table() {
    let expected = "     time (s)  tenant  volume  kind   offset (B)  length (B)\n  \
        12816637200  web     0       read            0       8,192\n  \
        12816637201  web     1       write       4,096       4,096\n  \
        12816637201  web     0       read        4,096       4,096\n";
    let bench = Bench::with_traces();
    assert_eq!(bench.good("head -n 3 msr.csv"), (expected.to_owned(), String::new()));
}

#[test]
fn every_kind_and_no_tenant() {
    let expected = "  time (s)  tenant  volume    kind     offset (B)  length (B)\n   \
        0.00001  -       /dev/sda  write             0       4,096\n   \
        0.00002  -       /dev/sda  flush             0           0\n   \
        0.00003  -       /dev/sda  discard       8,192       4,096\n   \
        0.00004  -       /dev/sda  read              0         512\n";
    assert_eq!(Bench::with_traces().good("head disk.fio").0, expected);
}

#[test]
fn lines_of_json_have_the_columns_of_a_table() {
    let expected = "\
        {\"time_ns\":12816637200000000000,\"tenant\":\"web\",\"volume\":\"0\",\"kind\":\"read\",\"offset\":0,\"len\":8192}\n\
        {\"time_ns\":12816637201000000000,\"tenant\":\"web\",\"volume\":\"1\",\"kind\":\"write\",\"offset\":4096,\"len\":4096}\n";
    assert_eq!(Bench::with_traces().good("head --json -n 2 msr.csv").0, expected);
}

#[test]
fn as_many_as_there_are_or_are_asked_for() {
    let bench = Bench::with_traces();
    let lines = |words: &str| bench.good(words).0.lines().count();
    assert_eq!(lines("head -n 100 msr.csv"), 6);
    assert_eq!(lines("head gen:uniform:blocks=100,requests=100000"), 11);
    assert_eq!(lines("head -n 9000 --json gen:uniform:blocks=100,requests=100000"), 9000);
    assert_eq!(lines("head -n 9000 gen:uniform:blocks=100,requests=100000"), 9001);
}

#[test]
fn nothing_to_show_is_said() {
    let bench = Bench::new();
    bench.write("empty.csv", "");
    for words in ["head empty.csv", "head -n 0 empty.csv"] {
        let expected = (String::new(), "note: empty.csv: there are no requests to show\n".to_owned());
        assert_eq!(bench.good(words), expected, "{words}");
    }
}

#[test]
fn what_came_before_a_bad_line_is_shown() {
    let bench = Bench::new();
    bench.write("bad.csv", format!("{MSR}128166372040000000,web,0,Raed,0,4096,100\n"));
    let output = bench.run("head --format msr --json bad.csv");
    assert_eq!(
        (output.status.code(), output.stdout.iter().filter(|&&byte| byte == b'\n').count()),
        (Some(1), 5)
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let bench = Bench::new();
    let mut command = bench.command("head --json -n 1000000 gen:uniform:blocks=100,requests=1000000");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("larder starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("a line");
    assert!(line.starts_with("{\"time_ns\":0,"), "{line}");
    drop(stdout);
    let output = child.wait_with_output().expect("larder ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(0), "".into()));
}
