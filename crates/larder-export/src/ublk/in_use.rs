//! Whether anybody has a block device open: what is mounted, or otherwise claimed, cannot be opened for oneself alone; other
//! openers are found among the open files of all processes, and loop devices tell what they lie on.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the kernel tells of block devices.
const BLOCK: &str = "/sys/block";

/// True where somebody has the device of this name (such as `ublkb0`), or a partition of it, open; also where that cannot be found out.
pub(super) fn is_in_use(name: &str) -> bool {
    let device = Path::new("/dev").join(name);
    let alone = OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(&device);
    // It is closed again before others are looked for.
    match alone.map(drop) {
        Ok(()) => is_open(&numbers(name)) || is_under_loop(&device),
        // No disk, no user.
        Err(error) => !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENXIO | libc::ENODEV)),
    }
}

/// The numbers of a device and its partitions.
fn numbers(name: &str) -> Vec<u64> {
    let folder = Path::new(BLOCK).join(name);
    let partitions = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let number = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
    };
    [folder.clone()].into_iter().chain(partitions).filter_map(number).collect()
}

/// True where a process has a device with one of these numbers open.
fn is_open(numbers: &[u64]) -> bool {
    let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter(|entry| is_process(&entry.file_name()));
    // A process that ends meanwhile has nothing open.
    let mut files =
        processes.flat_map(|entry| fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten());
    files.any(|file| {
        fs::metadata(file.path())
            .is_ok_and(|file| file.file_type().is_block_device() && numbers.contains(&file.rdev()))
    })
}

fn is_under_loop(device: &Path) -> bool {
    let lies_on = |entry: io::Result<fs::DirEntry>| {
        let told = fs::read_to_string(entry.ok()?.path().join("loop/backing_file")).ok()?;
        let rest = told.trim().strip_prefix(device.to_str()?)?;
        // A partition's name is its device's with a number.
        Some(rest.is_empty() || rest.starts_with('p'))
    };
    fs::read_dir(BLOCK).into_iter().flatten().filter_map(lies_on).any(|lies| lies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_in_use() {
        assert!(!is_in_use("ublkb4294967295"));
    }

    #[test]
    fn nobody_has_a_device_without_a_number() {
        assert!(!is_open(&[]));
    }
}
