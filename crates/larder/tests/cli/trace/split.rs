//! `larder trace split`.

use std::process::Stdio;

use super::bench::{Bench, MSR, run_tool};

#[test]
fn by_volume() {
    let bench = Bench::with_traces();
    let told = "5 requests written to 3 files in parts (msr)\n";
    assert_eq!(bench.good("split msr.csv --by volume --out-dir parts"), (String::new(), told.to_owned()));
    assert_eq!(bench.names("parts"), ["db_0.csv", "web_0.csv", "web_1.csv"]);
    let expected = "128166372000000000,web,0,Read,0,8192,0\n128166372010000000,web,0,Read,4096,4096,0\n\
        128166372030000000,web,0,Read,0,4096,0\n";
    assert_eq!(bench.read("parts/web_0.csv"), expected);
    assert_eq!(bench.read("parts/db_0.csv"), "128166372020000000,db,0,Write,1048576,1536,0\n");
}

#[test]
fn by_tenant_and_compressed() {
    let bench = Bench::with_traces();
    bench.good("split msr.csv --by tenant --out-dir a/b --compress zst");
    assert_eq!(bench.names("a/b"), ["db.csv.zst", "web.csv.zst"]);
    assert_eq!(bench.info("a/b/web.csv.zst")["requests"], 4);
    run_tool("zstd", &["-t"], &bench.path("a/b/web.csv.zst"));
    let told = "note: c (msr): 1 flush left out\nnote: c (msr): 1 discard left out\n\
        note: c (msr): names of 1 volume changed\n2 requests written to 1 file in c (msr)\n";
    assert_eq!(bench.good("split disk.fio --by tenant --out-dir c").1, told);
    assert_eq!(bench.names("c"), ["unnamed.csv"]);
}

#[test]
fn by_time() {
    let bench = Bench::with_traces();
    bench.good("split msr.csv --by time --every 2s --out-dir parts");
    assert_eq!(bench.names("parts"), ["000000.csv", "000001.csv"]);
    assert_eq!(
        (bench.read("parts/000000.csv").lines().count(), bench.read("parts/000001.csv").lines().count()),
        (3, 2)
    );
    bench.write("gap.csv", "0,a,0,Read,0,512,0\n100000000,a,0,Read,0,512,0\n15000000,a,0,Read,0,512,0\n");
    bench.good("split gap.csv --by time --every 2s --out-dir gap");
    assert_eq!(bench.names("gap"), ["000000.csv", "000005.csv"]);
    // The last request is earlier than the one before it: it stays behind it.
    assert_eq!(bench.read("gap/000005.csv").lines().count(), 2);
}

#[test]
fn in_every_format() {
    let bench = Bench::with_traces();
    for (format, extension) in
        [("msr", "csv"), ("fio", "fio"), ("parquet", "parquet"), ("oracle-general", "oracleGeneral")]
    {
        bench.good(&format!("split msr.csv --by volume --out-dir {format} --to {format}"));
        let names = ["db_0", "web_0", "web_1"].map(|name| format!("{name}.{extension}"));
        assert_eq!(bench.names(format), names);
        let found = bench.info(&format!("{format}/web_1.{extension}"));
        assert_eq!(
            (found["requests"].as_u64(), found["footprint_blocks"].as_u64()),
            (Some(1), Some(1)),
            "{format}"
        );
    }
}

/// More volumes than are written at a time, each with requests from the beginning to the end.
fn many_volumes() -> String {
    (0..900)
        .map(|number| format!("{number},host,{},Read,{},4096,0\n", number % 300, number / 300 * 4096))
        .collect()
}

#[test]
fn many_volumes_take_several_passes() {
    let bench = Bench::new();
    bench.write("many.csv", many_volumes());
    for (options, extension) in
        [("--to msr", "csv"), ("--to msr --compress gz", "csv.gz"), ("--to parquet", "parquet")]
    {
        let (_, told) = bench.good(&format!("split many.csv --by volume --out-dir parts {options}"));
        assert!(told.starts_with("900 requests written to 300 files in parts"), "{told}");
        let names = bench.names("parts");
        assert_eq!(names.len(), 300, "{options}");
        for number in [0, 15, 16, 63, 64, 255, 256, 299] {
            let found = bench.info(&format!("parts/host_{number}.{extension}"));
            assert_eq!(
                (found["requests"].as_u64(), found["footprint_blocks"].as_u64()),
                (Some(3), Some(3)),
                "{number}"
            );
        }
        std::fs::remove_dir_all(bench.path("parts")).expect("a directory");
    }
}

#[test]
fn a_pipe_cannot_be_read_again() {
    let bench = Bench::new();
    for (content, good) in [(MSR.to_owned(), true), (many_volumes(), false)] {
        let mut command = bench.command("split - --by volume --out-dir parts");
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("larder starts");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), content.as_bytes())
            .expect("it reads");
        let output = child.wait_with_output().expect("larder ends");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), good, "{told}");
        if good {
            std::fs::remove_dir_all(bench.path("parts")).expect("a directory");
        } else {
            let expected = "error: stdin: splits into more than 256 files, for which it would have to be read again\n\
                help: save it to a file first\n";
            assert_eq!((told.as_str(), bench.names(".")), (expected, vec![]));
        }
    }
}

#[test]
fn there_is_a_limit_of_files() {
    let bench = Bench::new();
    bench.write(
        "much.csv",
        (0..10_001).map(|number| format!("{number},h,{number},Read,0,512,0\n")).collect::<String>(),
    );
    let expected = "error: much.csv: splits into more than 10,000 files\n\
        help: choose a part with `larder trace cut` first, or a longer --every\n";
    assert_eq!(bench.bad("split much.csv --by volume --out-dir parts"), expected);
    assert_eq!(bench.names("."), ["much.csv"]);
}

#[test]
fn names_out_of_a_trace_lead_nowhere_else() {
    let bench = Bench::new();
    bench.write("evil.csv", "1,../../x,0,Read,0,512,0\n2,../../x,1,Read,0,512,0\n3,/etc/y,0,Read,0,512,0\n4,.._.._x,0,Read,0,512,0\n");
    bench.good("split evil.csv --by volume --out-dir parts");
    assert_eq!(bench.names("parts"), ["_._.._x_0-2.csv", "_._.._x_0.csv", "_._.._x_1.csv", "_etc_y_0.csv"]);
    assert_eq!(bench.names("."), ["evil.csv", "parts"]);
}
