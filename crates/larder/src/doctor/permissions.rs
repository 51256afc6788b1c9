//! The sockets: are their folders there and writable, is the group known?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use larder_daemon::config::{Config, SocketGroup};
use larder_export::{ListenAddress, group_id};
use rustix::fs::{Access, access};

use super::findings::Findings;

/// Look.
pub fn look(config: &Config, runs: bool, findings: &mut Findings) {
    findings.begin("permissions");
    if let Some(group @ SocketGroup::Name(name)) = &config.control.socket_group {
        match group_id(name) {
            Ok(Some(number)) => {
                findings.ok(format_args!("group {group}"), format_args!("is number {number}"))
            }
            Ok(None) => findings.problem(
                format_args!("group {group}"),
                "there is no such group",
                format!("groupadd --system {name}, or set another control.socket_group"),
            ),
            Err(error) => findings.problem(
                format_args!("group {group}"),
                format_args!("cannot be looked up: {error}"),
                "try again",
            ),
        }
    }
    for folder in folders(config) {
        let shown = &folder.display();
        match access(&folder, Access::EXISTS).and_then(|()| access(&folder, Access::WRITE_OK)) {
            Ok(()) => findings.ok(shown, "sockets can be made there"),
            Err(rustix::io::Errno::NOENT) => findings.problem(
                shown,
                "this folder for sockets is not there",
                format!("mkdir -p {}", folder.display()),
            ),
            Err(rustix::io::Errno::ROFS) => findings.problem(
                shown,
                "no socket can be made there: the file system is read-only",
                "mount it so that it can be written (mount -o remount,rw), or name another folder",
            ),
            // Whoever runs this is not who runs the daemon.
            Err(error) if runs => findings
                .ok(shown, format_args!("not for this user ({error}), and the daemon has its sockets")),
            Err(error) => findings.problem(
                shown,
                format_args!("no socket can be made there: {error}"),
                "run as root, or as the user that the daemon runs as",
            ),
        }
    }
}

/// Where sockets are made.
fn folders(config: &Config) -> BTreeSet<PathBuf> {
    let nbd = config.volumes().filter_map(|volume| volume.nbd.clone());
    let addresses = nbd.chain(config.volumes().filter_map(|volume| volume.vhost_address()));
    let paths = addresses.filter_map(|address| match address {
        ListenAddress::Unix(path) => Some(path),
        ListenAddress::Tcp(_) => None,
    });
    let folder = |path: PathBuf| path.parent().map(Path::to_path_buf);
    paths.chain([config.control.socket.clone()]).filter_map(folder).collect()
}
