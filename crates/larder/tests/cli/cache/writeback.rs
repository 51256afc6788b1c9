//! `larder cache writeback`: every dirty block reaches its backing, or is named and kept.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::sample::{Sample, refused, told};

/// `nbdkit` on a file; killed when dropped.
struct Nbdkit(Child);

impl Nbdkit {
    fn start(sample: &Sample, socket: &str, file: &str) -> Self {
        let child = Command::new("nbdkit")
            .args(["--foreground", "--unix", &sample.at(socket), "file", &sample.at(file)])
            .stderr(Stdio::null())
            .spawn();
        let child = Self(child.expect("apt-get install nbdkit"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !sample.lab.path(socket).exists() {
            assert!(Instant::now() < deadline, "nbdkit never listens");
            sleep(Duration::from_millis(10));
        }
        child
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        // Both fail where it has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Nothing is dirty any more, and all that was cached still is.
fn assert_saved(sample: &Sample) {
    assert!(sample.is_saved());
    told(&sample.run("check", &["--data"]), 0);
    let info = sample.json("info");
    assert_eq!((&info["dirty_blocks"], &info["blocks"]), (&Value::from(0), &Value::from(122)));
    assert_eq!(
        (&info["may_hold_dirty"], &info["stopped_cleanly"]),
        (&Value::from(false), &Value::from(true))
    );
}

#[test]
fn all_dirty_blocks_reach_their_backings() {
    for clean in [true, false] {
        let sample = Sample::with(|lab, name| lab.path(name).display().to_string(), clean);
        assert!(!sample.is_saved());
        let text = told(&sample.run("writeback", &[]), 0);
        let expected = format!("volume root: 31 blocks (124 KiB) written to {}", sample.at("root"));
        assert!(text.contains(&expected) && text.contains("no dirty blocks any more"), "{text}");
        assert_saved(&sample);
        assert!(told(&sample.run("writeback", &[]), 0).contains("no dirty blocks;"));
        // It may go now.
        told(&sample.run("format", &[]), 0);
    }
}

#[test]
fn a_backing_may_be_an_nbd_server() {
    let sample = Sample::with(
        |lab, name| match name {
            "data" => format!("nbd+unix:///?socket={}", lab.path("s").display()),
            _ => lab.path(name).display().to_string(),
        },
        true,
    );
    let text = refused(&sample.run("writeback", &[]));
    assert!(text.contains("volume data: cannot use nbd+unix:") && text.contains("--skip data"), "{text}");
    assert_eq!(sample.json("info")["dirty_blocks"], Value::from(62), "nothing begins before all is there");
    let server = Nbdkit::start(&sample, "s", "data");
    told(&sample.run("writeback", &[]), 0);
    drop(server);
    assert_saved(&sample);
}

#[test]
fn a_backing_may_be_named_or_left_out() {
    let sample = Sample::with(|_, name| name.into(), true);
    let text = refused(&sample.run("writeback", &[]));
    assert!(text.contains("no path and no URI") && text.contains("--volume root=BACKING"), "{text}");
    let root = format!("root={}", sample.at("root"));
    let text = told(&sample.run("writeback", &["--volume", &root, "--skip", "data"]), 1);
    assert!(text.contains("volume data: left out, 31 dirty blocks left"), "{text}");
    assert_eq!(sample.json("info")["dirty_blocks"], Value::from(31));
    // By its number, to a larger disk.
    fs::copy(sample.lab.path("data"), sample.lab.path("other")).expect("a copy");
    let file = fs::File::options().write(true).open(sample.lab.path("other")).expect("writable");
    file.set_len(1 << 20).expect("longer");
    told(&sample.run("writeback", &["--volume", &format!("2={}", sample.at("other"))]), 0);
    let other = fs::read(sample.lab.path("other")).expect("readable");
    assert!(other.starts_with(&sample.wanted[1]) && other[sample.wanted[1].len()..].iter().all(|&b| b == 0));
    for (name, part) in [("x=/y", "no volume x"), ("3=/y", "no volume 3")] {
        assert!(refused(&sample.run("writeback", &["--volume", name])).contains(part));
    }
}

/// The disk was not mounted, say, or is to be saved to another one.
#[test]
fn a_backing_that_was_replaced_has_to_be_named_and_its_blocks_leave_the_cache() {
    let identity = |lab: &crate::lab::Lab, name: &str| match name {
        "root" => format!("{} [inode 1, made 1.0]", lab.path(name).display()),
        _ => lab.path(name).display().to_string(),
    };
    let sample = Sample::with(identity, true);
    let before = fs::read(sample.lab.path("root")).expect("readable");
    let text = refused(&sample.run("writeback", &[]));
    let root = format!("--volume root={}", sample.at("root"));
    assert!(
        text.contains("is not the disk of volume root: it was replaced") && text.contains(&root),
        "{text}"
    );
    assert!(fs::read(sample.lab.path("root")).expect("readable") == before);
    assert_eq!(sample.json("info")["dirty_blocks"], Value::from(62));
    let text = told(&sample.run("writeback", &["--volume", &format!("root={}", sample.at("root"))]), 0);
    assert!(text.contains("so they have left the cache") && text.contains("what is named has all"), "{text}");
    assert!(sample.is_saved());
    let info = sample.json("info");
    assert_eq!((&info["dirty_blocks"], &info["blocks"]), (&Value::from(0), &Value::from(122 - 31)));
    told(&sample.run("check", &["--data"]), 0);
}

#[test]
fn a_backing_of_another_size_is_not_written() {
    let sample = Sample::new();
    for bytes in [1 << 20, 8 << 20] {
        sample.lab.disk("root", bytes);
        let before = fs::read(sample.lab.path("root")).expect("readable");
        let text = refused(&sample.run("writeback", &[]));
        assert!(
            text.contains(&format!("has {bytes} bytes")) && text.contains("volume root had 1638400"),
            "{text}"
        );
        assert!(fs::read(sample.lab.path("root")).expect("readable") == before);
    }
    fs::remove_file(sample.lab.path("root")).expect("there");
    assert!(refused(&sample.run("writeback", &[])).contains("does not exist"));
    let both = [
        "--volume",
        &format!("root={}", sample.at("data")),
        "--volume",
        &format!("data={}", sample.at("data")),
    ];
    assert!(refused(&sample.run("writeback", &both)).contains("are both to be saved to"));
    assert_eq!(sample.json("info")["dirty_blocks"], Value::from(62));
}

#[test]
fn a_block_that_fails_its_checksum_is_named_and_kept() {
    let sample = Sample::new();
    let harm = format!("data={}", Sample::DIRTY_SLOT);
    sample.harm(&[&harm]);
    let text = told(&sample.run("writeback", &[]), 1);
    let part = format!(
        "block 3 of volume root (at byte 12288) fails its checksum: it stays in slot {}, dirty",
        Sample::DIRTY_SLOT
    );
    assert!(text.contains(&part) && text.contains("1 dirty block (4 KiB) left"), "{text}");
    let json = sample.json("writeback");
    assert_eq!(
        (&json["dirty_blocks_left"], &json["damaged"][0]["block"]),
        (&Value::from(1), &Value::from(3))
    );
    // The same bit again: mended.
    sample.harm(&[&harm]);
    told(&sample.run("writeback", &[]), 0);
    assert_saved(&sample);
}

#[test]
fn a_damaged_cache_is_repaired_first() {
    let sample = Sample::new();
    sample.harm(&["page=1"]);
    let before = sample.bytes();
    let text = refused(&sample.run("writeback", &[]));
    assert!(text.contains("dirty blocks may be lost") && text.contains("larder cache repair"), "{text}");
    assert!(sample.bytes() == before);
}

/// Killed at any moment, again and again: the next run goes on from there.
#[test]
fn it_may_be_killed_and_run_again() {
    let sample = Sample::with(|lab, name| lab.path(name).display().to_string(), false);
    let mut killed = 0;
    for delay in 0..40_u64 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_larder"))
            .args(["cache", "writeback", &sample.at("c")])
            .stdout(Stdio::null())
            .spawn()
            .expect("larder runs");
        sleep(Duration::from_micros(delay * 500));
        child.kill().expect("a child");
        killed += usize::from(!child.wait().expect("a child").success());
        let findings = sample.json("check");
        assert_ne!(findings["worst_finding"], "dirty", "{findings:#}");
    }
    assert!(killed > 0);
    told(&sample.run("writeback", &[]), 0);
    assert_saved(&sample);
}
