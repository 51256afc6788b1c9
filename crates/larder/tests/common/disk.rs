//! An export as a disk of this host: a loop device over `nbdfuse`, and file systems on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use super::fsck;
use super::process::{Background, program, run};
use super::setup::Setup;
use super::{LIMIT, wait_for};

/// How often a layer is tried to be undone after a failure.
const TRIES: usize = 40;

/// Loop devices and mounts need root. Without it, a test fails in CI (`CI` is set there), and is left out elsewhere.
pub fn is_root(folder: &Path) -> bool {
    let is_root = run(program("id").arg("-u"), folder).trim() == "0";
    assert!(
        is_root || std::env::var_os("CI").is_none(),
        "this test mounts a file system: CI has to run it as root"
    );
    if !is_root {
        eprintln!("left out: this test mounts a file system, which takes root");
    }
    is_root
}

/// The layers between an export and a file system's files: taken down last first, however the test ends.
pub struct Disk {
    /// The loop device.
    pub device: String,
    mount_point: PathBuf,
    undo: Vec<Command>,
    nbdfuse: Background,
}

impl Disk {
    /// The export at this URI as a loop device. `name` is of its own in the setup's folder.
    pub fn attach(setup: &Setup, name: &str, uri: &str) -> Self {
        let (fuse, mount_point) = (setup.path(&format!("{name}.fuse")), setup.path(&format!("{name}.mount")));
        for folder in [&fuse, &mount_point] {
            fs::create_dir_all(folder).expect("a mount point");
        }
        let file = fuse.join("disk");
        let mut nbdfuse = program("nbdfuse");
        nbdfuse.arg(&file).arg(uri);
        let nbdfuse = Background::start(&mut nbdfuse, &setup.path(&format!("{name}.nbdfuse.log")));
        let mut disk = Self { device: String::new(), mount_point, undo: Vec::new(), nbdfuse };
        wait_for("nbdfuse", || file.exists().then_some(()).ok_or_else(|| disk.nbdfuse.log()));
        disk.undo_later("fusermount3", &["-u", &fuse.display().to_string()]);
        let mut losetup = program("losetup");
        losetup.args(["--direct-io=on", "--find", "--show"]).arg(&file);
        disk.device = run(&mut losetup, setup.folder()).trim().to_owned();
        let device = disk.device.clone();
        disk.undo_later("losetup", &["-d", &device]);
        disk
    }

    fn undo_later(&mut self, name: &str, arguments: &[&str]) {
        let mut command = program(name);
        command.args(arguments);
        self.undo.push(command);
    }

    /// Mount the file system; where it is.
    pub fn mount(&mut self, setup: &Setup) -> PathBuf {
        run(program("mount").arg(&self.device).arg(&self.mount_point), setup.folder());
        let mount_point = self.mount_point.clone();
        self.undo_later("umount", &[&mount_point.display().to_string()]);
        mount_point
    }

    /// Unmount it.
    pub fn unmount(&mut self) {
        assert!(self.undo.len() > 2, "nothing is mounted");
        self.undo();
    }

    /// The file system, which is not mounted, is sound.
    pub fn check(&self, setup: &Setup) {
        fsck::is_sound(&self.device, setup.folder());
    }

    /// Take everything down.
    pub fn detach(mut self) {
        while !self.undo.is_empty() {
            self.undo();
        }
        self.nbdfuse.wait(LIMIT);
    }

    /// Undo the last thing; it must succeed, though not at once: a process that another test has just started may have the mount for a moment.
    fn undo(&mut self) {
        let mut command = self.undo.pop().expect("something to undo");
        wait_for("the end of a layer", || match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        });
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        while let Some(mut command) = self.undo.pop() {
            // The test has failed already; what can be undone is undone. A loop device lets go of its file a moment after it is detached.
            for _ in 0..TRIES {
                if command.output().is_ok_and(|output| output.status.success()) {
                    break;
                }
                sleep(Duration::from_millis(50));
            }
        }
    }
}
