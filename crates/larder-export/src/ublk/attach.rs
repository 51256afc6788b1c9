//! From a volume to its device: the one that an earlier daemon left, gone on with, or a new one.
//!
//! This runs in a thread of its own, once: the driver's answers take their time, and it answers some only when the reactor serves the device.

use super::abi::{
    ATTR_FUA, ATTR_READ_ONLY, ATTR_VOLATILE_CACHE, DeviceInfo, F_CMD_IOCTL_ENCODE, F_UPDATE_SIZE,
    F_USER_COPY, F_USER_RECOVERY, F_USER_RECOVERY_REISSUE, PARAM_BASIC, PARAM_DISCARD, Params, STATE_DEAD,
    STATE_LIVE,
};
use super::control::Control;
use super::in_use::is_in_use;
use super::limits::{CLEAR_SECTORS_MAX, DEVICES_MAX, QUEUE_DEPTH, QUEUE_DEPTH_MAX, REQUEST_BYTES_MAX};
use super::mark::Mark;
use larder_engine::SECTOR_BYTES;
use larder_io::VolumeInfo;
use std::cmp::Ordering;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Where the kernel lists the character devices of ublk.
const CHARACTER_DEVICES: &str = "/sys/class/ublk-char";
/// What the driver has to be able to do.
const FEATURES: u64 = F_USER_RECOVERY | F_USER_RECOVERY_REISSUE | F_CMD_IOCTL_ENCODE | F_USER_COPY;
/// How long the kernel may take to let go of a daemon that was killed, and the host to show a new device.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why a volume has no device.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The kernel's module is not loaded, or not there.
    #[error(
        "this host has no /dev/ublk-control: modprobe ublk_drv (Linux 6.5 or later; a container needs the host's device)"
    )]
    NoDriver,
    /// We may not use it.
    #[error(
        "/dev/ublk-control: {0}: the daemon has to be root on the host, not in an unprivileged container"
    )]
    NotAllowed(io::Error),
    /// The driver is older than what we need of it.
    #[error("the kernel's ublk is too old: Linux 6.5 or later is needed")]
    TooOld,
    /// A command to the driver failed.
    #[error("cannot {action}: {source}")]
    Command {
        /// What was tried.
        action: &'static str,
        /// The driver's answer.
        source: io::Error,
    },
    /// Another process serves a device of this volume.
    #[error("/dev/ublkb{id} of this volume is served by process {pid}")]
    Served {
        /// Its number.
        id: u32,
        /// Who serves it.
        pid: i32,
    },
    /// A device of this volume is in use, but it is not what the volume is by now.
    #[error("/dev/ublkb{id} is in use since the volume {}: stop what uses it, unmount it (umount -l if that hangs), then start larder again", change.as_str())]
    Changed {
        /// Its number.
        id: u32,
        /// What is different.
        change: Change,
    },
    /// The reactor could not serve it.
    #[error("cannot serve the device: {0}")]
    Queue(String),
    /// The kernel cannot change the size of a device that is there.
    #[error(
        "the kernel cannot change a block device's size while it is there (Linux 6.16 can): stop what uses it, then restart larder"
    )]
    FixedSize,
    /// No thread to do this.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl UblkError {
    pub(super) fn command(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Command { action, source }
    }
}

/// What is different between a volume and the device that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its backing.
    Backing,
    /// Its size, its sectors, or whether it may be written.
    Shape,
    /// How an older version of Larder, or somebody else, made the device.
    Making,
}

impl Change {
    fn as_str(self) -> &'static str {
        match self {
            Self::Backing => "had another backing",
            Self::Shape => "was larger or had other sectors",
            Self::Making => "was served by another version",
        }
    }
}

/// What is wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub mark: Mark,
    pub info: VolumeInfo,
}

/// A device that waits for its queue to be served.
pub(super) struct Attached {
    pub id: u32,
    pub depth: u16,
    /// Its character device.
    pub file: File,
    /// An earlier daemon made it.
    pub found: bool,
    /// The volume has more by now than it.
    pub outgrown: bool,
}

/// The name of a device among the kernel's disks.
pub(super) fn disk_name(id: u32) -> String {
    format!("ublkb{id}")
}

/// The kernel's path of a device.
pub(super) fn disk_path(id: u32) -> PathBuf {
    Path::new("/dev").join(disk_name(id))
}

/// The driver, if it is there and can do what we need.
pub(super) fn open_control() -> Result<Control, UblkError> {
    let mut control = Control::open().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => UblkError::NoDriver,
        io::ErrorKind::PermissionDenied => UblkError::NotAllowed(error),
        // The node is there, but no driver behind it.
        _ if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => UblkError::NoDriver,
        _ => UblkError::Command { action: "open /dev/ublk-control", source: error },
    })?;
    match control.features() {
        Ok(features) if features & FEATURES == FEATURES => Ok(control),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) => {
            Err(UblkError::NotAllowed(error))
        }
        _ => Err(UblkError::TooOld),
    }
}

