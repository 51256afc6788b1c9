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
        // SAFETY: as the caller promises.
        if !unsafe { self.lane.start_command(device, operation, command, token) } {
            self.events.push_back(Event::Commanded { token, result: -libc::EBADF });
        }
    }
}

impl Lane {
    /// Start a command. False where the device is gone.
    ///
    /// # Safety
    /// As for [`Context::command`].
    #[inline]
    unsafe fn start_command(
        &mut self,
        device: SocketId,
        operation: u32,
        command: [u8; DRIVER_COMMAND_BYTES],
        token: u64,
    ) -> bool {
        let Some(file) = self.begin(device) else { return false };
        self.commands += 1;
        // SAFETY: the bytes are copied into the entry; the caller vouches for what they mean.
        unsafe {
            self.start(file, Operation::Command { socket: device, token }, |_, fd| {
                opcode::UringCmd16::new(fd, operation).cmd(command).build()
            });
        }
        true
    }

    /// A command has ended.
    #[inline]
    pub fn end_command(&mut self) {
        self.commands = self.commands.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;

    /// What the driver of a device says to a command.
    fn said(path: &str) -> i32 {
        let mut lane = Lane::new().unwrap();
        let device = lane.adopt_unregistered(File::open(path).unwrap().into()).unwrap();
        // SAFETY: neither of these drivers knows of memory.
        assert!(unsafe { lane.start_command(device, 0, [0; DRIVER_COMMAND_BYTES], 7) });
        assert_eq!((lane.commands, lane.in_flight()), (1, 0), "a ring that ends does not wait for it");
        assert!(lane.detach(device).is_none(), "it is still at work");
        let mut ended = Vec::new();
        lane.enter(Some(Duration::from_secs(10))).unwrap();
        lane.ring.collect(&mut ended, 8);
        let operation = lane.finish(ended[0].key).unwrap();
        assert!(matches!(operation, Operation::Command { token: 7, .. }), "{operation:?}");
        lane.end_command();
        lane.end(device);
        assert_eq!((lane.commands, lane.in_flight()), (0, 0));
        assert!(lane.detach(device).is_some());
        // SAFETY: nothing is started on a device that is gone.
        assert!(!unsafe { lane.start_command(device, 0, [0; DRIVER_COMMAND_BYTES], 7) });
        ended[0].result
    }

    #[test]
    fn a_driver_answers() {
        assert_eq!(said("/dev/null"), 0);
    }

    #[test]
    fn a_file_without_a_driver_refuses() {
        assert_eq!(said("/proc/self/status"), -libc::EOPNOTSUPP);
    }
}
