//! Replies on their way out: gathered until the end of a batch, then sent together, one operation at a time.

use super::limits::SPARE_SEND_LISTS;
use larder_io::{Buffer, Context, SendList, SocketId};
use std::collections::VecDeque;
use std::io;

/// Send lists kept for reuse by all connections of a reactor.
#[derive(Debug, Default)]
pub(super) struct SpareLists(Vec<SendList>);

impl SpareLists {
    fn take(&mut self) -> SendList {
        self.0.pop().unwrap_or_default()
    }

    /// Take an empty list back.
    fn give(&mut self, list: SendList) {
        if self.0.len() < SPARE_SEND_LISTS {
            self.0.push(list);
        }
    }
}

/// Replies that leave together, and the memory of their buffers.
#[derive(Debug)]
struct Batch {
    list: SendList,
    memory: usize,
}

/// The replies of one connection that are not sent yet. Bounded by what the connection may have in flight: it stops
/// receiving before this grows.
#[derive(Debug)]
pub(super) struct SendQueue {
    socket: SocketId,
    token: u64,
    waiting: VecDeque<Batch>,
    /// Segments that wait or are being sent.
    segments: usize,
    /// Memory of their buffers.
    memory: usize,
    /// Memory of the buffers that are being sent.
    sending_memory: usize,
    sending: bool,
    /// Bytes that the kernel took of what is being sent.
    taken: usize,
}

impl SendQueue {
    /// Sends end with this token.
    pub fn new(socket: SocketId, token: u64) -> Self {
        Self {
            socket,
            token,
            waiting: VecDeque::new(),
            segments: 0,
            memory: 0,
            sending_memory: 0,
            sending: false,
            taken: 0,
        }
    }

    /// Replies not sent yet.
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// Memory of their buffers, in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// True while the kernel has some.
    pub fn is_sending(&self) -> bool {
        self.sending
    }

    /// Append a header of at most [`larder_io::SEND_HEADER_BYTES`], and `len` bytes from the start of a buffer. False if
    /// that cannot be (a bug): the connection is out of step.
    #[inline]
    pub fn push(
        &mut self,
        cx: &mut Context,
        spare: &mut SpareLists,
        header: &[u8],
        payload: Option<(Buffer, usize)>,
    ) -> bool {
        if self.waiting.back().is_none_or(|batch| batch.list.is_full()) {
            self.waiting.push_back(Batch { list: spare.take(), memory: 0 });
        }
        let Some(batch) = self.waiting.back_mut() else { return false };
        let memory = payload.as_ref().map_or(0, |(buffer, _)| buffer.capacity());
        let pushed = batch.list.push(header, payload.map(|(buffer, len)| (buffer, 0..len)));
        if let Err(payload) = pushed {
            payload.into_iter().for_each(|(buffer, _)| cx.recycle(buffer));
            return false;
        }
        self.segments += 1;
        batch.memory += memory;
        self.memory += memory;
        true
    }

    /// Append bytes that have no buffer yet. False where there is no memory for them.
    pub fn push_bytes(&mut self, cx: &mut Context, spare: &mut SpareLists, bytes: &[u8]) -> bool {
        let Some(mut buffer) = cx.buffer_beyond(bytes.len()) else { return false };
        buffer.copy_from_slice(bytes);
        self.push(cx, spare, &[], Some((buffer, bytes.len())))
    }

    /// Send what waits, unless something is being sent.
    #[inline]
    pub fn start(&mut self, cx: &mut Context) {
        if self.sending {
            return;
        }
        if let Some(Batch { list, memory }) = self.waiting.pop_front() {
            self.sending = true;
            self.sending_memory = memory;
            self.taken = 0;
            cx.send(self.socket, list, 0, self.token);
        }
    }

    /// A list came back; where the kernel took only a part, the rest is sent. False if the connection is broken.
    #[inline]
    pub fn sent(
        &mut self,
        cx: &mut Context,
        spare: &mut SpareLists,
        list: SendList,
        result: io::Result<usize>,
    ) -> bool {
        let count = result.unwrap_or(0);
        self.taken += count;
        if count > 0 && self.taken < list.bytes() {
            cx.send(self.socket, list, self.taken, self.token);
            return true;
        }
        let whole = self.taken == list.bytes();
        self.sending = false;
        let memory = std::mem::take(&mut self.sending_memory);
        self.release(cx, spare, Batch { list, memory });
        whole
    }

    /// Nothing more will be sent: give back what waits.
    pub fn discard(&mut self, cx: &mut Context, spare: &mut SpareLists) {
        while let Some(batch) = self.waiting.pop_front() {
            self.release(cx, spare, batch);
        }
    }

    fn release(&mut self, cx: &mut Context, spare: &mut SpareLists, Batch { mut list, memory }: Batch) {
        self.memory -= memory;
        self.segments -= list.len();
        cx.recycle_list(&mut list);
        spare.give(list);
    }
}
