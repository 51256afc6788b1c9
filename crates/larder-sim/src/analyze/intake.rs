//! The trace as an analysis takes it: batches whose blocks are numbered, once for all workers, with the ends of mover epochs among their pieces.

use larder_locality::{BlockId, Blocks, Op, Piece, Stretch};
use larder_trace::RequestKind;

use crate::batch::Batch;
use crate::clock::Start;
use crate::feed::{Feed, Summary};
use crate::pool::Fill;
use crate::{SimError, Source, Span};

/// A batch of the trace for the workers of an analysis.
#[derive(Debug, Default)]
pub(crate) struct Portion {
    /// As it was read, with its requests.
    pub(crate) batch: Batch,
    /// The blocks' numbers; none where blocks are not numbered. Discarded blocks that no request accessed before are left out.
    pub(crate) blocks: Vec<BlockId>,
    /// What happens, flushes left out. Pieces end in `blocks`, or in the batch's keys where blocks are not numbered.
    pub(crate) pieces: Vec<Piece>,
    /// The number of each begun request's first piece.
    pub(crate) starts: Vec<u32>,
}

/// Reads portions.
pub(crate) struct Intake<S> {
    feed: Feed<S>,
    /// None where workers see to it themselves.
    numbers: Option<Blocks>,
    epochs: Option<Epochs>,
}

/// Where mover epochs end.
#[derive(Clone, Copy, Debug)]
struct Epochs {
    length: Span,
    /// Epochs before the one under way.
    over: u64,
}

impl<S: Source> Intake<S> {
    /// Portions of a feed that tells its requests. Blocks are numbered with `numbers`; mover epochs end after each `epoch`, which is longer than nothing.
    pub(crate) fn new(feed: Feed<S>, numbers: Option<Blocks>, epoch: Option<Span>) -> Self {
        Self { feed, numbers, epochs: epoch.map(|length| Epochs { length, over: 0 }) }
    }

    /// Reads and writes so far.
    pub(crate) fn requests(&self) -> u64 {
        self.feed.clock().requests()
    }

    /// What was read so far. The footprint is told where blocks are numbered.
    pub(crate) fn summary(&self) -> Summary {
        let footprint_blocks = self.numbers.as_ref().map_or(0, |numbers| numbers.len().into());
        Summary { footprint_blocks, ..self.feed.summary() }
    }

    /// Bytes of memory that grow with the trace's footprint.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.numbers.as_ref().map_or(0, |numbers| numbers.memory_bytes() as u64)
    }
}

impl<S: Source> Fill for Intake<S> {
    type Batch = Portion;
    type Error = SimError<S::Error>;

    fn fill(&mut self, portion: &mut Portion) -> Result<bool, SimError<S::Error>> {
        portion.blocks.clear();
        portion.pieces.clear();
        portion.starts.clear();
        let more = self.feed.fill(&mut portion.batch)?;
        let mut cutter = Cutter { portion, numbers: self.numbers.as_mut(), numbered: 0, dropped: 0 };
        cutter.cut(self.epochs.as_mut())?;
        Ok(more)
    }
}

/// Makes pieces of a batch.
struct Cutter<'a> {
    portion: &'a mut Portion,
    numbers: Option<&'a mut Blocks>,
    /// The batch's keys that were numbered so far.
    numbered: usize,
    /// Those of them that have no number.
    dropped: usize,
}

impl Cutter<'_> {
    fn cut<E>(&mut self, mut epochs: Option<&mut Epochs>) -> Result<(), SimError<E>> {
        let (mut begun, mut begin) = (0, 0);
        for at in 0..self.portion.batch.pieces.len() {
            if let Some(request) =
                self.portion.batch.begun.get(begun).filter(|begun| begun.piece as usize == at)
            {
                if epochs.as_mut().is_some_and(|epochs| epochs.end_before(request.at)) {
                    self.push(Op::Populate, true, begin);
                }
                self.portion.starts.push(self.portion.pieces.len() as u32);
                begun += 1;
            }
            let piece = self.portion.batch.pieces[at];
            let end = piece.end as usize;
            match piece.kind {
                RequestKind::Read => self.push(Op::Read, piece.last, end),
                RequestKind::Write => self.push(Op::Write, piece.last, end),
                RequestKind::Discard => {
                    self.number_until(begin)?;
                    self.find_until(end);
                    self.push(Op::Discard, piece.last, end);
                }
                RequestKind::Flush => {}
            }
            begin = end;
        }
        self.number_until(begin)
    }

    /// Add a piece that ends at a key of the batch.
    fn push(&mut self, op: Op, last: bool, end: usize) {
        self.portion.pieces.push(Piece { op, last, end: (end - self.dropped) as u32 });
    }

    fn number_until<E>(&mut self, end: usize) -> Result<(), SimError<E>> {
        if let Some(numbers) = &mut self.numbers {
            let keys = &self.portion.batch.keys[self.numbered..end];
            numbers.number_all(keys, &mut self.portion.blocks)?;
        }
        self.numbered = end;
        Ok(())
    }

    fn find_until(&mut self, end: usize) {
        if let Some(numbers) = &self.numbers {
            let keys = &self.portion.batch.keys[self.numbered..end];
            let before = self.portion.blocks.len();
            self.portion.blocks.extend(keys.iter().filter_map(|&key| numbers.find(key)));
            self.dropped += keys.len() - (self.portion.blocks.len() - before);
        }
        self.numbered = end;
    }
}

