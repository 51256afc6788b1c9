//! `larder trace cut`.

use super::bench::Bench;

/// What is written to stdout of `msr.csv`.
fn cut(options: &str) -> String {
    Bench::with_traces().good(&format!("cut msr.csv --out - --out-format msr {options}")).0
}

const LINES: [&str; 5] = [
    "128166372000000000,web,0,Read,0,8192,0\n",
    "128166372010000000,web,1,Write,4096,4096,0\n",
    "128166372010000000,web,0,Read,4096,4096,0\n",
    "128166372020000000,db,0,Write,1048576,1536,0\n",
    "128166372030000000,web,0,Read,0,4096,0\n",
];

#[test]
fn by_each_condition() {
    for (options, kept) in [
        ("", &[0, 1, 2, 3, 4][..]),
        ("--from 1s --to 2s", &[1, 2]),
        ("--from 2s", &[3, 4]),
        ("--to 500ms", &[0]),
        ("--requests 1..3", &[1, 2]),
        ("--requests ..1", &[0]),
        ("--requests 4..", &[4]),
        ("--volume web_0", &[0, 2, 4]),
        ("--volume web_1 --volume db_0", &[1, 3]),
        ("--tenant web", &[0, 1, 2, 4]),
        ("--tenant web --requests 1.. --to 3s", &[1, 2]),
        ("--range 1MiB..2MiB", &[3]),
    ] {
        let expected: String = kept.iter().map(|&line| LINES[line]).collect();
        assert_eq!(cut(options), expected, "{options}");
    }
}

#[test]
fn requests_are_clipped_to_the_range() {
    let expected = "128166372000000000,web,0,Read,2048,3072,0\n128166372010000000,web,1,Write,4096,1024,0\n\
        128166372010000000,web,0,Read,4096,1024,0\n128166372030000000,web,0,Read,2048,2048,0\n";
    assert_eq!(cut("--range 2048..5KiB"), expected);
}

#[test]
fn a_part_without_requests_is_said_to_be_one() {
    let bench = Bench::with_traces();
    let told = "note: no request of msr.csv is in that part\n0 requests written to out.csv (msr)\n";
    assert_eq!(bench.good("cut msr.csv --out out.csv --from 1h").1, told);
    assert_eq!(bench.read("out.csv"), "");
}

#[test]
fn a_long_trace_is_not_read_further_than_it_must() {
    let bench = Bench::new();
    let (_, told) =
        bench.good("cut gen:uniform:blocks=100,requests=1000000000000 --requests 5..10 --out out.csv");
    assert_eq!(told, "5 requests written to out.csv (msr)\n");
    assert_eq!(bench.info("out.csv")["first_time_seconds"], 0.005);
}
