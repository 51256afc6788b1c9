//! The analysis of a sample: the daemon's analyzer over the trace, with windows over time.

use std::ops::Range;

use larder_locality::{Analyzer, AnalyzerConfig, Op, Piece};

use super::intake::Portion;
use super::windows::Windows;
use crate::{Analysis, AnalysisPlan};

/// The analyzer and its windows.
pub(crate) struct Sampled {
    analyzer: Analyzer,
    windows: Windows,
    /// The keys of the request under way. A request whose keys do not follow each other (it crosses the end of 2^32 blocks of its volume) counts as two.
    request: Range<u64>,
}

impl Sampled {
    pub(crate) fn new(plan: &AnalysisPlan) -> Self {
        let analyzer = Analyzer::new(&AnalyzerConfig {
            policies: plan.policies.clone(),
            sampling: plan.sampling,
            history_blocks: u64::MAX,
            seed: plan.seed,
        });
        Self { analyzer, windows: Windows::new(), request: 0..0 }
    }

    /// Take the next portion, whose blocks are not numbered.
    pub(crate) fn take(&mut self, portion: &Portion) {
        let mut begun = portion.batch.begun.iter().zip(&portion.starts).peekable();
        let mut begin = 0;
        for (at, piece) in portion.pieces.iter().enumerate() {
            while let Some((begun, _)) = begun.next_if(|&(_, &start)| start as usize <= at) {
                if self.windows.begins(begun.at) {
                    self.windows.count(self.analyzer.classes());
                }
                self.windows.request(begun);
            }
            self.piece(piece, &portion.batch.keys[begin..piece.end as usize]);
            begin = piece.end as usize;
        }
    }

    fn piece(&mut self, piece: &Piece, keys: &[u64]) {
        if piece.op == Op::Populate {
            return self.analyzer.observe(Op::Populate, 0..0);
        }
        for &key in keys {
            if self.request.is_empty() {
                self.request = key..key;
            } else if self.request.end != key {
                self.analyzer.observe(piece.op, std::mem::replace(&mut self.request, key..key));
            }
            self.request.end = key + 1;
        }
        if piece.last {
            self.analyzer.observe(piece.op, std::mem::take(&mut self.request));
        }
    }

    /// Put what was found where it belongs.
    pub(crate) fn finish(mut self, analysis: &mut Analysis) {
        self.windows.count(self.analyzer.classes());
        analysis.summary.footprint_blocks = self.analyzer.footprint_blocks();
        analysis.rate = self.analyzer.rate();
        analysis.sampled_blocks = self.analyzer.sampled_blocks().into();
        analysis.classes = self.analyzer.classes();
        analysis.curves = self.analyzer.curves();
        analysis.windows = self.windows.finish(analysis.summary.elapsed_ns);
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.analyzer.memory_bytes()
    }
}
