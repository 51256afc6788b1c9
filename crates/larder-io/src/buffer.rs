//! Memory for data on its way between guests and devices: aligned, owned, pooled, and bounded.
//!
//! A [`Buffer`] has exactly one owner at any time. While the kernel may touch it, that owner is the slot of the
//! operation in flight (see [`crate::ring`]), so it cannot be freed or reused early. Memory is zeroed once, when it is
//! first allocated, and not again on reuse: whoever sends a buffer to a guest must have filled it first.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Every buffer starts at a multiple of this, which satisfies O_DIRECT on every device.
pub const BUFFER_ALIGN: usize = 4096;
/// The smallest size class in bytes.
pub const BUFFER_MIN: usize = 4096;
/// The largest buffer in bytes: the largest NBD payload, and one page for what surrounds it.
pub const BUFFER_MAX: usize = 32 << 20;

const CLASSES: usize = (BUFFER_MAX / BUFFER_MIN).trailing_zeros() as usize + 1;

/// An owned region of memory, aligned to [`BUFFER_ALIGN`]. Dereferences to its first `len` bytes.
pub struct Buffer {
    start: NonNull<u8>,
    capacity: usize,
    len: usize,
}

// SAFETY: a Buffer owns its memory exclusively, like Box<[u8]>.
unsafe impl Send for Buffer {}
// SAFETY: a shared Buffer gives out shared slices only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A zeroed buffer outside any pool, for start-up work and tests. `None` where `len` is over [`BUFFER_MAX`] or memory
    /// is short.
    pub fn alloc(len: usize) -> Option<Self> {
        let capacity = class_bytes(class_of(len)?);
        let layout = layout(capacity);
        // SAFETY: the layout has a non-zero size (at least BUFFER_MIN).
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, capacity, len })
    }

    /// Bytes that the memory could hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Change the length, to at most the capacity. Bytes that come into view keep whatever they held.
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.capacity);
    }

    /// First byte, for the kernel. Valid as long as the buffer lives, wherever the `Buffer` value moves.
    pub(crate) fn as_raw(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len <= capacity`, and the memory was zeroed when allocated.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `alloc` with this very layout.
        unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} of {})", self.len, self.capacity)
    }
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, BUFFER_ALIGN)
        .expect("the capacity is a size class, far below isize::MAX")
}

/// The size class that holds `len` bytes.
fn class_of(len: usize) -> Option<usize> {
    let pages = len.max(1).div_ceil(BUFFER_MIN);
    let class = pages.checked_next_power_of_two()?.trailing_zeros() as usize;
    (class < CLASSES).then_some(class)
}

fn class_bytes(class: usize) -> usize {
    BUFFER_MIN << class
}

/// Buffers for reuse, in power-of-two size classes from [`BUFFER_MIN`] to [`BUFFER_MAX`], under a budget of bytes that
/// counts buffers in use and buffers kept.
pub struct BufferPool {
    kept: [Vec<Buffer>; CLASSES],
    kept_bytes: usize,
    allocated_bytes: usize,
    budget_bytes: usize,
}

impl BufferPool {
    /// An empty pool that will never have more than `budget_bytes` allocated.
    pub fn new(budget_bytes: usize) -> Self {
        Self { kept: Default::default(), kept_bytes: 0, allocated_bytes: 0, budget_bytes }
    }

    /// A buffer of this length, or `None` where the budget is spent or `len` is over [`BUFFER_MAX`].
    /// It may hold old bytes: fill it before anyone sees it.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<Buffer> {
        let class = class_of(len)?;
        let Some(mut buffer) = self.kept[class].pop() else { return self.grow(class, len) };
        self.kept_bytes -= buffer.capacity;
        buffer.len = len;
        Some(buffer)
    }

    /// Take a buffer back.
    #[inline]
    pub fn give(&mut self, buffer: Buffer) {
        let Some(class) = class_of(buffer.capacity) else { return };
        if self.allocated_bytes > self.budget_bytes {
            return self.allocated_bytes -= buffer.capacity;
        }
        self.kept_bytes += buffer.capacity;
        self.kept[class].push(buffer);
    }

    /// As [`BufferPool::take`], but beyond the budget where that is spent: for what is bounded elsewhere.
    pub(crate) fn take_beyond(&mut self, len: usize) -> Option<Buffer> {
        if let Some(buffer) = self.take(len) {
            return Some(buffer);
        }
        let buffer = Buffer::alloc(len)?;
        self.allocated_bytes += buffer.capacity;
        Some(buffer)
    }

    /// The budget, in bytes.
    pub(crate) fn budget_bytes(&self) -> usize {
        self.budget_bytes
    }

    /// Bytes in use by the pool's clients.
    pub fn used_bytes(&self) -> usize {
        self.allocated_bytes.saturating_sub(self.kept_bytes)
    }

    fn grow(&mut self, class: usize, len: usize) -> Option<Buffer> {
        let bytes = class_bytes(class);
        if self.allocated_bytes + bytes > self.budget_bytes {
            self.shrink(bytes);
        }
        if self.allocated_bytes + bytes > self.budget_bytes {
            return None;
        }
        let mut buffer = Buffer::alloc(bytes)?;
        buffer.len = len;
        self.allocated_bytes += bytes;
        Some(buffer)
    }

    /// Free kept buffers, largest first, until `bytes` more fit the budget.
    fn shrink(&mut self, bytes: usize) {
        for class in (0..CLASSES).rev() {
            while self.allocated_bytes + bytes > self.budget_bytes {
                let Some(buffer) = self.kept[class].pop() else { break };
                self.kept_bytes -= buffer.capacity;
                self.allocated_bytes -= buffer.capacity;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        assert_eq!(class_of(0), Some(0));
        assert_eq!(class_of(4096), Some(0));
        assert_eq!(class_of(4097), Some(1));
        assert_eq!(class_of(12 << 10), Some(2));
        assert_eq!(class_of(BUFFER_MAX), Some(CLASSES - 1));
        assert_eq!(class_of(BUFFER_MAX + 1), None);
        assert_eq!(class_of(usize::MAX), None);
    }

    #[test]
    fn buffers_are_aligned_zeroed_and_sized() {
        let buffer = Buffer::alloc(5000).unwrap();
        assert_eq!(buffer.as_raw() as usize % BUFFER_ALIGN, 0);
        assert_eq!((buffer.len(), buffer.capacity()), (5000, 8192));
        assert!(buffer.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn length_never_exceeds_capacity() {
        let mut buffer = Buffer::alloc(10).unwrap();
        buffer.set_len(1 << 20);
        assert_eq!(buffer.len(), buffer.capacity());
    }

    #[test]
    fn pool_reuses_memory_without_allocating() {
        let mut pool = BufferPool::new(1 << 20);
        let first = pool.take(4096).unwrap();
        let address = first.as_raw();
        pool.give(first);
        let second = pool.take(512).unwrap();
        assert_eq!(second.as_raw(), address);
        assert_eq!(second.len(), 512);
        assert_eq!(pool.used_bytes(), 4096);
    }

    #[test]
    fn budget_refuses_then_recovers() {
        let mut pool = BufferPool::new(16 << 10);
        let held: Vec<_> = (0..4).map(|_| pool.take(4096).unwrap()).collect();
        assert!(pool.take(1).is_none());
        held.into_iter().for_each(|buffer| pool.give(buffer));
        assert_eq!(pool.used_bytes(), 0);
        let large = pool.take(16 << 10).expect("kept small buffers make room for a large one");
        assert_eq!(large.capacity(), 16 << 10);
        assert!(pool.take(1).is_none());
    }

    #[test]
    fn beyond_the_budget_is_given_back_to_the_system() {
        let mut pool = BufferPool::new(8192);
        let held = [pool.take(8192).unwrap(), pool.take_beyond(8192).unwrap()];
        held.into_iter().for_each(|buffer| pool.give(buffer));
        assert_eq!((pool.used_bytes(), pool.allocated_bytes), (0, 8192));
    }
}
