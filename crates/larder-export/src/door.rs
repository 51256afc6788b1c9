//! A listener at work on a reactor: it accepts one client after the other, and goes on after errors.

use crate::listener::{ListenAddress, Listener, SocketFile};
use larder_io::{Context, SocketId};
use std::io;
use std::os::fd::OwnedFd;

/// A listener, from before it is adopted until it is closed.
#[derive(Debug)]
pub(crate) struct Door {
    address: ListenAddress,
    /// Until it is adopted.
    fd: Option<OwnedFd>,
    socket: Option<SocketId>,
    /// Removed when it is closed.
    file: Option<SocketFile>,
    accepting: bool,
}

impl Door {
    pub fn new(listener: Listener) -> Self {
        let address = listener.address().clone();
        let (fd, file) = listener.into_parts();
        Self { address, fd: Some(fd), socket: None, file, accepting: false }
    }

    /// Where clients come.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Begin to accept, or begin again after an error; each client ends in an event with this token.
    pub fn open(&mut self, cx: &mut Context, token: u64) {
        if let Some(fd) = self.fd.take() {
            match cx.adopt(fd) {
                Ok(socket) => self.socket = Some(socket),
                Err(error) => tracing::error!(address = %self.address, %error, "cannot listen"),
            }
        }
        if let Some(socket) = self.socket
            && !self.accepting
        {
            self.accepting = true;
            cx.accept(socket, token);
        }
    }

    /// A client came, or the wait for one failed. The door is to be opened for the next: where this failed not before some time
    /// has passed, so that a lasting error does not keep the reactor busy.
    pub fn accepted(&mut self, result: io::Result<OwnedFd>) -> Option<OwnedFd> {
        self.accepting = false;
        // A closed door's last wait fails too.
        if self.socket.is_some()
            && let Err(error) = &result
        {
            tracing::warn!(address = %self.address, %error, "cannot accept a connection");
        }
        result.ok()
    }

    /// Accept nobody any more.
    pub fn close(&mut self, cx: &mut Context) {
        self.fd = None;
        self.file = None;
        self.socket.take().into_iter().for_each(|socket| cx.close(socket));
    }
}
