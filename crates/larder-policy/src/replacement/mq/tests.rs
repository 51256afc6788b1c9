//! MQ by hand: promotion, sinking, the memory of use counts, and a clock that wraps around.

use super::*;
use crate::{Cache, Node};

fn keys(cache: &Cache<Mq>, list: &List) -> Vec<u64> {
    list.iter_oldest_first(cache.nodes()).map(|handle| cache.nodes().key(handle)).collect()
}

/// The queues from the lowest on, and `Qout` at the end, each from the oldest to the newest.
fn state(cache: &Cache<Mq>) -> Vec<Vec<u64>> {
    let policy = cache.policy();
    policy.queues.iter().chain([&policy.out]).map(|list| keys(cache, list)).collect()
}

/// Accesses, whether each hits, and the contents of Q0, Q1, Q2 and `Qout` after it; two blocks, a life of two ticks.
type Step = (u64, bool, [&'static [u64]; 4]);
const STEPS: [Step; 11] = [
    (1, false, [&[1], &[], &[], &[]]),
    (1, true, [&[], &[1], &[], &[]]),
    (2, false, [&[2], &[1], &[], &[]]),
    // 1 was used at tick 1, so at tick 4 its life is over; 2 has just entered Q1 behind it.
    (2, true, [&[1], &[2], &[], &[]]),
    (3, false, [&[3], &[2], &[], &[1]]),
    // The third use of 1, for Qout remembers two: Q1 again. 2 sinks.
    (1, false, [&[2], &[1], &[], &[3]]),
    (1, true, [&[2], &[], &[1], &[3]]),
    (1, true, [&[2], &[], &[1], &[3]]),
    // The third use of 2, which kept its count when it sank.
    (2, true, [&[], &[2], &[1], &[3]]),
    (2, true, [&[], &[1], &[2], &[3]]),
    // Q0 is empty: the lowest queue that is not gives up a block.
    (4, false, [&[4], &[], &[2], &[3, 1]]),
];

fn check_steps(policy: Mq) {
    let mut cache = Cache::new(2, policy);
    for (key, hit, queues) in STEPS {
        assert_eq!(cache.access(key), hit, "hit of {key}");
        let seen = state(&cache);
        let [q0, q1, q2, .., out] = seen.as_slice() else { panic!("nine queues") };
        assert_eq!([q0, q1, q2, out].map(Vec::as_slice), queues, "after {key}");
    }
}

#[test]
fn two_blocks_step_by_step() {
    check_steps(Mq::with_life_time(2));
}

#[test]
fn the_clock_may_wrap_around() {
    for now in u32::MAX - 12..=u32::MAX {
        check_steps(Mq { now, next_expiry: now, ..Mq::with_life_time(2) });
    }
}

#[test]
fn the_highest_queue_takes_all_above() {
    let mut cache = Cache::new(1, Mq::with_life_time(1000));
    for (uses, queue) in [(127, 6), (128, 7), (1000, 7)] {
        cache.invalidate(1, crate::index::hash(1));
        (0..uses).for_each(|_| {
            cache.access(1);
        });
        assert_eq!(keys(&cache, cache.policy().queue(queue)), [1], "used {uses} times");
        let handle = cache.policy().queue(queue).oldest().expect("the block");
        assert_eq!(cache.policy().uses(cache.nodes(), handle, false), uses.min(128));
    }
}

#[test]
fn a_block_not_used_sinks_through_all_queues() {
    let mut cache = Cache::new(2, Mq::with_life_time(3));
    (0..8).for_each(|_| {
        cache.access(1);
    });
    let mut depths = Vec::new();
    for _ in 0..20 {
        cache.access(2);
        let depth = (0..QUEUES).find(|&queue| keys(&cache, cache.policy().queue(queue)).contains(&1));
        depths.push(depth.expect("1 is resident"));
    }
    // A life of three and the tick that finds it over are four ticks in each queue; the last use took the first two of them.
    assert_eq!(depths, [3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn the_life_time_follows_the_cache_unless_it_is_given() {
    let life_time = |mut policy: Mq, capacity| {
        policy.resize(capacity);
        policy.life_time()
    };
    assert_eq!(life_time(Mq::new(), 10), 40);
    assert_eq!(life_time(Mq::new(), u32::MAX), LIFE_TIME_MAX);
    assert_eq!(life_time(Mq::with_life_time(7), 10), 7);
    assert_eq!(life_time(Mq::with_life_time(u32::MAX), 10), LIFE_TIME_MAX);
}

#[test]
fn where_the_lowest_queue_is_pinned_the_next_gives_a_block_up() {
    let (mut nodes, mut policy) = (vec![Node::NEW; 3], Mq::with_life_time(100));
    (0..3).for_each(|handle| policy.insert(&mut nodes, handle, false));
    policy.hit(&mut nodes, 2);
    assert_eq!(policy.evict(&mut nodes, |_, h| h < 2), Some(Evicted { handle: 2, ghost: true }));
    assert_eq!(policy.evict(&mut nodes, |_, h| h < 2), None);
    assert_eq!((policy.resident(), policy.ghosts().len()), (2, 1));
}
