//! `larder trace convert`: what is written, what is lost, and that it reads back.

use std::process::Stdio;

use super::bench::{Bench, FIO, run_tool};

/// `msr.csv` without its response times.
const MSR_OUT: &str = "\
128166372000000000,web,0,Read,0,8192,0
128166372010000000,web,1,Write,4096,4096,0
128166372010000000,web,0,Read,4096,4096,0
128166372020000000,db,0,Write,1048576,1536,0
128166372030000000,web,0,Read,0,4096,0
";

#[test]
fn to_msr() {
    let bench = Bench::with_traces();
    let told = "5 requests written to out.csv (msr)\n";
    assert_eq!(bench.good("convert msr.csv out.csv"), (String::new(), told.to_owned()));
    assert_eq!(bench.read("out.csv"), MSR_OUT);
}

#[test]
fn to_fio() {
    let bench = Bench::with_traces();
    let told = "note: log (fio): names of 3 volumes changed\n5 requests written to log (fio)\n";
    assert_eq!(bench.good("convert --to fio msr.csv log"), (String::new(), told.to_owned()));
    let expected = "fio version 3 iolog\n0 web_0 add\n0 web_0 open\n0 web_0 read 0 8192\n1000000 web_1 add\n1000000 web_1 open\n\
        1000000 web_1 write 4096 4096\n1000000 web_0 read 4096 4096\n2000000 db_0 add\n2000000 db_0 open\n\
        2000000 db_0 write 1048576 1536\n3000000 web_0 read 0 4096\n3000000 db_0 close\n3000000 web_0 close\n\
        3000000 web_1 close\n";
    assert_eq!(bench.read("log"), expected);
}

#[test]
fn to_oracle_general() {
    let bench = Bench::with_traces();
    let told = "note: out.oracleGeneral (oracle-general): 2 writes told as accesses of no kind\n\
        note: out.oracleGeneral (oracle-general): 2 requests told as accesses to whole blocks of 4 KiB\n\
        note: out.oracleGeneral (oracle-general): names of 3 volumes changed\n\
        5 requests written to out.oracleGeneral (oracle-general)\n";
    assert_eq!(bench.good("convert msr.csv out.oracleGeneral").1, told);
    let (head, _) = bench.good("head --json out.oracleGeneral");
    let expected = [(0, 0, 0), (0, 0, 4096), (1, 1, 4096), (1, 0, 4096), (2, 2, 1 << 20), (3, 0, 0)].map(
        |(seconds, volume, offset): (u64, u32, u64)| {
            let time = seconds * 1_000_000_000;
            format!(
                "{{\"time_ns\":{time},\"tenant\":\"\",\"volume\":\"{volume}\",\"kind\":\"read\",\"offset\":{offset},\"len\":4096}}\n"
            )
        },
    );
    assert_eq!(head, expected.concat());
    assert_eq!(std::fs::metadata(bench.path("out.oracleGeneral")).expect("a file").len(), 6 * 24);
}

#[test]
fn parquet_loses_nothing() {
    let bench = Bench::with_traces();
    for (trace, requests) in [("msr.csv", 5), ("disk.fio", 4)] {
        let told = format!("{requests} requests written to out.parquet (parquet)\n");
        assert_eq!(bench.good(&format!("convert --force --strict {trace} out.parquet")).1, told);
        let head = |trace| bench.good(&format!("head --json {trace}")).0;
        assert_eq!(head("out.parquet"), head(trace));
    }
}

#[test]
fn what_is_left_out_is_told() {
    let bench = Bench::with_traces();
    let told = "note: out.csv (msr): 1 flush left out\nnote: out.csv (msr): 1 discard left out\n\
        note: out.csv (msr): names of 1 volume changed\n2 requests written to out.csv (msr)\n";
    assert_eq!(bench.good("convert disk.fio out.csv").1, told);
    assert_eq!(bench.read("out.csv"), "100,/dev/sda,0,Write,0,4096,0\n400,/dev/sda,0,Read,0,512,0\n");
}

