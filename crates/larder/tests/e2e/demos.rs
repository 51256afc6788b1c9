//! The demos, and benches of the daemon, each as short as it can be: they still run to their end. What they measure is of no account here.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::disk::is_root;
use crate::common::process::{program, run_within};

/// How long each may take: a minute or two, and far more on a busy machine.
const LIMIT: Duration = Duration::from_secs(500);

/// A demo or a bench, on the command under test.
fn script(path: &str) -> Command {
    let mut python = program("python3");
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path));
    python.args(["--larder", env!("CARGO_BIN_EXE_larder")]);
    python
}

/// Run it in a folder of its own (`{}` in an option): it ends well, and says this at last.
fn ends_well(path: &str, options: &[&str], last: &str) {
    let folder = tempfile::Builder::new().prefix("larder-demo-").tempdir().expect("a temporary folder");
    let place = folder.path().display().to_string();
    let mut script = script(path);
    script.args(options.iter().map(|option| option.replace("{}", &place))).current_dir(folder.path());
    let outcome = run_within(LIMIT, &mut script, folder.path());
    assert!(outcome.status.success() && outcome.stdout.contains(last), "{path}: {outcome:#?}");
}

#[test]
fn the_demo_verifies_every_byte() {
    let options =
        ["--traces={}/none", "--folder={}/out", "--requests=300", "--seconds=6", "--epoch=1", "--cache=4"];
    ends_well("demo/demo.py", &options, "Every byte read was verified");
}

#[test]
fn the_demo_of_the_allocators_runs_one_after_the_other() {
    let options = [
        "--traces={}/none",
        "--folder={}/out",
        "--seconds=6",
        "--ramp=2",
        "--epoch=1",
        "--allocators",
        "larder",
        "eci",
    ];
    ends_well("demo/allocators.py", &options, "Every byte read was verified");
}

#[test]
fn reads_are_measured_beside_the_peers() {
    let options = ["--disk={}", "--rounds=1", "--seconds=1", "--depths", "32", "--scenes", "disk"];
    ends_well("bench/nbd.py", &options, "qemu-nbd native");
}

#[test]
fn writes_are_measured_beside_fio() {
    let options =
        ["--disk={}", "--rounds=1", "--writes=2000", "--flushes", "32", "--no-goals", "--scenes", "dirty"];
    ends_well("bench/writeback.py", &options, "larder's errors: ");
}

#[test]
fn flushes_are_measured_beside_fio() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if is_root(folder.path()) {
        let plugin = run_within(LIMIT, program("nbdkit").args(["--dump-plugin", "python"]), folder.path());
        assert!(plugin.status.success(), "install it: apt-get install nbdkit-plugin-python\n{plugin:#?}");
        ends_well("bench/flushes.py", &["--rounds=1"], "a flush every 32");
    }
}

#[test]
fn many_tenants_are_measured() {
    let options = ["--folder={}", "--idle=20", "--busy=2", "--seconds=2"];
    ends_well("bench/tenants.py", &options, "every idle tenant has read");
}
