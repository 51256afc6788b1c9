//! Long sequential streams of reads: what they read does not enter the cache, since the backing is good at them, and they would take others' places.

use crate::{Engine, Request, RequestKind};

/// The reads of a volume that went on where the one before ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    /// Where the last one ended.
    end: u64,
    /// Bytes so far.
    bytes: u64,
}

impl Stream {
    fn read(&mut self, offset: u64, len: u64) {
        self.bytes = if self.end == offset { self.bytes + len } else { len };
        self.end = offset + len;
    }

    /// True if it is this long, and this is a part of it.
    fn has(&self, start: u64, end: u64, bytes: u64) -> bool {
        self.bytes >= bytes && end <= self.end && start >= self.end - self.bytes
    }
}

impl Engine {
    /// From so many bytes of a volume's sequential stream of reads on, what it reads stays out of the cache; what is cached is hit all the same. `None`: streams
    /// enter like other reads.
    pub fn set_stream_bypass(&mut self, bytes: Option<u64>) {
        self.stream_bypass = bytes;
    }

    /// A request arrives.
    #[inline]
    pub(crate) fn note_stream(&mut self, request: &Request) {
        if self.stream_bypass.is_some() && request.kind == RequestKind::Read {
            self.volume_mut(request.volume).stream.read(request.offset, request.len);
        }
    }

    /// A part of a long stream.
    pub(crate) fn is_streamed(&self, part: &crate::request::Part) -> bool {
        self.stream_bypass
            .is_some_and(|bytes| self.volume(part.volume).stream.has(part.start, part.end, bytes))
    }
}
