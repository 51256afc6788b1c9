//! What a block and a write are worth: Lagrange multipliers, which say of a choice how far it is from being one of the best.
//!
//! Were every block and every write to be paid for, each tenant would take the choice that is cheapest for it alone.
//! What these cost together, less what the whole cache and the whole budget are worth, is a lower bound for any solution
//! (weak duality). A solution with a choice that is dearer by `d` than the tenant's cheapest is above that bound by `d`
//! at least; so, for all tenants, by the sum of them. Any prices give a valid bound, the best prices the highest one.

use super::Room;
use crate::{Candidates, Choice};

/// Halvings of the range of a price.
const HALVINGS: u32 = 40;
/// The price of writes is looked for so many factors of two above and below the one at which the budget is worth all
/// costs.
const OCTAVES: f64 = 24.0;
/// Sections of that range, each of which leaves [`GOLDEN`] of it.
const SECTIONS: u32 = 50;
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The price of a block, and of a write per second, in costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Prices {
    pub block: f64,
    pub write: f64,
}

impl Prices {
    /// Those with the highest bound, nearly.
    pub(super) fn of(candidates: &[Candidates], room: Room) -> Self {
        let Some(budget) = room.writes else { return block_price(candidates, room, 0.0).0 };
        let range: f64 = candidates.iter().map(cost_range).sum();
        let base = range / budget.max(f64::MIN_POSITIVE);
        let free = block_price(candidates, room, 0.0);
        if range == 0.0 || !base.is_finite() {
            return free.0;
        }
        let at = |octave: f64| block_price(candidates, room, base * octave.exp2());
        // The bound is concave in the price, and so has one peak in its logarithm too: golden section search. Near the peak
        // the bound falls in proportion to the distance, so that it takes a precise one.
        let (mut low, mut high) = (-OCTAVES, OCTAVES);
        let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_left, mut at_right) = (at(left).1, at(right).1);
        for _ in 0..SECTIONS {
            if at_left < at_right {
                (low, left, at_left) = (left, right, at_right);
                right = low + GOLDEN * (high - low);
                at_right = at(right).1;
            } else {
                (high, right, at_right) = (right, left, at_left);
                left = high - GOLDEN * (high - low);
                at_left = at(left).1;
            }
        }
        let best = at((low + high) / 2.0);
        if best.1 > free.1 { best.0 } else { free.0 }
    }

    /// What a choice costs with what it takes.
    pub(super) fn full(self, choice: &Choice) -> f64 {
        choice.cost + self.block * choice.blocks as f64 + self.write * choice.writes
    }

    /// The cheapest of a tenant's choices.
    pub(super) fn cheapest(self, candidates: &Candidates) -> Option<&Choice> {
        candidates.choices.iter().min_by(|a, b| self.full(a).total_cmp(&self.full(b)))
    }

    /// No solution costs less.
    pub(super) fn bound(self, candidates: &[Candidates], room: Room) -> f64 {
        let cheapest = candidates.iter().filter_map(|one| self.cheapest(one));
        let all: f64 = cheapest.map(|choice| self.full(choice)).sum();
        all - self.block * room.blocks as f64 - self.write * room.writes.unwrap_or(0.0)
    }
}

/// The best price of a block where a write costs so much, and the bound with it.
fn block_price(candidates: &[Candidates], room: Room, write: f64) -> (Prices, f64) {
    let taken = |block: f64| -> u64 {
        let prices = Prices { block, write };
        candidates.iter().filter_map(|one| prices.cheapest(one)).map(|choice| choice.blocks).sum()
    };
    let most = |one: &Candidates| {
        let full = one.choices.iter().map(|choice| Prices { block: 0.0, write }.full(choice));
        full.fold(0.0, f64::max)
    };
    // At the highest no block pays for itself, at the lowest all that bring anything do.
    let (mut low, mut high) = (0.0, candidates.iter().map(most).fold(0.0, f64::max));
    if taken(low) <= room.blocks {
        high = low;
    }
    for _ in 0..if high > low { HALVINGS } else { 0 } {
        let middle = (low + high) / 2.0;
        match taken(middle) > room.blocks {
            true => low = middle,
            false => high = middle,
        }
    }
    let prices = Prices { block: high, write };
    (prices, prices.bound(candidates, room))
}

fn cost_range(one: &Candidates) -> f64 {
    let costs = || one.choices.iter().map(|choice| choice.cost);
    let (low, high) = (costs().fold(f64::INFINITY, f64::min), costs().fold(0.0, f64::max));
    (high - low).max(0.0)
}
