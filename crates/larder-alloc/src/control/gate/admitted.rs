//! What enters of what is offered: what is worth most, within what may be written to the SSD and what takes a place in the cache.

use larder_policy::doors::Kind;

use super::ledger::Price;

/// A kind takes a part of a place for each block at least.
const LEAST_PLACE: f64 = 0.01;

/// What may enter, in blocks per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Those that are written to the SSD.
    pub writes: f64,
    /// Those of them that take a place in the cache.
    pub places: f64,
    /// What is worth no more stays out, whatever may enter: seconds for a block.
    pub worth: f64,
}

/// What a tenant offers of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    /// Seconds saved for each block.
    pub worth: f64,
    pub tenant: usize,
    pub kind: Kind,
    /// Blocks per second.
    pub offered: f64,
    /// Of each block the part that takes a place in the cache, 0 to 1.
    pub place: f64,
}

/// What enters.
#[derive(Debug)]
pub(super) struct Admitted {
    /// What is worth less stays out.
    pub price: Price,
    /// Which part of each offer enters, in the order in which they were given.
    pub shares: Vec<f64>,
}

/// What is worth most for each block written enters; where all that is offered may be written, what is worth most for each place.
pub(super) fn admit(offers: &[Offered], limit: Limit) -> Admitted {
    // The most that is turned away is worth, of what is there already for the most part, and of what is not.
    let (mut there, mut absent) = (0.0_f64, 0.0_f64);
    let mut shares = vec![0.0; offers.len()];
    let worth = |at: usize| offers[at].worth;
    let mut order = Order::default();
    order.put(offers, worth, limit);
    order.enter(offers, worth, limit, |at, share| {
        if share < 1.0 {
            let turned_away = if offers[at].place > 0.5 { &mut absent } else { &mut there };
            *turned_away = turned_away.max(offers[at].worth);
        }
        shares[at] = share;
    });
    let write = if absent > 0.0 { there.min(absent) } else { there };
    Admitted { price: Price { write, place: (absent - write).max(0.0) }, shares }
}

/// What is offered, the best first: it is the same for all limits under which as much may be written.
#[derive(Debug, Default)]
pub(super) struct Order(Vec<u64>);

impl Order {
    /// Put what is offered in order, were it worth this much.
    pub(super) fn put(&mut self, offers: &[Offered], worth: impl Fn(usize) -> f64, limit: Limit) {
        let by_place = limit.writes >= offers.iter().map(|offer| offer.offered).sum();
        self.0.clear();
        self.0.extend(offers.iter().enumerate().map(|(at, offer)| {
            let each = if by_place { offer.place.max(LEAST_PLACE) } else { 1.0 };
            // What differs by how sums are rounded is worth the same: here and where requests are served elsewhere the same kind of these comes first.
            u64::from(descending((worth(at) / each) as f32)) << 32 | at as u64
        }));
        self.0.sort_unstable();
    }

    /// Which part of each offer enters, in the order in which they are given.
    pub(super) fn shares(&self, offers: &[Offered], worth: impl Fn(usize) -> f64, limit: Limit) -> Vec<f64> {
        let mut shares = vec![0.0; offers.len()];
        self.enter(offers, worth, limit, |at, share| shares[at] = share);
        shares
    }

    /// Seconds saved per second by what enters of what is offered.
    pub(super) fn saves(&self, offers: &[Offered], worth: impl Fn(usize) -> f64, limit: Limit) -> f64 {
        let mut saves = 0.0;
        self.enter(offers, &worth, limit, |at, share| saves += offers[at].offered * share * worth(at));
        saves
    }

