//! What a client can make the server hold, and for how long.

use std::time::Duration;

/// Connections of one listener, whichever reactor serves them. A guest uses one to sixteen.
pub const CONNECTIONS_PER_LISTENER: usize = 128;
/// Requests of one connection that are being executed or whose replies are not sent yet. The server stops receiving at this
/// number. Linux's client and QEMU use up to 128 and 16.
pub const REQUESTS_PER_CONNECTION: usize = 256;
/// Bytes of data of such requests, at which the server stops receiving. The request that crosses the line is still taken, so that
/// one of the longest (32 MiB) always finds room: a connection holds less than 96 MiB.
pub const BYTES_PER_CONNECTION: usize = 64 << 20;
/// Of a reactor's budget for data, one part in this many is kept back: it is for receive buffers and the engine's staging memory.
pub const MEMORY_KEPT_BACK: usize = 4;
/// Memory of the longest request.
pub const REQUEST_MEMORY_MAX: usize = larder_io::BUFFER_MAX;
/// Queries for the status of blocks that all connections of a reactor get answered in one turn of its loop. Each costs system
/// calls that delay everybody; the rest is answered in the next turns.
pub const STATUS_PER_TURN: usize = 8;
/// Such queries of one connection.
pub const STATUS_PER_CONNECTION_TURN: usize = 4;
/// Receive buffer of a connection during the handshake.
pub const HANDSHAKE_BUFFER_BYTES: usize = 4 << 10;
/// Receive buffer of a connection: a full queue of 4 KiB writes at depth 32 in one call.
pub const RECEIVE_BUFFER_BYTES: usize = 128 << 10;
/// Longest payload of a write that is received through the receive buffer when it has not come whole with its header. What is
/// longer goes straight to the request's own buffer. Together with a header it has to fit the receive buffer.
pub const COPIED_PAYLOAD_BYTES_MAX: usize = 32 << 10;
/// From accept to the end of the handshake.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// For the last replies to go out, after the client said goodbye or the server stops, once all requests have ended.
pub const FAREWELL_TIME_MAX: Duration = Duration::from_secs(10);
/// While requests wait for memory that a tenant holds: how long one of its connections may hold some without moving a byte.
pub const STALL_TIME_MAX: Duration = Duration::from_secs(10);
/// Send lists kept for reuse on one reactor (6 KiB each).
pub const SPARE_SEND_LISTS: usize = 64;

const _: () =
    assert!(COPIED_PAYLOAD_BYTES_MAX + larder_nbd::consts::REQUEST_BYTES <= RECEIVE_BUFFER_BYTES / 2);