/// Change the size of a device that is there.
pub(super) fn resize(id: u32, sectors: u64) -> Result<(), UblkError> {
    let mut control = open_control()?;
    match control.features() {
        Ok(features) if features & F_UPDATE_SIZE != 0 => {
            control.resize(id, sectors).map_err(UblkError::command("change the size of a ublk device"))
        }
        _ => Err(UblkError::FixedSize),
    }
}

/// Find or make the device of a volume, up to where its queue has to be served.
pub(super) fn attach(control: &mut Control, wanted: &Wanted) -> Result<Attached, UblkError> {
    for id in devices() {
        let Ok(info) = control.info(id) else { continue };
        if !wanted.mark.is_namesake(Mark(info.mark)) {
            continue;
        }
        let info = settled(control, info)?;
        if info.state == STATE_LIVE {
            return Err(UblkError::Served { id, pid: info.pid });
        }
        let params = control.params(id).unwrap_or_default();
        match judge(&info, &params, wanted) {
            Verdict::Recover => return recover(control, &info, false),
            Verdict::Outgrown if is_in_use(&disk_name(id)) => return recover(control, &info, true),
            Verdict::Remove | Verdict::Outgrown => {}
            Verdict::Replace(change) if is_in_use(&disk_name(id)) => {
                return Err(UblkError::Changed { id, change });
            }
            Verdict::Replace(_) => {}
        }
        control.delete(id).map_err(UblkError::command("remove an old ublk device"))?;
    }
    create(control, wanted)
}

/// The numbers of all devices.
fn devices() -> Vec<u32> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("ublkc")?.parse().ok();
    let entries = fs::read_dir(CHARACTER_DEVICES).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(number).take(DEVICES_MAX).collect();
    numbers.sort_unstable();
    numbers
}

/// A device as it is once the kernel has noticed that its daemon was killed, if that is so.
fn settled(control: &mut Control, mut info: DeviceInfo) -> Result<DeviceInfo, UblkError> {
    let until = Instant::now() + PATIENCE;
    while info.state == STATE_LIVE && Instant::now() < until {
        thread::sleep(LOOK_EVERY);
        info = control.info(info.id).map_err(UblkError::command("ask about a ublk device"))?;
    }
    Ok(info)
}

/// What is to be done with a device that no daemon serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Go on with it.
    Recover,
    /// Go on with it while it is in use: the volume has all that it has, and more.
    Outgrown,
    /// It never had a disk, or has none any more.
    Remove,
    /// It cannot be gone on with.
    Replace(Change),
}

fn judge(info: &DeviceInfo, params: &Params, wanted: &Wanted) -> Verdict {
    let new = params_of(&wanted.info);
    let shape =
        |params: &Params| (params.logical_shift, params.attributes & ATTR_READ_ONLY, params.virt_boundary);
    if info.state == STATE_DEAD {
        return Verdict::Remove;
    }
    if Mark(info.mark) != wanted.mark {
        return Verdict::Replace(Change::Backing);
    }
    if info.flags & FEATURES != FEATURES
        || info.queues != 1
        || info.depth == 0
        || info.depth > QUEUE_DEPTH_MAX
        || info.io_bytes_max > REQUEST_BYTES_MAX
    {
        return Verdict::Replace(Change::Making);
    }
    match params.sectors.cmp(&new.sectors) {
        _ if shape(params) != shape(&new) => Verdict::Replace(Change::Shape),
        Ordering::Less => Verdict::Outgrown,
        Ordering::Equal => Verdict::Recover,
        Ordering::Greater => Verdict::Replace(Change::Shape),
    }
}

fn recover(control: &mut Control, info: &DeviceInfo, outgrown: bool) -> Result<Attached, UblkError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match control.start_recovery(info.id) {
            Ok(()) => break,
            // The last daemon's files are being closed.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                thread::sleep(LOOK_EVERY);
            }
            Err(source) => return Err(UblkError::Command { action: "go on with a ublk device", source }),
        }
    }
    let file = open(info.id)?;
    Ok(Attached { id: info.id, depth: info.depth, file, found: true, outgrown })
}

fn create(control: &mut Control, wanted: &Wanted) -> Result<Attached, UblkError> {
    let info = DeviceInfo {
        queues: 1,
        depth: QUEUE_DEPTH,
        io_bytes_max: REQUEST_BYTES_MAX,
        flags: FEATURES,
        mark: wanted.mark.0,
        ..DeviceInfo::default()
    };
    let made = control.add(&info).map_err(UblkError::command("add a ublk device"))?;
    let DeviceInfo { id, depth, .. } = made;
    let prepared = control
        .set_params(id, &params_of(&wanted.info))
        .map_err(UblkError::command("describe a ublk device"))
        .and_then(|()| open(id));
    match prepared {
        Ok(file) => Ok(Attached { id, depth, file, found: false, outgrown: false }),
        Err(error) => {
            // The first error is the one to tell.
            let _ = control.delete(id);
            Err(error)
        }
    }
}

