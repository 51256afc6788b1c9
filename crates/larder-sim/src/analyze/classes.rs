//! Requests and their classes over time, where all blocks are numbered.

use larder_locality::lane::ClassCounter;
use larder_locality::{ClassCounts, Piece, Stretch};

use super::intake::Portion;
use super::windows::Windows;
use crate::Window;

/// Counts classes, window by window.
pub(crate) struct Classes {
    counter: ClassCounter,
    windows: Windows,
}

impl Classes {
    pub(crate) fn new() -> Self {
        Self { counter: ClassCounter::new(), windows: Windows::new() }
    }

    /// Take the next portion.
    pub(crate) fn take(&mut self, portion: &Portion) {
        let mut first = 0;
        for (begun, &start) in portion.batch.begun.iter().zip(&portion.starts) {
            if self.windows.begins(begun.at) {
                self.count(portion, first, start as usize);
                first = start as usize;
            }
            self.windows.request(begun);
        }
        self.count(portion, first, portion.pieces.len());
    }

    /// Count the pieces from `first` up to `end`.
    fn count(&mut self, portion: &Portion, first: usize, end: usize) {
        let begin = first.checked_sub(1).map_or(0, |before| portion.pieces[before].end);
        let rebased = |piece: &Piece| Piece { end: piece.end - begin, ..*piece };
        let pieces: Vec<_> = portion.pieces[first..end].iter().map(rebased).collect();
        self.counter.count(&Stretch { blocks: &portion.blocks[begin as usize..], pieces: &pieces });
        self.windows.count(self.counter.counts());
    }

    /// All accesses by class, and the windows of a trace of this length.
    pub(crate) fn finish(self, elapsed_ns: u64) -> (ClassCounts, Vec<Window>) {
        (self.counter.counts(), self.windows.finish(elapsed_ns))
    }

    /// Bytes of memory that grow with the footprint.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.counter.memory_bytes()
    }
}
