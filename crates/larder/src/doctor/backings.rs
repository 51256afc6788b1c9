//! The backings: are they there, can they be read and written, and do they lie elsewhere than the cache?

use std::fs::OpenOptions;
use std::path::Path;

use larder_daemon::block_device::Host;
use larder_daemon::config::{BackingConfig, Config};
use larder_daemon::units::HumanSize;
use larder_io::{FileDevice, NbdBacking};

use super::findings::Findings;

/// Look; servers are not asked while a daemon `runs`: it is their client, and some take only one.
pub fn look(config: &Config, host: &Host, runs: bool, findings: &mut Findings) {
    findings.begin("backing");
    let disks = |path: &Path| host.device_of(path).map(|device| host.disks(&device)).unwrap_or_default();
    let of_cache = disks(&config.cache.path);
    for volume in config.volumes() {
        let name = format!("volume {}", volume.name);
        match &volume.backing {
            BackingConfig::Nbd(_) if runs => {}
            BackingConfig::Nbd(uri) => match NbdBacking::connect(uri) {
                Ok(server) if server.is_read_only() => {
                    findings.problem(name, format_args!("{uri} is read-only"), "let the server take writes")
                }
                Ok(server) => findings.ok(name, format_args!("{uri} answers: {}", HumanSize(server.bytes()))),
                Err(error) => findings.problem(name, &error, error.remedy()),
            },
            BackingConfig::Path(path) => {
                if let Some(bytes) = there(&name, path, findings) {
                    let shared = disks(path).into_iter().find(|disk| of_cache.contains(disk));
                    match shared {
                        Some(disk) => findings.warning(
                            name,
                            format_args!(
                                "{} and the cache lie on the same disk, {}: what is cached saves nothing",
                                path.display(),
                                disk.path().display()
                            ),
                            "put the cache on an SSD of its own",
                        ),
                        None => findings
                            .ok(name, format_args!("{} is there: {}", path.display(), HumanSize(bytes))),
                    }
                }
            }
        }
    }
}

/// Its size, where it can be used. Opened as the daemon does, and closed.
fn there(name: &str, path: &Path, findings: &mut Findings) -> Option<u64> {
    let judged = FileDevice::open_backing(path).map_err(|error| {
        findings.problem(name, &error, error.remedy());
    });
    let device = judged.ok()?;
    match OpenOptions::new().write(true).open(path) {
        Ok(_) => Some(device.bytes()),
        Err(error) => {
            findings.problem(
                name,
                format_args!("{} cannot be written: {error}", path.display()),
                "run as root, or give it to the user that the daemon runs as",
            );
            None
        }
    }
}
