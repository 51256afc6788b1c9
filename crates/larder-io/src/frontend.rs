//! The contract between a reactor and what serves guests on it (an NBD server, a vhost-user device).
//!
//! A [`Frontend`] lives on the reactor's thread. The reactor calls it; it never blocks, and asks for everything through the
//! [`Context`] that each call brings: memory, socket operations, guest requests. Every operation started ends in
//! exactly one call: a socket operation in [`Frontend::event`], a guest request in [`Frontend::reply`], with the memory that
//! went in, also after [`Context::close`] and also when it failed. Nothing calls back from inside a `Context` method.

use crate::{Buffer, Context, SendList};
use larder_engine::{IoError, RequestKind, VolumeId};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// Serves guests on one reactor. Built outside, then moved into the reactor's thread.
pub trait Frontend: Send + 'static {
    /// What other threads may tell it through the reactor's handle.
    type Command: Send + 'static;

    /// The reactor runs: adopt the listeners, start the first accepts.
    fn start(&mut self, cx: &mut Context);
    /// Another thread sent a command.
    fn command(&mut self, cx: &mut Context, command: Self::Command);
    /// A socket operation ended.
    fn event(&mut self, cx: &mut Context, event: Event);
    /// A guest request ended, and its buffer comes back. After an error, a read's buffer holds no data of this guest
    /// and must not be sent.
    fn reply(&mut self, cx: &mut Context, cookie: u64, result: Result<(), IoError>, buffer: Option<Buffer>);
    /// Everything that had happened has been told: the moment to send what was gathered.
    fn end_of_batch(&mut self, cx: &mut Context);
    /// A volume has another size from now on.
    fn resized(&mut self, _cx: &mut Context, _volume: VolumeId, _info: VolumeInfo) {}
    /// About once a second while any socket is adopted: the moment to enforce deadlines.
    fn tick(&mut self, cx: &mut Context, now: Instant);
    /// Wind down: accept nothing new, finish what is in flight, close. The reactor goes on calling until [`Frontend::is_idle`]
    /// or its deadline.
    fn stop(&mut self, cx: &mut Context);
    /// After `stop`: nothing is left to do.
    fn is_idle(&self) -> bool;

    /// Look, without a system call, whether something has come that no event will tell: guests share memory with some
    /// frontends. Called again and again while the reactor polls; the work itself is for the next [`Frontend::end_of_batch`].
    #[inline]
    fn has_news(&self) -> bool {
        false
    }

    /// Something was given back, in this turn, to guests that share memory and may have asked for more by now: the rest of what has ended waits for the next turn, so that
    /// devices get new requests before all of a batch has been given back. Otherwise all requests under way would move as one, and devices rest meanwhile.
    #[inline]
    fn wants_turn(&self) -> bool {
        false
    }

    /// The reactor is about to sleep: ask for an event for everything that [`Frontend::has_news`] would see, then look once more.
    /// True where something has come: the reactor stays awake.
    fn before_sleep(&mut self, _cx: &mut Context) -> bool {
        false
    }
}

/// The end of a socket operation. `token` is the one given at its start.
#[derive(Debug)]
pub enum Event {
    /// [`Context::accept`] ended. It accepts once: accept again for the next.
    Accepted {
        /// As given.
        token: u64,
        /// The new connection (close-on-exec). Set its options, then [`Context::adopt`] it.
        result: io::Result<OwnedFd>,
    },
    /// [`Context::recv`] ended.
    Received {
        /// As given.
        token: u64,
        /// The buffer given.
        buffer: Buffer,
        /// Bytes received from the start of the range; 0 at the end of the stream.
        result: io::Result<usize>,
    },
    /// [`Context::send`] ended.
    Sent {
        /// As given.
        token: u64,
        /// The list given, as it was.
        list: SendList,
        /// Bytes sent behind the skipped ones. The kernel sends all unless the connection breaks, but count.
        result: io::Result<usize>,
    },
    /// [`Context::watch`] ended: the counter was not zero, and is now. It watches once: watch again for the next.
    Signalled {
        /// As given.
        token: u64,
        /// An error where the counter is gone, or closed.
        result: io::Result<()>,
    },
    /// [`Context::signal`] ended.
    SignalSent {
        /// As given.
        token: u64,
    },
    /// [`Context::command`] ended.
    Commanded {
        /// As given.
        token: u64,
        /// What the driver says; below zero an error number.
        result: i32,
    },
    /// The turn that [`Context::call_again`] asked for.
    CalledAgain,
}

/// What a guest asks. As [`larder_engine::Request`], before it has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestRequest {
    /// The volume asked, of this reactor.
    pub volume: VolumeId,
    /// What is asked.
    pub kind: RequestKind,
    /// First byte. Ignored for a flush.
    pub offset: u64,
    /// Number of bytes. Ignored for a flush. For reads and writes at most the length of the buffer that goes with it.
    pub len: u64,
    /// Reply when durable (writes and write-zeroes).
    pub fua: bool,
}

/// What a frontend needs to know of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Size in bytes.
    pub bytes: u64,
    /// Smallest unit of a request, in bytes; offsets and lengths are multiples of it: 512 or 4096.
    pub min_block: u32,
    /// Size of request that costs least per byte when small: the cache's block size.
    pub preferred_block: u32,
    /// The backing refuses writes.
    pub read_only: bool,
}

/// A run of bytes of a volume with the same allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of bytes; never zero.
    pub len: u64,
    /// Not allocated on the backing, and reads as zeroes.
    pub hole: bool,
}
