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

const FIGURE_5_SUMMARY: &str = "";

#[test]
fn traces_with_little_in_them_are_told_as_they_are() {
    for (text, words) in [
        ("", "Use   The trace holds no reads or writes: there is nothing to cache.\n"),
        ("R1", "Use   It can use no cache: no block is accessed twice.\n"),
        ("W1 W1", "Use   It can use no cache for reading: no block is read again (URD)."),
    ] {
        let summary = summary(text);
        assert!(summary.contains(words), "{text}: {summary}");
        assert!(!summary.contains("NaN") && !summary.contains("inf"), "{summary}");
    }
}

#[test]
fn lines_fit_the_width() {
    let lab = lab_with(&[("t.csv", FIGURE_5)]);
    let arguments =
        ["gen:zipf:theta=0.9,blocks=30000,requests=50000,read=0.6", "t.csv", "--policy", "larc,arc,s3-fifo"];
    let text = stdout(analyze(&lab, &arguments));
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert!(text.contains("larc wb") && text.contains("estimated from scaled-down caches"), "{text}");
}

#[test]
fn quiet_is_quiet() {
    let lab = lab_with(&[("t.csv", FIGURE_5)]);
    let output = analyze(&lab, &["t.csv", "--quiet"]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}
