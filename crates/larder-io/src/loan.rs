//! Memory that a frontend lends for a read, in place of a buffer: somebody else's, who may change it at any moment or take it away.
//!
//! Devices write straight to it. What the reactor itself copies from or to it goes by way of this module, and is told to the lender, who knows what it means
//! where the memory was gone. Nothing that was read from it is believed: who owns it may have written it.

use crate::BUFFER_ALIGN;
use std::fmt;
use std::sync::Arc;

/// Pieces of a loan. What lies more scattered is quicker copied.
const PIECES_MAX: usize = 128;

/// Keeps memory that it has lent where it is.
pub trait Lender: Send + Sync + 'static {
    /// The reactor has read or written lent memory on this thread, rather than had a device do it.
    fn touched(&self);
    /// False where nobody waits for it any more: then nothing more is written there than devices do that have begun.
    fn is_wanted(&self) -> bool;
}

/// Pieces of memory, one behind the other, that a read fills.
pub struct Loan {
    first: Piece,
    rest: Vec<Piece>,
    bytes: usize,
    lender: Arc<dyn Lender>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    start: *mut u8,
    len: usize,
}

/// Where some bytes of a loan are.
#[derive(Debug)]
pub(crate) enum Place {
    One(*mut u8),
    Many(Box<[libc::iovec]>),
}

impl Place {
    /// Of what moves no data.
    pub const NONE: Self = Self::One(std::ptr::null_mut());

    /// The byte at this offset, where all are together.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        match self {
            Self::One(start) => start.wrapping_add(offset),
            Self::Many(_) => std::ptr::null_mut(),
        }
    }
}

// SAFETY: the pieces are valid on every thread for as long as the lender lives, which is Send and Sync; nothing else here is tied to a thread.
unsafe impl Send for Loan {}
// SAFETY: as above. Copies from and to the pieces are made by pointer, and expect that others do so meanwhile.
unsafe impl Sync for Loan {}

impl Loan {
    /// Borrow these pieces: start and length in bytes. `None` where there is none, where there are many, where two are the same memory, or where one does not
    /// begin and end at a multiple of [`BUFFER_ALIGN`], so that a device might refuse it.
    ///
    /// # Safety
    /// Each piece is mapped for reading and writing until the lender is dropped, also where what is behind it is gone and touching it is handled by the
    /// process; and nobody has a reference to any of it.
    pub unsafe fn new(
        pieces: impl IntoIterator<Item = (*mut u8, usize)>,
        lender: Arc<dyn Lender>,
    ) -> Option<Self> {
        let mut pieces = pieces.into_iter().map(|(start, len)| Piece { start, len });
        let first = pieces.next()?;
        let mut loan = Self { first, rest: Vec::new(), bytes: first.len, lender };
        for piece in pieces {
            let last = loan.rest.last_mut().unwrap_or(&mut loan.first);
            loan.bytes += piece.len;
            if last.start.wrapping_add(last.len) == piece.start {
                last.len += piece.len;
            } else if loan.rest.len() + 1 < PIECES_MAX {
                loan.rest.push(piece);
            } else {
                return None;
            }
        }
        let aligned = |piece: &Piece| (piece.start as usize | piece.len).is_multiple_of(BUFFER_ALIGN);
        (loan.bytes > 0 && loan.pieces().all(aligned) && !loan.overlaps()).then_some(loan)
    }

