//! `larder cache check`: every way to break a cache is found, and told by how bad it is.

use std::fs;

use super::sample::{Sample, refused, told};

#[test]
fn a_sound_cache_is_sound() {
    for clean in [true, false] {
        let sample = Sample::with(|_, name| name.into(), clean);
        for more in [&[][..], &["--data"]] {
            let text = told(&sample.run("check", more), 0);
            assert!(text.contains("sound") && text.contains("122 blocks, 62 dirty ones"), "{text}");
        }
        let json = sample.json("check");
        assert_eq!(
            (json["sound"].as_bool(), json["findings"].as_array().map(Vec::len)),
            (Some(true), Some(0))
        );
    }
}

/// Each harm, what is found, how bad that is, and what is advised.
#[test]
fn every_harm_is_found() {
    let sample = Sample::new();
    let sound = sample.bytes();
    let dirty = format!("data={}", Sample::DIRTY_SLOT);
    let duplicate = format!("duplicate={}", Sample::DIRTY_SLOT);
    let cases = [
        ("bit=24000", "note", "superblock A fails its checksum", "goes on"),
        ("superblock=0", "note", "superblock A", "A start refuses it, for it begins with something else"),
        ("superblock=1", "note", "superblock B", "goes on"),
        ("volume-table=0", "note", "copy 0 of the volume table", "goes on"),
        ("volume-tables", "dirty", "cannot be told to belong", "repair"),
        ("page-newest=0", "note", "of page 0", "goes on"),
        ("page-oldest=1", "note", "of page 1", "goes on"),
        ("page=2", "dirty", "slots 680 to 999", "repair"),
        ("record=4", "note", "nothing needs it", "goes on"),
        (&dirty, "dirty", "fails its checksum (volume 1 is root)", "writeback names them"),
        (&duplicate, "dirty", "is in several slots", "repair"),
        ("beyond-end", "dirty", "is past the volume's end", "repair"),
        ("no-such-slot", "dirty", "names slot 4294967295", "repair"),
        ("misfit", "dirty", "does not fit what slot", "repair"),
    ];
    let names: Vec<_> = cases.iter().map(|case| case.0.split('=').next()).collect();
    let list = told(&sample.lab.larder(&["cache", "damage", "--list"]), 0);
    for name in list.lines().map(|line| line.split(['=', ' ']).next()) {
        assert!(names.contains(&name) || name == Some("superblocks"), "{name:?} is tried");
    }
    for (harm, severity, words, advice) in cases {
        fs::write(sample.lab.path("c"), &sound).expect("writable");
        assert!(sample.harm(&[harm]).contains(harm));
        let text = told(&sample.run("check", &["--data"]), 1);
        for part in [&format!("\n{severity}: "), words, advice] {
            assert!(text.contains(part), "{harm}: {part}: {text}");
        }
        let output = sample.run("check", &["--data", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&told(&output, 1)).expect("JSON");
        assert_eq!(json["worst_finding"], severity, "{harm}: {json:#}");
    }
    fs::write(sample.lab.path("c"), &sound).expect("writable");
    sample.harm(&["superblocks"]);
    for command in ["check", "repair"] {
        let text = refused(&sample.run(command, &[]));
        let (restore, format) =
            (text.find("larder cache restore --force DUMP "), text.find("larder cache format"));
        assert!(text.contains("no usable superblock") && restore.is_some() && restore < format, "{text}");
    }
}

#[test]
fn what_is_no_cache_is_unusable() {
    let sample = Sample::new();
    sample.lab.disk("c", 1 << 20);
    assert!(refused(&sample.run("check", &[])).contains("larder cache format"));
    let bytes = Sample::new().bytes();
    fs::write(sample.lab.path("c"), &bytes[..bytes.len() - 4096]).expect("writable");
    let text = refused(&sample.run("check", &[]));
    assert!(text.contains(&format!("truncate -s {}", bytes.len())), "{text}");
    fs::remove_file(sample.lab.path("c")).expect("there");
    assert!(refused(&sample.run("check", &[])).contains("does not exist"));
}

#[test]
fn random_damage_depends_on_the_seed_alone() {
    let harms = |seed: &str| {
        let sample = Sample::new();
        let text = sample.harm(&["bit", "page", "data", "record", "superblock", "--seed", seed]);
        text.replace(&sample.at("c"), "c")
    };
    assert_eq!(harms("7"), harms("7"));
    assert_ne!(harms("7"), harms("8"));
    let sample = Sample::new();
    let before = sample.bytes();
    for (harm, part) in
        [("data=4000", "changes nothing"), ("page=77", "changes nothing"), ("bit=99999999999", "no such bit")]
    {
        assert!(refused(&sample.run("damage", &[harm])).contains(part), "{harm}");
    }
    assert_eq!(sample.run("damage", &["fire"]).status.code(), Some(2));
    assert!(sample.bytes() == before);
}
