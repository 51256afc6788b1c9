//! What `larder trace` says of what it cannot do.

use super::bench::{Bench, MSR};

#[test]
fn a_trace_that_is_not_there() {
    let expected = "error: nowhere.csv: cannot be opened: No such file or directory (os error 2)\n\
        help: name a trace that is there and readable, - for stdin, or gen:SPEC\n";
    let bench = Bench::with_traces();
    for words in [
        "info nowhere.csv",
        "head nowhere.csv",
        "convert nowhere.csv out.csv",
        "split nowhere.csv --by volume --out-dir out",
        "merge msr.csv nowhere.csv --out out.csv",
        "cut nowhere.csv --out out.csv",
    ] {
        assert_eq!(bench.bad(words), expected, "{words}");
        assert_eq!(bench.names("."), ["disk.fio", "msr.csv"], "{words}");
    }
}

#[test]
fn a_file_that_is_no_trace() {
    let bench = Bench::new();
    bench.write("poem.txt", "Two roads diverged in a yellow wood,\nAnd sorry I could not travel both\n");
    let complaint = bench.bad("info poem.txt");
    assert!(complaint.starts_with("error: poem.txt: "), "{complaint}");
    assert!(complaint.contains("\nhelp: "), "{complaint}");
    let complaint = bench.bad("info --format msr poem.txt");
    assert!(complaint.starts_with("error: poem.txt: line 1: "), "{complaint}");
    let complaint = bench.bad("info .");
    assert!(complaint.starts_with("error: .: cannot be opened: Is a directory"), "{complaint}");
}

#[test]
fn a_damaged_file() {
    let bench = Bench::new();
    bench.good("convert gen:uniform:blocks=100000,requests=50000 whole.csv.zst");
    let whole = std::fs::read(bench.path("whole.csv.zst")).expect("a file");
    bench.write("cut.csv.zst", &whole[..whole.len() / 2]);
    let complaint = bench.bad("convert cut.csv.zst out.csv");
    assert!(complaint.starts_with("error: cut.csv.zst: cannot be read after line "), "{complaint}");
    assert!(
        complaint.ends_with("\nhelp: the file is damaged or incomplete: fetch it again\n"),
        "{complaint}"
    );
    assert_eq!(bench.names("."), ["cut.csv.zst", "whole.csv.zst"]);
}

#[test]
fn a_workload_that_makes_no_sense() {
    let complaint = Bench::new().bad("info gen:zipf:blocks=10,requests=10");
    let expected = "error: gen:zipf:blocks=10,requests=10: no such workload: phase 1: theta is missing\n\
        help: write it as in gen:zipf:theta=1.0,blocks=100000,requests=1000000,read=0.7\n";
    assert_eq!(complaint, expected);
}

#[test]
fn formats_that_are_not_known_or_not_written() {
    let bench = Bench::with_traces();
    for (words, says) in [
        ("info --format xml msr.csv", "\"xml\" is no trace format; there are msr, spc, "),
        (
            "convert --to spc msr.csv out.csv",
            "no format that is written; these are: msr, fio, oracle-general, parquet",
        ),
        ("info --block 5000 msr.csv", "a power of two from 512 bytes to 128 KiB"),
        ("cut msr.csv --out out.csv --requests 5", "write A..B, A.. or ..B"),
        ("split msr.csv --by colour --out-dir out", "[possible values: volume, tenant, time]"),
        ("split msr.csv --by time --every 0s --out-dir out", "an interval has a length"),
        ("", "Usage: larder trace <COMMAND>"),
    ] {
        let output = bench.run(words);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), complaint.contains(says)), (Some(2), true), "{words}: {complaint}");
    }
    assert_eq!(bench.names("."), ["disk.fio", "msr.csv"]);
}

#[test]
fn a_name_that_tells_no_format() {
    let bench = Bench::with_traces();
    let help = "help: name the format (msr, oracle-general, parquet, fio), or end the name in .csv, .oracleGeneral, .parquet, .fio or .iolog\n";
    let what = "error: a trace written to stdout has no name that tells its format\n";
    for (words, expected) in [
        ("convert msr.csv out", "error: out: the name tells no format\n"),
        ("cut msr.csv --out out.txt.gz", "error: out.txt.gz: the name tells no format\n"),
        ("convert msr.csv -", what),
        ("merge msr.csv --out -", what),
    ] {
        assert_eq!(bench.bad(words), format!("{expected}{help}"), "{words}");
    }
}

#[test]
fn places_that_cannot_be_written() {
    let bench = Bench::with_traces();
    let complaint = bench.bad("convert msr.csv nowhere/out.csv");
    let expected = "error: nowhere/out.csv: cannot be written: No such file or directory";
    assert!(complaint.starts_with(expected), "{complaint}");
    assert!(complaint.ends_with("\nhelp: make its directory first, or write to another\n"), "{complaint}");
    let expected = "error: .: is a directory\nhelp: name a file in it\n";
    assert_eq!(bench.bad("convert --to msr msr.csv ."), expected);
    let complaint = bench.bad("split msr.csv --by volume --out-dir msr.csv/parts");
    assert!(complaint.starts_with("error: msr.csv/parts: no directory can be made there: "), "{complaint}");
    // Nobody may write there, whoever runs this.
    let complaint = bench.bad("convert msr.csv /proc/larder-test.csv");
    assert!(complaint.starts_with("error: /proc/larder-test.csv: cannot be written: "), "{complaint}");
}

#[test]
fn names_that_a_format_cannot_hold() {
    let bench = Bench::new();
    bench.write("a.csv", MSR.replace("web", "my web"));
    let complaint = bench.bad("convert a.csv out.fio");
    let expected = "error: out.fio: the volume my web_0 has no name in the format fio: a file has no spaces in its name\n\
        help: write another format (parquet holds every name), or choose volumes with `larder trace cut --volume`\n";
    assert_eq!(complaint, expected);
    assert_eq!(bench.names("."), ["a.csv"]);
}

#[test]
fn parts_and_traces_that_contradict_themselves() {
    let bench = Bench::with_traces();
    for (words, expected) in [
        (
            "cut msr.csv --out out.csv --from 2h --to 1h",
            "error: --from is not before --to\nhelp: swap the two\n",
        ),
        ("merge - - --out out.csv", "error: stdin can be read only once\nhelp: name - once\n"),
        (
            "cut msr.csv --out out.csv --volume web_7",
            "error: msr.csv: there is no volume \"web_7\"\nhelp: volumes there: db_0, web_0, web_1\n",
        ),
        (
            "cut disk.fio --out out.csv --tenant web",
            "error: disk.fio: there is no tenant \"web\"\nhelp: tenants there: none\n",
        ),
    ] {
        assert_eq!(bench.bad(words), expected, "{words}");
        assert_eq!(bench.names("."), ["disk.fio", "msr.csv"], "{words}");
    }
}