    /// Bytes in all.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Some guests name a page several times whose bytes they do not want. No checksum would be right there.
    fn overlaps(&self) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        let mut runs: Vec<(usize, usize)> =
            self.pieces().map(|piece| (piece.start as usize, piece.len)).collect();
        runs.sort_unstable();
        runs.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0)
    }

    /// True until nobody waits for it any more.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.lender.is_wanted()
    }

    /// These bytes, if all of them are in the loan.
    #[inline]
    pub(crate) fn place(&self, offset: u32, len: u32) -> Option<Place> {
        let (offset, len) = (offset as usize, len as usize);
        if offset.checked_add(len)? > self.bytes {
            return None;
        }
        if offset + len <= self.first.len {
            return Some(Place::One(self.first.start.wrapping_add(offset)));
        }
        let mut parts = Vec::with_capacity(self.rest.len() + 1);
        let iovec = |Piece { start, len }| libc::iovec { iov_base: start.cast(), iov_len: len };
        parts.extend(self.parts(offset, len).map(iovec));
        Some(match parts[..] {
            [only] => Place::One(only.iov_base.cast()),
            _ => Place::Many(parts.into()),
        })
    }

    /// Copy to it, from this byte on as much as there is room for, if it is wanted.
    pub(crate) fn write(&self, offset: u32, from: &[u8]) {
        if !self.is_wanted() {
            return;
        }
        let mut rest = from;
        for Piece { start, len } in self.parts(offset as usize, from.len()) {
            let (now, later) = rest.split_at(len);
            // SAFETY: the part is inside a piece, which the lender keeps mapped; `now` is as long, and ours, so they do not overlap. Whoever else writes
            // there meanwhile has only himself to blame for what he finds.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), start, len) };
            rest = later;
        }
        self.lender.touched();
    }

    /// Copy from it, from this byte on as much as there is.
    pub(crate) fn read(&self, offset: u32, into: &mut [u8]) {
        let len = into.len();
        let mut rest = into;
        for Piece { start, len } in self.parts(offset as usize, len) {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(len);
            // SAFETY: as in `write`. Bytes that change meanwhile are bytes all the same.
            unsafe { std::ptr::copy_nonoverlapping(start.cast_const(), now.as_mut_ptr(), len) };
            rest = later;
        }
        self.lender.touched();
    }

    /// Have zeroes in all of it, if it is wanted.
    pub(crate) fn clear(&self) {
        if !self.is_wanted() {
            return;
        }
        for &Piece { start, len } in self.pieces() {
            // SAFETY: as in `write`.
            unsafe { std::ptr::write_bytes(start, 0, len) };
        }
        self.lender.touched();
    }

    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// These bytes piece by piece, as far as there are any.
    fn parts(&self, offset: usize, len: usize) -> impl Iterator<Item = Piece> + '_ {
        let (mut skip, mut left) = (offset, len);
        self.pieces().filter_map(move |piece| {
            let skipped = skip.min(piece.len);
            let taken = left.min(piece.len - skipped);
            (skip, left) = (skip - skipped, left - taken);
            (taken > 0).then(|| Piece { start: piece.start.wrapping_add(skipped), len: taken })
        })
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} in {} pieces)", self.bytes, self.rest.len() + 1)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Buffer;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Memory of this process, lent as a guest's would be.
    pub(crate) struct Owner {
        pub memory: Mutex<Buffer>,
        start: usize,
        pub touched: AtomicUsize,
        pub left: AtomicBool,
    }

    impl Owner {
        pub fn new(bytes: usize) -> Arc<Self> {
            let buffer = Buffer::alloc(bytes).unwrap();
            let start = buffer.as_raw() as usize;
            Arc::new(Self {
                memory: Mutex::new(buffer),
                start,
                touched: AtomicUsize::new(0),
                left: AtomicBool::new(false),
            })
        }

        /// Lend these ranges.
        pub fn lend(self: &Arc<Self>, ranges: &[(usize, usize)]) -> Option<Loan> {
            let pieces = ranges.iter().map(|&(at, len)| ((self.start + at) as *mut u8, len));
            let lender = Arc::<Self>::clone(self);
            // SAFETY: the ranges are inside the buffer, which lives as long as its owner; tests look at it only when nothing is under way.
            unsafe { Loan::new(pieces, lender) }
        }

        pub fn bytes(&self) -> Vec<u8> {
            self.memory.lock().unwrap().to_vec()
        }
    }

    impl Lender for Owner {
        fn touched(&self) {
            self.touched.fetch_add(1, Ordering::Relaxed);
        }

        fn is_wanted(&self) -> bool {
            !self.left.load(Ordering::Relaxed)
        }
    }

    const PAGE: usize = BUFFER_ALIGN;

    #[test]
    fn neighbours_are_one_piece_and_odd_ones_are_not_taken() {
        let owner = Owner::new(16 * PAGE);
        let pieces = |ranges: &[_]| owner.lend(ranges).map(|loan| (loan.rest.len() + 1, loan.bytes()));
        assert_eq!(pieces(&[(0, PAGE), (PAGE, PAGE), (4 * PAGE, PAGE)]), Some((2, 3 * PAGE)));
        assert_eq!(pieces(&[(0, 512), (512, PAGE - 512)]), Some((1, PAGE)));
        assert_eq!(pieces(&[]), None);
        assert_eq!(pieces(&[(0, 0)]), None);
        assert_eq!(pieces(&[(512, PAGE)]), None, "it begins anywhere");
        assert_eq!(pieces(&[(0, PAGE + 512)]), None, "it ends anywhere");
        assert_eq!(pieces(&[(0, 512), (PAGE, PAGE - 512)]), None);
        assert_eq!(pieces(&[(0, 2 * PAGE), (4 * PAGE, PAGE), (PAGE, PAGE)]), None, "a page twice");
        let owner = Owner::new(2 * PIECES_MAX * PAGE + PAGE);
        let pieces = |ranges: &[_]| owner.lend(ranges).map(|loan| (loan.rest.len() + 1, loan.bytes()));
        let scattered: Vec<_> = (0..=PIECES_MAX).map(|n| (n * 2 * PAGE, PAGE)).collect();
        assert_eq!(pieces(&scattered[1..]), Some((PIECES_MAX, PIECES_MAX * PAGE)));
        assert_eq!(pieces(&scattered), None);
    }

    #[test]
    fn bytes_are_found_where_they_are() {
        let owner = Owner::new(8 * PAGE);
        let loan = owner.lend(&[(4 * PAGE, PAGE), (PAGE, 2 * PAGE)]).unwrap();
        let at = |offset: usize| (owner.start + offset) as *mut u8;
        let one = |offset: usize, len: usize| match loan.place(offset as u32, len as u32) {
            Some(Place::One(start)) => Some(start),
            _ => None,
        };
        assert_eq!(one(0, PAGE), Some(at(4 * PAGE)));
        assert_eq!(one(PAGE, 2 * PAGE), Some(at(PAGE)));
        assert_eq!(one(PAGE + 512, 512), Some(at(PAGE + 512)));
        let Some(Place::Many(parts)) = loan.place(512, 2 * PAGE as u32) else { panic!("two pieces") };
        let parts: Vec<_> = parts.iter().map(|part| (part.iov_base.cast::<u8>(), part.iov_len)).collect();
        assert_eq!(parts, [(at(4 * PAGE + 512), PAGE - 512), (at(PAGE), PAGE + 512)]);
        assert!(loan.place(PAGE as u32, 2 * PAGE as u32 + 1).is_none());
        assert!(loan.place(u32::MAX, u32::MAX).is_none());
    }

    #[test]
    fn what_is_copied_is_told() {
        let owner = Owner::new(8 * PAGE);
        let loan = owner.lend(&[(4 * PAGE, PAGE), (PAGE, PAGE)]).unwrap();
        let data: Vec<u8> = (0..PAGE).map(|n| n as u8 | 1).collect();
        loan.write(PAGE as u32 / 2, &data);
        let (mut back, bytes) = (vec![0; PAGE], owner.bytes());
        loan.read(PAGE as u32 / 2, &mut back);
        assert_eq!(back, data);
        assert_eq!(bytes[4 * PAGE + PAGE / 2..5 * PAGE], data[..PAGE / 2]);
        assert_eq!(bytes[PAGE..PAGE + PAGE / 2], data[PAGE / 2..]);
        loan.clear();
        assert!(owner.bytes().iter().all(|&byte| byte == 0));
        assert_eq!(owner.touched.load(Ordering::Relaxed), 3);
        owner.left.store(true, Ordering::Relaxed);
        loan.write(0, &data);
        assert!(owner.bytes().iter().all(|&byte| byte == 0), "nobody waits for it");
    }
}
