//! The units of systemd: they are valid, leave little open, and let the daemon make every system call that it makes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::LIMIT;
use crate::common::daemon::larder;
use crate::common::manager::ServiceManager;
use crate::common::nbd::Client;
use crate::common::process::{program, run, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::wait_for;

/// What `systemd-analyze security` may say at most; 10 is a service without any protection. Half of what is left are sockets, which it is there for.
const EXPOSURE_MAX: f64 = 2.0;

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn service() -> String {
    fs::read_to_string(packaging().join("larder.service")).expect("the unit")
}

/// The units as they will be installed, but for the place of the program.
fn installed(folder: &Path) -> [PathBuf; 2] {
    let program = env!("CARGO_BIN_EXE_larder");
    let service_file = folder.join("larder.service");
    fs::write(&service_file, service().replace("/usr/bin/larder", program)).expect("a copy");
    let socket = folder.join("larder.socket");
    fs::copy(packaging().join("systemd/larder.socket"), &socket).expect("a copy");
    [service_file, socket]
}

#[test]
fn systemd_understands_the_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = run_within(
        LIMIT,
        program("systemd-analyze").args(["verify", "--man=no"]).args(installed(folder.path())),
        folder.path(),
    );
    let own: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("larder")).collect();
    assert!(outcome.status.success() && own.is_empty(), "{}", outcome.stderr);
}

#[test]
fn the_service_leaves_little_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let [service, _] = installed(folder.path());
    let said = run(
        program("systemd-analyze").args(["security", "--offline=true", "--no-pager"]).arg(service),
        folder.path(),
    );
    let level =
        said.lines().last().and_then(|line| line.split(':').nth(1)?.split_whitespace().next()?.parse().ok());
    let level: f64 = level.unwrap_or_else(|| panic!("no level in {said}"));
    assert!(level <= EXPOSURE_MAX, "{said}");
}

/// The members of a set of system calls, or the call itself.
fn members(name: &str, folder: &Path) -> BTreeSet<String> {
    if !name.starts_with('@') {
        return [name.to_owned()].into();
    }
    let listed = run(program("systemd-analyze").args(["syscall-filter", "--no-pager", name]), folder);
    let below =
        listed.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    below.flat_map(|name| members(name, folder)).collect()
}

/// What the unit lets through: its lines, in their order. The first one decides that it is a list of what is allowed.
fn allowed(folder: &Path) -> BTreeSet<String> {
    let service = service();
    let mut calls = members("@default", folder);
    for line in service.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let names = line.trim_start_matches('~').split(' ').flat_map(|name| members(name, folder));
        match line.starts_with('~') {
            true => names.for_each(|name| _ = calls.remove(&name)),
            false => calls.extend(names),
        }
    }
    calls
}

/// Names of system calls in a trace.
fn made(trace: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let name = call.split_once('(')?.0;
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then(|| name.to_owned())
    };
    trace.lines().filter_map(name).collect()
}

/// A daemon's whole life under `strace`: start, NBD and a hypervisor's socket, control socket, reload, watchdog, the end with a hand-over, the next start.
#[test]
fn every_system_call_is_allowed() {
    let manager = ServiceManager::new().with_watchdog(Duration::from_millis(200));
    let setup = Setup::new("4MiB").control("socket_group = \"root\"").control("epoch = \"1s\"");
    let mut setup = setup.tenant("a", "write_policy = \"wb\"").volume("a0", 8 * MIB).disk("a1", MIB);
    let folder = tempfile::tempdir().expect("a folder");
    let mut calls = BTreeSet::new();
    let mut client = None;
    for life in ["first", "second"] {
        let trace = folder.path().join(life);
        let running =
            manager.start_under(setup, &["strace", "-D", "-f", "-q", "-o", &trace.display().to_string()]);
        let client = client.get_or_insert_with(|| Client::connect(&running.socket("a0"), "a0"));
        client.write(0, &vec![1; 64 * BLOCK as usize]).expect("a write");
        client.flush().expect("a flush");
        client.read(0, (64 * BLOCK) as u32).expect("a read");
        run(larder().args(["flush", "a", "--socket"]).arg(running.control_socket()), running.folder());
        run(larder().args(["reload", "--socket"]).arg(running.control_socket()), running.folder());
        running.status();
        setup = running.stop();
        let text = wait_for("the trace is whole", || {
            let text = fs::read_to_string(&trace).expect("a trace");
            if text.contains("+++ exited with 0 +++\n") { Ok(text) } else { Err(trace.display().to_string()) }
        });
        calls.extend(made(&text));
    }
    assert!(
        calls.contains("io_uring_enter") && calls.contains("memfd_create") && calls.len() > 40,
        "{calls:?}"
    );
    let allowed = allowed(folder.path());
    let refused: Vec<&String> = calls.difference(&allowed).collect();
    assert!(refused.is_empty(), "the unit refuses {refused:?}");
}
