//! A directory with disks, a cache and a configuration, and daemons that run there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tempfile::TempDir;

/// Long enough for a busy machine; only failures take it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The directory.
pub struct Lab {
    directory: TempDir,
}

impl Lab {
    /// An empty one.
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file of that size, with content that tells its blocks apart.
    pub fn disk(&self, name: &str, bytes: usize) -> PathBuf {
        let content: Vec<u8> = (0..bytes).map(|at| (at / 512 * 31 + at) as u8).collect();
        let path = self.path(name);
        fs::write(&path, content).expect("write a disk");
        path
    }

    /// Write `larder.toml`: a cache of 4 MiB in `cache.img`, a control socket `ctl`, epochs of a second, and these tenants.
    pub fn config(&self, tenants: &str) -> PathBuf {
        let text = format!(
            "[cache]\npath = \"cache.img\"\nsize = \"4MiB\"\n[control]\nsocket = \"ctl\"\nepoch = \"1s\"\n{tenants}"
        );
        let path = self.path("larder.toml");
        fs::write(&path, text).expect("write a configuration");
        path
    }

    /// The configuration of one tenant with one volume `v` on `backing`, exported at `listen`.
    pub fn one_volume(&self, backing: &str, listen: &str) -> PathBuf {
        self.config(&tenant("t", "v", backing, listen))
    }

    /// Run `larder` with these arguments to its end.
    pub fn larder(&self, arguments: &[&str]) -> Output {
        command(arguments).output().expect("larder runs")
    }

    /// Start `larder serve` on a configuration, and wait until it is ready.
    pub fn serve(&self, config: &Path) -> Daemon {
        Daemon::start(config)
    }

    /// Every file in the directory: kind, size, content.
    pub fn fingerprint(&self) -> BTreeMap<PathBuf, (String, u64, u64)> {
        let entries = fs::read_dir(self.directory.path()).expect("a directory");
        entries.map(|entry| fingerprint(&entry.expect("an entry").path())).collect()
    }
}

/// `[[tenant]]` with one volume.
pub fn tenant(tenant: &str, volume: &str, backing: &str, listen: &str) -> String {
    format!(
        "[[tenant]]\nname = \"{tenant}\"\n[[tenant.volume]]\nname = \"{volume}\"\nbacking = \"{backing}\"\nnbd = \"{listen}\"\n"
    )
}

fn fingerprint(path: &Path) -> (PathBuf, (String, u64, u64)) {
    let meta = fs::symlink_metadata(path).expect("an entry");
    let mut hasher = DefaultHasher::new();
    if meta.is_file() {
        let mut content = Vec::new();
        File::open(path).and_then(|mut file| file.read_to_end(&mut content)).expect("readable");
        content.hash(&mut hasher);
    }
    (path.to_owned(), (format!("{:?}", meta.file_type()), meta.len(), hasher.finish()))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments).env_remove("RUST_LOG");
    command
}

/// A running `larder serve`; killed when dropped.
pub struct Daemon {
    child: Child,
    log: JoinHandle<String>,
}

impl Daemon {
    fn start(config: &Path) -> Self {
        let config = config.to_str().expect("a path in UTF-8");
        let mut child = command(&["serve", "--config", config])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("larder starts");
        let (ready, log) = follow(child.stderr.take().expect("piped"));
        if ready.recv_timeout(PATIENCE).is_err() {
            // It may be gone already.
            let _ = child.kill();
            panic!("not ready: {}", log.join().expect("log"));
        }
        Self { child, log }
    }

    /// Send it a signal by name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Wait for its end; how it ended, and its log.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("a child");
        let log = std::mem::replace(&mut self.log, thread::spawn(String::new));
        (status, log.join().expect("log"))
    }

    /// Stop it with SIGTERM, which must end it well; its log.
    pub fn stop(self) -> String {
        self.signal("TERM");
        let (status, log) = self.wait();
        assert!(status.success(), "{status}: {log}");
        log
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail where it has ended and was waited for, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gather a log; the receiver hears of the line that says "ready".
fn follow(stderr: impl Read + Send + 'static) -> (Receiver<()>, JoinHandle<String>) {
    let (tell, ready) = channel();
    let gather = move || {
        let mut log = String::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            log.push_str(&line);
            log.push('\n');
            if line.contains("ready") {
                // Nobody listens after the first one.
                let _ = tell.send(());
            }
        }
        log
    };
    (ready, thread::spawn(gather))
}
