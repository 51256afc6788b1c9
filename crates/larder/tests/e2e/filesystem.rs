//! A file system on top: ext4 on a loop device over `nbdfuse`, made, filled, checked, and found again.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::pattern::{random, stamp};
use crate::common::process::{Background, program, run};
use crate::common::setup::{MIB, Setup};
use crate::common::{LIMIT, wait_for};

const FILES: u64 = 60;

/// Loop devices and mounts need root. Without it, this fails in CI (`CI` is set there), and is left out elsewhere.
fn is_root(folder: &Path) -> bool {
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

/// The layers between the export and the files: taken down last first, however the test ends.
struct Layers {
    undo: Vec<Command>,
    nbdfuse: Background,
}

impl Layers {
    /// `nbdfuse`: the export as this file of the host.
    fn on(setup: &Setup, file: &Path) -> Self {
        let mut nbdfuse = program("nbdfuse");
        nbdfuse.arg(file).arg(setup.uri("a0"));
        let nbdfuse = Background::start(&mut nbdfuse, &setup.path("nbdfuse.log"));
        let mut layers = Self { undo: Vec::new(), nbdfuse };
        wait_for("nbdfuse", || file.exists().then_some(()).ok_or_else(|| layers.nbdfuse.log()));
        layers.undo_later("fusermount3", &["-u", &setup.path("fuse").display().to_string()]);
        layers
    }

    fn undo_later(&mut self, name: &str, arguments: &[&str]) {
        let mut command = program(name);
        command.args(arguments);
        self.undo.push(command);
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

impl Drop for Layers {
    fn drop(&mut self) {
        while let Some(mut command) = self.undo.pop() {
            // The test has failed already; what can be undone is undone.
            let _ = command.status();
        }
    }
}

fn content(number: u64) -> Vec<u8> {
    let mut state = number;
    stamp(number, 1, 0, (random(&mut state, 100) * 4096 + number * 8 + 8).min(MIB))
}

/// Files of all sizes; a third of them is removed again, so that their blocks are used twice.
fn fill(mount: &Path) {
    for number in 0..FILES {
        let folder = mount.join(format!("folder{}", number % 5));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(number.to_string()), stamp(99, 0, 0, 512 * 1024)).expect("a first version");
    }
    for number in 0..FILES {
        let file = mount.join(format!("folder{}/{number}", number % 5));
        fs::remove_file(&file).expect("a first version");
        if number % 3 != 0 {
            fs::write(&file, content(number)).expect("a second version");
        }
    }
}

fn verify(mount: &Path) {
    for number in 0..FILES {
        let file = mount.join(format!("folder{}/{number}", number % 5));
        match fs::read(&file) {
            Ok(found) => assert!(found == content(number), "{}", file.display()),
            Err(_) => assert_eq!(number % 3, 0, "{} is gone", file.display()),
        }
    }
}

#[test]
fn ext4_is_made_filled_checked_and_found_again() {
    // The cache is smaller than what is written: blocks leave it, and are read again.
    let setup = Setup::new("8MiB").tenant("a", "write_policy = \"wt\"").volume("a0", 96 * MIB);
    if !is_root(setup.folder()) {
        return;
    }
    let larder = setup.start();
    let mount = larder.path("mount");
    let fuse = larder.path("fuse");
    for folder in [&mount, &fuse] {
        fs::create_dir(folder).expect("a mount point");
    }
    let mut layers = Layers::on(&larder, &fuse.join("disk"));
    let mut losetup = program("losetup");
    losetup.args(["--direct-io=on", "--find", "--show"]).arg(fuse.join("disk"));
    let device = run(&mut losetup, larder.folder());
    let device = device.trim();
    layers.undo_later("losetup", &["-d", device]);

    run(program("mkfs.ext4").args(["-q", device]), larder.folder());
    for pass in 0..2 {
        run(program("mount").arg(device).arg(&mount), larder.folder());
        layers.undo_later("umount", &[&mount.display().to_string()]);
        if pass == 0 {
            fill(&mount);
        }
        verify(&mount);
        layers.undo();
        run(program("e2fsck").args(["-f", "-n", device]), larder.folder());
    }
    layers.undo();
    layers.undo();
    layers.nbdfuse.wait(LIMIT);

    let setup = larder.stop();
    // The backing by itself is the whole file system.
    run(program("e2fsck").args(["-f", "-n"]).arg(setup.backing("a0")), setup.folder());
}
