//! `larder trace info`.

use std::process::Stdio;

use serde_json::{Value, json};

use super::bench::{Bench, MSR};

#[test]
fn a_report_for_people() {
    let expected = "\
msr.csv
  format         msr (detected)
  requests       5: 3 reads, 2 writes, 0 flushes, 0 discards
  read share     60.00 % of requests, 66.67 % of blocks of 4 KiB
  data           16 KiB read, 5.5 KiB written
  footprint      16 KiB in 4 blocks (8 KiB of it read, 8 KiB written)
  re-references  33.33 % of 6 block accesses
  request sizes  1.5 KiB to 8 KiB, mean 4.3 KiB, median 4 KiB, 99 % up to 8 KiB
  time           3 s, from 12816637200 s to 12816637203 s, 1.7 requests/s
  reaches to     1.0 MiB (1,050,112 B)
  volumes        3 volumes of 2 tenants

  volume  requests     reads  data read  written  footprint
  web_0          3  100.00 %     16 KiB      0 B      8 KiB
  web_1          1    0.00 %        0 B    4 KiB      4 KiB
  db_0           1    0.00 %        0 B  1.5 KiB      4 KiB

  tenant  requests    reads  data read  written  footprint
  web            4  75.00 %     16 KiB    4 KiB     12 KiB
  db             1   0.00 %        0 B  1.5 KiB      4 KiB
";
    assert_eq!(Bench::with_traces().good("info msr.csv"), (expected.to_owned(), String::new()));
}

#[test]
fn every_kind_of_request() {
    let expected = "\
disk.fio
  format         fio
  requests       4: 1 read, 1 write, 1 flush, 1 discard
  read share     50.00 % of requests, 11.11 % of blocks of 512 B
";
    let (report, _) = Bench::with_traces().good("info --format fio --block 512 disk.fio");
    assert!(report.starts_with(expected), "{report}");
    assert!(report.contains("\n  data           512 B read, 4 KiB written, 4 KiB discarded\n"), "{report}");
    assert!(
        report.contains("\n  footprint      4 KiB in 8 blocks (512 B of it read, 4 KiB written)\n"),
        "{report}"
    );
    assert!(
        report.contains("\n  time           0.00003 s, from 0.00001 s to 0.00004 s, 133333.3 requests/s\n"),
        "{report}"
    );
    assert!(report.contains("\n  volumes        1 volume, /dev/sda\n"), "{report}");
}

fn traffic(extra: Value, numbers: [u64; 13]) -> Value {
    let names = [
        "requests",
        "reads",
        "writes",
        "flushes",
        "discards",
        "read_bytes",
        "written_bytes",
        "discarded_bytes",
        "block_reads",
        "block_writes",
        "footprint_blocks",
        "read_footprint_blocks",
        "write_footprint_blocks",
    ];
    let mut all = extra;
    for (name, number) in names.into_iter().zip(numbers) {
        all[name] = number.into();
    }
    all
}

#[test]
fn json_has_all_and_fixed_keys() {
    let volumes = [
        traffic(
            json!({"name": "web_0", "tenant": "web", "disk": "0"}),
            [3, 3, 0, 0, 0, 16384, 0, 0, 4, 0, 2, 2, 0],
        ),
        traffic(
            json!({"name": "web_1", "tenant": "web", "disk": "1"}),
            [1, 0, 1, 0, 0, 0, 4096, 0, 0, 1, 1, 0, 1],
        ),
        traffic(
            json!({"name": "db_0", "tenant": "db", "disk": "0"}),
            [1, 0, 1, 0, 0, 0, 1536, 0, 0, 1, 1, 0, 1],
        ),
    ];
    let tenants = [
        traffic(json!({"name": "db", "volumes": 1}), [1, 0, 1, 0, 0, 0, 1536, 0, 0, 1, 1, 0, 1]),
        traffic(json!({"name": "web", "volumes": 2}), [4, 3, 1, 0, 0, 16384, 4096, 0, 4, 1, 3, 2, 1]),
    ];
    let whole = json!({
        "trace": "msr.csv", "format": "msr", "format_detected": true, "compression": null, "block_bytes": 4096,
        "read_share": 0.6, "read_share_blocks": 4.0 / 6.0, "footprint_bytes": 16384, "read_footprint_bytes": 8192,
        "write_footprint_bytes": 8192, "re_reference_share": 2.0 / 6.0,
        "request_bytes": {"min": 1536, "mean": 22016.0 / 5.0, "p50": 4096, "p99": 8192, "max": 8192},
        "first_time_seconds": 12816637200.0, "last_time_seconds": 12816637203.0, "duration_seconds": 3.0,
        "iops_mean": 5.0 / 3.0, "out_of_order": 0,
        "longest_pause_from_seconds": 12816637200.0, "longest_pause_seconds": 1.0, "end_offset": 1050112, "volumes": volumes, "tenants": tenants,
    });
    let expected = traffic(whole, [5, 3, 2, 0, 0, 16384, 5632, 0, 4, 2, 4, 2, 2]);
    assert_eq!(Bench::with_traces().info("msr.csv"), expected);
}

