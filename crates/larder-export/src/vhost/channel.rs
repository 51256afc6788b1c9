//! The channel on which the hypervisor is told that the device's configuration has changed: a volume has grown.
//!
//! It comes with a message of the hypervisor ([`VhostUserProtocolFeatures::BACKEND_REQ`]) that the `vhost` crate takes, without a way to send this one on the
//! channel that it makes of it. So each message is looked at before the crate takes it, and this one's descriptor is kept.
//!
//! [`VhostUserProtocolFeatures::BACKEND_REQ`]: vhost::vhost_user::message::VhostUserProtocolFeatures

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `VHOST_USER_SET_BACKEND_REQ_FD`.
const SET_CHANNEL: u32 = 21;
/// `VHOST_USER_BACKEND_CONFIG_CHANGE_MSG`.
const CONFIG_CHANGE: u32 = 2;
/// The protocol's version, in a message's flags.
const VERSION: u32 = 1;
/// A message's request, flags and size of what follows.
const HEADER_BYTES: usize = 12;

/// What the reactor tells a connection's hypervisor, past the connection's thread.
#[derive(Debug)]
pub(super) struct Channel {
    /// The volume's size.
    bytes: AtomicU64,
    to: Mutex<Option<OwnedFd>>,
}

impl Channel {
    /// For a volume of this size; the hypervisor has not said yet where it listens.
    pub fn new(bytes: u64) -> Self {
        Self { bytes: AtomicU64::new(bytes), to: Mutex::new(None) }
    }

    /// The volume's size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    /// The volume has another size: the hypervisor is told to look, if it listens. Never waits for it.
    pub fn resize(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::SeqCst);
        let header = [CONFIG_CHANGE, VERSION, 0].map(u32::to_ne_bytes).concat();
        if let Some(to) = &*self.lock() {
            // One that is gone, or does not listen, asks when it connects again.
            let _ = send(to, &header, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }

    /// Wait for the next message of a connection, and keep the descriptor that it brings, if it is for this.
    pub fn look(&self, stream: &UnixStream) -> io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        let (_, found) = recv(stream, &mut header, RecvFlags::PEEK)?;
        let request = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        if found < HEADER_BYTES || request != SET_CHANNEL {
            return Ok(());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::PEEK | RecvFlags::CMSG_CLOEXEC;
        recvmsg(stream, &mut [IoSliceMut::new(&mut header)], &mut beside, flags)?;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                *self.lock() = descriptors.last();
            }
        }
        Ok(())
    }

    /// The value is whole between statements.
    fn lock(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    fn pass(over: &UnixStream, what: &UnixStream) {
        let header = [SET_CHANNEL, VERSION, 0].map(u32::to_ne_bytes).concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = rustix::net::SendAncillaryBuffer::new(&mut space);
        let descriptors = [what.as_fd()];
        assert!(beside.push(rustix::net::SendAncillaryMessage::ScmRights(&descriptors)));
        rustix::net::sendmsg(over, &[io::IoSlice::new(&header)], &mut beside, SendFlags::empty()).unwrap();
    }

    #[test]
    fn the_hypervisor_is_told_on_the_channel_that_it_has_passed() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (channel_end, mut their_end) = UnixStream::pair().unwrap();
        let channel = Channel::new(512);
        channel.resize(1024);
        assert_eq!(channel.bytes(), 1024, "also where nobody listens");
        theirs.write_all(&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        channel.look(&ours).unwrap();
        (&ours).read_exact(&mut [0; HEADER_BYTES]).unwrap();
        pass(&theirs, &channel_end);
        channel.look(&ours).unwrap();
        (&ours).read_exact(&mut [0; HEADER_BYTES]).unwrap();
        channel.resize(4096);
        let mut told = [0; HEADER_BYTES];
        their_end.read_exact(&mut told).unwrap();
        assert_eq!(told, [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        drop(their_end);
        channel.resize(8192);
        assert_eq!(channel.bytes(), 8192, "a hypervisor that is gone is no harm");
    }
}
