//! The disks of this host under a path: which they are, and what the kernel tells of them in sysfs.
//!
//! A path leads to a block device, or to a file on one; a partition lies on a disk, a device of the device mapper or of md on several others, a loop device on a file.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{major, minor};

/// Devices upon devices, at most.
const DEPTH_MAX: usize = 16;

/// A block device, as sysfs has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockDevice {
    /// The kernel's name: `nvme0n1`, `sda2`.
    pub name: String,
    /// Its folder in sysfs.
    folder: PathBuf,
}

/// A disk upon which no other block device of this host lies.
pub type Disk = BlockDevice;

/// Where to look: `/sys` and `/proc`, but in tests.
#[derive(Clone, Debug)]
pub struct Host {
    sys: PathBuf,
    proc: PathBuf,
}

impl Default for Host {
    fn default() -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into() }
    }
}

impl Host {
    /// The block device at a path, or that of the file system in which a file (or the folder in which it will be) lies; `None` where there is none, as for a file in memory or
    /// on a server.
    pub fn device_of(&self, path: &Path) -> Option<BlockDevice> {
        let there = path.ancestors().find(|path| path.exists())?;
        let meta = fs::metadata(there).ok()?;
        if meta.file_type().is_block_device() {
            return self.device(major(meta.rdev()), minor(meta.rdev()));
        }
        let (major, minor) = (major(meta.dev()), minor(meta.dev()));
        // File systems over several devices (btrfs) have a number that is no device's.
        self.device(major, minor).or_else(|| self.source_of(major, minor))
    }

    /// The disks under a block device, each once.
    pub fn disks(&self, device: &BlockDevice) -> Vec<Disk> {
        let mut disks = BTreeSet::new();
        self.descend(device, DEPTH_MAX, &mut disks);
        disks.into_iter().collect()
    }

    /// Where the device, or a part of it, is mounted; those that other devices lie on are not looked for.
    pub fn mounts(&self, device: &BlockDevice) -> Vec<String> {
        let numbers: Vec<String> =
            device.parts().iter().chain([device]).filter_map(|part| part.text("dev")).collect();
        let mounts = self.mountinfo();
        mounts.into_iter().filter(|mount| numbers.contains(&mount.device)).map(|mount| mount.place).collect()
    }

    fn device(&self, major: u32, minor: u32) -> Option<BlockDevice> {
        BlockDevice::at(&self.sys.join(format!("dev/block/{major}:{minor}")))
    }

    fn descend(&self, device: &BlockDevice, depth: usize, disks: &mut BTreeSet<Disk>) {
        let below: Vec<BlockDevice> = match depth {
            0 => Vec::new(),
            _ if device.folder.join("partition").exists() => {
                device.folder.parent().and_then(BlockDevice::at).into_iter().collect()
            }
            _ => {
                let file = device.text("loop/backing_file");
                device
                    .entries("slaves")
                    .chain(file.and_then(|file| self.device_of(Path::new(&file))))
                    .collect()
            }
        };
        if below.is_empty() {
            disks.insert(device.clone());
        }
        below.iter().for_each(|device| self.descend(device, depth - 1, disks));
    }

    /// The device that a file system of this number was mounted from.
    fn source_of(&self, fs_major: u32, fs_minor: u32) -> Option<BlockDevice> {
        let number = format!("{fs_major}:{fs_minor}");
        let mount = self.mountinfo().into_iter().find(|mount| mount.device == number)?;
        let meta = fs::metadata(Path::new(&mount.source)).ok()?;
        let is_device = meta.file_type().is_block_device();
        if !is_device {
            return None;
        }
        self.device(major(meta.rdev()), minor(meta.rdev()))
    }

    fn mountinfo(&self) -> Vec<Mount> {
        let text = fs::read_to_string(self.proc.join("self/mountinfo")).unwrap_or_default();
        text.lines().filter_map(Mount::parse).collect()
    }
}

/// A line of `mountinfo`.
struct Mount {
    device: String,
    place: String,
    source: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let (device, place) = (before.next()?, before.nth(1)?);
        let source = after.split(' ').nth(1)?;
        Some(Self { device: device.into(), place: place.into(), source: source.into() })
    }
}

impl BlockDevice {
    /// The device that a link or a folder of sysfs is about.
    fn at(link: &Path) -> Option<Self> {
        let folder = fs::canonicalize(link).ok()?;
        let name = folder.file_name()?.to_str()?.to_owned();
        // Every block device has one.
        folder.join("dev").exists().then_some(Self { name, folder })
    }

    /// Its node.
    pub fn path(&self) -> PathBuf {
        // The kernel writes `!` where a node's name has a slash.
        Path::new("/dev").join(self.name.replace('!', "/"))
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> Option<u64> {
        // In sectors of 512 bytes, whatever those of the device are.
        Some(self.number::<u64>("size")? * 512)
    }

    /// Does it turn? Of a partition this, like the rest of the queue, is its disk's.
    pub fn is_rotational(&self) -> Option<bool> {
        Some(self.queue("rotational")? == "1")
    }

    /// The smallest unit that it can be asked for, in bytes.
    pub fn logical_sector(&self) -> Option<u64> {
        self.queue("logical_block_size")?.parse().ok()
    }

    /// The smallest unit that it writes without reading, in bytes.
    pub fn physical_sector(&self) -> Option<u64> {
        self.queue("physical_block_size")?.parse().ok()
    }

    /// True where what it has taken is lost in a power cut until it is flushed.
    pub fn has_volatile_cache(&self) -> Option<bool> {
        Some(self.queue("write_cache")? == "write back")
    }

    /// How many bytes its beginning is off the boundaries of physical sectors.
    pub fn misaligned_bytes(&self) -> Option<u64> {
        self.number("alignment_offset")
    }

    /// True where it can only be read.
    pub fn is_read_only(&self) -> Option<bool> {
        Some(self.text("ro")? == "1")
    }

    /// Its model, as the disk tells it.
    pub fn model(&self) -> Option<String> {
        self.text("device/model")
    }

    /// The devices that lie on it, or on parts of it: of the device mapper, of md.
    pub fn holders(&self) -> Vec<String> {
        let parts = self.parts();
        parts
            .iter()
            .chain([self])
            .flat_map(|part| part.entries("holders"))
            .map(|device| device.name)
            .collect()
    }

    /// Its partitions.
    fn parts(&self) -> Vec<Self> {
        let is_part = |part: &Self| part.folder.join("partition").exists();
        self.entries("").filter(is_part).collect()
    }

    fn entries(&self, folder: &str) -> impl Iterator<Item = Self> {
        let entries = fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        entries.filter_map(|entry| Self::at(&entry.path()))
    }

    fn queue(&self, name: &str) -> Option<String> {
        let of = |device: &Path| fs::read_to_string(device.join("queue").join(name)).ok();
        Some(of(&self.folder).or_else(|| of(self.folder.parent()?))?.trim().to_owned())
    }

    fn text(&self, name: &str) -> Option<String> {
        Some(fs::read_to_string(self.folder.join(name)).ok()?.trim().to_owned())
    }

    fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests;
