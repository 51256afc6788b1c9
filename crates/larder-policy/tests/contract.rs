//! What every replacement policy owes its user, for random sequences of accesses, removals, pins and sizes: see [`support::User`] for what is checked.

mod support;

use larder_policy::Replacement;
use larder_policy::replacement::aging_lfu::AgingLfu;
use larder_policy::replacement::arc::Arc;
use larder_policy::replacement::clock::Clock;
use larder_policy::replacement::fifo::Fifo;
use larder_policy::replacement::lfu::Lfu;
use larder_policy::replacement::lirs::Lirs;
use larder_policy::replacement::lru::Lru;
use larder_policy::replacement::mq::Mq;
use larder_policy::replacement::random::Random;
use larder_policy::replacement::s3fifo::S3Fifo;
use larder_policy::replacement::sieve::Sieve;
use larder_policy::replacement::twoq::TwoQ;
use larder_policy::replacement::wtinylfu::WTinyLfu;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use support::{GhostsMax, User};

/// Blocks: more than a cache and its ghosts hold.
const KEYS: u64 = 24;
/// The largest cache. Below `PIN_REACH`, so that a block that is not pinned is always within reach.
const CAPACITY_MAX: u32 = 12;

#[derive(Clone, Debug)]
enum Op {
    Access(u64),
    /// The same; a block that enters for it is to leave first.
    Visit(u64),
    Pin(u64, bool),
    Remove(u64),
    Resize(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        // Half of the accesses go to a few blocks, to have hits, and counters that saturate.
        30 => (0..KEYS / 4).prop_map(Op::Access),
        30 => (0..KEYS).prop_map(Op::Access),
        10 => (0..KEYS).prop_map(Op::Visit),
        4 => (0..KEYS, any::<bool>()).prop_map(|(key, pinned)| Op::Pin(key, pinned)),
        4 => (0..KEYS).prop_map(Op::Remove),
        1 => (0..=CAPACITY_MAX).prop_map(Op::Resize),
    ]
}

fn apply<P: Replacement>(user: &mut User<P>, op: &Op) {
    match *op {
        Op::Access(key) => user.access(key),
        Op::Visit(key) => user.visit(key),
        Op::Pin(key, pinned) => user.pin(key, pinned),
        Op::Remove(key) => user.remove(key),
        Op::Resize(capacity) => user.resize(capacity),
    }
}

fn keeps_the_contract<P: Replacement>(policy: impl Fn() -> P, ghosts_max: GhostsMax) {
    let sequences = (0..=CAPACITY_MAX, prop::collection::vec(op(), 0..400));
    let run = |(capacity, ops): (u32, Vec<Op>)| {
        let mut user = User::new(capacity, policy(), ghosts_max);
        ops.iter().for_each(|op| apply(&mut user, op));
        user.finish();
        Ok(())
    };
    TestRunner::default().run(&sequences, run).expect("no sequence breaks the contract");
}

/// A test for each policy: a constructor, and how many ghosts it may remember, from the capacity and the resident blocks.
macro_rules! contract {
    ($($name:ident: $policy:expr, $ghosts_max:expr;)+) => {
        $(
            #[test]
            fn $name() {
                keeps_the_contract(|| $policy, $ghosts_max);
            }
        )+
    };
}

contract! {
    lru: Lru::new(), |_, _| 0;
    fifo: Fifo::new(), |_, _| 0;
    clock: Clock::new(4), |_, _| 0;
    clock_with_one_bit: Clock::new(1), |_, _| 0;
    clock_that_spares_few: Clock::new(4).sparing(3), |_, _| 0;
    sieve: Sieve::new(), |_, _| 0;
    sieve_that_spares_few: Sieve::new().sparing(1), |_, _| 0;
    random: Random::new(7), |_, _| 0;
    arc: Arc::new(), |capacity, resident| (2 * capacity).saturating_sub(resident);
    two_q: TwoQ::new(), |capacity, _| capacity / 2;
    mq: Mq::new(), |capacity, _| 4 * capacity;
    mq_with_a_short_life: Mq::with_life_time(3), |capacity, _| 4 * capacity;
    s3_fifo: S3Fifo::new(), |capacity, _| 9 * capacity / 10;
    s3_fifo_that_spares_few: S3Fifo::new().sparing(1), |capacity, _| 9 * capacity / 10;
    lfu: Lfu::new(), |_, _| 0;
    aging_lfu: AgingLfu::new(1), |_, _| 0;
    w_tiny_lfu: WTinyLfu::new(), |_, _| 0;
    lirs: Lirs::new(), |capacity, _| capacity;
}
