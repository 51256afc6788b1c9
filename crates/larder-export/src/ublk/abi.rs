//! The driver's structures and numbers (`linux/ublk_cmd.h`).

/// One more than the highest offset in the character device that is not data: descriptors are mapped below it.
const DATA_FROM: u64 = 0x8000_0000;
/// Bits of an offset within a request's data, then of its tag.
const DATA_BITS: u32 = 25;

/// A command to `/dev/ublk-control`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct ControlCommand {
    pub device: u32,
    pub queue: u16,
    pub len: u16,
    pub address: u64,
    pub data: u64,
    pub path_len: u16,
    pub pad: u16,
    pub reserved: u32,
}

/// What a device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct DeviceInfo {
    pub queues: u16,
    pub depth: u16,
    pub state: u16,
    pub pad0: u16,
    pub io_bytes_max: u32,
    pub id: u32,
    pub pid: i32,
    pub pad1: u32,
    pub flags: u64,
    /// Kept for the server, which may say here what it likes.
    pub mark: u64,
    pub owner_uid: u32,
    pub owner_gid: u32,
    pub reserved: [u64; 2],
}

/// What its disk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Params {
    pub len: u32,
    /// Which of the parts below are said.
    pub types: u32,
    pub attributes: u32,
    pub logical_shift: u8,
    pub physical_shift: u8,
    pub io_opt_shift: u8,
    pub io_min_shift: u8,
    pub sectors_max: u32,
    pub chunk_sectors: u32,
    pub sectors: u64,
    pub virt_boundary: u64,
    pub discard_alignment: u32,
    pub discard_granularity: u32,
    pub discard_sectors_max: u32,
    pub zeroes_sectors_max: u32,
    pub discard_segments_max: u16,
    pub reserved: u16,
    pub numbers: [u32; 4],
}

/// A request, as it lies in the memory that the driver shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Descriptor {
    pub op_flags: u32,
    pub sectors: u32,
    pub sector: u64,
    pub address: u64,
}

const _: () = {
    assert!(size_of::<ControlCommand>() == 32);
    assert!(size_of::<DeviceInfo>() == 64);
    assert!(size_of::<Params>() == 80);
    assert!(core::mem::offset_of!(Params, discard_alignment) == 40);
    assert!(core::mem::offset_of!(Params, numbers) == 60);
    assert!(size_of::<Descriptor>() == 24);
};

const fn code(direction: u32, number: u32, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | (b'u' as u32) << 8 | number
}

const fn control(direction: u32, number: u32) -> u32 {
    code(direction, number, size_of::<ControlCommand>())
}

const READS: u32 = 2;
const BOTH: u32 = 3;

pub(super) const GET_DEV_INFO: u32 = control(READS, 0x02);
pub(super) const ADD_DEV: u32 = control(BOTH, 0x04);
pub(super) const DEL_DEV: u32 = control(BOTH, 0x05);
pub(super) const START_DEV: u32 = control(BOTH, 0x06);
pub(super) const STOP_DEV: u32 = control(BOTH, 0x07);
pub(super) const SET_PARAMS: u32 = control(BOTH, 0x08);
pub(super) const GET_PARAMS: u32 = control(READS, 0x09);
pub(super) const START_USER_RECOVERY: u32 = control(BOTH, 0x10);
pub(super) const END_USER_RECOVERY: u32 = control(BOTH, 0x11);
pub(super) const GET_FEATURES: u32 = control(READS, 0x13);
pub(super) const DEL_DEV_ASYNC: u32 = control(READS, 0x14);
pub(super) const UPDATE_SIZE: u32 = control(BOTH, 0x15);

pub(super) const FETCH_REQ: u32 = code(BOTH, 0x20, 16);
pub(super) const COMMIT_AND_FETCH_REQ: u32 = code(BOTH, 0x21, 16);

pub(super) const F_USER_RECOVERY: u64 = 1 << 3;
pub(super) const F_USER_RECOVERY_REISSUE: u64 = 1 << 4;
pub(super) const F_CMD_IOCTL_ENCODE: u64 = 1 << 6;
pub(super) const F_USER_COPY: u64 = 1 << 7;
pub(super) const F_UPDATE_SIZE: u64 = 1 << 10;

pub(super) const STATE_DEAD: u16 = 0;
pub(super) const STATE_LIVE: u16 = 1;

pub(super) const PARAM_BASIC: u32 = 1 << 0;
pub(super) const PARAM_DISCARD: u32 = 1 << 1;

pub(super) const ATTR_READ_ONLY: u32 = 1 << 0;
pub(super) const ATTR_VOLATILE_CACHE: u32 = 1 << 2;
pub(super) const ATTR_FUA: u32 = 1 << 3;

pub(super) const OP_READ: u32 = 0;
pub(super) const OP_WRITE: u32 = 1;
pub(super) const OP_FLUSH: u32 = 2;
pub(super) const OP_DISCARD: u32 = 3;
pub(super) const OP_WRITE_ZEROES: u32 = 5;
/// Of [`Descriptor::op_flags`].
pub(super) const OP_MASK: u32 = 0xff;
pub(super) const IO_F_FUA: u32 = 1 << 13;
pub(super) const IO_F_NOUNMAP: u32 = 1 << 15;

/// What a command that fetches a request ends with once there will be none any more.
pub(super) const RESULT_ABORTED: i32 = -libc::ENODEV;

/// Where the data of a request of the only queue lies in the character device.
pub(super) fn data_offset(tag: u16) -> u64 {
    DATA_FROM + (u64::from(tag) << DATA_BITS)
}

/// A command on the only queue that fetches a request, or gives one back and fetches the next. It names no memory: data is copied by reading
/// and writing the character device.
pub(super) fn queue_command(tag: u16, result: i32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[2..4].copy_from_slice(&tag.to_ne_bytes());
    bytes[4..8].copy_from_slice(&result.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_kernel() {
        assert_eq!(ADD_DEV, 0xc020_7504);
        assert_eq!(GET_FEATURES, 0x8020_7513);
        assert_eq!(FETCH_REQ, 0xc010_7520);
        assert_eq!(data_offset(0), 0x8000_0000);
        assert_eq!(data_offset(3), 0x8000_0000 + (3 << 25));
    }

    #[test]
    fn a_command_says_queue_tag_and_result() {
        let bytes = queue_command(0x0102, -5);
        assert_eq!(bytes[..2], [0, 0], "the first queue");
        assert_eq!(u16::from_ne_bytes([bytes[2], bytes[3]]), 0x0102);
        assert_eq!(i32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]), -5);
        assert_eq!(bytes[8..], [0; 8], "no memory");
    }
}
