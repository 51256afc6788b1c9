//! What a frontend that stops leaves to the next process, where there is an heir: its listeners, and its clients in the midst of their connections.
//!
//! Only the ownership of sockets changes. A client is left when everything that it asked for is answered, so all that there is to say of it is what was agreed on
//! with it, and what it has sent since that was not yet understood.

use crate::listener::{ListenAddress, SocketFile};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Sender;

/// To whom a frontend leaves what it has.
pub type Heir = Sender<Handed>;

/// Something that is left.
#[derive(Debug)]
pub enum Handed {
    /// Where clients come.
    Listener(HandedListener),
    /// A client of the NBD server that is being served.
    Client {
        /// Its connection.
        socket: OwnedFd,
        /// What there is to know of it.
        state: Box<ClientState>,
    },
}

/// A listener that is left. Dropping it removes the file of a Unix socket; see [`HandedListener::leave`].
#[derive(Debug)]
pub struct HandedListener {
    address: ListenAddress,
    socket: OwnedFd,
    file: Option<SocketFile>,
    foreign: bool,
}

impl HandedListener {
    pub(crate) fn new(
        address: ListenAddress,
        socket: OwnedFd,
        file: Option<SocketFile>,
        foreign: bool,
    ) -> Self {
        Self { address, socket, file, foreign }
    }

    /// Where it listens.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// True where the service manager has it already: it is none of ours to leave.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Somebody else has the socket now: its file stays.
    pub fn leave(self) {
        self.file.into_iter().for_each(SocketFile::keep);
    }
}

impl AsFd for HandedListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A client of the NBD server between two requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientState {
    /// The export that it uses.
    pub export: String,
    /// What said which disk that was.
    pub identity: String,
    /// The export's size, in bytes.
    pub bytes: u64,
    /// The smallest unit of its requests, in bytes.
    pub min_block: u32,
    /// The transmission flags that it was told.
    pub flags: u16,
    /// Replies to its reads are structured.
    pub structured: bool,
    /// It may ask for extents of `base:allocation`.
    pub base_allocation: bool,
    /// Bytes of a refused write's payload that are still to come, before or behind the beginning of `stream`.
    pub skip: u64,
    /// What it has sent that is not understood yet: begins with a request's header, after `skip`.
    #[serde(skip)]
    pub stream: Vec<u8>,
}
