//! The control socket: a unix socket on which the daemon answers one line with one JSON document, and the asking side.
//!
//! One thread accepts; each client is served by a short-lived thread of its own, so that a silent one delays nobody. What
//! clients can make us hold is bounded: [`CLIENTS_MAX`] at a time, [`REQUEST_BYTES_MAX`] each, for [`TIMEOUT`] at most.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use thiserror::Error;

use crate::control::Request;

/// Clients served at a time; one more is turned away.
pub const CLIENTS_MAX: usize = 16;

/// The longest request line, with its line end.
pub const REQUEST_BYTES_MAX: usize = 512;

/// How long a client may take to ask, and again to take the answer.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// How long a daemon that lives may take to begin an answer, when that is all that is asked.
const MOMENT: Duration = Duration::from_millis(500);

/// The longest answer that is accepted from a daemon.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Who may connect: the owner and the group.
const MODE: u32 = 0o660;

/// What a client gets.
pub enum Reply {
    /// A JSON document.
    Document(String),
    /// What this writes; it has the client for as long as it takes, and sets its own limits.
    Stream(Box<dyn FnOnce(UnixStream) -> io::Result<()>>),
}

impl From<String> for Reply {
    fn from(document: String) -> Self {
        Self::Document(document)
    }
}

/// Answers a request line (without its end); `None` where the request is unknown.
pub type Answer = dyn Fn(&str) -> Option<Reply> + Send + Sync;

/// Why the control socket could not be had.
#[derive(Debug, Error)]
pub enum BindError {
    /// Somebody answers there.
    #[error("another daemon answers on the control socket: {}", .0.display())]
    Live(PathBuf),
    /// Something else has that name.
    #[error("the control socket's path is taken by something that is no socket: {}", .0.display())]
    NotASocket(PathBuf),
    /// The socket cannot be given to its group.
    #[error("cannot give the control socket to the group {group}: {}: {source}", path.display())]
    Group {
        /// The socket's path.
        path: PathBuf,
        /// The group's number.
        group: u32,
        /// Why.
        source: io::Error,
    },
    /// The directory is absent, not writable, and so on.
    #[error("cannot listen on the control socket: {}: {source}", path.display())]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl BindError {
    /// What the operator can do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Live(_) => "stop the other daemon, or give this one its own control.socket".into(),
            Self::NotASocket(path) => {
                format!("move {} away, or set control.socket to another path", path.display())
            }
            Self::Group { .. } => {
                "run as root or as a member of the group, or choose another control.socket_group".into()
            }
            Self::Io { path, source } => match (source.kind(), path.parent()) {
                (io::ErrorKind::NotFound, Some(directory)) => {
                    format!("create its directory: mkdir -p {}", directory.display())
                }
                (io::ErrorKind::PermissionDenied, _) => {
                    "run as a user that may write to its directory, or set control.socket to another path"
                        .into()
                }
                _ => "set control.socket to another path".into(),
            },
        }
    }
}

/// The listening socket, not yet served. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    /// None where the service manager has made it.
    file: Option<SocketFile>,
}

/// A socket's file, removed on drop if it is still the one that we made.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the control socket");
        }
    }
}

/// Device and inode of a path.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()))
}

impl ControlSocket {
    /// Listen on `path`, for the user of this process and the group of this number, or else this process's. A socket that a dead
    /// daemon left behind is removed.
    ///
    /// # Errors
    /// When another daemon answers there, when the path is something else, or when it cannot be made.
    pub fn bind(path: &Path, group: Option<u32>) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { path: path.to_owned(), source };
        remove_stale(path)?;
        let listener = UnixListener::bind(path).map_err(failed)?;
        let file = SocketFile { path: path.to_owned(), identity: identity(path).map_err(failed)? };
        if let Some(group) = group {
            lchown(path, None, Some(group)).map_err(|source| BindError::Group {
                path: path.to_owned(),
                group,
                source,
            })?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(MODE)).map_err(failed)?;
        Ok(Self { listener, file: Some(file) })
    }

    /// Listen on a socket that the service manager has made, and keeps.
    pub fn activated(listener: UnixListener) -> Self {
        Self { listener, file: None }
    }

    /// Answer clients from a thread of its own until the server is dropped.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn serve(self, answer: Arc<Answer>) -> io::Result<ControlServer> {
        // One that the manager keeps must not be shut down, so the thread hears of the end in another way.
        let (end, ended) = UnixStream::pair()?;
        self.listener.set_nonblocking(true)?;
        let listener = self.listener;
        let thread = thread::Builder::new()
            .name("control".into())
            .spawn(move || accept(&listener, &ended, &answer))?;
        Ok(ControlServer { end: Some(end), thread: Some(thread), _file: self.file })
    }
}

