//! The kernel: its version, io_uring, ublk where it is wanted, the limits of a process.

use std::fs;
use std::path::Path;

use larder_daemon::config::Config;
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;

use super::findings::Findings;

/// Descriptors that a volume takes, about: backing, sockets, event counters of queues, connections.
const FILES_PER_VOLUME: u64 = 32;
/// And the rest of the daemon.
const FILES_BESIDE: u64 = 256;

/// Look; without a configuration nothing is wanted but the ring.
pub fn look(config: Option<&Config>, findings: &mut Findings) {
    findings.begin("kernel");
    let uname = uname();
    let release = uname.release().to_string_lossy();
    match larder_io::ring_works() {
        Ok(()) => findings.ok("io_uring", format_args!("works (Linux {release})")),
        Err(error) => findings.problem(
            "io_uring",
            format_args!("cannot be used (Linux {release}): {error}"),
            ring_help(),
        ),
    }
    let Some(config) = config else { return };
    if config.volumes().any(|volume| volume.ublk) {
        ublk(findings);
    }
    let wanted = FILES_BESIDE + FILES_PER_VOLUME * config.volumes().count() as u64;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    match limit < wanted {
        true => findings.warning(
            "open files",
            format_args!(
                "a daemon started from here may have {limit}, and {wanted} may be needed for these volumes"
            ),
            format!("ulimit -n {wanted}, or LimitNOFILE={wanted} in the daemon's unit"),
        ),
        false => findings.ok("open files", format_args!("a daemon started from here may have {limit}")),
    }
}

fn ring_help() -> String {
    let sysctl = "/proc/sys/kernel/io_uring_disabled";
    match fs::read_to_string(sysctl).map(|text| text.trim().to_owned()).as_deref() {
        Ok("0") | Err(_) => {
            "use Linux 6.1 or later; in a container, allow io_uring in its seccomp profile".into()
        }
        Ok(value) => format!("{sysctl} is {value}: sysctl kernel.io_uring_disabled=0"),
    }
}

fn ublk(findings: &mut Findings) {
    let control = Path::new("/dev/ublk-control");
    match fs::OpenOptions::new().read(true).write(true).open(control) {
        Ok(_) => findings.ok("ublk", "block devices of the host can be made"),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            findings.problem("ublk", format_args!("{}: {error}", control.display()), "run as root")
        }
        Err(error) => findings.problem(
            "ublk",
            format_args!("no block device of the host can be made: {}: {error}", control.display()),
            "modprobe ublk_drv (Linux 6.5 or later), or take `ublk = true` away and use nbd or vhost_user",
        ),
    }
}
