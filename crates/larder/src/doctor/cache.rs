//! The cache device: is it there, is it what a cache should lie on, and what is its state?

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use larder_daemon::block_device::{BlockDevice, Host};
use larder_daemon::config::{CacheConfig, Config};
use larder_daemon::last_cache;
use larder_daemon::units::HumanSize;
use larder_engine::format::Recovered;
use larder_io::{CacheError, CachePlan, CacheSpec};
use rustix::fs::StatVfsMountFlags;

use super::findings::Findings;
use crate::cache::state::State;
use crate::number::grouped;

/// Look; what it holds is not looked at while a daemon `runs`.
pub fn look(config: &Config, host: &Host, runs: bool, findings: &mut Findings) {
    findings.begin("cache");
    let CacheConfig { path, size_bytes, .. } = &config.cache;
    let shown = &path.display();
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => absent(path, *size_bytes, findings),
        Err(error) => {
            return findings.problem(shown, error, "run as root, or as the user that the daemon runs as");
        }
        Ok(meta) if meta.file_type().is_block_device() => {
            if let Some(device) = host.device_of(path) {
                whole(path, *size_bytes, &device, host, runs, findings);
            }
        }
        Ok(meta) if meta.is_file() => file(path, &meta, findings),
        Ok(_) => {
            return findings.problem(
                shown,
                "neither a file nor a block device",
                "set cache.path to one of these",
            );
        }
    }
    match host.device_of(path) {
        Some(device) => disks(path, &device, host, findings),
        None => findings.warning(
            shown,
            "lies on no block device of this host",
            "in memory it is gone with the host's power; on a server every hit crosses the network",
        ),
    }
    if !runs {
        state(config, findings);
    }
    if config.cache.keep {
        last(config, findings);
    }
}

fn absent(path: &Path, size: u64, findings: &mut Findings) {
    let shown = &path.display();
    let folder = path.parent().filter(|folder| folder.is_dir());
    let Some(space) = folder.and_then(|folder| rustix::fs::statvfs(folder).ok()) else {
        return findings.problem(
            shown,
            "its folder is not there",
            format!("mkdir -p {}", path.parent().unwrap_or(path).display()),
        );
    };
    if path.starts_with("/dev") {
        return findings.problem(
            shown,
            "there is no such device",
            "lsblk lists the block devices: set cache.path to one of them",
        );
    }
    if space.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return findings.problem(
            shown,
            "not there yet, and its folder is on a read-only file system",
            "mount it so that it can be written: mount -o remount,rw; where errors made it read-only, dmesg says so",
        );
    }
    let free = space.f_bavail * space.f_frsize;
    match free < size {
        true => findings.problem(
            shown,
            format_args!("not there yet, and only {} are free for {}", HumanSize(free), HumanSize(size)),
            "make room, or set a smaller cache.size",
        ),
        false => findings.ok(shown, "not there yet: made by the first start"),
    }
}

fn file(path: &Path, meta: &fs::Metadata, findings: &mut Findings) {
    let shown = &path.display();
    let (bytes, allocated) = (meta.len(), meta.blocks() * 512);
    match allocated < bytes {
        true => findings.warning(
            shown,
            format_args!(
                "sparse: {} of {} are allocated, so writes fail when the file system is full",
                HumanSize(allocated),
                HumanSize(bytes)
            ),
            format!("fallocate -l {bytes} {shown}"),
        ),
        false => findings.ok(shown, format_args!("a file of {}, all of it allocated", HumanSize(bytes))),
    }
    direct(path, findings);
}

/// A block device of its own.
fn whole(path: &Path, size: u64, device: &BlockDevice, host: &Host, runs: bool, findings: &mut Findings) {
    let shown = &path.display();
    match device.bytes() {
        Some(bytes) if bytes < size => findings.problem(
            shown,
            format_args!("has {}, and cache.size is {}", HumanSize(bytes), HumanSize(size)),
            "set a smaller cache.size, or use a larger device",
        ),
        bytes => findings.ok(shown, format_args!("a block device of {}", HumanSize(bytes.unwrap_or(0)))),
    }
    let (mounts, holders) = (host.mounts(device), device.holders());
    let users = mounts.iter().map(|place| format!("mounted on {place}"));
    let users: Vec<_> = users.chain(holders.iter().map(|holder| format!("part of {holder}"))).collect();
    if !users.is_empty() {
        findings.problem(
            shown,
            format_args!("in use: {}", users.join(", ")),
            "unmount it, or name another device: all that is on a cache device is overwritten",
        );
    }
    if device.is_read_only() == Some(true) {
        findings.problem(shown, "read-only", "blockdev --setrw, or another device");
    }
    match (device.misaligned_bytes(), device.physical_sector()) {
        (Some(off), Some(sector)) if off > 0 => findings.warning(shown, format_args!("begins {off} bytes off its disk's sectors of {sector} bytes: each write of a block writes two of them"), "make the partition anew, aligned to 1 MiB (parted -a optimal)"),
        _ => {}
    }
    if !runs {
        direct(path, findings);
    }
}

