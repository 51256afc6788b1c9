//! A stretch of requests, cut into blocks: what every lane takes.

use std::ops::Range;

/// A block, by the order in which blocks first appeared: dense numbers from 0, so that what is known of blocks lies in arrays.
pub type BlockId = u32;

/// What a request, or the analysis itself, does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// It reads its blocks.
    Read,
    /// It writes its blocks, each as a whole.
    Write,
    /// It gives its blocks up: they leave every cache, unwritten.
    Discard,
    /// No request: a mover epoch ends. Has no blocks.
    Populate,
}

/// A request, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it does.
    pub op: Op,
    /// True for a request's last part.
    pub last: bool,
    /// Where its blocks end in [`Stretch::blocks`]; they begin where those of the piece before it end.
    pub end: u32,
}

/// Requests in their order. A request may go on in the next stretch.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// The blocks of all pieces, one piece after the other.
    pub blocks: &'a [BlockId],
    /// The pieces.
    pub pieces: &'a [Piece],
}

impl Stretch<'_> {
    /// The pieces, each with where its blocks lie.
    #[inline]
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Piece, Range<usize>)> {
        let mut begin = 0;
        self.pieces.iter().map(move |&piece| {
            let range = begin..piece.end as usize;
            begin = range.end;
            (piece, range)
        })
    }
}
