//! Binding: a socket that listens, or an error that names the address and the remedy.

use socket2::{Domain, SockAddr, Socket, Type};
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Where to listen. Displayed as `unix:PATH` or `tcp:ADDRESS:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListenAddress {
    /// A Unix socket. A file left over by a server that is gone is replaced.
    Unix(PathBuf),
    /// TCP. Port 0: the system chooses, see [`Listener::address`].
    Tcp(SocketAddr),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// Why nothing listens at an address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Something else listens there.
    #[error("{address} is in use by another server")]
    InUse {
        /// The address.
        address: ListenAddress,
    },
    /// The directory of a Unix socket is missing.
    #[error("the directory of {address} does not exist")]
    NoDirectory {
        /// The address.
        address: ListenAddress,
    },
    /// Something is in the way of a Unix socket.
    #[error("{address}: the file exists and is no socket")]
    NotASocket {
        /// The address.
        address: ListenAddress,
    },
    /// A Unix socket's path is too long for the system.
    #[error("{address}: the path of a socket has at most {} bytes", larder_nbd::uri::SOCKET_PATH_BYTES_MAX)]
    PathTooLong {
        /// The address.
        address: ListenAddress,
    },
    /// No right to listen there.
    #[error("no permission to listen on {address}")]
    NotPermitted {
        /// The address.
        address: ListenAddress,
    },
    /// The host has no such address.
    #[error("{address} is not an address of this host")]
    NotHere {
        /// The address.
        address: ListenAddress,
    },
    /// The socket cannot be given to its group.
    #[error("cannot give {address} to the group {group}: {source}")]
    Group {
        /// The address.
        address: ListenAddress,
        /// The group's number.
        group: u32,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// The address.
        address: ListenAddress,
        /// What the system said.
        source: io::Error,
    },
}

impl BindError {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::InUse { address: ListenAddress::Tcp(address) } => {
                format!(
                    "stop the other server (ss -ltnp 'sport = :{}' names it) or choose another port",
                    address.port()
                )
            }
            Self::InUse { address: ListenAddress::Unix(path) } => {
                format!("stop the other server (fuser {} names it) or choose another path", path.display())
            }
            Self::NoDirectory { address } => format!("create it: mkdir -p {}", directory(address).display()),
            Self::NotASocket { .. } => "move the file away or choose another path".to_owned(),
            Self::PathTooLong { .. } => "choose a shorter path".to_owned(),
            Self::NotPermitted { address: ListenAddress::Tcp(_) } => {
                "choose a port above 1023, or run as root".to_owned()
            }
            Self::NotPermitted { address } => {
                format!("make {} writable for this user", directory(address).display())
            }
            Self::NotHere { .. } => {
                "choose an address that `ip address` lists, or 0.0.0.0 for all".to_owned()
            }
            Self::Group { .. } => {
                "run as root or as a member of the group, or choose another control.socket_group".to_owned()
            }
            Self::Other { .. } => "choose another address".to_owned(),
        }
    }

    fn from_system(address: &ListenAddress, source: io::Error) -> Self {
        let address = address.clone();
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address },
            io::ErrorKind::NotFound => Self::NoDirectory { address },
            io::ErrorKind::PermissionDenied => Self::NotPermitted { address },
            io::ErrorKind::AddrNotAvailable => Self::NotHere { address },
            _ => Self::Other { address, source },
        }
    }
}

fn directory(address: &ListenAddress) -> &Path {
    match address {
        ListenAddress::Unix(path) => {
            path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
        }
        ListenAddress::Tcp(_) => Path::new("."),
    }
}

/// A socket that listens. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub struct Listener {
    address: ListenAddress,
    socket: OwnedFd,
    file: Option<SocketFile>,
    /// The service manager has it too, and listens on when we are gone.
    foreign: bool,
}

impl Listener {
    /// A socket that listens already, and that an earlier process of ours bound: the file of a Unix socket is removed in the end, as if it had been bound
    /// here. `None` where that file is gone, so that nobody can come.
    ///
    /// # Errors
    /// When the file cannot be given to this group.
    pub fn inherited(
        address: ListenAddress,
        socket: OwnedFd,
        group: Option<u32>,
    ) -> Result<Option<Self>, BindError> {
        let file = match &address {
            ListenAddress::Tcp(_) => None,
            ListenAddress::Unix(path) => {
                let Ok(file) = SocketFile::new(path) else { return Ok(None) };
                make_accessible(&address, path, group, MODE)?;
                Some(file)
            }
        };
        Ok(Some(Self { address, socket, file, foreign: false }))
    }

    /// A socket that listens already, and that is the service manager's: it is neither shut down nor is its file removed.
    pub fn activated(address: ListenAddress, socket: OwnedFd) -> Self {
        Self { address, socket, file: None, foreign: true }
    }

    /// Where it listens; the port is the true one.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Another descriptor of the socket. The file of a Unix socket goes with the listener.
    ///
    /// # Errors
    /// When the process has no more descriptors.
    pub fn try_clone_socket(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// The socket, and what has to live as long as it is used.
    pub(crate) fn into_parts(self) -> (OwnedFd, Option<SocketFile>) {
        (self.socket, self.file)
    }

    /// True where the service manager listens on.
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign
    }
}

/// The file of a Unix socket; removed when dropped, unless something else has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    /// Another process listens there from now on.
    kept: bool,
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)?, kept: false })
    }

    /// It stays: another process listens there.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.kept
            && identity(&self.path).is_ok_and(|identity| identity == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket's file");
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Connections that the system queues before they are accepted.
const BACKLOG: i32 = 128;
/// Who may connect to a Unix socket: the owner and the group. Whoever may can read and write the volumes.
const MODE: u32 = 0o660;

/// Listen on an address. A Unix socket is for the user and the group of this process.
///
/// # Errors
/// Names the address; [`BindError::remedy`] says what to do. Nothing is left behind.
pub fn bind(address: &ListenAddress) -> Result<Listener, BindError> {
    bind_for_group(address, None)
}

/// Listen on an address. A Unix socket is for the user of this process and the group of this number, or else this process's.
///
/// # Errors
/// As [`bind`], and when the socket cannot be given to the group.
pub fn bind_for_group(address: &ListenAddress, group: Option<u32>) -> Result<Listener, BindError> {
    bind_with_mode(address, group, MODE)
}

/// The same with another mode of a Unix socket.
///
/// # Errors
/// As [`bind_for_group`].
pub fn bind_with_mode(address: &ListenAddress, group: Option<u32>, mode: u32) -> Result<Listener, BindError> {
    match address {
        ListenAddress::Unix(path) => bind_unix(address, path, group, mode),
        ListenAddress::Tcp(tcp) => bind_tcp(address, *tcp),
    }
}

fn bind_unix(
    address: &ListenAddress,
    path: &Path,
    group: Option<u32>,
    mode: u32,
) -> Result<Listener, BindError> {
    let failed = |error| BindError::from_system(address, error);
    let name = SockAddr::unix(path).map_err(|_| BindError::PathTooLong { address: address.clone() })?;
    remove_stale(address, path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed)?;
    socket.bind(&name).map_err(failed)?;
    let file = SocketFile::new(path).map_err(failed)?;
    // Nobody can connect before it listens, so nobody slips in before the mode is set.
    make_accessible(address, path, group, mode)?;
    socket.listen(BACKLOG).map_err(failed)?;
    Ok(Listener { address: address.clone(), socket: socket.into(), file: Some(file), foreign: false })
}

/// Let the owner and the group connect, and nobody else.
fn make_accessible(
    address: &ListenAddress,
    path: &Path,
    group: Option<u32>,
    mode: u32,
) -> Result<(), BindError> {
    if let Some(group) = group {
        lchown(path, None, Some(group)).map_err(|source| BindError::Group {
            address: address.clone(),
            group,
            source,
        })?;
    }
    let accessible = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    accessible.map_err(|error| BindError::from_system(address, error))
}

/// Remove the file of a socket on which nobody listens any more.
fn remove_stale(address: &ListenAddress, path: &Path) -> Result<(), BindError> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(BindError::NotASocket { address: address.clone() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| BindError::from_system(address, error))
        }
        // Gone since we looked.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(BindError::from_system(address, error))
        }
        _ => Err(BindError::InUse { address: address.clone() }),
    }
}

fn bind_tcp(address: &ListenAddress, tcp: SocketAddr) -> Result<Listener, BindError> {
    let socket = listen_tcp(tcp).map_err(|error| BindError::from_system(address, error))?;
    let bound = socket.local_addr().ok().and_then(|bound| bound.as_socket());
    let address = ListenAddress::Tcp(bound.unwrap_or(tcp));
    Ok(Listener { address, socket: socket.into(), file: None, foreign: false })
}

fn listen_tcp(tcp: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(tcp), Type::STREAM, None)?;
    // Otherwise connections of a server just ended keep the port for minutes.
    socket.set_reuse_address(true)?;
    socket.bind(&tcp.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn unix(directory: &tempfile::TempDir, name: &str) -> ListenAddress {
        ListenAddress::Unix(directory.path().join(name))
    }

    #[test]
    fn a_socket_file_lives_as_long_as_its_listener() {
        let directory = tempfile::tempdir().unwrap();
        let listener = bind(&unix(&directory, "s")).unwrap();
        UnixStream::connect(directory.path().join("s")).unwrap();
        drop(listener);
        assert!(!directory.path().join("s").exists());
    }

    #[test]
    fn a_socket_is_for_its_owner_and_its_group() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let own = fs::metadata(directory.path()).unwrap().gid();
        for group in [None, Some(own)] {
            let _listener = bind_for_group(&unix(&directory, "s"), group).unwrap();
            let meta = fs::metadata(&path).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o660);
            assert_eq!(meta.gid(), own);
        }
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let other = UnixListener::bind(&path).unwrap();
        assert!(matches!(bind(&unix(&directory, "s")), Err(BindError::InUse { .. })));
        drop(other);
        assert!(path.exists(), "std leaves the file behind");
        bind(&unix(&directory, "s")).unwrap();
    }

    #[test]
    fn another_servers_file_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let listener = bind(&unix(&directory, "s")).unwrap();
        let path = directory.path().join("s");
        fs::rename(&path, directory.path().join("old")).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(listener);
        assert!(path.exists());
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "precious").unwrap();
        let error = bind(&unix(&directory, "file")).unwrap_err();
        assert!(
            matches!(error, BindError::NotASocket { .. }) && error.to_string().contains("/file"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "precious");
        let error = bind(&unix(&directory, "missing/s")).unwrap_err();
        assert!(
            matches!(error, BindError::NoDirectory { .. }) && error.remedy().ends_with("/missing"),
            "{error}"
        );
        let error = bind(&unix(&directory, &"x".repeat(120))).unwrap_err();
        assert!(matches!(error, BindError::PathTooLong { .. }), "{error}");
    }

    #[test]
    fn a_port_in_use_is_named() {
        let any = ListenAddress::Tcp("127.0.0.1:0".parse().unwrap());
        let first = bind(&any).unwrap();
        let error = bind(first.address()).unwrap_err();
        let ListenAddress::Tcp(taken) = first.address() else { panic!() };
        assert_ne!(taken.port(), 0);
        assert_eq!(error.to_string(), format!("tcp:{taken} is in use by another server"));
        assert!(error.remedy().contains(&taken.port().to_string()));
    }

    #[test]
    fn a_foreign_address_is_named() {
        let error = bind(&ListenAddress::Tcp("192.0.2.1:0".parse().unwrap())).unwrap_err();
        assert!(matches!(error, BindError::NotHere { .. }), "{error}");
    }
}
