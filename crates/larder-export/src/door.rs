//! A listener at work on a reactor: it accepts one client after the other, goes on after errors, and is closed or left to another process in the end.

use crate::handover::{Handed, HandedListener, Heir};
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
    /// The service manager listens there too: the socket is not to be shut down.
    foreign: bool,
    accepting: bool,
    /// The socket is let go of once nothing works on it any more.
    leaving: bool,
    heir: Option<Heir>,
}

impl Door {
    pub fn new(listener: Listener) -> Self {
        let (address, foreign) = (listener.address().clone(), listener.is_foreign());
        let (fd, file) = listener.into_parts();
        let (socket, heir) = (None, None);
        Self { address, fd: Some(fd), socket, file, foreign, accepting: false, leaving: false, heir }
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
            && !self.leaving
        {
            self.accepting = true;
            cx.accept(socket, token);
        }
    }

    /// A client came, or the wait for one failed. The door is to be opened for the next: where this failed not before some time
    /// has passed, so that a lasting error does not keep the reactor busy.
    pub fn accepted(&mut self, cx: &mut Context, result: io::Result<OwnedFd>) -> Option<OwnedFd> {
        self.accepting = false;
        if self.leaving {
            self.let_go(cx);
        } else if self.socket.is_some()
            // A closed door's last wait fails too.
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
        match self.foreign {
            true => self.leave(cx, None),
            false => self.socket.take().into_iter().for_each(|socket| cx.close(socket)),
        }
    }

    /// Accept nobody any more, and leave the listener to the heir: those who come wait for the next process.
    pub fn leave(&mut self, cx: &mut Context, heir: Option<&Heir>) {
        self.leaving = true;
        self.heir = heir.cloned();
        match self.socket {
            Some(socket) if self.accepting => cx.interrupt(socket),
            _ => self.let_go(cx),
        }
    }

    /// Ask again for the end of what holds up leaving.
    pub fn urge(&mut self, cx: &mut Context) {
        if let Some(socket) = self.socket
            && self.leaving
        {
            cx.interrupt(socket);
        }
    }

    /// True from [`Door::leave`] until the listener is let go of.
    pub fn is_leaving(&self) -> bool {
        self.leaving && self.socket.is_some()
    }

    fn let_go(&mut self, cx: &mut Context) {
        let socket = self.socket.and_then(|socket| cx.detach(socket)).or(self.fd.take());
        self.socket = None;
        if let (Some(socket), Some(heir)) = (socket, self.heir.take()) {
            let listener = HandedListener::new(self.address.clone(), socket, self.file.take(), self.foreign);
            // Where the heir is gone everything is closed.
            let _ = heir.send(Handed::Listener(listener));
        }
    }
}
