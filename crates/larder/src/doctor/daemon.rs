//! The daemon: does it answer, and what does it say of itself?

use larder_daemon::config::Config;
use larder_daemon::control_socket::{self, AskError};
use larder_daemon::status::{CacheState, Status, VolumeState, VolumeStatus};
use larder_daemon::units::HumanSize;
use larder_daemon::volumes::lost_help;

use super::findings::Findings;
use crate::number::grouped;

/// Look; true where a daemon runs.
pub fn look(config: &Config, findings: &mut Findings) -> bool {
    findings.begin("daemon");
    let path = &config.control.socket;
    let socket = path.display();
    match control_socket::ask(path, "status") {
        Ok(answer) => {
            match serde_json::from_str::<Status>(&answer) {
                Ok(status) => of_status(&status, findings),
                Err(error) => findings.warning(
                    socket,
                    format_args!("its answer is not understood: {error}"),
                    "use the `larder` of the daemon's version, and look at its log",
                ),
            }
            true
        }
        Err(AskError::Unreachable { source, .. })
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            findings.warning(
                socket,
                format_args!("cannot be asked: {source}"),
                "run as root or as a member of the socket's group",
            );
            // Whatever it is, its devices are not looked at.
            true
        }
        Err(AskError::Unreachable { .. }) => {
            findings.warning(
                socket,
                "no daemon runs",
                format!("larder serve --config {}", "FILE, or systemctl start larder"),
            );
            false
        }
        Err(error @ AskError::NoAnswer { .. }) => {
            findings.problem(socket, &error, error.help());
            true
        }
    }
}

fn of_status(status: &Status, findings: &mut Findings) {
    let Status { version, uptime_seconds, cache, .. } = status;
    let ours = env!("CARGO_PKG_VERSION");
    match version == ours {
        true => findings.ok("larder serve", format_args!("{version} answers, up for {uptime_seconds:.0} s")),
        false => findings.warning(
            "larder serve",
            format_args!("it is {version}, this is {ours}"),
            "restart the daemon with this version",
        ),
    }
    let errors = grouped(cache.errors);
    match cache.state {
        CacheState::Ok => findings.ok("cache device", "in use, without errors"),
        CacheState::Degraded => findings.warning(
            "cache device",
            format_args!("{errors} operations on it have failed"),
            "see dmesg: it may fail altogether",
        ),
        CacheState::Failed => findings.problem(
            "cache device",
            format_args!("given up after errors: {errors}"),
            "see dmesg; bring it back, then `larder cache attach` or wait",
        ),
    }
    if cache.state == CacheState::Ok && status.tenants.iter().any(|tenant| tenant.cache_errors > 0) {
        findings.warning("cache device", "reads of cached blocks have failed", "see dmesg");
    }
    if status.monitor_dropped > 0 {
        let dropped = grouped(status.monitor_dropped);
        findings.warning(
            "analyzer",
            format_args!("{dropped} requests came too fast to be looked at"),
            "decisions rest on the others; a longer control.epoch may help",
        );
    }
    let volumes = status.tenants.iter().flat_map(|tenant| &tenant.volumes);
    volumes.for_each(|volume| of_volume(volume, findings));
}

fn of_volume(volume: &VolumeStatus, findings: &mut Findings) {
    let name = format!("volume {}", volume.name);
    let mut well = true;
    if volume.state == VolumeState::Failed {
        let lost = HumanSize(volume.lost_bytes);
        let help =
            format!("bring the cache device back; `larder status --lost {}` lists the ranges", volume.name);
        findings.problem(
            &name,
            format_args!("not served: only the failed cache device has {lost} of it"),
            help,
        );
        well = false;
    }
    if volume.damaged_blocks > 0 {
        let lost = HumanSize(volume.lost_bytes);
        let message = format!("{lost} are lost: damaged on the cache device, and not on the backing");
        findings.problem(&name, message, lost_help(&volume.name));
        well = false;
    }
    if let Some(problem) = &volume.ublk_problem {
        findings.problem(&name, format_args!("it is no block device: {problem}"), "see docs/ublk.md");
        well = false;
    }
    if let Some(seconds) = volume.backing_failing_seconds {
        let waiting = HumanSize(volume.dirty_bytes);
        let message =
            format!("{} fails for {seconds:.0} s: {waiting} wait to be written back", volume.backing);
        findings.problem(&name, message, "mend the backing: the daemon tries again by itself");
        well = false;
    }
    if volume.slow_cache {
        findings.warning(
            &name,
            "the cache device is slower than the backing: reads pass it by",
            "use a faster cache device, or no cache for this volume",
        );
        well = false;
    }
    if well {
        findings.ok(&name, "served");
    }
}
