//! `larder cache format` and `info`: what is made, what is refused, what is told.

use std::fs::{self, File};

use serde_json::Value;

use super::sample::{Sample, device_bytes, refused, told};
use crate::lab::Lab;

fn format(lab: &Lab, more: &[&str]) -> std::process::Output {
    let path = lab.path("c");
    lab.larder(&[&["cache", "format", path.to_str().expect("UTF-8")], more].concat())
}

fn info(lab: &Lab) -> Value {
    let path = lab.path("c");
    let output = lab.larder(&["cache", "info", "--json", path.to_str().expect("UTF-8")]);
    serde_json::from_str(&told(&output, 0)).expect("JSON")
}

#[test]
fn a_new_cache_has_the_size_that_was_asked_for() {
    let lab = Lab::new();
    let text = told(&format(&lab, &["--size", "10MiB", "--block-size", "8KiB", "--sector", "4KiB"]), 0);
    assert!(
        text.contains("an empty cache of 1,280 blocks (10 MiB), 8 KiB each, and 32 slots to spare"),
        "{text}"
    );
    let info = info(&lab);
    for (key, value) in [
        ("data_bytes", (10 << 20) + 32 * 8192),
        ("block_bytes", 8192),
        ("sector_bytes", 4096),
        ("slots", 1312),
        ("free_slots", 1312),
        ("blocks", 0),
        ("findings", 0),
        ("format", 5),
        ("generation", 2),
    ] {
        assert_eq!(info[key], Value::from(value), "{key}: {info:#}");
    }
    for (key, value) in [("stopped_cleanly", true), ("may_hold_dirty", false), ("needs_check", false)] {
        assert_eq!(info[key], Value::from(value), "{key}");
    }
    let bytes = info["data_bytes"].as_u64().zip(info["metadata_bytes"].as_u64());
    assert_eq!(bytes.map(|(data, metadata)| data + metadata), Some(device_bytes(&lab, "c")));
    assert!(text.contains(info["uuid"].as_str().expect("a UUID")));
    // Again, with what fits in the file: another cache.
    let text = told(&format(&lab, &[]), 0);
    assert!(text.contains(&format!("cache {} is gone, with 0 blocks", info["uuid"].as_str().unwrap_or(""))));
    assert_eq!(self::info(&lab)["block_bytes"], Value::from(4096));
}

#[test]
fn what_cannot_be_a_cache_is_refused_and_nothing_is_left_behind() {
    let lab = Lab::new();
    for (more, part) in [
        (&[][..], "does not exist"),
        (&["--size", "1KiB"], "room for 0 blocks"),
        (&["--size", "1MiB", "--block-size", "5000"], "a block of 5000 bytes"),
        (&["--size", "1MiB", "--sector", "1KiB"], "a sector of 1024 bytes"),
        (&["--size", "9000000GiB", "--block-size", "128KiB"], "a cache has from 1 to 4294967295"),
        (&["--size", "500TB", "--block-size", "128KiB"], "no room for"),
    ] {
        let text = refused(&format(&lab, more));
        assert!(text.contains(part), "{text}");
        assert!(!lab.path("c").exists(), "{more:?}");
    }
    assert_eq!(format(&lab, &["--size", "much"]).status.code(), Some(2));
}

#[test]
fn what_others_have_is_left_alone_unless_forced() {
    let lab = Lab::new();
    let path = lab.disk("c", 4 << 20);
    let before = fs::read(&path).expect("readable");
    let text = refused(&format(&lab, &["--size", "2MiB"]));
    assert!(text.contains("holds something else") && text.contains("--force"), "{text}");
    assert!(fs::read(&path).expect("readable") == before);
    assert!(told(&format(&lab, &["--size", "2MiB", "--force"]), 0).contains("what it held is gone"));
    assert_eq!(info(&lab)["slots"], Value::from(512 + 32));
}

#[test]
fn dirty_data_is_left_alone_unless_forced() {
    let sample = Sample::new();
    let before = sample.bytes();
    let text = refused(&sample.run("format", &[]));
    assert!(text.contains("holds 62 dirty blocks (248 KiB) that the backings do not have"), "{text}");
    assert!(text.contains("larder cache writeback"), "{text}");
    // What cannot be told for sure may be dirty.
    for harm in ["page=0", "superblocks"] {
        sample.harm(&[harm]);
        let damaged = sample.bytes();
        let text = refused(&sample.run("format", &[]));
        assert!(text.contains("damaged cache") || text.contains("holds something else"), "{text}");
        assert!(sample.bytes() == damaged);
        fs::write(sample.lab.path("c"), &before).expect("writable");
    }
    let text = told(&sample.run("format", &["--force"]), 0);
    assert!(text.contains("122 blocks") && text.contains("62 of them dirty"), "{text}");
    assert_eq!(sample.json("info")["blocks"], Value::from(0));
}

#[test]
fn a_cache_in_use_is_told_apart() {
    let sample = Sample::new();
    let daemon = File::open(sample.lab.path("c")).expect("readable");
    daemon.lock().expect("a lock");
    for command in ["format", "info", "check", "dump", "repair", "writeback"] {
        let text = refused(&sample.run(command, &[]));
        assert!(text.contains("is in use by another process") && text.contains("stop the daemon"), "{text}");
    }
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let daemon = lab.serve(&lab.one_volume("disk", "unix:s"));
    let cache = lab.path("cache.img");
    let output = lab.larder(&["cache", "info", cache.to_str().expect("UTF-8")]);
    assert!(refused(&output).contains("is in use by another process"));
    daemon.stop();
}

#[test]
fn info_tells_what_a_cache_holds_of_each_volume() {
    let sample = Sample::with(|_, name| format!("/srv/{name}.img"), false);
    let json = sample.json("info");
    assert_eq!((&json["blocks"], &json["dirty_blocks"]), (&Value::from(122), &Value::from(62)));
    assert_eq!(
        (&json["stopped_cleanly"], &json["may_hold_dirty"]),
        (&Value::from(false), &Value::from(true))
    );
    let volume = &json["volumes"][1];
    for (key, value) in [("blocks", 61), ("dirty_blocks", 31), ("number", 2), ("size_bytes", 410_624)] {
        assert_eq!(volume[key], Value::from(value), "{key}: {volume:#}");
    }
    assert_eq!((&volume["name"], &volume["backing"]), (&Value::from("data"), &Value::from("/srv/data.img")));
    let text = told(&sample.run("info", &[]), 0);
    for part in
        ["not cleanly", "62 blocks (248 KiB) that the backings do not have", "/srv/root.img", "number"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    sample.harm(&["page-oldest=0"]);
    assert!(told(&sample.run("info", &[]), 0).contains("1 finding: larder cache check"));
}
