//! Which of the pinned blocks of a stack comes free next.
//!
//! A pinned block lies at a fixed place and has the time of its last write; until it comes free, it has some *slack*. While
//! another pinned block lies above it and is older, that one comes free first. So only the others matter, the *stairs*: from
//! the top down, each is older than all above it. What happens in the stack lowers the slack of a stretch of the stairs by one.
//!
//! Places are kept in chunks of 64, and over the chunks lies a binary tree: the oldest time below each node, and the least
//! slack, with what is still to be added for all of the stairs below.

use std::ops::Range;

use super::NEVER;

const CHUNK: usize = u64::BITS as usize;

/// The slack where there is no block of the stairs.
const NONE: i32 = i32::MAX;

/// Pinned blocks by their places from 0, the top.
#[derive(Clone, Debug)]
pub(crate) struct Stairs {
    /// The time of the block at each place; [`NEVER`] if none is pinned there.
    times: Vec<u32>,
    /// By place; has a meaning on the stairs only. Wants added what its chunk's node has to add, and the nodes above.
    slacks: Vec<i32>,
    /// One bit a place: it is on the stairs.
    steps: Vec<u64>,
    /// A heap: the root at 1, the children of `n` at `2 n` and `2 n + 1`, the chunks last.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The least time below.
    oldest: u32,
    /// The least slack below, `add` included, or [`NONE`].
    least: i32,
    /// What is still to be added to all slacks below.
    add: i32,
}

const EMPTY: Node = Node { oldest: NEVER, least: NONE, add: 0 };

impl Node {
    #[inline]
    fn add(&mut self, add: i32) {
        if self.least != NONE {
            self.least += add;
            self.add += add;
        }
    }
}

impl Stairs {
    /// Nothing pinned.
    pub(crate) fn new() -> Self {
        Self { times: vec![NEVER; CHUNK], slacks: vec![0; CHUNK], steps: vec![0], nodes: vec![EMPTY; 2] }
    }

    /// The pinned blocks, as places and times.
    pub(crate) fn pinned(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(&self.times).filter(|&(_, &time)| time != NEVER).map(|(place, &time)| (place, time))
    }

    /// The time of a block that is pinned.
    pub(crate) fn time(&self, place: u32) -> u32 {
        self.times[place as usize]
    }

    /// Pin a block, or give a pinned one another time. The stairs from there on are to be laid anew.
    #[inline]
    pub(crate) fn pin(&mut self, place: u32, time: u32) {
        if place as usize >= self.times.len() {
            self.make_room(place);
        }
        self.set(place, time);
    }

    /// A block is pinned no longer. The stairs from there on are to be laid anew.
    #[inline]
    pub(crate) fn free(&mut self, place: u32) {
        self.set(place, NEVER);
    }

    /// The first place from `from` on with a pinned block that is older than `time`, or [`NEVER`].
    #[inline]
    pub(crate) fn first_older(&self, from: u32, time: u32) -> u32 {
        if self.nodes[1].oldest >= time || from as usize >= self.times.len() {
            return NEVER;
        }
        let (chunk, mut node) = (from as usize / CHUNK, self.leaf(from as usize / CHUNK));
        if self.nodes[node].oldest < time
            && let Some(found) = self.first_older_in(chunk, from as usize % CHUNK, time)
        {
            return found;
        }
        while node % 2 == 1 || self.nodes[node + 1].oldest >= time {
            node /= 2;
            if node <= 1 {
                return NEVER;
            }
        }
        node += 1;
        while node < self.chunks() {
            node *= 2;
            node += usize::from(self.nodes[node].oldest >= time);
        }
        self.first_older_in(node - self.chunks(), 0, time).unwrap_or(NEVER)
    }

    /// Lay the stairs anew from a place on at which something has changed. Calls `slack` for the places of the blocks that
    /// come to lie on them.
    #[inline]
    pub(crate) fn lay(&mut self, from: u32, slack: impl Fn(u32, u32) -> i32) {
        if from as usize >= self.times.len() {
            return;
        }
        let (mut from, mut time) = (from, self.oldest_above(from));
        loop {
            let next = self.first_older(from, time);
            if next == NEVER || self.is_step(next) {
                return;
            }
            (from, time) = (next + 1, self.time(next));
            self.add_step(next, slack(next, time));
        }
    }

    /// Lower the slacks of the stairs at these places by one.
    #[inline]
    pub(crate) fn lower(&mut self, places: Range<u32>) {
        if self.nodes[1].least != NONE && places.start < places.end {
            self.add_above(places.end, -1);
            if places.start > 0 {
                self.add_above(places.start, 1);
            }
        }
    }

    /// The place of a block without slack, if there is one.
    #[inline]
    pub(crate) fn ripe(&self) -> Option<u32> {
        if self.nodes[1].least > 0 {
            return None;
        }
        let mut node = 1;
        while node < self.chunks() {
            node *= 2;
            node += usize::from(self.nodes[node + 1].least < self.nodes[node].least);
        }
        let chunk = node - self.chunks();
        ones(self.steps[chunk])
            .map(|at| chunk * CHUNK + at)
            .min_by_key(|&place| self.slacks[place])
            .map(|place| place as u32)
    }

    /// Give all pinned blocks other times, that leave their order as it is.
    pub(crate) fn renumber(&mut self, time: impl Fn(u32) -> u32) {
        self.times.iter_mut().filter(|other| **other != NEVER).for_each(|other| *other = time(*other));
        self.rebuild();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.times.capacity() * size_of::<u32>()
            + self.slacks.capacity() * size_of::<i32>()
            + self.steps.capacity() * size_of::<u64>()
            + self.nodes.capacity() * size_of::<Node>()
    }

