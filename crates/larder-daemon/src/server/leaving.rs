//! The end of a daemon that another one follows: its listeners and clients go to the service manager, which passes them on.
//!
//! Only sockets change their owner. Everything that was answered is durable where it has to be by then, so that nothing else need be handed over; a daemon that did
//! not end well hands over nothing but its listeners, and its clients learn of that from their closed connections.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};

use larder_export::{ClientState, ExportCommand, Handed, HandedListener};
use larder_io::Handle;

use crate::handed;
use crate::manager;

/// What the reactors leave, from before they are told to stop.
pub(super) struct Leaving {
    handed: Receiver<Handed>,
    /// Descriptors that the manager takes.
    room: usize,
}

type Client = (OwnedFd, Box<ClientState>);

impl Leaving {
    /// Have the reactors leave what they have; `None` where nobody would take it.
    pub fn begin(reactors: &[Handle<ExportCommand>]) -> Option<Self> {
        let room = manager::store_size();
        if room == 0 {
            return None;
        }
        let (heir, handed) = channel();
        for reactor in reactors {
            if let Err(error) = reactor.frontend(ExportCommand::Leave(heir.clone())) {
                tracing::warn!(%error, "cannot tell a reactor to hand its clients over: they are closed");
            }
        }
        Some(Self { handed, room })
    }

    /// Give the manager what was left, after the reactors have ended: `clean` says whether everything that they answered is where it has to be.
    pub fn hand_over(self, clean: bool) {
        let (mut listeners, mut clients) = (Vec::new(), Vec::new());
        for handed in self.handed.try_iter() {
            match handed {
                // The manager passes these in any case.
                Handed::Listener(listener) if listener.is_foreign() => {}
                Handed::Listener(listener) => listeners.push(listener),
                Handed::Client { socket, state } => clients.push((socket, state)),
            }
        }
        let all = clients.len();
        clients.truncate(if clean { self.room.saturating_sub(listeners.len() + 1) } else { 0 });
        if clients.len() < all {
            let why =
                if clean { "the service manager's store is too small" } else { "the end was no clean one" };
            tracing::warn!(
                "{} connections are closed instead of being handed over: {why}",
                all - clients.len()
            );
        }
        let (listening, connected) = (listeners.len(), clients.len());
        match give(listeners, clients) {
            Ok(()) => {
                tracing::info!("{listening} listeners and {connected} connections wait for the next daemon")
            }
            Err(error) => {
                tracing::warn!(%error, "listeners and connections cannot be handed over, and are closed")
            }
        }
    }
}

fn give(listeners: Vec<HandedListener>, clients: Vec<Client>) -> io::Result<()> {
    let sockets: Vec<BorrowedFd<'_>> = listeners.iter().map(AsFd::as_fd).collect();
    manager::store(handed::LISTENER, &sockets)?;
    if !clients.is_empty() {
        give_clients(clients)?;
    }
    manager::barrier()?;
    listeners.into_iter().for_each(HandedListener::leave);
    Ok(())
}

/// The state goes first: a connection of which nothing is known is closed, a state without its connection does nothing.
fn give_clients(clients: Vec<Client>) -> io::Result<()> {
    let (sockets, states): (Vec<OwnedFd>, Vec<_>) = clients.into_iter().unzip();
    let with_inode = |(socket, state): (&OwnedFd, Box<ClientState>)| Ok((handed::inode(socket)?, *state));
    let states = sockets.iter().zip(states).map(with_inode).collect::<io::Result<_>>()?;
    manager::store(handed::STATE, &[handed::write(states)?.as_fd()])?;
    manager::store(handed::CLIENT, &sockets.iter().map(AsFd::as_fd).collect::<Vec<_>>())
}
