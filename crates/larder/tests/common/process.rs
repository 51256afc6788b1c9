//! Client programs and servers that the tests run: found, awaited for a limited time, ended with the test.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::LIMIT;

/// The Debian packages of the programs.
const PACKAGES: [(&str, &str); 34] = [
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
    ("openssl", "openssl"),
    ("curl", "curl"),
    ("nbdinfo", "libnbd-bin"),
    ("nbdcopy", "libnbd-bin"),
    ("nbdfuse", "libnbd-bin"),
    ("nbdsh", "python3-libnbd"),
    ("nbdkit", "nbdkit"),
    ("qemu-img", "qemu-utils"),
    ("qemu-io", "qemu-utils"),
    ("fio", "fio"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("depmod", "kmod"),
    ("xz", "xz-utils"),
    ("lz4", "lz4"),
    ("losetup", "mount"),
    ("mount", "mount"),
    ("umount", "mount"),
    ("fusermount3", "fuse3"),
    ("mkfs.ext4", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("dumpe2fs", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("id", "coreutils"),
    ("script", "bsdutils"),
    ("sh", "dash"),
    ("bash", "bash"),
    ("mandoc", "mandoc"),
    ("man", "man-db"),
    ("systemd-analyze", "systemd"),
    ("strace", "strace"),
];

/// The system's own folders come first: Debian's `nbdsh` needs Debian's `python3`, and `mkfs.ext4` is not on every user's path.
fn search_path() -> String {
    format!("/usr/sbin:/usr/bin:/sbin:/bin:{}", std::env::var("PATH").unwrap_or_default())
}

/// A program by its name.
///
/// # Panics
/// If it is missing, with the command that installs it.
pub fn program(name: &str) -> Command {
    let path = search_path();
    let found = path.split(':').any(|folder| Path::new(folder).join(name).is_file());
    let package = PACKAGES.iter().find(|known| known.0 == name).map_or(name, |known| known.1);
    assert!(found, "{name} is missing; install it: apt-get install {package}");
    let mut command = Command::new(name);
    command.env("PATH", path).stdin(Stdio::null());
    command
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// Run a program to its end. `folder` takes its output meanwhile: pipes would have to be drained.
///
/// # Panics
/// If it does not end within the limit.
pub fn run_within(limit: Duration, command: &mut Command, folder: &Path) -> Outcome {
    let (out, out_path) = output_file(folder);
    let (err, err_path) = output_file(folder);
    let name = format!("{command:?}");
    let child = command.stdout(out).stderr(err).spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut guard = Background { child, name, log: err_path.clone() };
    let status = guard.wait(limit);
    Outcome { status, stdout: lossy(&out_path), stderr: lossy(&err_path) }
}

/// Run a program to its end, which must be a success; what it wrote to stdout.
///
/// # Panics
/// If it fails, with what it said, or does not end within [`LIMIT`].
pub fn run(command: &mut Command, folder: &Path) -> String {
    let outcome = run_within(LIMIT, command, folder);
    assert!(
        outcome.status.success(),
        "{command:?}: {}\n--- stdout\n{}\n--- stderr\n{}",
        outcome.status,
        outcome.stdout,
        outcome.stderr
    );
    outcome.stdout
}

fn output_file(folder: &Path) -> (File, PathBuf) {
    let (file, path) = tempfile::Builder::new()
        .prefix("output-")
        .tempfile_in(folder)
        .and_then(|file| file.keep().map_err(Into::into))
        .expect("a file in the test's folder");
    (file, path)
}

fn lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("the output of a program")).into_owned()
}

/// A process that ends with its owner. Its log is shown if the test fails.
#[derive(Debug)]
pub struct Background {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Background {
    /// Start it, with stdout and stderr in the file `log`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let name = format!("{command:?}");
        let out = File::create(log).expect("a log in the test's folder");
        let err = out.try_clone().expect("a second handle of the log");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = child.unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { child, name, log: log.to_owned() }
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        lossy(&self.log)
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the state of a child")
    }

    /// Ask it to end (SIGTERM).
    pub fn terminate(&self) {
        let kill = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.id())]).status();
        assert!(kill.is_ok_and(|status| status.success()), "cannot signal {}", self.name);
    }

    /// End it at once (SIGKILL).
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Wait until it ends.
    ///
    /// # Panics
    /// If it does not within the limit.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(start.elapsed() < limit, "{} runs for more than {limit:?}", self.name);
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let ended = self.child.try_wait().ok().flatten();
        self.kill();
        if std::thread::panicking() {
            let ended = ended.map_or(String::new(), |status| format!(" (had ended: {status})"));
            eprintln!("--- {}{ended}\n{}", self.name, fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}
