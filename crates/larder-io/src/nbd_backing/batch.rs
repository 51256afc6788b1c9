//! Requests that go to the server with one `sendmsg`: headers kept here, payloads where they are.

use larder_nbd::consts::REQUEST_BYTES;
use std::fmt;
use std::ptr;

/// Requests in a batch.
const REQUESTS: usize = 64;

/// Requests on their way. While they are being sent, the batch belongs to the operation.
pub(crate) struct SendBatch {
    headers: [[u8; REQUEST_BYTES]; REQUESTS],
    payloads: [libc::iovec; REQUESTS],
    count: usize,
    iovecs: [libc::iovec; REQUESTS * 2],
    message: libc::msghdr,
    sent: usize,
    bytes: usize,
}

const NOTHING: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };

impl SendBatch {
    /// An empty batch, at the address where it stays.
    pub fn new() -> Box<Self> {
        // SAFETY: msghdr is plain old data, for which all zeroes is a valid value (empty, null pointers).
        let message = unsafe { std::mem::zeroed() };
        Box::new(Self {
            headers: [[0; REQUEST_BYTES]; REQUESTS],
            payloads: [NOTHING; REQUESTS],
            count: 0,
            iovecs: [NOTHING; REQUESTS * 2],
            message,
            sent: 0,
            bytes: 0,
        })
    }

    pub fn is_full(&self) -> bool {
        self.count == REQUESTS
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn clear(&mut self) {
        (self.count, self.sent, self.bytes) = (0, 0, 0);
    }

    /// Append a request; the batch must not be full. The payload must stay until the batch is sent.
    pub fn push(&mut self, header: [u8; REQUEST_BYTES], payload: *const u8, bytes: usize) {
        self.headers[self.count] = header;
        self.payloads[self.count] = libc::iovec { iov_base: payload.cast_mut().cast(), iov_len: bytes };
        self.count += 1;
        self.bytes += REQUEST_BYTES + bytes;
    }

    /// The kernel took `bytes`. True once everything has gone.
    pub fn advance(&mut self, bytes: usize) -> bool {
        self.sent += bytes;
        self.sent >= self.bytes
    }

    /// The message that is left to send, valid until the batch is touched again.
    pub fn prepare(&mut self) -> *const libc::msghdr {
        let mut skip = self.sent;
        let mut used = 0;
        for index in 0..self.count {
            let header =
                libc::iovec { iov_base: self.headers[index].as_mut_ptr().cast(), iov_len: REQUEST_BYTES };
            for part in [header, self.payloads[index]] {
                let skipped = skip.min(part.iov_len);
                skip -= skipped;
                if skipped < part.iov_len {
                    let iov_base = part.iov_base.cast::<u8>().wrapping_add(skipped).cast();
                    self.iovecs[used] = libc::iovec { iov_base, iov_len: part.iov_len - skipped };
                    used += 1;
                }
            }
        }
        self.message.msg_iov = self.iovecs.as_mut_ptr();
        self.message.msg_iovlen = used;
        &self.message
    }
}

impl fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendBatch({} requests, {} of {} bytes sent)", self.count, self.sent, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_after_a_short_send_is_the_rest() {
        let payload = *b"payload";
        let mut batch = SendBatch::new();
        batch.push([1; REQUEST_BYTES], ptr::null(), 0);
        batch.push([2; REQUEST_BYTES], payload.as_ptr(), payload.len());
        let whole = [&[1; REQUEST_BYTES][..], &[2; REQUEST_BYTES], b"payload"].concat();
        for sent in 0..=whole.len() {
            batch.sent = 0;
            assert_eq!(batch.advance(sent), sent == whole.len());
            // SAFETY: the message points into the batch and the payload, both alive.
            let rest: Vec<u8> = unsafe {
                let message = &*batch.prepare();
                let parts = std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen);
                let bytes =
                    |v: &libc::iovec| std::slice::from_raw_parts(v.iov_base.cast::<u8>(), v.iov_len).to_vec();
                parts.iter().flat_map(bytes).collect()
            };
            assert_eq!(rest, whole[sent..], "{sent}");
        }
        batch.clear();
        assert!(batch.is_empty());
    }
}
