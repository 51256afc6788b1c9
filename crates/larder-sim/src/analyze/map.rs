//! Accesses over time and address, as a picture of bounded size: columns that widen as the trace goes on, rows that widen as it spreads.
//!
//! How far the volumes reach is known at the end only. Until then rows are counted per stretch of a volume, several times finer than those told, and only
//! where there are accesses; then volumes are laid one behind the other and the stretches fall into their rows.

use std::collections::BTreeMap;
use std::ops::Range;

use larder_trace::{Request, RequestKind};

use super::axis::{Axis, SHORTEST_NS, Step, fold, is_told_by_time};
use super::stretches::{Stretches, parts};
use crate::clock::Start;
use crate::{AddressMap, BlockSize};

/// Columns at most, and half of that at least if the trace is long enough.
const COLUMNS: usize = 128;

/// Rows told, at most.
const ROWS: u64 = 128;

/// Stretches counted at most.
const STRETCHES: usize = 1024;

/// The shortest stretch: 128 KiB, the largest block.
const SHIFT: u32 = 17;

/// Blocks read and written in a place of the map.
type Cell = [u64; 2];

/// The map under way. More volumes than 512 are not told apart: neighbours share their stretches.
#[derive(Debug)]
pub(crate) struct Map {
    stretches: Stretches,
    /// A volume's number without so many of its lowest bits tells whose stretches it uses.
    pairings: u32,
    by_time: Grid,
    by_requests: Grid,
    extents: Extents,
}

/// How far each volume reaches, in bytes.
#[derive(Debug, Default)]
struct Extents {
    ends: BTreeMap<u32, u64>,
    /// The volume that was asked for last.
    last: Option<(u32, u64)>,
}

/// Cells along one of the two axes.
#[derive(Debug)]
struct Grid {
    axis: Axis,
    /// For each stretch its cells, as far as there were accesses.
    rows: Vec<Vec<Cell>>,
}

impl Map {
    pub(crate) fn new() -> Self {
        Self::of(Stretches::new(SHIFT, STRETCHES))
    }

    fn of(stretches: Stretches) -> Self {
        let grid = |width| Grid { axis: Axis::new(width, COLUMNS), rows: Vec::new() };
        let extents = Extents::default();
        Self { stretches, pairings: 0, by_time: grid(SHORTEST_NS), by_requests: grid(1), extents }
    }

    /// Take a read or a write of these blocks.
    #[inline]
    pub(crate) fn access(&mut self, request: &Request, blocks: &Range<u64>, at: Start, block: BlockSize) {
        self.by_time.go(at.ns);
        self.by_requests.go(at.requests);
        if blocks.is_empty() {
            return;
        }
        self.extents.extend(request.volume, blocks.end.saturating_mul(block.bytes().into()));
        while request.volume >> self.pairings >= self.stretches.volumes_max() {
            let numbers = self.stretches.pair_volumes();
            self.pairings += 1;
            self.join(&numbers);
        }
        while self.stretches.are_short_for(request.len.into()) {
            self.fold();
        }
        let which = usize::from(request.kind == RequestKind::Write);
        for (offset, blocks) in parts(blocks.clone(), block, self.stretches.bytes()) {
            let number = self.stretches.number(request.volume >> self.pairings, offset);
            self.by_time.add(number, which, blocks);
            self.by_requests.add(number, which, blocks);
        }
        while self.stretches.is_over() {
            self.fold();
        }
    }

    /// Stretches become twice as long.
    fn fold(&mut self) {
        let numbers = self.stretches.fold();
        self.join(&numbers);
    }

    /// Stretches have new numbers.
    fn join(&mut self, numbers: &[usize]) {
        for grid in [&mut self.by_time, &mut self.by_requests] {
            grid.join(numbers, self.stretches.len());
        }
    }

