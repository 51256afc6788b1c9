//! What is printed.

use super::{FIGURE_5, analyze, lab_with, stdout};

fn summary(text: &str) -> String {
    stdout(analyze(&lab_with(&[("t.csv", text)]), &["t.csv", "--format", "msr"]))
}

#[test]
fn a_summary_tells_use_gain_and_cost() {
    let text = summary(FIGURE_5);
    assert_eq!(text, FIGURE_5_SUMMARY, "{text}");
}

const FIGURE_5_SUMMARY: &str = "\
t.csv (msr): 7 requests, 14.29 % reads, footprint 20 KiB
Block accesses: first reads 0.00 % (CR), first writes 71.43 % (CW), reads after a read 0.00 % (RAR),
after a write 14.29 % (RAW), writes after a read 0.00 % (WAR), after a write 14.29 % (WAW)

Use   The workload can use up to 8 KiB of cache: that serves all reads of blocks seen before (URD),
      14.29 % of its block accesses. Sized by all accesses, rewrites among them, it would take
      20 KiB (TRD).
Gain  With 8 KiB, a write-back cache serves 100.00 % of the blocks read, 14.29 % of the requests
      find all their blocks in it, and 66.67 % of the blocks written go on to the backing before the
      trace ends.
Cost  At 8 KiB the SSD would take 24 KiB of writes under wb or wt, serving 100.00 % of the blocks
      read.

                               wb, wt           wt-noalloc, ro
        of foot-                 read      SSD            read      SSD
  size     print                 hits  written            hits  written
────────────────────────────────────────────────────────────────────────
 4 KiB   20.00 %               0.00 %   28 KiB          0.00 %    4 KiB
 8 KiB   40.00 %  90 %, URD  100.00 %   24 KiB          0.00 %    4 KiB
16 KiB   80.00 %             100.00 %   24 KiB          0.00 %    4 KiB
20 KiB  100.00 %  TRD        100.00 %   24 KiB          0.00 %    4 KiB

LRU caches in blocks of 4 KiB. wb: write-back. wt: write-through. wt-noalloc: write-through, and a
write brings no block in. ro: a write goes to the backing alone, and drops the block. 90 %: nine
tenths of all read hits. URD: all read hits. TRD: all hits, of writes too. batched is left out: no
mover epoch ends in this trace (--mover-epoch).
";

#[test]
fn traces_with_little_in_them_are_told_as_they_are() {
    for (text, words) in [
        ("", "Use   The trace holds no reads or writes: there is nothing to cache.\n"),
        ("R1", "Use   The workload can use no cache: no block is accessed again.\n"),
        (
            "W1 W1",
            "Use   The workload can use no cache for reading: no block is read a second time or after a write\n",
        ),
    ] {
        let summary = summary(text);
        assert!(summary.contains(words), "{text}: {summary}");
        assert!(!summary.contains("NaN") && !summary.contains("inf"), "{summary}");
    }
}

#[test]
fn a_mover_that_moves_is_told() {
    let lab = lab_with(&[("t.csv", FIGURE_5)]);
    for (epoch, moves) in [("2", true), ("3s", true), ("7", false), ("7s", false)] {
        let text = stdout(analyze(&lab, &["t.csv", "--mover-epoch", epoch]));
        assert_eq!(
            (text.contains("batched"), text.contains("batched is left out")),
            (true, !moves),
            "{epoch}: {text}"
        );
    }
}

#[test]
fn lines_fit_the_width() {
    let lab = lab_with(&[("t.csv", FIGURE_5)]);
    let arguments =
        ["gen:zipf:theta=0.9,blocks=30000,requests=50000,read=0.6", "t.csv", "--policy", "larc,arc,s3-fifo"];
    let text = stdout(analyze(&lab, &arguments));
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    // Columns that do not fit beside each other are below each other, rather than broken.
    let units = ["KiB", "MiB", "GiB", "%"];
    assert!(text.lines().all(|line| !units.contains(&line.trim())), "{text}");
    assert!(text.contains("larc wb") && text.contains("estimated from scaled-down caches"), "{text}");
}

#[test]
fn quiet_is_quiet() {
    let lab = lab_with(&[("t.csv", FIGURE_5)]);
    let output = analyze(&lab, &["t.csv", "--quiet"]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}
