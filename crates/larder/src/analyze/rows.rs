//! The table of sizes and policies: its rows, for the summary as for the report.

use larder_daemon::units::HumanSize;

use super::found::Found;
use super::line::{Line, merged};
use super::reach::Reach;
use super::sizes;
use crate::number::percent;

/// The table of a trace.
pub struct Rows<'a> {
    found: &'a Found,
    lines: Vec<Line>,
    /// Sizes in blocks, in rising order: one row each.
    pub sizes: Vec<u64>,
}

impl<'a> Rows<'a> {
    /// Of what was found.
    pub fn new(found: &'a Found) -> Self {
        let lines = found.telling().into_iter().chain(found.estimates.iter().cloned()).collect();
        Self { found, lines, sizes: sizes::of_table(found.summary.footprint_blocks, &found.reach) }
    }

    /// The columns, two for each: policies whose columns would look alike are told together.
    pub fn groups(&self) -> Vec<(String, &Line)> {
        let column =
            |line: &Line| self.sizes.iter().map(|&blocks| self.cells(line, blocks)).collect::<Vec<_>>();
        merged(&self.lines, column)
    }

    /// What stands over the two columns of each, in two parts.
    pub fn headings(&self) -> [[&'static str; 2]; 2] {
        let first = if self.tells_reads() { ["read", "hits"] } else { ["backing", "written"] };
        [first, ["SSD", "written"]]
    }

    /// A size, its share of the footprint, and what begins there.
    pub fn size(&self, blocks: u64) -> [String; 3] {
        let footprint = self.found.summary.footprint_blocks.max(1);
        let share = percent(Some((blocks as f64 / footprint as f64).min(1.0)));
        let reach = &self.found.reach;
        let marks = [(reach.knee, "90 %"), (reach.useful, "URD"), (reach.all, "TRD")];
        let here: Vec<_> =
            marks.into_iter().filter(|mark| mark.0 == Some(blocks)).map(|mark| mark.1).collect();
        [HumanSize(self.found.bytes(blocks)).to_string(), share, here.join(", ")]
    }

    /// Where reads may hit, how many of them do, else what the backing is written; and what the SSD is written.
    pub fn cells(&self, line: &Line, blocks: u64) -> [String; 2] {
        let size = |writes: Option<u64>| {
            writes.map_or_else(|| "-".into(), |writes| HumanSize(self.found.bytes(writes)).to_string())
        };
        let first = match self.tells_reads() {
            true => percent(line.read_hit_ratio(blocks)),
            false => size(line.backing_writes(blocks)),
        };
        [first, size(line.ssd_writes(blocks))]
    }

    /// False where there are no reads, or none hits but writes do.
    fn tells_reads(&self) -> bool {
        let Reach { knee, useful, .. } = self.found.reach;
        self.found.lru.reads > 0 && (useful.is_some() || knee.is_none())
    }

    /// What the names and the marks mean, and what a reader must know besides.
    pub fn legend(&self) -> String {
        let block = HumanSize(self.found.block.bytes().into());
        let policies = self.lines.iter().filter(|line| line.is_lru()).map(|line| meaning(line.write));
        let sentences = policies.chain(self.marks()).chain(self.found.caveats());
        let legend = format!("LRU caches in blocks of {block}.");
        sentences.fold(legend, |legend, sentence| legend + " " + sentence)
    }

    /// What the marks mean.
    fn marks(&self) -> impl Iterator<Item = &'static str> + use<> {
        let reach = &self.found.reach;
        let knee = match reach.useful {
            Some(_) => "90 %: nine tenths of all read hits.",
            None => "90 %: nine tenths of all write hits.",
        };
        let marks = [
            (reach.knee, knee),
            (reach.useful, "URD: all read hits."),
            (reach.all, "TRD: all hits, of writes too."),
        ];
        marks.into_iter().filter(|mark| mark.0.is_some()).map(|mark| mark.1)
    }
}

/// What a cache of a write policy does.
fn meaning(write: &str) -> &'static str {
    match write {
        "wb" => "wb: write-back.",
        "wt" => "wt: write-through.",
        "wt-noalloc" => "wt-noalloc: write-through, and a write brings no block in.",
        "ro" => "ro: a write goes to the backing alone, and drops the block.",
        _ => "batched: write-back, and only a mover brings blocks in, once an epoch.",
    }
}