    /// The map of a trace of this length.
    pub(crate) fn finish(self, elapsed_ns: u64) -> AddressMap {
        let by_time = is_told_by_time(elapsed_ns);
        let grid = if by_time { &self.by_time } else { &self.by_requests };
        let width = grid.axis.width();
        let (volumes, bytes) = self.extents.laid_out();
        let row_bytes = row_bytes(bytes, self.stretches.bytes());
        let rows = bytes.div_ceil(row_bytes) as usize;
        let columns = if rows == 0 { 0 } else { grid.axis.bins() };
        let mut map = AddressMap {
            column_ns: if by_time { width } else { 0 },
            column_requests: if by_time { 0 } else { width },
            row_bytes,
            columns,
            rows,
            reads: vec![0; rows * columns],
            writes: vec![0; rows * columns],
            volumes,
        };
        for (number, cells) in grid.rows.iter().enumerate() {
            let row = (self.address(number, &map.volumes) / row_bytes) as usize;
            // A group of volumes is told where the first of them lies, and may seem to reach beyond the last.
            let begin = row.min(rows - 1) * columns;
            for (at, [reads, writes]) in (begin..).zip(cells) {
                map.reads[at] += reads;
                map.writes[at] += writes;
            }
        }
        map
    }

    /// Where a stretch begins along the addresses.
    fn address(&self, number: usize, volumes: &[(u32, u64)]) -> u64 {
        let (group, offset) = self.stretches.place(number);
        let first = volumes.partition_point(|&(volume, _)| volume >> self.pairings < group);
        volumes.get(first).map_or(0, |&(_, begin)| begin).saturating_add(offset)
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        let extents = self.extents.ends.len() * 2 * size_of::<(u32, u64)>();
        self.stretches.memory_bytes()
            + self.by_time.memory_bytes()
            + self.by_requests.memory_bytes()
            + extents
    }
}

/// Bytes of a row, for rows of all addresses to be few and no row to be shorter than what is counted.
fn row_bytes(bytes: u64, stretch_bytes: u64) -> u64 {
    let mut row_bytes = stretch_bytes;
    while bytes.div_ceil(row_bytes) > ROWS {
        row_bytes *= 2;
    }
    row_bytes
}

impl Extents {
    #[inline]
    fn extend(&mut self, volume: u32, end: u64) {
        if self.last.is_some_and(|(last, known)| last == volume && known >= end) {
            return;
        }
        let known = self.ends.entry(volume).or_default();
        *known = end.max(*known);
        self.last = Some((volume, *known));
    }

    /// Where each volume begins, and where the last one ends.
    fn laid_out(&self) -> (Vec<(u32, u64)>, u64) {
        let mut end = 0u64;
        let begin = |(&volume, &bytes): (&u32, &u64)| {
            let begin = end;
            end = end.saturating_add(bytes);
            (volume, begin)
        };
        (self.ends.iter().map(begin).collect(), end)
    }
}

impl Grid {
    #[inline]
    fn go(&mut self, place: u64) {
        if let Step::On { folds } = self.axis.go(place)
            && folds > 0
        {
            self.rows.iter_mut().for_each(|cells| fold(cells, folds, add));
        }
    }

    #[inline]
    fn add(&mut self, row: usize, which: usize, blocks: u64) {
        if row == self.rows.len() {
            self.rows.push(Vec::new());
        }
        let (cells, column) = (&mut self.rows[row], self.axis.bin());
        if column >= cells.len() {
            cells.resize(column + 1, [0; 2]);
        }
        cells[column][which] += blocks;
    }

    fn join(&mut self, numbers: &[usize], rows: usize) {
        for (old, &new) in numbers.iter().enumerate().filter(|&(old, &new)| old != new) {
            let cells = std::mem::take(&mut self.rows[old]);
            let into = &mut self.rows[new];
            into.resize(into.len().max(cells.len()), [0; 2]);
            into.iter_mut().zip(cells).for_each(|(into, cell)| add(into, cell));
        }
        self.rows.truncate(rows);
    }

    fn memory_bytes(&self) -> usize {
        let cells: usize = self.rows.iter().map(Vec::capacity).sum();
        cells * size_of::<Cell>() + self.rows.capacity() * size_of::<Vec<Cell>>()
    }
}

fn add(into: &mut Cell, cell: Cell) {
    into[0] += cell[0];
    into[1] += cell[1];
}

#[cfg(test)]
mod tests;