impl Epochs {
    /// Does an epoch end before a request here? Several that end without requests are one.
    fn end_before(&mut self, at: Start) -> bool {
        let over = match self.length {
            Span::Requests(requests) => at.requests / requests,
            Span::TimeNs(ns) => at.ns / ns,
        };
        std::mem::replace(&mut self.over, over) < over
    }
}

impl Portion {
    /// All of it, as lanes take it.
    pub(crate) fn stretch(&self) -> Stretch<'_> {
        Stretch { blocks: &self.blocks, pieces: &self.pieces }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::{BlockSize, Requests};
    use larder_trace::Request;

    /// `R1-3@9`: a read of blocks 1 to 3 at time 9; `W`, `D`, `F` likewise.
    fn requests(text: &str) -> Vec<Request> {
        let request = |word: &str| {
            let (what, time) = word.split_once('@').unwrap_or((word, "0"));
            let (kind, blocks) = what.split_at(1);
            let kind = match kind {
                "R" => RequestKind::Read,
                "W" => RequestKind::Write,
                "D" => RequestKind::Discard,
                _ => RequestKind::Flush,
            };
            let (first, last) = blocks.split_once('-').unwrap_or((blocks, blocks));
            let number = |text: &str| text.parse::<u64>().unwrap_or(0);
            let len = if blocks.is_empty() { 0 } else { (number(last) + 1 - number(first)) * 4096 };
            Request { time_ns: number(time), volume: 0, kind, offset: number(first) * 4096, len: len as u32 }
        };
        text.split_whitespace().map(request).collect()
    }

    fn portion(text: &str, numbered: bool, epoch: Option<Span>) -> (Portion, Summary) {
        let clock = Clock::new(Span::Requests(0), None);
        let feed = Feed::new(Requests(requests(text).into_iter()), BlockSize::DEFAULT, None, clock);
        let mut intake = Intake::new(feed.with_requests(), numbered.then(|| Blocks::new(1)), epoch);
        let mut portion = Portion::default();
        assert!(intake.fill(&mut portion).unwrap());
        (portion, intake.summary())
    }

    fn pieces(portion: &Portion) -> Vec<(Op, u32)> {
        portion.pieces.iter().map(|piece| (piece.op, piece.end)).collect()
    }

    #[test]
    fn blocks_are_numbered_and_unknown_discards_dropped() {
        use Op::{Discard, Read, Write};
        let text = "R7-8 D6-8 F W6-7 D0-9 R9";
        let (told, summary) = portion(text, true, None);
        assert_eq!(told.blocks, [0, 1, 0, 1, 2, 0, 2, 0, 1, 3]);
        assert_eq!(pieces(&told), [(Read, 2), (Discard, 4), (Write, 6), (Discard, 9), (Read, 10)]);
        assert_eq!((told.starts, summary.footprint_blocks), (vec![0, 1, 2, 2, 3, 4], 4));
        let (told, _) = portion(text, false, None);
        assert_eq!(pieces(&told), [(Read, 2), (Discard, 5), (Write, 7), (Discard, 17), (Read, 18)]);
        assert!(told.blocks.is_empty());
    }

    #[test]
    fn mover_epochs_end_between_requests() {
        use Op::{Populate, Read};
        let (told, _) = portion("R1@5 R2@14 R3@15 R4@20 R5@55 R6@56", true, Some(Span::TimeNs(10)));
        let expected =
            [(Read, 1), (Read, 2), (Populate, 2), (Read, 3), (Read, 4), (Populate, 4), (Read, 5), (Read, 6)];
        assert_eq!(pieces(&told), expected);
        assert_eq!(told.starts, [0, 1, 3, 4, 6, 7]);
        let (told, _) = portion("R1 F R2 F R3", true, Some(Span::Requests(2)));
        assert_eq!(pieces(&told), [(Read, 1), (Read, 2), (Populate, 2), (Read, 3)]);
    }
}
