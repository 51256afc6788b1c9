//! Connecting to an NBD server and agreeing on an export, blocking, under a deadline.

use larder_nbd::client::{Connected, Handshake, HandshakeError, Progress};
use larder_nbd::consts::tflag;
use larder_nbd::{Address, Uri};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use std::io::{self, Read, Write};
use std::net::ToSocketAddrs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// For connecting and for the handshake together.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A TCP peer that acknowledges nothing for this long is gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// Smallest unit of a request that a guest of ours can be asked to keep.
const MIN_BLOCK_MAX: u32 = 4096;

/// A connection to an export, ready for a reactor.
#[derive(Debug)]
pub struct NbdBacking {
    pub(super) uri: Uri,
    pub(super) connection: Connection,
}

/// A connection past its handshake.
#[derive(Debug)]
pub(super) struct Connection {
    pub socket: OwnedFd,
    pub agreed: Connected,
}

/// An NBD backing cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {uri}: {kind}")]
pub struct NbdError {
    /// The backing.
    pub uri: Uri,
    /// What is wrong.
    pub kind: NbdErrorKind,
}

/// What is wrong with an NBD backing.
#[derive(Debug, thiserror::Error)]
pub enum NbdErrorKind {
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The connection broke during the handshake.
    #[error("the connection broke during the handshake: {0}")]
    Broken(#[source] io::Error),
    /// The server took too long.
    #[error("the server did not answer within {} seconds", CONNECT_TIMEOUT.as_secs())]
    Timeout,
    /// The server refuses, or speaks something else.
    #[error("{0}")]
    Handshake(#[from] HandshakeError),
    /// The export has no bytes.
    #[error("the export is empty")]
    Empty,
    /// The size is not a whole number of sectors, or of the server's smallest request.
    #[error("the size, {bytes} bytes, is not a multiple of {unit}")]
    OddSize {
        /// Size of the export in bytes.
        bytes: u64,
        /// What it has to be a multiple of.
        unit: u32,
    },
    /// The server wants large requests only.
    #[error("the server takes no requests below {0} bytes; at most {MIN_BLOCK_MAX} can be kept")]
    Coarse(u32),
    /// After a reconnect: not the disk that it was.
    #[error("the size was {was} bytes and now is {now}: not the same disk")]
    Resized {
        /// Bytes when it was opened.
        was: u64,
        /// Bytes now.
        now: u64,
    },
    /// After a reconnect: guests may send what the server would now refuse.
    #[error("the smallest request was {was} bytes and now is {now}: guests send smaller ones")]
    Coarser {
        /// Bytes when it was opened.
        was: u32,
        /// Bytes now.
        now: u32,
    },
    /// After a reconnect: guests were told that they may write.
    #[error("the export took writes and now is read-only")]
    NowReadOnly,
}

impl NbdError {
    /// What the operator can do.
    pub fn remedy(&self) -> String {
        match &self.kind {
            NbdErrorKind::Connect(_) | NbdErrorKind::Broken(_) | NbdErrorKind::Timeout => {
                format!("check that the server runs and may be reached: nbdinfo '{}'", self.uri)
            }
            NbdErrorKind::Handshake(_) => {
                format!("see what the server offers: nbdinfo --list '{}'", self.uri)
            }
            NbdErrorKind::Empty => "give the export a size".into(),
            NbdErrorKind::OddSize { unit, .. } => {
                format!("give the export a size that is a multiple of {unit}")
            }
            NbdErrorKind::Coarse(_) => "set the server's minimum block size to 4096 or less".into(),
            NbdErrorKind::Resized { .. } => "stop, and start again if the new size is right".into(),
            NbdErrorKind::Coarser { .. } | NbdErrorKind::NowReadOnly => {
                "start the server as it was, or stop and start again if the change is right".into()
            }
        }
    }
}

impl NbdBacking {
    /// Connect to an export. Blocks for 10 seconds at most.
    pub fn connect(uri: &Uri) -> Result<Self, NbdError> {
        match Connection::open(uri) {
            Ok(connection) => Ok(Self { uri: uri.clone(), connection }),
            Err(kind) => Err(NbdError { uri: uri.clone(), kind }),
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.connection.agreed.size
    }

    /// Smallest unit of a request in bytes.
    pub fn align(&self) -> u32 {
        unit(&self.connection.agreed)
    }

    /// The server takes no writes.
    pub fn is_read_only(&self) -> bool {
        is_read_only(&self.connection.agreed)
    }

    /// Where it is.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl Connection {
    /// Connect, agree on the export, and check that it makes a disk.
    pub fn open(uri: &Uri) -> Result<Self, NbdErrorKind> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut socket = dial(&uri.address, deadline)?;
        let agreed = shake_hands(&mut socket, &uri.export, deadline)?;
        check(&agreed)?;
        // A reactor waits as long as it takes.
        socket
            .set_read_timeout(None)
            .and_then(|()| socket.set_write_timeout(None))
            .map_err(NbdErrorKind::Broken)?;
        Ok(Self { socket: socket.into(), agreed })
    }
}

/// Check that this is still the disk that guests know.
pub(super) fn check_same(now: &Connected, was: &Connected) -> Result<(), NbdErrorKind> {
    match () {
        () if now.size != was.size => Err(NbdErrorKind::Resized { was: was.size, now: now.size }),
        () if unit(now) > unit(was) => Err(NbdErrorKind::Coarser { was: unit(was), now: unit(now) }),
        () if is_read_only(now) && !is_read_only(was) => Err(NbdErrorKind::NowReadOnly),
        () => Ok(()),
    }
}

/// Smallest unit of a request in bytes.
fn unit(agreed: &Connected) -> u32 {
    agreed.block.min.max(512)
}

fn is_read_only(agreed: &Connected) -> bool {
    agreed.flags & tflag::READ_ONLY != 0
}

fn check(agreed: &Connected) -> Result<(), NbdErrorKind> {
    let (bytes, unit) = (agreed.size, unit(agreed));
    match () {
        () if unit > MIN_BLOCK_MAX => Err(NbdErrorKind::Coarse(unit)),
        () if bytes == 0 => Err(NbdErrorKind::Empty),
        () if !bytes.is_multiple_of(u64::from(unit)) => Err(NbdErrorKind::OddSize { bytes, unit }),
        () => Ok(()),
    }
}

fn dial(address: &Address, deadline: Instant) -> Result<Socket, NbdErrorKind> {
    match address {
        Address::Unix(path) => {
            let address = SockAddr::unix(path).map_err(NbdErrorKind::Connect)?;
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(NbdErrorKind::Connect)?;
            // Also bounds the wait for a place in the listener's queue.
            socket.set_write_timeout(Some(left(deadline)?)).map_err(NbdErrorKind::Connect)?;
            socket.connect(&address).map_err(timed_out_or(NbdErrorKind::Connect))?;
            Ok(socket)
        }
        Address::Tcp { host, port } => dial_tcp(host, *port, deadline),
    }
}

/// The first of the host's addresses that answers.
fn dial_tcp(host: &str, port: u16, deadline: Instant) -> Result<Socket, NbdErrorKind> {
    let mut failure =
        NbdErrorKind::Connect(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    for address in (host, port).to_socket_addrs().map_err(NbdErrorKind::Connect)? {
        let timeout = left(deadline)?;
        match connect_tcp(&SockAddr::from(address), timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = timed_out_or(NbdErrorKind::Connect)(error),
        }
    }
    Err(failure)
}

fn connect_tcp(address: &SockAddr, timeout: Duration) -> io::Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    socket.connect_timeout(address, timeout)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(PEER_TIMEOUT / 2).with_interval(PEER_TIMEOUT / 6),
    )?;
    socket.set_tcp_user_timeout(Some(PEER_TIMEOUT))?;
    Ok(socket)
}

fn shake_hands(socket: &mut Socket, export: &str, deadline: Instant) -> Result<Connected, NbdErrorKind> {
    let mut handshake = Handshake::new(export)?;
    let mut input = [0; 4096];
    let mut output = Vec::new();
    loop {
        let timeout = Some(left(deadline)?);
        socket.set_read_timeout(timeout).and_then(|()| socket.set_write_timeout(timeout)).map_err(broken)?;
        let count = socket.read(&mut input).map_err(broken)?;
        if count == 0 {
            return Err(broken(io::ErrorKind::UnexpectedEof.into()));
        }
        let (consumed, progress) = handshake.feed(&input[..count], &mut output)?;
        match progress {
            Progress::Ready(_) if consumed < count => {
                return Err(HandshakeError::Protocol("the server answers before it is asked").into());
            }
            Progress::Ready(agreed) => return Ok(agreed),
            Progress::NeedMore => socket.write_all(&output).map_err(broken)?,
        }
        output.clear();
    }
}

fn broken(error: io::Error) -> NbdErrorKind {
    timed_out_or(NbdErrorKind::Broken)(error)
}

fn timed_out_or(other: fn(io::Error) -> NbdErrorKind) -> impl Fn(io::Error) -> NbdErrorKind {
    move |error| match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => NbdErrorKind::Timeout,
        _ => other(error),
    }
}

