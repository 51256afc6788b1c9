//! A sysfs made of files: a disk with two partitions, a mapped device over both of two disks, a loop device.

use std::os::unix::fs::symlink;
use std::slice;

use super::*;

struct Sysfs {
    folder: tempfile::TempDir,
}

impl Sysfs {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("sys/dev/block")).expect("a folder");
        fs::create_dir_all(folder.path().join("proc/self")).expect("a folder");
        Self { folder }
    }

    fn host(&self) -> Host {
        Host { sys: self.folder.path().join("sys"), proc: self.folder.path().join("proc") }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// A device at `place` below `sys/devices`.
    fn device(&self, place: &str, number: &str) -> BlockDevice {
        self.write(&format!("sys/devices/{place}/dev"), &format!("{number}\n"));
        let link = self.folder.path().join("sys/dev/block").join(number);
        symlink(self.folder.path().join("sys/devices").join(place), &link).expect("a link");
        BlockDevice::at(&link).expect("a device")
    }

    fn link(&self, folder: &str, name: &str, place: &str) {
        let folder = self.folder.path().join("sys/devices").join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        symlink(self.folder.path().join("sys/devices").join(place), folder.join(name)).expect("a link");
    }
}

#[test]
fn disks_are_found_under_partitions_and_mapped_devices() {
    let sysfs = Sysfs::new();
    let disk = sysfs.device("pci/nvme0/nvme0n1", "259:0");
    let part = sysfs.device("pci/nvme0/nvme0n1/nvme0n1p1", "259:1");
    sysfs.write("sys/devices/pci/nvme0/nvme0n1/nvme0n1p1/partition", "1\n");
    let other = sysfs.device("pci/sdb", "8:16");
    let mapped = sysfs.device("virtual/dm-0", "253:0");
    sysfs.link("virtual/dm-0/slaves", "nvme0n1p1", "pci/nvme0/nvme0n1/nvme0n1p1");
    sysfs.link("virtual/dm-0/slaves", "sdb", "pci/sdb");
    sysfs.link("pci/nvme0/nvme0n1/nvme0n1p1/holders", "dm-0", "virtual/dm-0");
    let host = sysfs.host();
    assert_eq!(host.disks(&disk), slice::from_ref(&disk));
    assert_eq!(host.disks(&part), slice::from_ref(&disk));
    assert_eq!(host.disks(&mapped), [disk.clone(), other.clone()]);
    assert_eq!(
        (disk.holders(), part.holders(), other.holders()),
        (vec!["dm-0".into()], vec!["dm-0".into()], vec![])
    );
    assert_eq!(disk.path(), Path::new("/dev/nvme0n1"));

    sysfs.write(
        "proc/self/mountinfo",
        "22 1 259:1 / /srv rw - ext4 /dev/nvme0n1p1 rw\n23 1 0:22 / /run rw shared:5 - tmpfs tmpfs rw\n",
    );
    assert_eq!((host.mounts(&disk), host.mounts(&part)), (vec!["/srv".to_owned()], vec!["/srv".to_owned()]));
    assert!(host.mounts(&other).is_empty());
}

#[test]
fn what_the_kernel_tells_is_read_from_the_disk_for_a_partition() {
    let sysfs = Sysfs::new();
    let disk = sysfs.device("pci/sda", "8:0");
    let part = sysfs.device("pci/sda/sda1", "8:1");
    for (file, text) in [
        ("queue/rotational", "1\n"),
        ("queue/logical_block_size", "512\n"),
        ("queue/physical_block_size", "4096\n"),
        ("queue/write_cache", "write back\n"),
        ("ro", "0\n"),
        ("size", "2048\n"),
        ("sda1/alignment_offset", "3584\n"),
        ("sda1/size", "1024\n"),
    ] {
        sysfs.write(&format!("sys/devices/pci/sda/{file}"), text);
    }
    for device in [&disk, &part] {
        assert_eq!((device.is_rotational(), device.has_volatile_cache()), (Some(true), Some(true)));
        assert_eq!((device.logical_sector(), device.physical_sector()), (Some(512), Some(4096)));
    }
    assert_eq!(
        (disk.bytes(), part.bytes(), part.misaligned_bytes()),
        (Some(1 << 20), Some(1 << 19), Some(3584))
    );
    assert_eq!((disk.is_read_only(), disk.misaligned_bytes(), disk.model()), (Some(false), None, None));
}

#[test]
fn files_in_memory_lie_on_no_device() {
    assert_eq!(Host::default().device_of(Path::new("/proc/self/status")), None);
    assert_eq!(Sysfs::new().host().device_of(Path::new("/")), None);
}
