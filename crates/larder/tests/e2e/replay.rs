//! `larder replay` on NBD exports: the daemon itself, and `nbdkit` as servers that are good, fail, lose writes and misplace them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::common::LIMIT;
use super::common::nbdkit::nbdkit;
use super::common::process::{Outcome, run_within};
use super::common::setup::{MIB, Setup};

/// Half reads and half writes of blocks of 4 KiB, on 4 MiB.
const LOAD: &str = "gen:uniform:blocks=1024,requests=6000,read=0.5,seed=11";

fn replay(folder: &Path, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("replay").args(arguments).args(["--destroy-data", "--verify", "--json"]);
    run_within(LIMIT, &mut command, folder)
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

fn number(told: &Value, path: &str) -> u64 {
    told.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {told:#}"))
}

/// All well, and everything checked.
fn assert_well(outcome: &Outcome) {
    assert!(outcome.status.success(), "{outcome:?}");
    let told = json(outcome);
    assert_eq!(number(&told, "/reads/requests") + number(&told, "/writes/requests"), 6000);
    assert_eq!(number(&told, "/reads/errors") + number(&told, "/writes/errors"), 0);
    assert!(number(&told, "/verification/checked_sectors") > 8000, "{told:#}");
    assert!(number(&told, "/verification/read_back_sectors") > 7000, "{told:#}");
    assert_eq!(number(&told, "/verification/wrong_sectors"), 0);
}

#[test]
fn a_volume_keeps_what_a_replay_writes() {
    for policy in ["wt", "wb"] {
        let keys = format!("write_policy = \"{policy}\"");
        let larder = Setup::new("16MiB").tenant("t", &keys).volume("v", 4 * MIB).start();
        let folder = larder.folder().to_owned();
        let uri = larder.uri("v");
        assert_well(&replay(&folder, &[LOAD, "--to", &uri, "--closed", "32", "--flush-every", "100"]));
        assert_well(&replay(&folder, &[LOAD, "--to", &uri, "--rate", "100x"]));
    }
}

#[test]
fn a_good_server_passes() {
    let setup = Setup::new("16MiB");
    let (_server, uri) = nbdkit(&setup, "good", &["memory", "4M"]);
    assert_well(&replay(setup.folder(), &[LOAD, "--to", &uri, "--closed", "16"]));
}

#[test]
fn a_server_that_fails_is_told() {
    let setup = Setup::new("16MiB");
    let arguments = ["--filter=error", "memory", "4M", "error=EIO", "error-pwrite-rate=10%"];
    let (_server, uri) = nbdkit(&setup, "failing", &arguments);
    let outcome = replay(setup.folder(), &[LOAD, "--to", &uri, "--closed", "16"]);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    let told = json(&outcome);
    let errors = number(&told, "/writes/errors");
    assert!((1..3000).contains(&errors) && number(&told, "/reads/errors") == 0, "{told:#}");
    assert_eq!(number(&told, "/verification/wrong_sectors"), 0, "what failed is not checked");
    let expected =
        format!("error: {errors} requests to {uri} failed; the first was a write of 4 KiB at byte ");
    assert!(outcome.stderr.contains(&expected), "{}", outcome.stderr);
}

/// A server over the file `name.img` whose writes go through a shell script: `$3` is their length, `$4` their offset.
fn scripted(setup: &Setup, name: &str, pwrite: &str) -> (super::common::process::Background, String) {
    let disk = setup.sparse_file(name, 4 * MIB);
    let (read, write) = (
        format!("pread=dd if={disk} iflag=skip_bytes,count_bytes skip=$4 count=$3 2>/dev/null"),
        format!(
            "pwrite=put() {{ dd of={disk} oflag=seek_bytes seek=$1 conv=notrunc 2>/dev/null; }}; {pwrite}"
        ),
    );
    let arguments = ["eval", "get_size=echo 4194304", "thread_model=echo serialize_requests", &read, &write];
    nbdkit(setup, name, &arguments)
}

#[test]
fn what_a_server_does_wrong_is_found() {
    for (name, pwrite, found) in [
        ("honest", "put $4", None),
        ("lossy", "if [ $4 -eq 28672 ]; then cat >/dev/null; else put $4; fi", Some("found zeroes")),
        ("astray", "if [ $4 -eq 28672 ]; then put 4096; else put $4; fi", Some("found what write ")),
        (
            "garbling",
            "if [ $4 -eq 28672 ]; then LC_ALL=C tr l L | put $4; else put $4; fi",
            Some("found no stamp, but bytes that begin with 4c 61 72 64"),
        ),
    ] {
        let setup = Setup::new("16MiB");
        let (_server, uri) = scripted(&setup, name, pwrite);
        let load = "gen:sequential:blocks=16,requests=16,read=0";
        let outcome = replay(setup.folder(), &[load, "--to", &uri, "--closed", "4", "--seed", "3"]);
        match found {
            None => assert!(outcome.status.success(), "{name}: {outcome:?}"),
            Some(found) => {
                assert_eq!(outcome.status.code(), Some(1), "{name}: {outcome:?}");
                assert!(outcome.stderr.contains("do not hold what was written:\n"), "{name}: {outcome:?}");
                assert!(outcome.stderr.contains(found), "{name}: {outcome:?}");
                assert!(number(&json(&outcome), "/verification/wrong_sectors") >= 8, "{name}: {outcome:?}");
            }
        }
    }
}

#[test]
fn a_read_only_export_is_refused_for_writes() {
    let setup = Setup::new("16MiB");
    let (_server, uri) = nbdkit(&setup, "fixed", &["--readonly", "memory", "4M"]);
    let outcome = replay(setup.folder(), &[LOAD, "--to", &uri, "--closed", "4"]);
    let expected = format!("error: {uri} is read-only\nhelp: let the server take writes");
    assert!(outcome.status.code() == Some(1) && outcome.stderr.contains(&expected), "{outcome:?}");
}