#[test]
fn several_traces_are_a_list() {
    let bench = Bench::with_traces();
    let list = bench.info("msr.csv disk.fio gen:sequential:blocks=10,requests=10");
    let requests = |number: usize| (list[number]["requests"].as_u64(), list[number]["format"].as_str());
    assert_eq!(
        [0, 1, 2].map(requests),
        [(Some(5), Some("msr")), (Some(4), Some("fio")), (Some(10), Some("generated"))]
    );
    let (report, _) = bench.good("info msr.csv disk.fio");
    assert!(report.starts_with("msr.csv\n") && report.contains("\n\ndisk.fio\n"), "{report}");
}

#[test]
fn an_empty_trace_has_nothing_to_divide() {
    let bench = Bench::new();
    bench.write("empty", "");
    let found = bench.info("empty");
    for key in ["read_share", "read_share_blocks", "re_reference_share", "first_time_seconds", "iops_mean"] {
        assert_eq!(found[key], Value::Null, "{key}");
    }
    assert_eq!((found["requests"].as_u64(), found["request_bytes"]["min"].as_u64()), (Some(0), None));
    let (report, _) = bench.good("info empty");
    assert!(report.contains("\n  read share     - of requests, - of blocks of 4 KiB\n"), "{report}");
    assert!(
        report.contains("\n  time           -\n") && report.ends_with("\n  volumes        none\n"),
        "{report}"
    );
}

#[test]
fn times_out_of_order_and_offsets_far_out() {
    let bench = Bench::new();
    let far = 1u64 << 63;
    bench.write(
        "odd.csv",
        format!("50,a,0,Read,{far},4096,0\r\n30,a,0,Read,{far},4096,0\r\n40,a,0,Read,0,512,0\r\n"),
    );
    let found = bench.info("odd.csv");
    assert_eq!((found["out_of_order"].as_u64(), found["duration_seconds"].as_f64()), (Some(1), Some(2e-6)));
    assert_eq!(
        (found["end_offset"].as_u64(), found["footprint_blocks"].as_u64()),
        (Some(far + 4096), Some(2))
    );
    let (report, _) = bench.good("info odd.csv");
    assert!(report.contains("\n  order          1 request is earlier than the one before\n"), "{report}");
    assert!(report.contains("\n  reaches to     8192.0 PiB (9,223,372,036,854,779,904 B)\n"), "{report}");
}

#[test]
fn only_the_largest_volumes_are_listed() {
    let bench = Bench::new();
    let lines = (0..12)
        .flat_map(|volume| vec![format!("{volume},\u{1b}[31mv{volume},0,Read,0,4096,0\n"); volume + 1]);
    bench.write("many.csv", lines.collect::<String>());
    let (report, _) = bench.good("info --format msr many.csv");
    let rows: Vec<_> = report.lines().skip_while(|line| !line.starts_with("  volume  ")).collect();
    assert_eq!(rows.len(), 12, "{report}");
    assert!(rows[1].starts_with("  \u{fffd}[31mv11_0        12"), "{}", rows[1]);
    assert_eq!(rows[11], "  and 2 others with fewer requests (--json tells all)");
    assert_eq!(bench.info("--format msr many.csv")["volumes"].as_array().map(Vec::len), Some(12));
    assert!(report.lines().all(|line| line.chars().count() <= 100), "{report}");
}

#[test]
fn stdin_and_pipes_are_read_once() {
    let bench = Bench::with_traces();
    for (trace, name) in [("-", "stdin"), ("/dev/stdin", "/dev/stdin")] {
        let mut command = bench.command(&format!("info --json {trace}"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("larder starts");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), MSR.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("larder ends");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((found["trace"].as_str(), found["requests"].as_u64()), (Some(name), Some(5)));
    }
}
