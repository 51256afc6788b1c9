//! What a guest can make the device hold.

/// Queues of a device. Guests use one for each of their processors, up to this.
pub const QUEUES_MAX: u16 = 16;
/// Descriptors of a queue.
pub const QUEUE_SIZE_MAX: u16 = 1024;
/// Pieces of data of a request, as guests are told: what Linux and QEMU use, two less than a queue of 128.
pub const SEGMENTS_TOLD: u32 = 126;
/// Descriptors of a request at most. Guests that keep to [`SEGMENTS_TOLD`] need less.
pub const DESCRIPTORS_MAX: usize = 1024;
/// Bytes of data of a request.
pub const REQUEST_BYTES_MAX: usize = larder_io::BUFFER_MAX;
/// Bytes of data of all requests of a device that are being executed, above which no more are taken. One request is taken in
/// any case.
pub const BYTES_PER_DEVICE: usize = 16 << 20;
/// Requests of one queue that are taken in one turn of the reactor, so that its other guests have their turn.
pub const REQUESTS_PER_TURN: usize = 64;
/// Requests of one queue that are taken and read before the first of them is begun with.
pub const AHEAD: usize = 8;
/// Turns of the reactor in which a queue is looked at in vain before its guest is asked to tell of new requests.
pub const IDLE_TURNS: u32 = 256;
/// Sectors of a discard, or of writing zeroes, in one request: 1 GiB.
pub const CLEAR_SECTORS_MAX: u32 = 1 << 21;
/// Regions of guest memory.
pub const MEMORY_REGIONS_MAX: usize = 509;