    /// A power of two.
    #[inline]
    fn chunks(&self) -> usize {
        self.steps.len()
    }

    #[inline]
    fn leaf(&self, chunk: usize) -> usize {
        self.chunks() + chunk
    }

    #[inline]
    fn is_step(&self, place: u32) -> bool {
        self.steps[place as usize / CHUNK] & bit(place) != 0
    }

    /// Change what is pinned at a place, which is no step then.
    #[inline]
    fn set(&mut self, place: u32, time: u32) {
        let chunk = place as usize / CHUNK;
        self.times[place as usize] = time;
        self.steps[chunk] &= !bit(place);
        self.update_leaf(chunk);
        self.update_above(self.leaf(chunk));
    }

    #[inline]
    fn add_step(&mut self, place: u32, slack: i32) {
        let chunk = place as usize / CHUNK;
        let leaf = self.leaf(chunk);
        for height in (0..=self.chunks().ilog2()).rev() {
            self.push_down(leaf >> height);
        }
        self.slacks[place as usize] = slack;
        self.steps[chunk] |= bit(place);
        self.update_leaf(chunk);
        self.update_above(leaf);
    }

    /// The oldest time above a place, [`NEVER`] if none is pinned there.
    #[inline]
    fn oldest_above(&self, place: u32) -> u32 {
        let chunk = place as usize / CHUNK;
        let here = self.times[chunk * CHUNK..place as usize].iter().copied().min().unwrap_or(NEVER);
        let (mut oldest, mut node) = (here, self.leaf(chunk));
        while node > 1 {
            if node % 2 == 1 {
                oldest = oldest.min(self.nodes[node - 1].oldest);
            }
            node /= 2;
        }
        oldest
    }

    #[inline]
    fn first_older_in(&self, chunk: usize, from: usize, time: u32) -> Option<u32> {
        let start = chunk * CHUNK + from;
        let found = self.times[start..(chunk + 1) * CHUNK].iter().position(|&other| other < time)?;
        Some((start + found) as u32)
    }

    /// Add to the slacks of all stairs above a place.
    #[inline]
    fn add_above(&mut self, place: u32, add: i32) {
        let place = place as usize;
        if place >= self.times.len() {
            return self.nodes[1].add(add);
        }
        let chunk = place / CHUNK;
        let steps = self.steps[chunk] & ((1 << (place % CHUNK)) - 1);
        let mut node = self.leaf(chunk);
        if steps != 0 {
            ones(steps).for_each(|at| self.slacks[chunk * CHUNK + at] += add);
            self.nodes[node].least = self.least_in(chunk);
        }
        while node > 1 {
            if node % 2 == 1 {
                self.nodes[node - 1].add(add);
            }
            node /= 2;
            self.update(node);
        }
    }

    #[inline]
    fn least_in(&self, chunk: usize) -> i32 {
        let least = ones(self.steps[chunk]).map(|at| self.slacks[chunk * CHUNK + at]).min();
        least.map_or(NONE, |least| least + self.nodes[self.leaf(chunk)].add)
    }

    /// Hand on what is to be added to all below a node.
    #[inline]
    fn push_down(&mut self, node: usize) {
        let add = std::mem::take(&mut self.nodes[node].add);
        if add == 0 {
            return;
        }
        match node.checked_sub(self.chunks()) {
            Some(chunk) => ones(self.steps[chunk]).for_each(|at| self.slacks[chunk * CHUNK + at] += add),
            None => self.nodes[2 * node..2 * node + 2].iter_mut().for_each(|child| child.add(add)),
        }
    }

    #[inline]
    fn update_leaf(&mut self, chunk: usize) {
        let (leaf, least) = (self.leaf(chunk), self.least_in(chunk));
        let oldest = self.times[chunk * CHUNK..][..CHUNK].iter().copied().min().unwrap_or(NEVER);
        let add = if least == NONE { 0 } else { self.nodes[leaf].add };
        self.nodes[leaf] = Node { oldest, least, add };
    }

    #[inline]
    fn update(&mut self, node: usize) {
        let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        let least = left.least.min(right.least);
        let add = if least == NONE { 0 } else { self.nodes[node].add };
        let oldest = left.oldest.min(right.oldest);
        self.nodes[node] = Node { oldest, least: least.saturating_add(add), add };
    }

    #[inline]
    fn update_above(&mut self, mut node: usize) {
        while node > 1 {
            node /= 2;
            self.update(node);
        }
    }

    #[cold]
    fn make_room(&mut self, place: u32) {
        (1..self.nodes.len()).for_each(|node| self.push_down(node));
        let chunks = (place as usize / CHUNK + 1).next_power_of_two();
        self.times.resize(chunks * CHUNK, NEVER);
        self.slacks.resize(chunks * CHUNK, 0);
        self.steps.resize(chunks, 0);
        self.nodes = vec![EMPTY; 2 * chunks];
        self.rebuild();
    }

    fn rebuild(&mut self) {
        (0..self.chunks()).for_each(|chunk| self.update_leaf(chunk));
        (1..self.chunks()).rev().for_each(|node| self.update(node));
    }
}

fn bit(place: u32) -> u64 {
    1 << (place as usize % CHUNK)
}

/// The places of a word's ones.
#[inline]
fn ones(word: u64) -> impl Iterator<Item = usize> {
    let mut left = word;
    std::iter::from_fn(move || {
        let at = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (at < u64::BITS).then_some(at as usize)
    })
}

#[cfg(test)]
mod tests;
