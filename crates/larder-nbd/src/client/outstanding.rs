//! A request that waits for its reply, and how much of its data has come.

use crate::{Command, ErrorCode, Request};

/// Most separate pieces of a read that may have arrived out of order before the server is held to be hostile.
pub const SPANS_MAX: usize = 16;

/// A request on its way. The driver keeps one for each, in the slot that its cookie names.
#[derive(Clone, Debug)]
pub struct Outstanding {
    command: Command,
    offset: u64,
    length: u32,
    error: Option<ErrorCode>,
    /// Bytes described by block status so far.
    described: u64,
    /// From the start up to here everything has come.
    filled: u32,
    /// What has come behind a gap: disjoint, ascending, never touching.
    spans: Vec<(u32, u32)>,
}

impl Outstanding {
    /// A request that was sent.
    pub fn new(request: &Request) -> Self {
        Self {
            command: request.command,
            offset: request.offset,
            length: request.length,
            error: None,
            described: 0,
            filled: 0,
            spans: Vec::new(),
        }
    }

    /// What was asked.
    pub(super) fn command(&self) -> Command {
        self.command
    }

    /// Number of bytes asked.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// Where in the request's buffer the bytes of this range of the export belong. `None` if they do not.
    pub(super) fn place(&self, offset: u64, length: u32) -> Option<u32> {
        let at = u32::try_from(offset.checked_sub(self.offset)?).ok()?;
        (at.checked_add(length)? <= self.length).then_some(at)
    }

    /// Note that a range of the buffer is being filled. False if a part of it was filled before, or if there are too many
    /// gaps to keep book.
    pub(super) fn fill(&mut self, at: u32, length: u32) -> bool {
        let end = at + length;
        if at < self.filled {
            return false;
        }
        let next = self.spans.partition_point(|span| span.0 < at);
        let free_before = next == 0 || self.spans[next - 1].1 <= at;
        let free_behind = self.spans.get(next).is_none_or(|span| end <= span.0);
        if !free_before || !free_behind || (at > self.filled && self.spans.len() >= SPANS_MAX) {
            return false;
        }
        if at > self.filled {
            self.spans.insert(next, (at, end));
            return true;
        }
        self.filled = end;
        self.close_gap();
        true
    }

    /// Spans that begin where the filled part ends belong to it.
    fn close_gap(&mut self) {
        while self.spans.first().is_some_and(|span| span.0 == self.filled) {
            self.filled = self.spans.remove(0).1;
        }
    }

    /// True once every byte has come.
    pub(super) fn is_filled(&self) -> bool {
        self.filled == self.length
    }

    /// Note an extent; its length cut to what is left of the request.
    pub(super) fn describe(&mut self, length: u32) -> u32 {
        let left = u64::from(self.length).saturating_sub(self.described);
        self.described += u64::from(length);
        u32::try_from(left.min(length.into())).unwrap_or(length)
    }

    /// True once something was described.
    pub(super) fn is_described(&self) -> bool {
        self.described > 0
    }

    /// Note an error; the first one counts.
    pub(super) fn fail(&mut self, code: ErrorCode) {
        self.error.get_or_insert(code);
    }

    /// How it ended, once the last chunk was there.
    pub(super) fn result(&self) -> Result<(), ErrorCode> {
        self.error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(offset: u64, length: u32) -> Outstanding {
        Outstanding::new(&Request { cookie: 0, command: Command::Read, flags: 0, offset, length })
    }

    #[test]
    fn places_lie_inside() {
        let read = read(1000, 100);
        assert_eq!(read.place(1000, 100), Some(0));
        assert_eq!(read.place(1050, 50), Some(50));
        assert_eq!(read.place(1050, 51), None);
        assert_eq!(read.place(999, 1), None);
        assert_eq!(read.place(u64::MAX, u32::MAX), None);
    }

    #[test]
    fn overlaps_are_noticed() {
        let mut read = read(0, 100);
        assert!(read.fill(10, 10));
        for (at, length) in [(10, 10), (5, 6), (19, 1), (0, 100), (12, 3)] {
            assert!(!read.clone().fill(at, length), "{at} {length}");
        }
        assert!(read.fill(0, 10));
        assert!(!read.fill(0, 1));
        assert!(read.fill(20, 80) && read.is_filled());
    }

    #[test]
    fn gaps_are_bounded() {
        let mut read = read(0, 1000);
        let taken = (0..100u32).filter(|i| read.fill(10 * i + 1, 1)).count();
        assert_eq!(taken, SPANS_MAX);
    }

    #[test]
    fn the_last_extent_is_cut() {
        let mut status = read(0, 100);
        assert_eq!([status.describe(60), status.describe(60), status.describe(60)], [60, 40, 0]);
    }

    proptest! {
        /// Against a plain array of flags: a fill is taken just where nothing was filled before.
        #[test]
        fn agrees_with_a_bitmap(fills in proptest::collection::vec((0u32..60, 1u32..20), 0..SPANS_MAX)) {
            let mut read = read(0, 80);
            let mut bitmap = [false; 80];
            for (at, length) in fills {
                let range = &mut bitmap[at as usize..(at + length) as usize];
                let free = range.iter().all(|filled| !filled);
                prop_assert_eq!(read.fill(at, length), free);
                if free {
                    range.fill(true);
                }
                prop_assert_eq!(read.is_filled(), bitmap.iter().all(|filled| *filled));
            }
        }
    }
}
