//! The one queue of a device on its reactor: commands that fetch requests, the memory in which the driver describes them, and the way of
//! their data.

use super::abi::{COMMIT_AND_FETCH_REQ, Descriptor, FETCH_REQ, data_offset, queue_command};
use larder_io::{Context, SocketId};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

/// The driver's descriptors, one for each tag.
#[derive(Debug)]
struct Descriptors {
    memory: NonNull<Descriptor>,
    bytes: usize,
    depth: u16,
}

// SAFETY: the memory belongs to the process, not to a thread, and is only read.
unsafe impl Send for Descriptors {}

impl Descriptors {
    fn map(file: &File, depth: u16) -> io::Result<Self> {
        // SAFETY: asks for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let bytes = (usize::from(depth) * size_of::<Descriptor>()).next_multiple_of(page);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        let memory = NonNull::new(memory).filter(|memory| memory.as_ptr() != libc::MAP_FAILED);
        let memory = memory.ok_or_else(io::Error::last_os_error)?.cast();
        Ok(Self { memory, bytes, depth })
    }

    fn get(&self, tag: u16) -> Option<Descriptor> {
        // SAFETY: within the mapping. The driver writes a descriptor before it hands the request over, and not again before it is
        // given back; were it otherwise, any bytes are a valid descriptor.
        (tag < self.depth).then(|| unsafe { self.memory.add(tag.into()).read_volatile() })
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

/// A device's character device, in use.
#[derive(Debug)]
pub(super) struct Queue {
    descriptors: Descriptors,
    /// For data.
    file: File,
    /// For commands.
    socket: SocketId,
}

impl Queue {
    /// Take a character device over, and fetch all that it has. `token` makes the token of a tag's command.
    pub fn new(cx: &mut Context, file: File, depth: u16, token: impl Fn(u16) -> u64) -> io::Result<Self> {
        let descriptors = Descriptors::map(&file, depth)?;
        let socket = cx.adopt_device(file.try_clone()?.into())?;
        let queue = Self { descriptors, file, socket };
        (0..depth).for_each(|tag| queue.command(cx, FETCH_REQ, tag, 0, token(tag)));
        Ok(queue)
    }

    /// Give a request back, and fetch the next of its tag.
    #[inline]
    pub fn commit(&self, cx: &mut Context, tag: u16, result: i32, token: u64) {
        self.command(cx, COMMIT_AND_FETCH_REQ, tag, result, token);
    }

    #[inline]
    fn command(&self, cx: &mut Context, operation: u32, tag: u16, result: i32, token: u64) {
        // SAFETY: the command names no memory.
        unsafe { cx.command(self.socket, operation, queue_command(tag, result), token) };
    }

    /// What a tag's request asks.
    #[inline]
    pub fn descriptor(&self, tag: u16) -> Option<Descriptor> {
        self.descriptors.get(tag)
    }

    /// Copy the data that a request writes.
    #[inline]
    pub fn read_data(&self, tag: u16, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, data_offset(tag))
    }

    /// Copy the data that a request reads.
    #[inline]
    pub fn write_data(&self, tag: u16, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, data_offset(tag))
    }

    /// Close the character device. False where a command is still in the driver.
    pub fn close(self, cx: &mut Context) -> bool {
        let closed = cx.detach(self.socket).is_some();
        if !closed {
            cx.close(self.socket);
        }
        closed
    }
}
