//! What the service manager started this process with: sockets of its units (socket activation), and what the daemon before left in its store.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use larder_export::nbd::{NbdCommand, Unresumed};
use larder_export::{BindError, ClientState, ExportCommand, ListenAddress, Listener};
use larder_io::Handle;
use socket2::SockRef;

use super::ServeError;
use crate::config::Config;
use crate::exported::Exported;
use crate::handed;
use crate::manager;

/// What has not been taken yet.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    /// Sockets that listen, each with where; true for those of a unit.
    listeners: Vec<(ListenAddress, OwnedFd, bool)>,
    /// Connections, by their inodes.
    clients: Vec<(u64, OwnedFd)>,
    /// What tells how far these are.
    state: Option<OwnedFd>,
    /// Something was left by the daemon before.
    left: bool,
}

impl Inherited {
    /// Take everything. To be called before anything is opened.
    pub fn take() -> Result<Self, ServeError> {
        let failed =
            |source| ServeError::Os { action: "take over the service manager's descriptors", source };
        let mut inherited = Self::default();
        for (name, fd) in larder_io::inherited_descriptors().map_err(failed)? {
            inherited.add(&name, fd);
        }
        Ok(inherited)
    }

    fn add(&mut self, name: &str, fd: OwnedFd) {
        self.left |= handed::NAMES.contains(&name);
        match name {
            handed::STATE => self.state = Some(fd),
            handed::CLIENT => match handed::inode(&fd) {
                Ok(inode) => self.clients.push((inode, fd)),
                Err(error) => tracing::warn!(%error, "a connection cannot be taken over, and is closed"),
            },
            _ => match address(&fd) {
                Some(address) => self.listeners.push((address, fd, name != handed::LISTENER)),
                None => tracing::warn!(
                    name,
                    "the service manager has passed a descriptor on which nothing listens: it is closed"
                ),
            },
        }
    }

    /// The listener at an address, if there is one.
    pub fn listener(
        &mut self,
        address: &ListenAddress,
        group: Option<u32>,
    ) -> Result<Option<Listener>, BindError> {
        let Some((fd, activated)) = self.find(address) else { return Ok(None) };
        match activated {
            true => Ok(Some(Listener::activated(address.clone(), fd))),
            false => Listener::inherited(address.clone(), fd, group),
        }
    }

    /// The control socket, if the manager listens there.
    pub fn control(&mut self, path: &Path) -> Option<UnixListener> {
        let (fd, _) = self.find(&ListenAddress::Unix(path.to_owned()))?;
        Some(fd.into())
    }

    /// True if the manager listens there.
    pub fn has(&self, path: &Path) -> bool {
        self.listeners.iter().any(|(at, ..)| matches!(at, ListenAddress::Unix(at) if at == path))
    }

    fn find(&mut self, address: &ListenAddress) -> Option<(OwnedFd, bool)> {
        let place = self.listeners.iter().position(|(at, ..)| at == address)?;
        // Not a swap: units' sockets come first, and count more than one that was kept from the time before them.
        let (_, fd, activated) = self.listeners.remove(place);
        self.listeners.retain(|(at, ..)| at != address);
        Some((fd, activated))
    }

    /// Tell reactors that do not run yet to go on with the clients. From here on nobody else can: what a later process finds in the store says nothing any more.
    pub fn resume(mut self, config: &Config, exported: &Exported, reactors: &[Handle<ExportCommand>]) {
        for (address, ..) in &self.listeners {
            tracing::warn!(%address, "passed by the service manager, but not in the configuration: nobody is served there");
        }
        let came = self.clients.len();
        let known = self.known().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read how far the connections of the daemon before are");
            Vec::new()
        });
        let mut resumed = 0;
        for (fd, state) in known {
            let (volume, copy) = (state.export.clone(), fd.try_clone());
            match resume(fd, state, config, exported, reactors) {
                Ok(()) => resumed += 1,
                Err(why) => {
                    tracing::warn!(volume, "a client of the daemon before is let go: {why}");
                    copy.iter().for_each(let_go);
                }
            }
        }
        self.clients.iter().for_each(|(_, fd)| let_go(fd));
        if came > 0 {
            tracing::info!("{resumed} of {came} connections of the daemon before go on");
        }
        if self.left {
            handed::NAMES.iter().for_each(|name| manager::forget(name));
        }
    }

    /// The clients of whom something is known; the others are closed.
    fn known(&mut self) -> io::Result<Vec<(OwnedFd, ClientState)>> {
        let Some(file) = self.state.take() else { return Ok(Vec::new()) };
        let states = handed::read(&file);
        // Whatever it says, it is not to be read again.
        handed::empty(&file)?;
        let mut sockets = std::mem::take(&mut self.clients);
        let with_socket = |(inode, state)| {
            let place = sockets.iter().position(|(of, _)| *of == inode)?;
            Some((sockets.swap_remove(place).1, state))
        };
        let known = states.map(|states| states.into_iter().filter_map(with_socket).collect());
        self.clients = sockets;
        known
    }
}

/// A client that nobody goes on with learns of it at once, even if the manager keeps its connection.
fn let_go(fd: &OwnedFd) {
    // One that has left already need not be told.
    let _ = SockRef::from(fd).shutdown(Shutdown::Both);
}

/// Tell the reactor of its volume to go on with a client.
fn resume(
    fd: OwnedFd,
    state: ClientState,
    config: &Config,
    exported: &Exported,
    reactors: &[Handle<ExportCommand>],
) -> Result<(), String> {
    let volume = config.volumes().find(|volume| volume.name == state.export);
    let table = volume.and_then(|volume| exported.table(volume.nbd.as_ref()?));
    let gone = |why: Unresumed| why.to_string();
    let (reactor, command) =
        NbdCommand::resume(&table.ok_or_else(|| gone(Unresumed::Gone))?, fd, state).map_err(gone)?;
    let told = reactors[reactor].frontend(ExportCommand::Nbd(command));
    told.map_err(|error| error.to_string())
}

/// Where a socket listens; `None` where it does not, or not where a configuration could say.
fn address(fd: &OwnedFd) -> Option<ListenAddress> {
    let socket = SockRef::from(fd);
    let listens = rustix::net::sockopt::socket_acceptconn(fd.as_fd()).ok()?;
    let address = socket.local_addr().ok().filter(|_| listens)?;
    let unix = address.as_pathname().map(|path| ListenAddress::Unix(path.to_owned()));
    unix.or_else(|| address.as_socket().map(ListenAddress::Tcp))
}
