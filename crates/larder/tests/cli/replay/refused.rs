//! What it refuses before anything is touched, with what to do.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{MIB, command, lab, log, replay};

/// What it says on stderr; it must have done nothing.
fn refused(arguments: &[&str]) -> String {
    let lab = lab("W0 D1 R1024");
    fs::write(lab.path("reads.log"), log("R0 R1")).expect("a trace");
    fs::write(lab.path("still.csv"), "5,vm,0,Read,0,512,0\n5,vm,0,Read,0,512,0\n").expect("a trace");
    fs::write(lab.path("odd.img"), [7; 1000]).expect("a disk");
    let before = lab.fingerprint();
    let output = replay(&lab, arguments);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}: {output:?}");
    assert_eq!(lab.fingerprint(), before, "{arguments:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn what_cannot_be_replayed_is_told() {
    for (arguments, what, help) in [
        (
            &["t.log", "--to", "disk.img"][..],
            "error: t.log has 1 writes and 1 discards, which destroy what disk.img holds\n",
            "--destroy-data; or leave out what changes it: --reads-only",
        ),
        (
            &["-", "--to", "disk.img"],
            "error: nobody knows whether stdin writes, which would destroy what disk.img holds\n",
            "--destroy-data",
        ),
        (
            &["t.log", "--to", "disk.img", "--destroy-data"],
            "error: t.log needs 4198400 bytes (4.0 MiB), and disk.img has 4194304 (4 MiB)\n",
            "--wrap",
        ),
        (
            &["still.csv", "--to", "disk.img"],
            "error: still.csv has no times by which it could be replayed\n",
            "--closed 32",
        ),
        (&["t.log", "--to", "none.img", "--destroy-data"], "error: none.img does not exist\n", "truncate -s"),
        (
            &["t.log", "--to", ".", "--destroy-data"],
            "error: . is a directory, not a file or a block device\n",
            "name",
        ),
        (
            &["reads.log", "--to", "odd.img"],
            "error: the size of odd.img, 1000 bytes, is not a multiple of 512\n",
            "pad",
        ),
        (&["reads.log", "--to", "nbds://x/"], "error: nbds://x/: ", "write nbd+unix:///"),
        (
            &["reads.log", "--to", "nbd+unix:///?socket=none"],
            "error: cannot use nbd+unix:",
            "check that the server runs",
        ),
        (&["none.csv", "--to", "disk.img"], "error: none.csv: cannot be opened: ", "name a trace"),
        (
            &["reads.log", "--to", "disk.img", "--volume", "web_1"],
            "error: reads.log has no volume web_1\n",
            "larder trace info reads.log",
        ),
        (
            &["reads.log", "--to", "disk.img", "--json=no/where.json"],
            "error: no/where.json cannot be written: ",
            "name a file",
        ),
        (
            &["t.log", "--to", "disk.img", "--reads-only", "-n", "0"],
            "error: t.log has nothing to replay\n",
            "another trace",
        ),
    ] {
        let told = refused(arguments);
        let (first, last) = told.split_once("help: ").expect("a remedy");
        assert!(first.contains(what) && last.contains(help), "{arguments:?}: {told}");
    }
}

#[test]
fn what_is_asked_wrongly_is_a_usage_error() {
    let lab = lab("R0");
    for (arguments, what) in [
        (&["t.log"][..], "--to <DEVICE|FILE|URI>"),
        (&["t.log", "--to", "disk.img", "--destroy-data", "--reads-only"], "cannot be used with"),
        (&["t.log", "--to", "disk.img", "--verify"], "--destroy-data"),
        (&["t.log", "--to", "disk.img", "--rate", "2", "--depth", "2"], "cannot be used with"),
        (&["t.log", "--to", "disk.img", "--rate", "0x"], "0x is no factor above 0"),
        (&["t.log", "--to", "disk.img", "--closed", "1025"], "1025 is not in 1..=1024"),
    ] {
        let output = replay(&lab, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(what), "{arguments:?}: {told}");
    }
}

#[test]
fn a_file_that_a_daemon_has_is_refused_for_writes() {
    let lab = lab("W0 R0");
    // As a daemon does it.
    let held = File::open(lab.path("disk.img")).expect("a disk");
    held.lock().expect("nobody else has it");
    let output = replay(&lab, &["t.log", "--to", "disk.img", "--destroy-data"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with("error: disk.img is in use by another process\nhelp: find out who"), "{told}");
    let reads = replay(&lab, &["t.log", "--to", "disk.img", "--reads-only"]);
    assert!(reads.status.success(), "{reads:?}");
    // Another test may have begun a process that has the file still.
    held.unlock().expect("it was locked");
    assert!(replay(&lab, &["t.log", "--to", "disk.img", "--destroy-data"]).status.success());
}

/// Where loop devices can be made, which takes root.
#[test]
fn a_block_device_that_is_mounted_is_refused_for_writes() {
    let lab = lab("W0 R0");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output
            .ok()
            .filter(|output| output.status.success())
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    File::create(lab.path("fs.img")).and_then(|file| file.set_len(16 * MIB as u64)).expect("a file");
    let image = lab.path("fs.img").display().to_string();
    let mount = lab.path("mount").display().to_string();
    fs::create_dir(&mount).expect("a folder");
    let Some(device) = run("losetup", &["--find", "--show", &image]) else {
        return assert!(!Path::new("/dev/loop-control").exists() || !is_root(), "losetup fails");
    };
    let held = run("mkfs.ext4", &["-q", &device]).and_then(|_| run("mount", &[&device, &mount]));
    let output = replay(&lab, &["t.log", "--to", &device, "--destroy-data"]);
    let reads = replay(&lab, &["t.log", "--to", &device, "--reads-only"]);
    run("umount", &[&mount]);
    let free = replay(&lab, &["t.log", "--to", &device, "--destroy-data", "--verify"]);
    run("losetup", &["--detach", &device]);
    assert!(held.is_some(), "it cannot be mounted");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        told.lines().next(),
        Some(&*format!("error: {device} is in use by another process")),
        "{output:?}"
    );
    assert!(reads.status.success() && free.status.success(), "{reads:?} {free:?}");
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout == b"0\n")
}

#[test]
fn a_request_behind_the_end_ends_a_piped_trace() {
    let lab = lab("R0");
    fs::write(lab.path("far.log"), log("R0 R1 R1024 R2")).expect("a trace");
    let trace = File::open(lab.path("far.log")).expect("a trace");
    let mut command =
        command(&lab, &["-", "--to", "disk.img", "--reads-only", "--closed", "1", "--json=out.json"]);
    let output = command.stdin(Stdio::from(trace)).output().expect("larder runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.starts_with("error: stdin needs 4198400 bytes"), "{told}");
    let json = fs::read_to_string(lab.path("out.json")).expect("what was done before is told");
    assert!(json.contains("\"requests\": 2"), "{json}");
}