/// Open a character device, which the host may have to make first.
fn open(id: u32) -> Result<File, UblkError> {
    let path = format!("/dev/ublkc{id}");
    let until = Instant::now() + PATIENCE;
    loop {
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => return Ok(file),
            Err(_) if Instant::now() < until => thread::sleep(LOOK_EVERY),
            Err(source) => return Err(UblkError::Command { action: "open /dev/ublkcN", source }),
        }
    }
}

/// A volume as the driver describes disks.
fn params_of(info: &VolumeInfo) -> Params {
    let preferred = info.preferred_block.max(info.min_block);
    let (read_only, clear) = if info.read_only { (ATTR_READ_ONLY, 0) } else { (0, PARAM_DISCARD) };
    let logical = info.min_block.max(SECTOR_BYTES as u32).ilog2() as u8;
    let preferred_shift = preferred.max(SECTOR_BYTES as u32).ilog2() as u8;
    let mut params = Params {
        types: PARAM_BASIC | clear,
        attributes: ATTR_VOLATILE_CACHE | ATTR_FUA | read_only,
        logical_shift: logical,
        physical_shift: preferred_shift,
        io_opt_shift: preferred_shift,
        io_min_shift: preferred_shift,
        sectors_max: REQUEST_BYTES_MAX / SECTOR_BYTES as u32,
        sectors: info.bytes / SECTOR_BYTES,
        ..Params::default()
    };
    if !info.read_only {
        params.discard_granularity = preferred;
        params.discard_sectors_max = CLEAR_SECTORS_MAX;
        params.zeroes_sectors_max = CLEAR_SECTORS_MAX;
        params.discard_segments_max = 1;
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: VolumeInfo =
        VolumeInfo { bytes: 1 << 30, min_block: 512, preferred_block: 4096, read_only: false };

    fn wanted() -> Wanted {
        Wanted { mark: Mark::new("root", "/srv/root.img"), info: INFO }
    }

    /// A device as it waits for the next daemon.
    fn waiting() -> (DeviceInfo, Params) {
        let info = DeviceInfo {
            queues: 1,
            depth: QUEUE_DEPTH,
            state: 2,
            io_bytes_max: REQUEST_BYTES_MAX,
            flags: FEATURES,
            mark: wanted().mark.0,
            ..DeviceInfo::default()
        };
        (info, params_of(&INFO))
    }

    #[test]
    fn a_disk_is_what_the_volume_is() {
        let params = params_of(&INFO);
        assert_eq!(params.sectors, 2 << 20);
        assert_eq!((params.logical_shift, params.physical_shift), (9, 12));
        assert_eq!(params.attributes, ATTR_VOLATILE_CACHE | ATTR_FUA);
        assert_eq!(params.discard_granularity, 4096);
        let read_only = params_of(&VolumeInfo { read_only: true, min_block: 4096, ..INFO });
        assert_eq!(read_only.attributes & ATTR_READ_ONLY, ATTR_READ_ONLY);
        assert_eq!(
            (read_only.logical_shift, read_only.types, read_only.discard_sectors_max),
            (12, PARAM_BASIC, 0)
        );
    }

    #[test]
    fn only_what_is_still_the_same_is_gone_on_with() {
        let (info, params) = waiting();
        assert_eq!(judge(&info, &params, &wanted()), Verdict::Recover);
        let dead = DeviceInfo { state: STATE_DEAD, ..info };
        assert_eq!(judge(&dead, &params, &wanted()), Verdict::Remove);
        let other = DeviceInfo { mark: Mark::new("root", "/srv/other.img").0, ..info };
        assert_eq!(judge(&other, &params, &wanted()), Verdict::Replace(Change::Backing));
        let copying = DeviceInfo { flags: FEATURES & !F_USER_COPY, ..info };
        assert_eq!(judge(&copying, &params, &wanted()), Verdict::Replace(Change::Making));
        let queues = DeviceInfo { queues: 2, ..info };
        assert_eq!(judge(&queues, &params, &wanted()), Verdict::Replace(Change::Making));
        for params in [
            Params { sectors: params.sectors + 8, ..params },
            Params { logical_shift: 12, ..params },
            Params { attributes: params.attributes | ATTR_READ_ONLY, ..params },
        ] {
            assert_eq!(judge(&info, &params, &wanted()), Verdict::Replace(Change::Shape));
        }
        let smaller = Params { sectors: params.sectors - 8, ..params };
        assert_eq!(judge(&info, &smaller, &wanted()), Verdict::Outgrown);
        let other = Params { logical_shift: 12, ..smaller };
        assert_eq!(judge(&info, &other, &wanted()), Verdict::Replace(Change::Shape));
    }
}