    /// One offer after another enters, the best first, as far as the limits go: which part of it is told.
    fn enter(
        &self,
        offers: &[Offered],
        worth: impl Fn(usize) -> f64,
        limit: Limit,
        mut tell: impl FnMut(usize, f64),
    ) {
        let Limit { writes: mut left, places: mut room, worth: least } = limit;
        // There are far fewer offers.
        for at in self.0.iter().map(|&rank| rank as u32 as usize) {
            let (worth, Offered { offered, place, .. }) = (worth(at), offers[at]);
            let most = left.min(if place > 0.0 { room / place } else { f64::INFINITY });
            // What is worth less than the price stays out, though nothing of that kind was offered lately.
            let share = match worth as f32 > least as f32 && most > 0.0 {
                true if offered > most => most / offered,
                enters => f64::from(u8::from(enters)),
            };
            let entering = offered * share;
            left = (left - entering).max(0.0);
            room = (room - entering * place).max(0.0);
            tell(at, share);
        }
    }
}

/// A number that is the lower the higher the worth ([`f32::total_cmp`]): sorting numbers takes a fifth of the time that sorting offers does.
fn descending(worth: f32) -> u32 {
    let bits = worth.to_bits();
    if bits >> 31 == 0 { !bits & 0x7fff_ffff } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(tenant: usize, write: bool, worth: f64, offered: f64, place: f64) -> Offered {
        Offered { worth, tenant, kind: Kind::of(write, 1, false, 0, false), offered, place }
    }

    fn shares(offers: &[Offered], writes: f64, places: f64) -> (Vec<f64>, Admitted) {
        let limit = Limit { writes, places, worth: 0.0 };
        let admitted = admit(offers, limit);
        (admitted.shares.clone(), admitted)
    }

    fn saved(offers: &[Offered], places: f64) -> f64 {
        let limit = Limit { writes: f64::INFINITY, places, worth: 0.0 };
        let mut order = Order::default();
        order.put(offers, |at| offers[at].worth, limit);
        order.saves(offers, |at| offers[at].worth, limit)
    }

    #[test]
    fn the_highest_worth_comes_first() {
        let worths = [f32::NAN, f32::INFINITY, 3.0, 1e-30, 0.0, -0.0, -1e-30, -2.0, f32::NEG_INFINITY];
        assert!(worths.is_sorted_by(|&a, &b| descending(a) < descending(b)));
    }

    #[test]
    fn what_is_worth_most_for_each_place_enters_where_places_are_what_is_short() {
        // Ten blocks a second each; the writes of the last tenant are of resident blocks, but for a tenth.
        let offers = [
            offered(0, false, 3.0, 10.0, 1.0),
            offered(1, false, 2.0, 10.0, 1.0),
            offered(2, true, 1.0, 10.0, 0.1),
            offered(3, false, 0.0, 10.0, 1.0),
        ];
        let (all, admitted) = shares(&offers, f64::INFINITY, f64::INFINITY);
        assert_eq!((all, admitted.price), (vec![1.0, 1.0, 1.0, 0.0], Price::default()));
        let (some, admitted) = shares(&offers, f64::INFINITY, 16.0);
        assert_eq!((some, saved(&offers, 16.0)), (vec![1.0, 0.5, 1.0, 0.0], 50.0));
        assert_eq!(admitted.price, Price { write: 0.0, place: 2.0 });
    }

    #[test]
    fn what_is_worth_most_for_each_block_enters_where_writes_are_what_is_short() {
        let offers = [
            offered(0, false, 3.0, 10.0, 1.0),
            offered(1, true, 1.0, 10.0, 0.0),
            offered(2, false, 2.0, 10.0, 1.0),
        ];
        let (some, admitted) = shares(&offers, 15.0, f64::INFINITY);
        assert_eq!((some, admitted.price), (vec![1.0, 0.0, 0.5], Price { write: 1.0, place: 1.0 }));
        // A place costs nothing where only what is there is turned away.
        let (some, admitted) = shares(&offers, 25.0, f64::INFINITY);
        assert_eq!((some, admitted.price), (vec![1.0, 0.5, 1.0], Price { write: 1.0, place: 0.0 }));
    }
}