#[test]
fn strictly_nothing_is_left_out() {
    let bench = Bench::with_traces();
    bench.write("flush.fio", FIO.replace("10 /dev/sda write 0 4096\n", ""));
    let expected = "error: out.csv: the format msr does not hold request 0 (counted from 0) as it is: it is a flush\n\
        help: write another format (parquet holds everything), or leave away --strict\n";
    assert_eq!(bench.bad("convert --strict flush.fio out.csv"), expected);
    assert_eq!(bench.names("."), ["disk.fio", "flush.fio", "msr.csv"]);
    bench.good("convert --strict msr.csv out.csv");
}

#[test]
fn there_and_back_again() {
    let bench = Bench::new();
    let spec = "gen:zipf:theta=1.0,blocks=1000,requests=20000,read=0.6,interval=1s";
    bench.good(&format!("convert --strict {spec} a.csv.zst"));
    bench.good("convert --strict a.csv.zst b.parquet");
    bench.good("convert b.parquet c.fio.gz");
    bench.good("convert --to msr c.fio.gz d");
    bench.good(&format!("convert {spec} e.oracleGeneral"));
    bench.good(&format!("convert {spec} f.oracleGeneral.zst"));
    let whole = bench.info(spec);
    for trace in ["a.csv.zst", "b.parquet", "c.fio.gz", "d", "e.oracleGeneral", "f.oracleGeneral.zst"] {
        let found = bench.info(trace);
        for key in ["requests", "footprint_blocks", "re_reference_share", "duration_seconds"] {
            assert_eq!(found[key], whole[key], "{trace}: {key}");
        }
        let keeps_kinds = !trace.contains("oracle");
        assert_eq!(found["writes"] == whole["writes"], keeps_kinds, "{trace}");
    }
    let record_bytes = 24;
    assert_eq!(
        std::fs::metadata(bench.path("e.oracleGeneral")).expect("a file").len(),
        20_000 * record_bytes
    );
}

#[test]
fn compressed_files_are_what_their_names_say() {
    let bench = Bench::with_traces();
    for (out, tool) in [("out.csv.gz", "gzip"), ("out.csv.zst", "zstd")] {
        bench.good(&format!("convert msr.csv {out}"));
        run_tool(tool, &["-t"], &bench.path(out));
        if let Some(content) = run_tool(tool, &["-dc"], &bench.path(out)) {
            assert_eq!(content, MSR_OUT.as_bytes());
        }
    }
    bench.good("convert msr.csv out.oracleGeneral");
    bench.good("convert msr.csv out.oracleGeneral.zst");
    run_tool("zstd", &["-t"], &bench.path("out.oracleGeneral.zst"));
    if let Some(content) = run_tool("zstd", &["-dc"], &bench.path("out.oracleGeneral.zst")) {
        assert_eq!(content, std::fs::read(bench.path("out.oracleGeneral")).expect("a file"));
    }
}

#[test]
fn stdout_and_stdin() {
    let bench = Bench::with_traces();
    let told = "5 requests written to stdout (msr)\n";
    assert_eq!(bench.good("convert --to msr msr.csv -"), (MSR_OUT.to_owned(), told.to_owned()));
    let mut child = bench
        .command("convert - out.csv")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("larder starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), MSR_OUT.as_bytes()).expect("it reads");
    assert!(child.wait().expect("larder ends").success());
    assert_eq!(bench.read("out.csv"), MSR_OUT);
}

#[test]
fn a_format_that_goes_back_in_its_output_can_be_piped() {
    let bench = Bench::with_traces();
    bench.good("convert msr.csv out.oracleGeneral");
    let output = bench.run("convert --to oracle-general msr.csv -");
    assert_eq!(output.stdout, std::fs::read(bench.path("out.oracleGeneral")).expect("a file"));
}

#[test]
fn an_empty_trace_stays_one() {
    let bench = Bench::new();
    bench.write("empty.csv", "");
    for out in ["out.csv", "out.parquet", "out.oracleGeneral", "out.fio", "out.csv.gz"] {
        assert_eq!(bench.good(&format!("convert empty.csv {out}")).1.lines().count(), 1, "{out}");
        assert_eq!(bench.info(out)["requests"], 0, "{out}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for format in ["msr", "fio", "parquet", "oracle-general"] {
        let words = format!("convert --to {format} gen:uniform:blocks=100,requests=1000000 -");
        let bench = Bench::new();
        let mut command = bench.command(&words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("larder starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("larder ends");
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr)),
            (Some(0), "".into()),
            "{format}"
        );
    }
}
