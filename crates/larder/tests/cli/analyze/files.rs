//! Reports and pictures.

use std::fs;

use super::{FIGURE_5, analyze, lab_with, stdout};

#[test]
fn a_report_stands_alone() {
    let lab = lab_with(&[("a.csv", FIGURE_5), ("b<1>.csv", "R1 R2 R1 W3")]);
    let text = stdout(analyze(&lab, &["a.csv", "b<1>.csv", "a.csv", "--html", "r.html", "--json=r.json"]));
    assert!(text.contains("\nUse ") && text.contains("\nb<1>.csv (msr)"), "{text}");
    let page = fs::read_to_string(lab.path("r.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    for outside in ["http://", "https://", "src=", "url(", "<script", "@import"] {
        let place = page.replace("http://www.w3.org/2000/svg", "").find(outside);
        assert_eq!(place, None, "{outside} in the page");
    }
    for words in [
        "The workload can use up to 8 KiB of cache",
        "b&lt;1&gt;",
        ">a-2<",
        "Miss ratio over cache size",
        "reads (URD)",
        "SSD writes over cache size",
        "Request classes over time",
        "Reuse distances",
        "Accesses over time and address",
        "Hot regions",
        "@media print",
    ] {
        assert!(page.contains(words), "{words} is missing");
    }
    assert!(fs::read_to_string(lab.path("r.json")).expect("JSON").starts_with('['));
}

#[test]
fn ids_are_unique_in_a_report() {
    let lab = lab_with(&[("a.csv", FIGURE_5), ("b.csv", FIGURE_5)]);
    stdout(analyze(&lab, &["a.csv", "b.csv", "--html", "r.html", "--quiet"]));
    let page = fs::read_to_string(lab.path("r.html")).expect("a page");
    let mut ids: Vec<_> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn pictures_go_to_files_of_their_own() {
    let lab = lab_with(&[("a.csv", FIGURE_5)]);
    assert_eq!(stdout(analyze(&lab, &["a.csv", "--plot", "p.svg", "--plot", "map=m.png", "--quiet"])), "");
    for (name, words) in [
        ("misses", "reads (URD)"),
        ("policies", "wt-noalloc"),
        ("writes", "SSD writes"),
        ("backing", "Backing writes"),
        ("classes", "RAW, read after write"),
        ("distances", "Reuse distances"),
        ("map", "Blocks read"),
        ("hot", "Hot regions"),
    ] {
        let svg = fs::read_to_string(lab.path(&format!("p-{name}.svg"))).expect(name);
        assert!(svg.contains(words), "{name}: {svg}");
    }
    assert!(fs::read(lab.path("m.png")).expect("a picture").starts_with(b"\x89PNG"));
}

#[test]
fn traces_have_pictures_of_their_own() {
    let lab = lab_with(&[("a.csv", FIGURE_5), ("b.csv", "R1")]);
    stdout(analyze(&lab, &["a.csv", "b.csv", "--plot", "misses=m.svg", "--quiet"]));
    let mut names: Vec<_> = lab
        .fingerprint()
        .into_keys()
        .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    assert_eq!(names, ["a.csv", "b.csv", "m-a.svg", "m-b.svg"]);
}

#[test]
fn traces_with_little_in_them_have_reports_and_pictures() {
    for text in ["", "R1", "W1", "W1 W1", "R1 R2 R3"] {
        let lab = lab_with(&[("t.csv", text)]);
        stdout(analyze(
            &lab,
            &["t.csv", "--format", "msr", "--html", "r.html", "--plot", "p.svg", "--plot", "q.png"],
        ));
        let page = fs::read_to_string(lab.path("r.html")).expect("a page");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{text}");
    }
}
