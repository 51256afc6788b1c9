//! Commands to `/dev/ublk-control`, one at a time, each waited for.

use super::abi::{
    ADD_DEV, ControlCommand, DEL_DEV, DEL_DEV_ASYNC, DeviceInfo, END_USER_RECOVERY, GET_DEV_INFO,
    GET_FEATURES, GET_PARAMS, Params, SET_PARAMS, START_DEV, START_USER_RECOVERY, STOP_DEV, UPDATE_SIZE,
};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::process;

/// The driver's door.
const PATH: &str = "/dev/ublk-control";
/// Not for a queue.
const NO_QUEUE: u16 = u16::MAX;

/// The control device, with a ring of its own: its commands are twice as long as those of the reactors' rings.
pub(super) struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl Control {
    pub fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(PATH)?;
        Ok(Self { file, ring: IoUring::builder().build(2)? })
    }

    /// What the driver can do. Drivers before Linux 6.5 cannot tell.
    pub fn features(&mut self) -> io::Result<u64> {
        let mut features = 0_u64;
        // SAFETY: the driver writes eight bytes.
        unsafe { self.with_memory(GET_FEATURES, u32::MAX, 0, &mut features) }?;
        Ok(features)
    }

    pub fn info(&mut self, id: u32) -> io::Result<DeviceInfo> {
        let mut info = DeviceInfo::default();
        // SAFETY: the driver writes a structure of this layout.
        unsafe { self.with_memory(GET_DEV_INFO, id, 0, &mut info) }?;
        Ok(info)
    }

    pub fn params(&mut self, id: u32) -> io::Result<Params> {
        let mut params = Params { len: size_of::<Params>() as u32, ..Params::default() };
        // SAFETY: the driver writes as much of a structure of this layout as its first field allows.
        unsafe { self.with_memory(GET_PARAMS, id, 0, &mut params) }?;
        Ok(params)
    }

    /// Make a device; the driver chooses its number.
    pub fn add(&mut self, wanted: &DeviceInfo) -> io::Result<DeviceInfo> {
        let mut info = DeviceInfo { id: u32::MAX, pid: process::id() as i32, ..*wanted };
        // SAFETY: the driver reads and writes a structure of this layout.
        unsafe { self.with_memory(ADD_DEV, u32::MAX, 0, &mut info) }?;
        Ok(info)
    }

    pub fn set_params(&mut self, id: u32, params: &Params) -> io::Result<()> {
        let mut params = Params { len: size_of::<Params>() as u32, ..*params };
        // SAFETY: the driver reads a structure of this layout.
        unsafe { self.with_memory(SET_PARAMS, id, 0, &mut params) }
    }

    /// Show the disk to the host. The driver waits for all commands that fetch requests, and the host reads its partitions.
    pub fn start(&mut self, id: u32) -> io::Result<()> {
        self.plain(START_DEV, id, process::id().into())
    }

    /// Take the disk from the host.
    pub fn stop(&mut self, id: u32) -> io::Result<()> {
        self.plain(STOP_DEV, id, 0)
    }

    /// Remove the device. It goes when the last who has it open closes it; drivers before Linux 6.7 wait for that.
    pub fn delete(&mut self, id: u32) -> io::Result<()> {
        self.plain(DEL_DEV_ASYNC, id, 0).or_else(|_| self.plain(DEL_DEV, id, 0))
    }

    /// Prepare a device whose server is gone for the next one.
    pub fn start_recovery(&mut self, id: u32) -> io::Result<()> {
        self.plain(START_USER_RECOVERY, id, 0)
    }

    /// Go on with it. The driver waits for all commands that fetch requests.
    pub fn end_recovery(&mut self, id: u32) -> io::Result<()> {
        self.plain(END_USER_RECOVERY, id, process::id().into())
    }

    /// Change the size of the disk, while it is in use or not.
    pub fn resize(&mut self, id: u32, sectors: u64) -> io::Result<()> {
        self.plain(UPDATE_SIZE, id, sectors)
    }

    fn plain(&mut self, operation: u32, id: u32, data: u64) -> io::Result<()> {
        // SAFETY: these commands name no memory; an empty value stands for that.
        unsafe { self.with_memory(operation, id, data, &mut ()) }
    }

    /// # Safety
    /// The driver takes the memory for a value of type `T`, and leaves one there.
    unsafe fn with_memory<T>(
        &mut self,
        operation: u32,
        id: u32,
        data: u64,
        memory: &mut T,
    ) -> io::Result<()> {
        let len = size_of::<T>() as u16;
        let address = if len > 0 { (&raw mut *memory) as u64 } else { 0 };
        let command =
            ControlCommand { device: id, queue: NO_QUEUE, len, address, data, ..ControlCommand::default() };
        let mut bytes = [0_u8; 80];
        // SAFETY: the structure has no padding, and is shorter than the command's place.
        unsafe {
            (&raw const command)
                .cast::<u8>()
                .copy_to_nonoverlapping(bytes.as_mut_ptr(), size_of_val(&command));
        }
        let fd = types::Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd80::new(fd, operation).cmd(bytes).build();
        // SAFETY: the memory is borrowed until the command's end, which is waited for.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        let result = loop {
            let entered = self.ring.submit_and_wait(1);
            if let Some(end) = self.ring.completion().next() {
                break end.result();
            }
            // A command that is on its way has our memory: its end has to be waited for, whatever happens.
            match entered {
                Err(error) if !is_interrupted(&error) && !self.ring.submission().is_empty() => {
                    // One that was not taken must not be taken later.
                    self.ring = IoUring::builder().build(2)?;
                    return Err(error);
                }
                _ => {}
            }
        };
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
    }
}

fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}
