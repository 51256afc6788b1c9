//! What goes out in one `sendmsg`: small headers kept inline, each followed by a piece of a buffer or by nothing.
//!
//! A list is a fixed block of memory that is filled, sent and cleared again and again without allocating. While it is being
//! sent it belongs to the operation's slot, with all its buffers.

use crate::Buffer;
use std::fmt;
use std::ops::Range;
use std::ptr;

/// Segments in a list.
pub const SEND_SEGMENTS: usize = 64;
/// Bytes of header in a segment: the longest NBD reply header (28 bytes), rounded up.
pub const SEND_HEADER_BYTES: usize = 32;

/// A list of segments to send, in order. Its address in memory never changes, wherever the value moves.
pub struct SendList {
    inner: Box<Inner>,
}

struct Inner {
    segments: [Segment; SEND_SEGMENTS],
    count: usize,
    bytes: usize,
    iovecs: [libc::iovec; SEND_SEGMENTS * 2],
    message: libc::msghdr,
}

struct Segment {
    header: [u8; SEND_HEADER_BYTES],
    header_len: usize,
    payload: Option<(Buffer, Range<usize>)>,
}

// SAFETY: the raw pointers in `iovecs` and `message` point into the list itself or into buffers that it owns, and are
// rebuilt by every `prepare`.
unsafe impl Send for SendList {}

impl SendList {
    /// An empty list.
    pub fn new() -> Self {
        const NO_IOVEC: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: msghdr is plain old data, for which all zeroes is a valid value (empty, null pointers).
        let message = unsafe { std::mem::zeroed() };
        let segments =
            std::array::from_fn(|_| Segment { header: [0; SEND_HEADER_BYTES], header_len: 0, payload: None });
        let iovecs = [NO_IOVEC; SEND_SEGMENTS * 2];
        Self { inner: Box::new(Inner { segments, count: 0, bytes: 0, iovecs, message }) }
    }

    /// Append a header and, behind it, a range of a buffer. Gives the payload back where the list is full, the
    /// header is longer than [`SEND_HEADER_BYTES`], or the range is not inside the buffer.
    #[inline]
    pub fn push(
        &mut self,
        header: &[u8],
        payload: Option<(Buffer, Range<usize>)>,
    ) -> Result<(), Option<(Buffer, Range<usize>)>> {
        let inside = payload.as_ref().is_none_or(|(buffer, range)| buffer.get(range.clone()).is_some());
        let inner = &mut *self.inner;
        if inner.count == SEND_SEGMENTS || header.len() > SEND_HEADER_BYTES || !inside {
            return Err(payload);
        }
        let segment = &mut inner.segments[inner.count];
        segment.header[..header.len()].copy_from_slice(header);
        segment.header_len = header.len();
        inner.bytes += header.len() + payload.as_ref().map_or(0, |(_, range)| range.len());
        segment.payload = payload;
        inner.count += 1;
        Ok(())
    }

    /// Segments in the list.
    pub fn len(&self) -> usize {
        self.inner.count
    }

    /// True where there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.inner.count == 0
    }

    /// True where [`SendList::push`] would refuse.
    pub fn is_full(&self) -> bool {
        self.inner.count == SEND_SEGMENTS
    }

    /// Bytes to send, headers and payloads.
    pub fn bytes(&self) -> usize {
        self.inner.bytes
    }

    /// Empty the list; every payload buffer goes to `recycle`.
    pub fn clear(&mut self, mut recycle: impl FnMut(Buffer)) {
        let inner = &mut *self.inner;
        for segment in &mut inner.segments[..inner.count] {
            if let Some((buffer, _)) = segment.payload.take() {
                recycle(buffer);
            }
        }
        inner.count = 0;
        inner.bytes = 0;
    }

    /// The message for `sendmsg`, without its first `skip` bytes. Valid until the list is next touched.
    pub(crate) fn prepare(&mut self, skip: usize) -> *const libc::msghdr {
        let inner = &mut *self.inner;
        let mut skip = skip;
        let mut used = 0;
        for segment in &mut inner.segments[..inner.count] {
            let header = &mut segment.header[..segment.header_len];
            let payload = segment.payload.as_mut().map(|(buffer, range)| &mut buffer[range.clone()]);
            for part in [Some(header), payload].into_iter().flatten() {
                let skipped = skip.min(part.len());
                skip -= skipped;
                if skipped < part.len() {
                    let rest = &mut part[skipped..];
                    inner.iovecs[used] =
                        libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
                    used += 1;
                }
            }
        }
        inner.message.msg_iov = inner.iovecs.as_mut_ptr();
        inner.message.msg_iovlen = used;
        &inner.message
    }
}

impl fmt::Debug for SendList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendList({} segments, {} bytes)", self.len(), self.bytes())
    }
}

impl Default for SendList {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::alloc(bytes.len()).unwrap();
        buffer.copy_from_slice(bytes);
        buffer
    }

    fn gather(list: &mut SendList, skip: usize) -> Vec<u8> {
        // SAFETY: the message is read before the list is touched again, and points into live memory of the list.
        unsafe {
            let message = &*list.prepare(skip);
            let iovecs = std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen);
            let part =
                |v: &libc::iovec| std::slice::from_raw_parts(v.iov_base.cast::<u8>(), v.iov_len).to_vec();
            iovecs.iter().flat_map(part).collect()
        }
    }

    #[test]
    fn every_skip_gives_the_rest_of_the_bytes() {
        let mut list = SendList::new();
        list.push(b"head", Some((buffer(b"0123456789"), 2..7))).unwrap();
        list.push(b"", Some((buffer(b"xyz"), 0..3))).unwrap();
        list.push(b"tail", None).unwrap();
        let all = b"head23456xyztail";
        assert_eq!(list.bytes(), all.len());
        for skip in 0..=all.len() {
            assert_eq!(gather(&mut list, skip), &all[skip..], "skip {skip}");
        }
    }

    #[test]
    fn refuses_what_does_not_fit_and_gives_it_back() {
        let mut list = SendList::new();
        assert!(list.push(&[0; SEND_HEADER_BYTES + 1], None).is_err());
        let (given_back, _) = list.push(b"h", Some((buffer(b"abc"), 0..4))).unwrap_err().unwrap();
        assert_eq!(&given_back[..], b"abc");
        for _ in 0..SEND_SEGMENTS {
            list.push(b"h", None).unwrap();
        }
        assert!(list.is_full() && list.push(b"h", None).is_err());
    }

    #[test]
    fn clearing_returns_the_buffers() {
        let mut list = SendList::new();
        list.push(b"h", Some((buffer(b"abc"), 0..3))).unwrap();
        list.push(b"h", None).unwrap();
        let mut returned = 0;
        list.clear(|_| returned += 1);
        assert_eq!((returned, list.len(), list.bytes()), (1, 0, 0));
        assert!(gather(&mut list, 0).is_empty());
    }
}
