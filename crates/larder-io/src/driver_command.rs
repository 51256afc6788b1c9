//! Commands to the driver of a device (io_uring's `uring_cmd`): what such a command does, and when it ends, the driver decides.
//!
//! A command may wait in its driver for as long as the device lives, as those do that fetch a block device's requests. So a reactor that
//! ends does not wait for commands: they own no memory, and when its ring goes the driver lets go of them.

use crate::frontend::Event;
use crate::lane::{Lane, Operation};
use crate::{Context, SocketId};
use io_uring::opcode;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of a command that go to the driver with it.
pub const DRIVER_COMMAND_BYTES: usize = 16;

impl Context {
    /// Hand over a device, for [`Context::command`]. It stays as it is. Fails at [`crate::SOCKETS_MAX`].
    pub fn adopt_device(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        self.lane.adopt_unregistered(fd)
    }

    /// Give a command to a device's driver; ends in [`Event::Commanded`] when the driver says so, or never.
    ///
    /// # Safety
    /// By the driver's rules the command names no memory of this process.
    #[inline]
    pub unsafe fn command(
        &mut self,
        device: SocketId,
        operation: u32,
        command: [u8; DRIVER_COMMAND_BYTES],
        token: u64,
    ) {
        let Some(file) = self.lane.begin(device) else {
            self.events.push_back(Event::Commanded { token, result: -libc::EBADF });
            return;
        };
        self.lane.commands += 1;
        // SAFETY: the bytes are copied into the entry; the caller vouches for what they mean.
        unsafe {
            self.lane.start(file, Operation::Command { socket: device, token }, |_, fd| {
                opcode::UringCmd16::new(fd, operation).cmd(command).build()
            });
        }
    }
}

impl Lane {
    /// A command has ended.
    #[inline]
    pub fn end_command(&mut self) {
        self.commands = self.commands.saturating_sub(1);
    }
}
