//! `larder cache dump` and `restore`: there and back.

use std::fs;

use serde_json::Value;

use super::sample::{Sample, refused, told};

#[test]
fn a_dump_is_restored_to_the_same() {
    let sample = Sample::new();
    let dump = told(&sample.run("dump", &[]), 0);
    let json: Value = serde_json::from_str(&dump).expect("JSON");
    assert_eq!(json["blocks"].as_array().map(Vec::len), Some(122));
    assert_eq!(json["volumes"][0]["backing"], Value::from(sample.at("root")));
    let file = sample.at("dump.json");
    told(&sample.run("dump", &["-o", &file]), 0);
    assert_eq!(fs::read_to_string(&file).expect("readable"), dump);
    // Into a new file: metadata without data.
    let text = told(&sample.lab.larder(&["cache", "restore", &file, &sample.at("new")]), 0);
    assert!(text.contains("122 blocks (488 KiB), 62 of them dirty"), "{text}");
    let again = told(&sample.lab.larder(&["cache", "dump", &sample.at("new")]), 0);
    assert_eq!(again, dump);
    assert_eq!(sample.lab.larder(&["cache", "check", "--data", &sample.at("new")]).status.code(), Some(1));
    // Over what is left of it: metadata is gone, data is there.
    sample.harm(&["superblocks", "--seed", "1"]);
    let restore = ["cache", "restore", &file, &sample.at("c")];
    assert!(refused(&sample.lab.larder(&restore)).contains("holds something else"));
    told(&sample.lab.larder(&[&restore[..], &["--force"]].concat()), 0);
    told(&sample.run("check", &["--data"]), 0);
    assert_eq!(told(&sample.run("dump", &[]), 0), dump);
    told(&sample.run("writeback", &[]), 0);
    assert!(sample.is_saved());
}

#[test]
fn a_cache_is_not_overwritten_unasked() {
    let sample = Sample::new();
    let file = sample.at("dump.json");
    told(&sample.run("dump", &["-o", &file]), 0);
    let before = sample.bytes();
    let restore = ["cache", "restore", &file, &sample.at("c")];
    assert!(refused(&sample.lab.larder(&restore)).contains("62 dirty blocks"));
    assert!(sample.bytes() == before);
    told(&sample.run("writeback", &[]), 0);
    let text = refused(&sample.lab.larder(&restore));
    assert!(text.contains("its metadata would be replaced") && text.contains("stale"), "{text}");
    // A dump that is there is not replaced either.
    assert!(refused(&sample.run("dump", &["-o", &file])).contains("exists already"));
    told(&sample.run("dump", &["-o", &file, "--force"]), 0);
    let json: Value = serde_json::from_slice(&fs::read(&file).expect("readable")).expect("JSON");
    assert_eq!(json["may_hold_dirty"], Value::from(false));
}

#[test]
fn what_is_no_dump_makes_no_cache() {
    let sample = Sample::new();
    let dump: Value = serde_json::from_str(&told(&sample.run("dump", &[]), 0)).expect("JSON");
    let changes: [(&str, Value, &str); 6] = [
        ("version", 6.into(), "the dump is of format 6"),
        ("uuid", "x".into(), "32 hexadecimal digits"),
        ("slots", 3.into(), "does not exist"),
        ("slots", "many".into(), "is no dump"),
        ("block_bytes", 5.into(), "a block of 5 bytes"),
        ("journal_records", 1_u64.into(), "a journal of 1 records"),
    ];
    for (key, value, part) in changes {
        let mut changed = dump.clone();
        changed[key] = value;
        fs::write(sample.lab.path("bad.json"), changed.to_string()).expect("writable");
        let output = sample.lab.larder(&["cache", "restore", &sample.at("bad.json"), &sample.at("new")]);
        assert!(refused(&output).contains(part), "{part}: {output:?}");
        assert!(!sample.lab.path("new").exists());
    }
}
