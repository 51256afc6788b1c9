//! What it says of traces that cannot be read and of questions that make no sense.

use std::fs;

use super::{FIGURE_5, analyze, error, lab_with, msr};

#[test]
fn what_cannot_be_analyzed_is_told() {
    let lab = lab_with(&[("t.csv", FIGURE_5)]);
    fs::write(lab.path("bad.csv"), format!("{}1,2,rubbish\n", msr(FIGURE_5))).expect("write a trace");
    for (arguments, what) in [
        (
            &["missing.csv"][..],
            "error: missing.csv: cannot be opened: No such file or directory (os error 2)\nhelp: ",
        ),
        (&["t.csv", "bad.csv", "--json"], "error: bad.csv: line 8: "),
        (&["gen:zipf:theta=1.0"], "error: gen:zipf:theta=1.0: no such workload: phase 1: "),
        (&["-", "t.csv", "-"], "error: stdin can be read only once, but is named twice\nhelp: "),
        (&["t.csv", "--policy", "lru,belady"], "error: belady cannot be estimated"),
        (
            &["t.csv", "--policy", "arc", "--write-policy", "batched"],
            "error: batched is a matter of LRU caches",
        ),
        (
            &["t.csv", "--plot", "p.pdf"],
            "error: p.pdf: unknown extension .pdf; a picture ends in .svg, .png or .html\nhelp: ",
        ),
        (
            &["t.csv", "--html", "nowhere/r.html"],
            "error: nowhere/r.html cannot be written: No such file or directory",
        ),
        (&["t.csv", "--json=."], "error: . cannot be written: is a directory\nhelp: "),
    ] {
        let told = error(analyze(&lab, arguments));
        assert!(told.starts_with(what) && told.contains("\nhelp: "), "{arguments:?}: {told}");
    }
}

#[test]
fn what_is_asked_wrongly_is_a_usage_error() {
    let lab = lab_with(&[("t.csv", FIGURE_5)]);
    for (arguments, what) in [
        (
            &["t.csv", "--sample", "1"][..],
            "1 is no sample: write a share of the blocks (\"1%\", \"0.01\") or a number",
        ),
        (&["t.csv", "--sample", "1%", "--exact"], "cannot be used with"),
        (
            &["t.csv", "--write-policy", "wo"],
            "wo has no curves; there are wb, wt, wt-noalloc, ro, batched, all",
        ),
        (&["t.csv", "--policy", "lruu"], "unknown replacement policy `lruu`"),
        (&["t.csv", "--mover-epoch", "0"], "is no length"),
        (&["t.csv", "--plot", "mrc=p.svg"], "there is no picture mrc; there are misses, policies"),
        (&["t.csv", "--block", "5000"], "a power of two from 512 bytes to 128 KiB"),
        (&[], "<TRACE>"),
    ] {
        let output = analyze(&lab, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {told}");
        assert!(told.contains(what), "{arguments:?}: {told}");
    }
}