fn direct(path: &Path, findings: &mut Findings) {
    let shown = &path.display();
    match larder_io::refuses_direct(path) {
        Ok(false) => findings.ok(shown, "can be read and written past the page cache (O_DIRECT)"),
        Ok(true) => findings.warning(
            shown,
            "its file system refuses O_DIRECT: hits are copied twice, and held in memory as well",
            "put it on ext4, xfs or a block device of its own",
        ),
        Err(error) => findings.problem(
            shown,
            format_args!("cannot be opened: {error}"),
            "run as root, or as the user that the daemon runs as",
        ),
    }
}

/// What it lies on in the end.
fn disks(path: &Path, device: &BlockDevice, host: &Host, findings: &mut Findings) {
    for disk in host.disks(device) {
        let node = disk.path();
        let model = disk.model().map(|model| format!(" ({model})")).unwrap_or_default();
        let shown = format!("{}{model}", node.display());
        match disk.is_rotational() {
            Some(true) => findings.warning(
                &shown,
                format_args!(
                    "it says that it turns, and {} lies on it: such a cache is no faster than a backing",
                    path.display()
                ),
                "put the cache on an SSD; a virtual disk may say so of itself wrongly",
            ),
            _ => {
                let flushes = match disk.has_volatile_cache() {
                    Some(true) => "has a volatile write cache, which is flushed where it must be",
                    _ => "has no volatile write cache: flushes cost little",
                };
                let sectors = (disk.logical_sector().unwrap_or(0), disk.physical_sector().unwrap_or(0));
                findings.ok(
                    &shown,
                    format_args!(
                        "does not turn; sectors of {} bytes ({} physical); {flushes}",
                        sectors.0, sectors.1
                    ),
                );
            }
        }
    }
}

/// Would a start notice that the file system of the cache is not mounted?
fn last(config: &Config, findings: &mut Findings) {
    let file = last_cache::place(config);
    let folder = file.parent().unwrap_or(&file);
    let beside = config.cache.path.parent().unwrap_or(&config.cache.path);
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    let is_root = device(beside) == device(Path::new("/"));
    if device(folder).is_some() && device(folder) == device(beside) && !is_root {
        findings.warning(
            file.display(),
            "lies on the cache's own file system: where that is not mounted nothing says which cache was used last, and a start makes a new one",
            "give `loss_file` in [control] on another file system, such as /var/lib/larder/cache.loss.json",
        );
    }
}

/// What a start would find.
fn state(config: &Config, findings: &mut Findings) {
    let CacheConfig { path, size_bytes: size, block_bytes, keep, .. } = config.cache.clone();
    let shown = path.display().to_string();
    if !path.exists() {
        return missing(config, None, &shown, findings);
    }
    let spec = CacheSpec { path, size, block_bytes };
    let look = if keep { CachePlan::check_kept } else { CachePlan::check };
    match look(spec) {
        Ok(plan) => {
            match plan.recovered().map(State::new) {
                Some(state) => findings.ok(
                    &shown,
                    format_args!(
                        "holds {} blocks that a start goes on with, {} of them dirty",
                        grouped(state.blocks),
                        grouped(state.dirty_blocks)
                    ),
                ),
                None => findings.ok(&shown, "a start makes it anew, cold"),
            }
            missing(config, plan.recovered(), &shown, findings);
        }
        Err(error @ CacheError::InUse { .. }) => findings.problem(shown, &error, error.remedy()),
        Err(error) => findings.problem(shown, &error, error.remedy()),
    }
}

/// A start does not do without a cache that may have dirty blocks, nor with one that was not used last.
fn missing(config: &Config, found: Option<&Recovered>, shown: &str, findings: &mut Findings) {
    match last_cache::missing(config, found) {
        Ok(None) => {}
        Ok(Some(missing)) => findings.problem(shown, &missing, missing.help()),
        Err(error) => findings.problem(shown, &error, error.help()),
    }
}
