//! What tells the backing of a volume from any other, over restarts: the identity that a cache which is kept has for each volume.
//!
//! What is cached of a volume may be used again only if its backing still is the same disk. A path alone does not tell: a
//! file is replaced by a restored one of the same name and size, `/dev/sdb` is another disk after a reboot. So an identity has two parts:
//! the path or URI as configured, and in brackets what the system knows of the disk behind it:
//!
//! | backing | identity |
//! | --- | --- |
//! | file | `/srv/db.img [inode 1234, made 1700000000.123456789]`; without `made` where the file system does not tell it |
//! | block device | `/dev/sdb [wwid naa.5000c500a1b2c3d4]`: the first of the device mapper's UUID, WWID, serial number and a loop device's file that there is; of a partition its disk's, and its number. `[device]` where there is nothing of the kind: then the path has to name the disk (`/dev/disk/by-id/…`) |
//! | NBD export | the URI |

use crate::Backing;
use crate::file::FileDevice;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Files of a block device in sysfs that name the disk, best first.
const NAMES: [(&str, &str); 7] = [
    ("dm/uuid", "dm"),
    ("md/uuid", "md"),
    ("wwid", "wwid"),
    ("device/wwid", "wwid"),
    ("serial", "serial"),
    ("device/serial", "serial"),
    ("loop/backing_file", "loop"),
];

/// The path or URI of the backing that an identity is of.
pub fn backing_of(identity: &str) -> &str {
    match identity.rsplit_once(" [") {
        Some((backing, _)) if identity.ends_with(']') => backing,
        _ => identity,
    }
}

/// True if one disk has both identities, by whatever path.
pub fn is_same_disk(one: &str, other: &str) -> bool {
    let disk = |identity: &str| match identity.rsplit_once(" [") {
        Some((_, disk)) if disk.ends_with(']') && disk != "device]" => Some(disk.to_owned()),
        _ => None,
    };
    match (disk(one), disk(other)) {
        (Some(one), Some(other)) => one == other,
        // Here only the path tells; earlier versions kept nothing else.
        _ => backing_of(one) == backing_of(other),
    }
}

impl Backing {
    /// What tells it from any other backing, over restarts ([`backing_of`] has its first part).
    pub fn identity(&self) -> String {
        match self {
            Self::File(file) => file.identity(),
            Self::Nbd(nbd) => nbd.uri().to_string(),
        }
    }
}

impl FileDevice {
    fn identity(&self) -> String {
        of_file(self.path(), self.file(), self.is_block_device())
    }
}

/// The identity of a file or block device.
pub(crate) fn of_file(path: &Path, file: &fs::File, is_block_device: bool) -> String {
    let disk = match file.metadata() {
        Ok(metadata) if is_block_device => device(metadata.rdev()),
        Ok(metadata) => inode(&metadata),
        Err(_) => "unknown".into(),
    };
    format!("{} [{disk}]", path.display())
}

/// Inodes are used again once their files are gone, so the time of birth belongs to it.
fn inode(metadata: &fs::Metadata) -> String {
    let made = metadata.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let made =
        made.map_or(String::new(), |made| format!(", made {}.{:09}", made.as_secs(), made.subsec_nanos()));
    format!("inode {}{made}", metadata.ino())
}

fn device(number: libc::dev_t) -> String {
    let (major, minor) = (libc::major(number), libc::minor(number));
    let sysfs = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition's directory is in its disk's.
    let partition = line(&sysfs.join("partition"));
    let disk = if partition.is_some() { sysfs.join("..") } else { sysfs };
    let name =
        NAMES.iter().find_map(|(file, kind)| line(&disk.join(file)).map(|name| format!("{kind} {name}")));
    match (name, partition) {
        (Some(name), Some(partition)) => format!("{name}, partition {partition}"),
        (Some(name), None) => name,
        (None, _) => "device".into(),
    }
}

/// The text of a small file, if there is any.
fn line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(path: &Path) -> String {
        Backing::File(FileDevice::open_backing(path).unwrap()).identity()
    }

    #[test]
    fn a_file_is_itself_and_no_other_of_its_name() {
        for place in [".", "/dev/shm"] {
            let directory = tempfile::tempdir_in(place).unwrap();
            let (path, other) = (directory.path().join("a [b].img"), directory.path().join("other"));
            let create = |path: &Path| fs::write(path, [1; 8192]).unwrap();
            create(&path);
            let first = identity(&path);
            fs::write(&path, [2; 4096]).unwrap();
            assert_eq!(identity(&path), first, "written to, it is the same disk");
            assert_eq!(backing_of(&first), path.display().to_string());
            create(&other);
            fs::rename(&other, &path).unwrap();
            assert_ne!(identity(&path), first);
        }
    }

    #[test]
    fn a_disk_is_the_same_by_another_path() {
        let same = [
            ("/a [inode 7, made 1.2]", "/b [inode 7, made 1.2]"),
            ("/dev/sda [wwid x]", "/dev/disk/by-id/x [wwid x]"),
            ("/dev/sda [device]", "/dev/sda [device]"),
            ("/a", "/a [inode 7, made 1.2]"),
            ("nbd://h/x", "nbd://h/x"),
        ];
        assert!(same.iter().all(|(one, other)| is_same_disk(one, other) && is_same_disk(other, one)));
        let different = [
            ("/a [inode 7, made 1.2]", "/a [inode 7, made 1.3]"),
            ("/dev/sda [device]", "/dev/sdb [device]"),
            ("nbd://h/x", "/dev/nbd0 [device]"),
        ];
        assert!(!different.iter().any(|(one, other)| is_same_disk(one, other)));
    }

    #[test]
    fn what_has_no_second_part_is_all_path() {
        for text in ["nbd://10.0.0.1:10809/disk", "/srv/db [1", "/srv/[db]"] {
            assert_eq!(backing_of(text), text);
        }
    }
}
