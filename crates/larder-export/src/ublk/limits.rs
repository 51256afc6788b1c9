//! What a device can make the reactor hold.

/// Requests that the kernel may have waiting in a device.
pub const QUEUE_DEPTH: u16 = 128;
/// Requests of a device that an older daemon made, at most.
pub const QUEUE_DEPTH_MAX: u16 = 4096;
/// Bytes of data of a request.
pub const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Bytes of data of all requests of a device that are being executed, above which no more are begun. One is begun in any case.
pub const BYTES_PER_DEVICE: usize = 16 << 20;
/// Sectors of a discard, or of writing zeroes, in one request: 1 GiB.
pub const CLEAR_SECTORS_MAX: u32 = 1 << 21;
/// Devices of the host that are looked at for those of our volumes.
pub const DEVICES_MAX: usize = 4096;

const _: () = assert!(REQUEST_BYTES_MAX as usize <= larder_io::BUFFER_MAX);
