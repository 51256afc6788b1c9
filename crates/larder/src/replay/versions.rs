//! Which writes a sector may hold, and so what a read of it may find.
//!
//! Requests overlap in time, and nobody knows in which order a device carries out those that do. So a read may find a write that
//! was under way at the same time, or one that had ended before unless another began after that and ended before the read. Where
//! several remain when all is still, the first read settles it: the sector has to stay as it was found.
//! What was discarded, or failed to be written, may hold anything until it is written again.

use std::collections::HashMap;
use std::ops::Range;

use slab::Slab;

/// Sectors that share an allocation: 1 MiB of the disk.
const PAGE: u64 = 2048;

/// What a sector may hold: the version of a write, with a mark where that leaves anything behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value(u64);

const ANYTHING: u64 = 1 << 63;

impl Value {
    /// It was not written by this replay.
    const NEVER: Self = Self(0);
    /// See the list of doubts.
    const DOUBTFUL: Self = Self(u64::MAX);

    fn version(self) -> u64 {
        self.0 & !ANYTHING
    }

    fn is_anything(self) -> bool {
        self == Self::NEVER || self.0 & ANYTHING != 0
    }
}

/// A write, or a discard, under way.
#[derive(Debug)]
struct Write {
    sectors: Range<u64>,
    version: u64,
    discards: bool,
    /// The versions of those that were under way at the same time on some of the same sectors.
    rivals: Vec<u64>,
}

/// A read under way.
#[derive(Debug)]
struct Read {
    sectors: Range<u64>,
    /// Writes that were under way at the same time on some of the sectors.
    rivals: Vec<Rival>,
    /// What each sector could hold before the first of them ended; nothing where there is none.
    before: Vec<Vec<Value>>,
}

impl Read {
    /// The read may find what that write leaves. `values` tells what a sector can hold without it.
    fn may_find(&mut self, rival: Rival, values: impl Fn(u64) -> Vec<Value>) {
        self.before.resize_with((self.sectors.end - self.sectors.start) as usize, Vec::new);
        let sectors = self.sectors.clone().zip(&mut self.before);
        for (sector, before) in sectors.filter(|(sector, _)| rival.sectors.contains(sector)) {
            if before.is_empty() {
                *before = values(sector);
            }
        }
        self.rivals.push(rival);
    }
}

#[derive(Debug)]
struct Rival {
    sectors: Range<u64>,
    value: Value,
}

/// A sector that holds something else than it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Which.
    pub sector: u64,
    /// The versions that it may hold.
    pub expected: Vec<u64>,
}

/// What a read came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Sectors of which something was known.
    pub sectors: u64,
    /// Those that hold something else.
    pub wrong: Vec<Wrong>,
}

/// All that was written, and all that is under way.
#[derive(Default)]
pub struct Versions {
    held: Held,
    writes: Slab<Write>,
    reads: Slab<Read>,
    last: u64,
}

impl Versions {
    /// A write, or a discard, is about to be sent: its key and its version.
    pub fn begin_write(&mut self, sectors: Range<u64>, discards: bool) -> (usize, u64) {
        self.last += 1;
        let version = self.last;
        let mut rivals = Vec::new();
        for (_, other) in self.writes.iter_mut().filter(|(_, other)| overlap(&other.sectors, &sectors)) {
            rivals.push(other.version);
            other.rivals.push(version);
        }
        self.tell_reads(&sectors, version, discards);
        (self.writes.insert(Write { sectors, version, discards, rivals }), version)
    }

    /// Reads under way may find the new write.
    fn tell_reads(&mut self, sectors: &Range<u64>, version: u64, discards: bool) {
        for (_, read) in self.reads.iter_mut().filter(|(_, read)| overlap(&read.sectors, sectors)) {
            let rival = Rival { sectors: sectors.clone(), value: value(version, discards) };
            read.may_find(rival, |sector| self.held.values(sector));
        }
    }