fn left(deadline: Instant) -> Result<Duration, NbdErrorKind> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(NbdErrorKind::Timeout) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_nbd::BlockSizes;
    use std::os::unix::net::UnixListener;

    fn uri(path: &std::path::Path) -> Uri {
        Uri { address: Address::Unix(path.into()), export: String::new() }
    }

    #[test]
    fn nobody_there_names_the_uri_and_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let uri = uri(&directory.path().join("absent.sock"));
        let error = NbdBacking::connect(&uri).unwrap_err();
        assert!(matches!(error.kind, NbdErrorKind::Connect(_)), "{error}");
        assert!(error.to_string().contains("absent.sock") && error.remedy().contains("nbdinfo 'nbd+unix:"));
    }

    #[test]
    fn only_the_disk_that_guests_know_is_taken_back() {
        let block = BlockSizes { min: 512, preferred: 4096, max: 1 << 20 };
        let was = Connected { size: 1 << 20, flags: 1, block, structured: true, base_allocation: None };
        let with_min = |min| Connected { block: BlockSizes { min, ..block }, ..was };
        let read_only = Connected { flags: 1 | tflag::READ_ONLY, ..was };
        let check = |now: &Connected| check_same(now, &was);
        assert!(check(&was).is_ok() && check(&with_min(1)).is_ok() && check_same(&was, &read_only).is_ok());
        assert!(check(&Connected { structured: false, ..was }).is_ok());
        let resized = check(&Connected { size: 2 << 20, ..was });
        assert!(matches!(resized, Err(NbdErrorKind::Resized { was: 0x10_0000, now: 0x20_0000 })));
        assert!(matches!(check(&with_min(4096)), Err(NbdErrorKind::Coarser { was: 512, now: 4096 })));
        assert!(matches!(check(&read_only), Err(NbdErrorKind::NowReadOnly)));
    }

    #[test]
    fn a_server_that_hangs_up_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let error = NbdBacking::connect(&uri(&path)).unwrap_err();
        assert!(matches!(error.kind, NbdErrorKind::Broken(_)), "{error}");
        server.join().unwrap();
    }

    #[test]
    fn something_else_that_answers_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            peer.write_all(b"220 mail.example.org ESMTP").unwrap();
        });
        let error = NbdBacking::connect(&uri(&path)).unwrap_err();
        assert!(matches!(error.kind, NbdErrorKind::Handshake(HandshakeError::NotNbd(_))), "{error}");
        server.join().unwrap();
    }
}
