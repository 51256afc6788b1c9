//! `larder trace merge`.

use super::bench::{Bench, MSR};

const LATER: &str = "\
128166372005000000,web,0,Write,512,512,7
128166372010000000,mail,0,Read,0,4096,7
128166372040000000,web,0,Write,1024,512,7
";

fn bench() -> Bench {
    let bench = Bench::with_traces();
    bench.write("later.csv", LATER);
    bench
}

#[test]
fn by_time_and_with_volumes_apart() {
    let bench = bench();
    let told = "note: later.csv: another trace has a tenant web too: this one is called later\n\
        8 requests written to out.csv (msr)\n";
    assert_eq!(bench.good("merge msr.csv later.csv --out out.csv"), (String::new(), told.to_owned()));
    let expected = "\
128166372000000000,web,0,Read,0,8192,0
128166372005000000,later,0,Write,512,512,0
128166372010000000,web,1,Write,4096,4096,0
128166372010000000,web,0,Read,4096,4096,0
128166372010000000,mail,0,Read,0,4096,0
128166372020000000,db,0,Write,1048576,1536,0
128166372030000000,web,0,Read,0,4096,0
128166372040000000,later,0,Write,1024,512,0
";
    assert_eq!(bench.read("out.csv"), expected);
}

#[test]
fn aligned_at_time_zero() {
    let bench = bench();
    let (out, _) = bench.good("merge --align disk.fio later.csv --out - --to msr");
    let expected = "0,disk_/dev/sda,0,Write,0,4096,0\n0,web,0,Write,512,512,0\n300,disk_/dev/sda,0,Read,0,512,0\n\
        5000000,mail,0,Read,0,4096,0\n35000000,web,0,Write,1024,512,0\n";
    assert_eq!(out, expected);
}

#[test]
fn a_trace_with_itself() {
    let bench = bench();
    bench.good("merge msr.csv msr.csv --out out.parquet");
    let (once, twice) = (bench.info("msr.csv"), bench.info("out.parquet"));
    for key in ["requests", "footprint_blocks", "read_bytes", "written_bytes"] {
        assert_eq!(twice[key].as_u64(), once[key].as_u64().map(|count| 2 * count), "{key}");
    }
    let names = |found: &serde_json::Value| -> Vec<_> {
        let tenants = found["tenants"].as_array().expect("a list");
        tenants.iter().map(|tenant| tenant["name"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(names(&twice), ["db", "msr", "msr-db", "web"]);
    assert_eq!(
        (twice["out_of_order"].as_u64(), twice["volumes"].as_array().map(Vec::len)),
        (Some(0), Some(6))
    );
}

#[test]
fn volumes_of_accesses_without_names_stay_apart() {
    let bench = bench();
    bench.good("merge msr.csv later.csv --out out.oracleGeneral");
    let footprint = bench.info("msr.csv")["footprint_blocks"].as_u64().expect("a number");
    assert_eq!(bench.info("out.oracleGeneral")["footprint_blocks"], footprint + 2);
}

#[test]
fn a_trace_out_of_order_is_told() {
    let bench = bench();
    bench.write("odd.csv", "128166372015000000,x,0,Read,0,512,0\n128166372001000000,x,0,Read,512,512,0\n");
    let (out, told) = bench.good("merge odd.csv msr.csv --out - --to msr");
    let expected = "note: odd.csv: 1 request earlier than the one before, and left behind it\n7 requests written to stdout (msr)\n";
    assert_eq!(told, expected);
    let offsets: Vec<_> = out.lines().map(|line| line.split(',').nth(4).expect("an offset")).collect();
    assert_eq!(offsets, ["0", "4096", "4096", "0", "512", "1048576", "0"]);
}

#[test]
fn one_trace_and_empty_ones() {
    let bench = bench();
    bench.write("empty.csv", "");
    let (out, told) = bench.good("merge empty.csv msr.csv empty.csv --out - --to msr");
    assert_eq!((out, told.as_str()), (MSR.replace(",100\n", ",0\n"), "5 requests written to stdout (msr)\n"));
}