    /// It has ended. One that failed leaves anything.
    pub fn end_write(&mut self, key: usize, is_done: bool) {
        let Write { sectors, version, discards, rivals } = self.writes.remove(key);
        let left = value(version, discards || !is_done);
        if !is_done {
            let rivals = self.reads.iter_mut().flat_map(|(_, read)| &mut read.rivals);
            rivals.filter(|rival| rival.value.version() == version).for_each(|rival| rival.value = left);
        }
        for sector in sectors {
            if rivals.is_empty() {
                // Discards may be long, and say nothing of what was never written.
                if !left.is_anything() || self.held.pages.contains_key(&(sector / PAGE)) {
                    self.held.set(sector, left);
                }
                continue;
            }
            let mut values = self.held.values(sector);
            values.retain(|value| rivals.contains(&value.version()));
            values.push(left);
            self.held.set_all(sector, values);
        }
    }

    /// A read is about to be sent: its key.
    pub fn begin_read(&mut self, sectors: Range<u64>) -> usize {
        let mut read = Read { sectors: sectors.clone(), rivals: Vec::new(), before: Vec::new() };
        for (_, write) in self.writes.iter().filter(|(_, write)| overlap(&write.sectors, &sectors)) {
            let value = value(write.version, write.discards);
            let rival = Rival { sectors: write.sectors.clone(), value };
            read.may_find(rival, |sector| self.held.values(sector));
        }
        self.reads.insert(read)
    }

    /// It has failed: nothing was found.
    pub fn fail_read(&mut self, key: usize) {
        self.reads.remove(key);
    }

    /// It has ended. `found` looks which version a sector holds, if any.
    pub fn end_read(&mut self, key: usize, mut found: impl FnMut(u64) -> Option<u64>) -> Checked {
        let Read { sectors, rivals, before } = self.reads.remove(key);
        let mut checked = Checked::default();
        for (at, sector) in sectors.enumerate() {
            let before = before.get(at).filter(|before| !before.is_empty());
            let is_alone = before.is_none();
            let mut may_be = before.cloned().unwrap_or_else(|| self.held.values(sector));
            let rivals = rivals.iter().filter(|rival| rival.sectors.contains(&sector));
            may_be.extend(rivals.map(|rival| rival.value));
            if may_be.iter().any(|value| value.is_anything()) {
                continue;
            }
            checked.sectors += 1;
            let found = found(sector);
            let known = may_be.iter().find(|value| Some(value.version()) == found);
            match known {
                Some(&value) if is_alone && may_be.len() > 1 => self.held.set(sector, value),
                Some(_) => {}
                None => {
                    let expected = may_be.iter().map(|value| value.version()).collect();
                    checked.wrong.push(Wrong { sector, expected });
                }
            }
        }
        checked
    }

    /// The pages of the disk that were written to, in order.
    pub fn pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.held.pages.keys().copied().collect();
        pages.sort_unstable();
        pages
    }

    /// The sectors in a page of which something is known, those side by side together.
    pub fn known_in(&self, page: u64) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for sector in page * PAGE..(page + 1) * PAGE {
            if self.held.values(sector).iter().any(|value| value.is_anything()) {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end == sector => run.end += 1,
                _ => runs.push(sector..sector + 1),
            }
        }
        runs
    }
}

/// What the sectors hold after all that has ended.
#[derive(Default)]
struct Held {
    pages: HashMap<u64, Box<[Value]>>,
    doubts: HashMap<u64, Vec<Value>>,
}

impl Held {
    /// What a sector may hold while nothing is under way.
    fn values(&self, sector: u64) -> Vec<Value> {
        let value = match self.pages.get(&(sector / PAGE)) {
            Some(page) => page[(sector % PAGE) as usize],
            None => Value::NEVER,
        };
        match value {
            Value::DOUBTFUL => self.doubts.get(&sector).cloned().unwrap_or_default(),
            value => vec![value],
        }
    }

    fn set_all(&mut self, sector: u64, values: Vec<Value>) {
        match values[..] {
            [value] => self.set(sector, value),
            _ => {
                self.set(sector, Value::DOUBTFUL);
                self.doubts.insert(sector, values);
            }
        }
    }

    fn set(&mut self, sector: u64, value: Value) {
        let page = self.pages.entry(sector / PAGE);
        let page = page.or_insert_with(|| vec![Value::NEVER; PAGE as usize].into_boxed_slice());
        let old = std::mem::replace(&mut page[(sector % PAGE) as usize], value);
        if old == Value::DOUBTFUL {
            self.doubts.remove(&sector);
        }
    }
}

fn value(version: u64, anything: bool) -> Value {
    Value(if anything { version | ANYTHING } else { version })
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
mod tests;