/// Remove a socket on which nobody answers.
fn remove_stale(path: &Path) -> Result<(), BindError> {
    let failed = |source| BindError::Io { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if !meta.file_type().is_socket() => return Err(BindError::NotASocket(path.to_owned())),
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
        Ok(_) => Err(BindError::Live(path.to_owned())),
    }
}

/// The thread that answers. Dropping it ends the thread and removes the socket.
#[derive(Debug)]
pub struct ControlServer {
    /// Hung up at the end.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    _file: Option<SocketFile>,
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the control thread panicked");
        }
    }
}

/// Take clients until the other side of `ended` is gone.
fn accept(listener: &UnixListener, ended: &UnixStream, answer: &Arc<Answer>) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let mut wait = [PollFd::new(listener, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        // Interrupted, it finds out below whether somebody has come.
        let _ = poll(&mut wait, None);
        if !wait[1].revents().is_empty() {
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => take_client(stream, &clients, answer),
            // Whoever came has left again.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => {
                tracing::warn!(%error, "control socket: cannot accept");
                // Out of descriptors, most likely: nothing is gained by asking again at once.
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Serve a client from a thread of its own, unless there are too many.
fn take_client(stream: UnixStream, clients: &Arc<AtomicUsize>, answer: &Arc<Answer>) {
    let seat = Seat(Arc::clone(clients));
    if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
        return;
    }
    let answer = Arc::clone(answer);
    let serve = move || {
        let _seat = seat;
        if let Err(error) = serve_client(stream, &*answer) {
            tracing::debug!(%error, "control client left");
        }
    };
    if let Err(error) = thread::Builder::new().name("control-client".into()).spawn(serve) {
        tracing::warn!(%error, "control socket: cannot start a thread");
    }
}

/// A client's place among those served, free again when dropped.
struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One request, one answer.
fn serve_client(mut stream: UnixStream, answer: &Answer) -> io::Result<()> {
    let line = read_line(&mut stream, Instant::now() + TIMEOUT)?;
    let mut text = match answer(&line) {
        Some(Reply::Stream(stream_to)) => return stream_to(stream),
        Some(Reply::Document(text)) => text,
        None => unknown(&line),
    };
    text.push('\n');
    write_all(&mut stream, text.as_bytes(), Instant::now() + TIMEOUT)
}

/// What is answered to a request that we do not know.
fn unknown(line: &str) -> String {
    let known = Request::WORDS;
    serde_json::json!({ "error": format!("unknown request {line:?}; known requests are: {known}") })
        .to_string()
}

/// The time left until a deadline; an error where there is none.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A line of at most [`REQUEST_BYTES_MAX`] bytes, without its end.
fn read_line(stream: &mut UnixStream, deadline: Instant) -> io::Result<String> {
    let mut bytes = [0; REQUEST_BYTES_MAX];
    let mut filled = 0;
    while filled < bytes.len() {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let count = stream.read(&mut bytes[filled..])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += count;
        if let Some(end) = bytes[..filled].iter().position(|byte| *byte == b'\n') {
            return Ok(String::from_utf8_lossy(&bytes[..end]).trim().to_owned());
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "request line too long"))
}

/// Everything, or an error at the deadline.
fn write_all(stream: &mut UnixStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        let count = stream.write(bytes)?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// Why a daemon could not be asked.
#[derive(Debug, Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error("no daemon answers on the control socket: {}: {source}", path.display())]
    Unreachable {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The daemon listens, but no answer came.
    #[error("the daemon did not answer on the control socket: {}: {source}", path.display())]
    NoAnswer {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl AskError {
    /// What the operator can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unreachable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "run as root or as a member of the socket's group"
            }
            Self::Unreachable { .. } => {
                "start it with `larder serve`, or name its socket with --socket or its configuration with --config"
            }
            Self::NoAnswer { .. } => "try again; if it stays silent, look at the daemon's log",
        }
    }
}

/// Ask the daemon behind a control socket, and wait for its answer (a JSON document).
///
/// # Errors
/// When nobody listens there, or no answer comes within a few seconds.
pub fn ask(path: &Path, request: &str) -> Result<String, AskError> {
    // The daemon has its own timeouts: twice their sum is generous.
    ask_within(4 * TIMEOUT, path, request)
}

/// The same for a request whose answer may take this long.
///
/// # Errors
/// When nobody listens there, or no answer comes.
pub fn ask_within(patience: Duration, path: &Path, request: &str) -> Result<String, AskError> {
    let stream = connect(path, request)?;
    let exchange = || {
        stream.set_read_timeout(Some(patience))?;
        let mut answer = String::new();
        (&stream).take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(answer) }
    };
    exchange().map_err(|source| AskError::NoAnswer { path: path.to_owned(), source })
}

/// A connection on which a request has been made.
pub(crate) fn connect(path: &Path, request: &str) -> Result<UnixStream, AskError> {
    let mut stream = UnixStream::connect(path)
        .map_err(|source| AskError::Unreachable { path: path.to_owned(), source })?;
    let line = format!("{request}\n");
    write_all(&mut stream, line.as_bytes(), Instant::now() + TIMEOUT)
        .map_err(|source| AskError::NoAnswer { path: path.to_owned(), source })?;
    Ok(stream)
}

/// True where a daemon answers on a control socket within a moment.
pub fn is_answered(path: &Path) -> bool {
    let exchange = || {
        let mut stream = UnixStream::connect(path)?;
        write_all(&mut stream, b"status\n", Instant::now() + MOMENT)?;
        stream.set_read_timeout(Some(MOMENT))?;
        stream.read(&mut [0; 1])
    };
    exchange().is_ok_and(|count: usize| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(path: &Path) -> ControlServer {
        let answer = |line: &str| match line {
            "status" => Some("{}".to_owned().into()),
            "stream" => Some(Reply::Stream(Box::new(|mut stream| stream.write_all(b"one\ntwo\n")))),
            _ => None,
        };
        ControlSocket::bind(path, None).expect("bind").serve(Arc::new(answer)).expect("serve")
    }

    #[test]
    fn a_request_is_answered_and_the_socket_goes_with_the_server() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("s");
        let running = server(&path);
        assert_eq!(ask(&path, "status").expect("answer"), "{}\n");
        assert!(is_answered(&path));
        assert_eq!(ask(&path, "stream").expect("lines"), "one\ntwo\n");
        assert!(ask(&path, "dance").expect("answer").contains("unknown request"));
        assert_eq!(fs::metadata(&path).expect("socket").permissions().mode() & 0o777, MODE);
        drop(running);
        assert!(!path.exists());
        let error = ask(&path, "status").expect_err("gone");
        assert!(matches!(error, AskError::Unreachable { .. }), "{error}");
    }

    #[test]
    fn a_live_socket_is_refused_and_a_stale_one_replaced() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("s");
        let running = server(&path);
        assert!(matches!(ControlSocket::bind(&path, None), Err(BindError::Live(_))));
        assert_eq!(ask(&path, "status").expect("still answers"), "{}\n");
        drop(running);
        drop(UnixListener::bind(&path).expect("leaves its file behind"));
        assert!(path.exists() && !is_answered(&path));
        drop(ControlSocket::bind(&path, None).expect("stale one replaced"));
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("s");
        fs::write(&path, "precious").expect("write");
        assert!(matches!(ControlSocket::bind(&path, None), Err(BindError::NotASocket(_))));
        assert_eq!(fs::read(&path).expect("read"), b"precious");
    }

    #[test]
    fn a_missing_directory_is_named_in_the_remedy() {
        let error = ControlSocket::bind(Path::new("/nonexistent/larder/s"), None).expect_err("no directory");
        assert_eq!(error.help(), "create its directory: mkdir -p /nonexistent/larder");
    }

    #[test]
    fn a_socket_that_is_no_longer_ours_stays() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("s");
        let running = server(&path);
        fs::remove_file(&path).expect("remove");
        let other = UnixListener::bind(&path).expect("bind");
        drop(running);
        assert!(path.exists());
        drop(other);
    }

    #[test]
    fn silent_and_talkative_clients_end_alone() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("s");
        let _running = server(&path);
        let silent = UnixStream::connect(&path).expect("connect");
        let mut talkative = UnixStream::connect(&path).expect("connect");
        // The daemon may close before it took everything: then the rest is refused, which is fine.
        let _ = talkative.write_all(&[b'x'; 4 * REQUEST_BYTES_MAX]);
        let mut nothing = Vec::new();
        let _ = talkative.read_to_end(&mut nothing);
        assert!(nothing.is_empty());
        assert_eq!(ask(&path, "status").expect("answer"), "{}\n");
        drop(silent);
    }

    #[test]
    fn clients_are_bounded() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("s");
        let _running = server(&path);
        let crowd: Vec<_> = (0..CLIENTS_MAX).map(|_| UnixStream::connect(&path).expect("connect")).collect();
        let mut one_more = UnixStream::connect(&path).expect("connect");
        one_more.set_read_timeout(Some(TIMEOUT / 2)).expect("timeout");
        assert_eq!(one_more.read(&mut [0; 1]).expect("closed at once"), 0);
        drop(crowd);
    }
}
