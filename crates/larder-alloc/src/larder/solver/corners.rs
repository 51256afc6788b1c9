//! Fewer choices where there are very many: of each way those that lie on a hull.
//!
//! Which hull depends on the price of a write, which is not known yet: some are drawn, for prices around what the tenant's own
//! latency and writes suggest. What is lost is small where there are many tenants, and [`bound`] over all choices says how small.

use super::Prices;
use super::prices::{Corner, Worth, hull};
use crate::optimal::Room;
use crate::{Candidates, Choice};

/// Prices of a write for which hulls are drawn, as multiples of the tenant's own, besides those of latency and of writes alone.
const MULTIPLES: [f64; 3] = [0.1, 1.0, 10.0];
/// Choices of a way that those hulls are drawn through, evenly spaced.
const COARSE: usize = 64;
const LATENCY: Worth = Worth { cost: 1.0, write: 0.0 };

/// The choices on a hull, and of each way the largest that is no larger than `held` blocks.
///
/// The choices come way by way, each way's in rising order of blocks.
pub fn corners(choices: &[Choice], held: u64, budget: bool) -> Candidates {
    let mut kept: Vec<Choice> = Vec::new();
    let mut on_hull = Vec::new();
    let worths = worths(choices, budget);
    for way in choices.chunk_by(|a, b| a.way == b.way) {
        draw(way, LATENCY, &mut on_hull, &mut kept);
        let coarse: Vec<Choice> = way.iter().step_by(way.len().div_ceil(COARSE)).copied().collect();
        for &worth in &worths {
            draw(&coarse, worth, &mut on_hull, &mut kept);
        }
        let until = way.partition_point(|choice| choice.blocks <= held);
        kept.extend(until.checked_sub(1).map(|at| way[at]));
    }
    Candidates::new(kept, budget)
}

fn draw(way: &[Choice], worth: Worth, on_hull: &mut Vec<Corner>, kept: &mut Vec<Choice>) {
    hull(way, worth, on_hull);
    kept.extend(on_hull.iter().map(|corner| way[corner.at as usize]));
}

/// What the hulls besides that of latency alone are drawn for.
fn worths(choices: &[Choice], budget: bool) -> Vec<Worth> {
    if !budget {
        return Vec::new();
    }
    let ways = choices.chunk_by(|a, b| a.way == b.way);
    let smallest: Vec<&Choice> = ways.filter_map(|way| way.first()).collect();
    let most = |sort: fn(&Choice) -> f64| smallest.iter().map(|choice| sort(choice)).fold(0.0, f64::max);
    let (cost, writes) = (most(|choice| choice.cost), most(|choice| choice.writes));
    let own = if writes > 0.0 { cost / writes } else { 0.0 };
    let priced = MULTIPLES.iter().map(|multiple| Worth { cost: 1.0, write: own * multiple });
    priced.chain([Worth { cost: 0.0, write: 1.0 }]).collect()
}

/// No plan costs less than this: what the choices that are cheapest at the prices cost there, less the price of all there is.
///
/// `cheapest` has for each tenant what its cheapest choice costs at these prices ([`Prices::of`]).
pub fn bound(cheapest: impl Iterator<Item = f64>, room: Room, prices: Prices) -> f64 {
    let writes = room.writes.filter(|_| prices.write > 0.0).map_or(0.0, |most| prices.write * most);
    cheapest.sum::<f64>() - prices.block * room.blocks as f64 - writes
}
