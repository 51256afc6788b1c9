//! Virtual machines under QEMU, by emulation: a kernel and programs from Debian's packages, put together by `scripts/guest.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::process::{Background, program, run_within};

/// Emulation is slow, and the machine may be busy.
const LIMIT: Duration = Duration::from_secs(400);

/// By when a guest without disks has come up; 2 s where nothing else runs.
const BOOT_LIMIT: Duration = Duration::from_secs(100);

/// A machine that runs one script, then powers off.
pub struct Guest {
    process: Background,
    name: String,
}

impl Guest {
    /// Start a machine whose only disk is a vhost-user-blk device. Its files are in `folder`, under its name.
    pub fn start(folder: &Path, name: &str, disk: &Path, job: &str) -> Self {
        Self::start_with_disk(program("qemu-system-x86_64"), folder, name, disk, job, &[])
    }

    /// The same for one that is to be migrated, with more arguments for QEMU. Under Debian 12's (7.2) the memory of a guest without any disk came to harm, too: in four of eleven moves with all of its
    /// threads on one processor, under 10.0 in none of twenty.
    pub fn start_to_migrate(folder: &Path, name: &str, disk: &Path, job: &str, more: &[&str]) -> Self {
        let newer = Command::new(parts("guest-ublk", "build-ublk").join("qemu/run"));
        Self::start_with_disk(newer, folder, name, disk, job, more)
    }

    fn start_with_disk(
        mut qemu: Command,
        folder: &Path,
        name: &str,
        disk: &Path,
        job: &str,
        more: &[&str],
    ) -> Self {
        let parts = parts("guest", "build");
        qemu.args(["-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max", "-m", "512", "-nodefaults"])
            .args(["-object", "memory-backend-memfd,id=mem,size=512M,share=on", "-numa", "node,memdev=mem"])
            .arg("-chardev")
            .arg(format!("socket,id=disk,path={},reconnect=1", disk.display()))
            .args(["-device", "vhost-user-blk-pci,chardev=disk,num-queues=2"])
            .args(more);
        Self::boot(qemu, &parts, folder, name, job, &[])
    }

    /// Start a machine without disks, whose kernel has ublk, and in which these programs of the host are.
    pub fn start_with_ublk(folder: &Path, name: &str, programs: &[&Path], job: &str) -> Self {
        Self::start_without_disks(&parts("guest-ublk", "build-ublk"), folder, name, programs, job)
    }

    /// The same with the newest kernel that there is.
    pub fn start_with_new_ublk(folder: &Path, name: &str, programs: &[&Path], job: &str) -> Self {
        Self::start_without_disks(&parts("guest-ublk-new", "build-ublk-new"), folder, name, programs, job)
    }

    fn start_without_disks(parts: &Path, folder: &Path, name: &str, programs: &[&Path], job: &str) -> Self {
        let start = || {
            let mut qemu = Command::new(parts.join("qemu/run"));
            qemu.args(["-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max", "-smp", "2"]).args([
                "-m",
                "1024",
                "-nodefaults",
            ]);
            Self::boot(qemu, parts, folder, name, job, programs)
        };
        let mut guest = start();
        if !guest.comes_up() {
            // Nothing of Larder's runs until then: it is the emulator that hangs.
            eprintln!(
                "{name}: no word of the guest in {BOOT_LIMIT:?}, starting it again: {}",
                guest.console()
            );
            drop(guest);
            guest = start();
        }
        guest
    }

    /// Whether its first program runs in time.
    fn comes_up(&mut self) -> bool {
        let began = Instant::now();
        while !self.console().contains("GUEST-UP") {
            if self.process.ended().is_some() || began.elapsed() > BOOT_LIMIT {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    fn boot(
        mut qemu: Command,
        parts: &Path,
        folder: &Path,
        name: &str,
        job: &str,
        programs: &[&Path],
    ) -> Self {
        let file = |extension| folder.join(format!("{name}.{extension}"));
        let (script, initrd) = (file("sh"), file("initrd"));
        fs::write(&script, job).expect("a script in the test's folder");
        let mut put_together = program("sh");
        put_together.arg(script_path()).arg("initrd").args([parts, &script, &initrd]).args(programs);
        let made = run_within(LIMIT, &mut put_together, folder);
        assert!(made.status.success(), "{}", made.stderr);
        qemu.args(["-display", "none", "-serial", "stdio"])
            .arg("-kernel")
            .arg(parts.join("vmlinux"))
            .arg("-initrd")
            .arg(&initrd)
            // Pages that the daemon fills are not written by the guest before: a migration has to find them nevertheless.
            .args(["-append", "console=ttyS0 quiet panic=-1 init_on_alloc=0"]);
        let process = Background::start(&mut qemu, &file("console"));
        Self { process, name: name.into() }
    }

    /// What it has written to its console.
    pub fn console(&self) -> String {
        self.process.log()
    }

    /// Wait until its console has this.
    pub fn says(&mut self, what: &str) {
        let began = Instant::now();
        while !self.console().contains(what) {
            let ended = self.process.ended();
            assert!(ended.is_none(), "{} ended without {what:?}: {}", self.name, self.console());
            assert!(began.elapsed() < LIMIT, "{} does not say {what:?}: {}", self.name, self.console());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// True until it powers off.
    pub fn runs(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// Wait until it has powered off, its script having succeeded.
    pub fn succeeds(mut self) -> String {
        let status = self.process.wait(LIMIT);
        let console = self.console();
        assert!(status.success() && console.contains("JOB-DONE 0"), "{}: {status}: {console}", self.name);
        console
    }
}

fn script_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/guest.sh")
}

/// The kernel and the programs of a kind of guest, made once for all tests.
fn parts(name: &str, build: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder among the build's");
    for name in ["busybox", "cpio", "depmod", "xz", "lz4", "fio", "mkfs.ext4", "e2fsck", "strip"] {
        program(name);
    }
    let made = run_within(LIMIT, program("sh").arg(script_path()).arg(build).arg(&folder), &folder);
    assert!(made.status.success(), "{}", made.stderr);
    folder
}
