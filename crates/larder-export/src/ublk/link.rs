//! The name under which a volume's device is found, whatever number the kernel gives it: `/dev/larder/NAME`.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The folder of the names.
pub const LINKS: &str = "/dev/larder";

/// Have the name lead to a device, from one moment to the next.
pub(super) fn make(folder: &Path, name: &str, device: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let link = folder.join(name);
    if fs::read_link(&link).is_ok_and(|now| now == device) {
        return Ok(link);
    }
    // No volume's name begins with a dot.
    let new = folder.join(format!(".{name}.new"));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(device, &new)?;
    fs::rename(&new, &link)?;
    Ok(link)
}

/// Remove the name if it leads to this device.
pub(super) fn remove(folder: &Path, name: &str, device: &Path) {
    let link = folder.join(name);
    if fs::read_link(&link).is_ok_and(|now| now == device) {
        // A name that stays leads nowhere, and is replaced by the next start.
        let _ = fs::remove_file(link);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_its_device() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("larder");
        let (first, second) = (Path::new("/dev/ublkb0"), Path::new("/dev/ublkb7"));
        let link = make(&folder, "root", first).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), first);
        assert_eq!(make(&folder, "root", second).unwrap(), link);
        assert_eq!(fs::read_link(&link).unwrap(), second);
        remove(&folder, "root", first);
        assert_eq!(fs::read_link(&link).unwrap(), second, "another device's name stays");
        remove(&folder, "root", second);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn what_a_killed_daemon_left_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/dev/ublkb1", folder.path().join(".root.new")).unwrap();
        let link = make(folder.path(), "root", Path::new("/dev/ublkb0")).unwrap();
        assert_eq!(fs::read_link(link).unwrap(), Path::new("/dev/ublkb0"));
    }
}
