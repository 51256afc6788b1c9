use super::*;
use crate::reproduce::larc::workload::choose;
use clap::Parser;
use std::fs;
use std::path::PathBuf;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

/// The studies of a command line.
fn studies(arguments: &[&str]) -> Vec<Study> {
    let line = Line::parse_from([&["larc", "--quiet"], arguments].concat());
    let lab = Lab::new(&line.options);
    let workloads = choose(&line.options).expect("workloads");
    workloads.into_iter().map(|workload| lab.study(workload).expect("a study")).collect()
}

/// A trace in the plain format: "R0 W2" is a read of block 0, then a write of block 2.
fn trace(folder: &tempfile::TempDir, name: &str, accesses: &str) -> PathBuf {
    let path = folder.path().join(name);
    let line = |access: &str| format!("{} {}\n", &access[..1], &access[1..]);
    fs::write(&path, accesses.split(' ').map(line).collect::<String>()).expect("a trace");
    path
}

fn tally(accesses: u64, hits: u64, write_hits: u64, replacements: u64) -> Tally {
    Tally { accesses, hits, write_hits, replacements }
}

/// By hand, in a cache of two blocks. LRU hits at accesses 2, 4, 5, 6, 7 (a write), 9 (a write) and 10; 0, 1 and 2 enter. LARC lets 0 enter at its second access,
/// 1 at its second, 2 at its second (which is a write), and hits at accesses 5, 6, 7 (a write) and 10.
#[test]
fn ten_accesses_by_hand() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = trace(&folder, "ten", "R0 R0 R1 R1 R0 R1 W0 W2 W2 R2");
    let named = format!("ten={}", path.display());
    let studies = studies(&["--trace", &named, "--sizes", "8KiB"]);
    let [Study { summary, read_share, whole, half, change: None, .. }] = &studies[..] else {
        panic!("{studies:?}")
    };
    assert_eq!((summary.footprint_blocks, summary.block_accesses, *read_share), (3, 10, 0.7));
    let [whole] = &whole[..] else { panic!("{whole:?}") };
    assert_eq!(whole.cache_blocks, 2);
    assert_eq!(whole.of(PolicySpec::Lru), tally(10, 7, 2, 3));
    assert_eq!(whole.of(PolicySpec::Larc), tally(10, 4, 1, 3));
    assert_eq!(whole.of(PolicySpec::Larc).ssd_writes(), 4);
    assert_eq!(whole.saving(), Some(1.0 - 4.0 / 5.0));
    assert_eq!(whole.gain_over(PolicySpec::Lru), Some(4.0 / 7.0 - 1.0));
    assert!(!whole.loses_no_hits());
    let [half] = &half[..] else { panic!("{half:?}") };
    assert_eq!(half.of(PolicySpec::Lru), tally(5, 4, 2, 1));
    assert_eq!(half.of(PolicySpec::Larc), tally(5, 3, 1, 1));
}

/// "For other algorithms, R = 1 - (H_w + H_r). Thus W = 1 - H_r": what holds for all that admit all, reads and writes, requests of several blocks.
#[test]
fn all_misses_are_replacements_but_for_larc() {
    let trace = "mix=gen:zipf:theta=0.8,blocks=500,requests=20000,read=0.6";
    let studies = studies(&["--trace", trace, "--sizes", "1%,10%,50%", "--belady"]);
    for outcome in studies[0].whole.iter().chain(&studies[0].half).flat_map(|point| &point.outcomes) {
        let Tally { accesses, hits, write_hits, replacements } = outcome.tally;
        assert!(accesses > 0 && hits > 0 && write_hits < hits);
        match outcome.policy {
            PolicySpec::Larc => assert!(replacements < accesses - hits),
            _ => assert_eq!(replacements, accesses - hits, "{outcome:?}"),
        }
    }
    let best = |point: &Point| point.outcomes.iter().map(|outcome| outcome.tally.hits).max();
    assert!(studies[0].whole.iter().all(|point| best(point) == Some(point.of(PolicySpec::Belady).hits)));
}

#[test]
fn two_traces_are_one_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (trace(&folder, "first", "R0 R1 R0 R1"), trace(&folder, "second", "R1 R2 R2"));
    let (first, second) = (first.to_str().expect("UTF-8"), second.to_str().expect("UTF-8"));
    let studies = studies(&["--change", first, second, "--sizes", "100%"]);
    assert_eq!(studies[0].summary.footprint_blocks, 3, "block 1 is the same in both");
    assert_eq!(studies[0].whole[0].of(PolicySpec::Lru), tally(7, 4, 0, 3));
    let change = studies[0].change.as_ref().expect("a change");
    assert_eq!((change.cache_blocks, change.every, change.at), (3, 1, 4));
    let lru = &change.series.iter().find(|(policy, _)| *policy == PolicySpec::Lru).expect("LRU").1;
    assert_eq!(lru[change.at..], [tally(1, 1, 0, 0), tally(1, 0, 0, 1), tally(1, 1, 0, 0)]);
}

#[test]
fn what_cannot_be_studied_says_why() {
    let refuse = |arguments: &[&str]| {
        let line = Line::parse_from([&["larc", "--quiet"], arguments].concat());
        let workload = choose(&line.options).expect("workloads").remove(0);
        Lab::new(&line.options).study(workload).expect_err("no study").to_string()
    };
    let missing = refuse(&["--trace", "x=/nonexistent/x.csv"]);
    assert!(missing.starts_with("error: /nonexistent/x.csv: cannot be opened"), "{missing}");
    let limited = refuse(&["--trace", "x=gen:uniform:blocks=5,requests=5", "-n", "0"]);
    assert!(limited.contains("no block is read or written"), "{limited}");
    let tiny = refuse(&["--trace", "x=gen:uniform:blocks=5,requests=5", "--sizes", "100"]);
    assert!(tiny.contains("holds no block of 4KiB"), "{tiny}");
}
