//! `larder cache repair`: never loses dirty data unasked, and says what it loses.

use super::sample::{Sample, told};

#[test]
fn what_loses_nothing_is_repaired_unasked() {
    for clean in [true, false] {
        let sample = Sample::with(|lab, name| lab.path(name).display().to_string(), clean);
        assert!(told(&sample.run("repair", &[]), 0).contains("nothing to repair"));
        sample.harm(&["superblock=0", "page-oldest=1", "volume-table=0"]);
        let text = told(&sample.run("repair", &[]), 0);
        assert!(text.contains("The repair kept 122 blocks, 62 of them dirty."), "{text}");
        told(&sample.run("check", &["--data"]), 0);
        told(&sample.run("writeback", &[]), 0);
        assert!(sample.is_saved());
    }
}

#[test]
fn dirty_data_is_not_given_up_unasked() {
    let sample = Sample::new();
    sample.harm(&["page=0"]);
    let before = sample.bytes();
    let text = told(&sample.run("repair", &[]), 1);
    for part in ["would give up what was in", "dirty blocks may have been", "Nothing was changed", "--yes"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(sample.bytes() == before);
    let json = sample.json("repair");
    assert_eq!((json["needs_yes"].as_bool(), json["repaired"].as_bool()), (Some(true), Some(false)));
    assert_eq!(json["lost"][0]["unknown_slots"]["first"], 0);
    assert!(sample.bytes() == before);
    let text = told(&sample.run("repair", &["--yes"]), 0);
    assert!(text.contains("It gave up what was in"), "{text}");
    told(&sample.run("check", &["--data"]), 0);
    // The others are saved.
    let text = told(&sample.run("writeback", &[]), 0);
    assert!(text.contains("no dirty blocks any more"), "{text}");
}

#[test]
fn a_contradiction_is_named_with_its_block() {
    let sample = Sample::new();
    sample.harm(&[&format!("duplicate={}", Sample::DIRTY_SLOT)]);
    let text = told(&sample.run("repair", &[]), 1);
    let part = format!("would give up block 3 of volume root in slot {}, which is dirty", Sample::DIRTY_SLOT);
    assert!(text.contains(&part), "{text}");
}

#[test]
fn a_long_list_is_cut_and_json_has_all_of_it() {
    let sample = Sample::new();
    sample.harm(&["volume-tables"]);
    let text = told(&sample.run("repair", &[]), 1);
    assert!(text.lines().count() < 60, "{text}");
    assert!(text.contains("more; --json has them all"), "{text}");
    let json = sample.json("repair");
    let listed = json["findings"].as_array().map(Vec::len).unwrap_or(0);
    assert!(listed > 20, "{json:#}");
}
