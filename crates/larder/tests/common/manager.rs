//! A service manager for tests, with systemd's protocol: it hears what a daemon tells, keeps the descriptors that it leaves, and passes them to the next one.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::daemon::{Larder, larder};
use super::setup::Setup;
use super::wait_for;

/// Descriptors in one message, by the kernel's limit.
const DESCRIPTORS_MAX: usize = 253;
/// Descriptors that are kept at most.
const STORE_MAX: usize = 512;

#[derive(Default)]
struct Heard {
    /// Every message, in order.
    told: Vec<String>,
    store: Vec<(String, OwnedFd)>,
    /// Removes what it is told to.
    forgets: bool,
}

/// Hears and keeps until it is dropped.
pub struct ServiceManager {
    folder: tempfile::TempDir,
    heard: Arc<Mutex<Heard>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Sockets of its own, which every daemon gets.
    units: Vec<(String, OwnedFd)>,
    keeps: bool,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// One that keeps descriptors.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let heard = Arc::new(Mutex::new(Heard { forgets: true, ..Heard::default() }));
        let ended = Arc::new(AtomicBool::new(false));
        let (hear, end) = (Arc::clone(&heard), Arc::clone(&ended));
        let listen = move || {
            while !end.load(Ordering::Relaxed) {
                if let Some((text, descriptors)) = receive(&socket) {
                    hear.lock().expect("what was heard").take(text, descriptors);
                }
            }
        };
        let thread = Some(thread::spawn(listen));
        let (units, watchdog) = Default::default();
        Self { folder, heard, ended, thread, units, keeps: true, watchdog }
    }

    /// It keeps nothing.
    pub fn without_store(mut self) -> Self {
        self.keeps = false;
        self
    }

    /// It wants to hear so often that the daemon lives.
    pub fn with_watchdog(mut self, interval: Duration) -> Self {
        self.watchdog = Some(interval);
        self
    }

    /// It passes what it kept a second time, as one would that a daemon could not tell in time.
    pub fn that_forgets_nothing(self) -> Self {
        self.heard.lock().expect("what was heard").forgets = false;
        self
    }

    /// Every daemon gets a socket that listens at this path.
    pub fn listening(mut self, name: &str, path: &Path) -> Self {
        let socket = UnixListener::bind(path).expect("a socket of a unit");
        self.units.push((name.into(), socket.into()));
        self
    }

    /// Start a daemon, with all that is kept, and wait until it is ready.
    pub fn start(&self, setup: Setup) -> Larder {
        self.start_under(setup, &[])
    }

    /// The same, by a program with its arguments that becomes the daemon.
    pub fn start_under(&self, setup: Setup, wrapper: &[&str]) -> Larder {
        let config = setup.write_config();
        let before = self.count("READY=1");
        let mut command = Command::new("sh");
        command.args(["-c", "export LISTEN_PID=$$; exec \"$@\"", "sh"]).args(wrapper);
        command.arg(larder().get_program()).arg("serve").arg("--config").arg(config);
        command.env_remove("RUST_LOG").env("NOTIFY_SOCKET", self.socket());
        if self.keeps {
            command.env("FDSTORE", STORE_MAX.to_string());
        }
        if let Some(interval) = self.watchdog {
            command.env("WATCHDOG_USEC", interval.as_micros().to_string());
        }
        self.pass(&mut command);
        let larder = Larder::launched(setup, &mut command);
        wait_for("the manager hears that larder is ready", || match self.count("READY=1") > before {
            true => Ok(()),
            false => Err(format!("{:?}", self.told())),
        });
        larder
    }

    /// Stop a daemon, and start the next one.
    pub fn restart(&self, larder: Larder) -> Larder {
        self.start(larder.stop())
    }

    /// Every message so far.
    pub fn told(&self) -> Vec<String> {
        self.heard.lock().expect("what was heard").told.clone()
    }

    /// How many messages have this line.
    pub fn count(&self, line: &str) -> usize {
        self.told().iter().filter(|text| text.lines().any(|found| found == line)).count()
    }

    /// The names of what is kept.
    pub fn kept(&self) -> Vec<String> {
        self.heard.lock().expect("what was heard").store.iter().map(|(name, _)| name.clone()).collect()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("notify")
    }

    fn pass(&self, command: &mut Command) {
        let heard = self.heard.lock().expect("what was heard");
        let all = || self.units.iter().chain(&heard.store);
        let names: Vec<&str> = all().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            return;
        }
        command.env("LISTEN_FDS", names.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        let copy = |(child_fd, (_, fd)): (i32, &(String, OwnedFd))| {
            let parent_fd = fd.try_clone().expect("a descriptor");
            FdMapping { parent_fd, child_fd }
        };
        command.fd_mappings((3..).zip(all()).map(copy).collect()).expect("different numbers");
        drop(heard);
    }
}

impl Drop for ServiceManager {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the manager panicked");
    }
}

impl Heard {
    fn take(&mut self, text: String, descriptors: Vec<OwnedFd>) {
        let has = |line: &str| text.lines().any(|found| found == line);
        let name = text.lines().find_map(|line| line.strip_prefix("FDNAME=")).unwrap_or("stored").to_owned();
        if has("FDSTORE=1") {
            assert!(has("FDPOLL=0"), "{text}");
            self.store.extend(descriptors.into_iter().map(|fd| (name.clone(), fd)));
        } else if has("FDSTOREREMOVE=1") && self.forgets {
            self.store.retain(|(kept, _)| *kept != name);
        }
        // The end of a barrier's pipe is closed here.
        self.told.push(text);
    }
}

fn receive(socket: &UnixDatagram) -> Option<(String, Vec<OwnedFd>)> {
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
    let rights = |message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    };
    let descriptors = ancillary.drain().filter_map(rights).flatten().collect();
    Some((String::from_utf8_lossy(&bytes[..received.bytes]).into_owned(), descriptors))
}
