//! What a trace holds, in a line above a table and in a line below a picture's title.

use std::fmt;

use larder_daemon::units::HumanSize;
use larder_sim::{BlockSize, Summary};

use crate::number::{grouped, percent};

/// What is told of a trace.
pub struct Head<'a> {
    /// Its name.
    pub trace: &'a str,
    /// Its format.
    pub format: &'a str,
    /// What it holds.
    pub summary: &'a Summary,
    /// The unit of caching.
    pub block: BlockSize,
}

impl Head<'_> {
    /// Share of reads among the requests.
    fn reads(&self) -> String {
        let requests = self.summary.requests();
        percent((requests > 0).then(|| self.summary.reads as f64 / requests as f64))
    }

    fn footprint(&self) -> HumanSize {
        HumanSize(self.summary.footprint_blocks.saturating_mul(self.block.bytes().into()))
    }

    /// The same for pictures, which have no other place to tell the size of the blocks.
    pub fn subtitle(&self) -> String {
        let (reads, footprint) = (self.reads(), self.footprint());
        let (requests, block) = (grouped(self.summary.requests()), HumanSize(self.block.bytes().into()));
        format!(
            "{}: {requests} requests, {reads} reads, footprint {footprint}, blocks of {block}",
            self.trace
        )
    }
}

impl fmt::Display for Head<'_> {
    /// One line, or two where the trace holds flushes or discards.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { flushes, discards, .. } = *self.summary;
        let (requests, reads, footprint) = (grouped(self.summary.requests()), self.reads(), self.footprint());
        writeln!(
            f,
            "{} ({}): {requests} requests, {reads} reads, footprint {footprint}",
            self.trace, self.format
        )?;
        if flushes + discards > 0 {
            writeln!(f, "and {} flushes, {} discards", grouped(flushes), grouped(discards))?;
        }
        Ok(())
    }
}
