//! What lives are worth.

use super::lives::lasts;
use super::lives::{Age, Course};
use super::sample::SAMPLE;
use super::*;

const NOMINAL: Latencies =
    Latencies { read_hit: 1e-3, read_miss: 5e-3, cached_write: 1e-3, backing_write: 3e-3, write_back: 0.0 };

fn spans(seconds: f64) -> Spans {
    Spans { stay: seconds, usual: f64::INFINITY, youth: seconds }
}

fn lives(lived: f64, ended: f64, saved: f64) -> [Age; AGES] {
    let mut lives = [Age::default(); AGES];
    for (age, life) in lives.iter_mut().enumerate() {
        let width = if age == 0 { 1.0 } else { f64::from(1 << (age - 1)) };
        *life = Age { lived: lived * width, ended: ended * width, saved: saved * width, ..Age::default() };
    }
    lives
}

/// What the ends of these lives save, told apart by seconds.
fn saved(lives: &[Age; AGES], stay: f64, expected: f64) -> f64 {
    Course::of(lives, 1.0).within(stay, expected).saved
}

fn value(ledger: &mut Ledger, now: f64, spans: Spans, write: WritePolicy) {
    ledger.count_until(now);
    ledger.value(spans, write, &NOMINAL);
}

fn taken(blocks: u64, resident: u64) -> Offer {
    Offer { offered: blocks, taken: blocks, resident }
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9 + 1e-6 * other.abs()
}

#[test]
fn ends_that_come_at_any_moment() {
    // One life in a hundred ends in a second; half of the ends are reads that save 8.
    let lives = lives(100.0, 1.0, 4.0);
    for stay in [0.5, 3.0, 100.0, 1000.0] {
        let expected = 4.0 * (1.0 - f64::exp(-stay / 100.0));
        assert!(near(saved(&lives, stay, 7.0), expected), "{stay}");
    }
}

#[test]
fn lives_last_until_they_end() {
    let seconds = |at: usize| if at == 0 { 0.0 } else { f64::from(1 << (at - 1)) };
    // A hundred lives, of which one in a hundred ends in a second.
    let survive = |at: usize| f64::exp(-seconds(at) / 100.0);
    let mut lives = [Age::default(); AGES];
    for (at, life) in lives.iter_mut().enumerate() {
        let (begin, end) = (100.0 * survive(at), 100.0 * survive(at + 1));
        *life = Age { ended: begin - end, passed: end, ..Age::default() };
    }
    let lasts_of = |lives: &[Age; AGES]| lasts(lives, &[0; AGES], 1.0);
    let found = lasts_of(&lives);
    // Where few are left those that end do so sooner than in the middle.
    let is_close = |one: f64, other: f64| (one - other).abs() <= 0.08 * other;
    assert!((0..BOUNDS).all(|at| is_close(found[at], 100.0 * (1.0 - survive(at)))), "{found:?}");
    // None ended, or nothing is known.
    let went_on = [Age { passed: 100.0, ..Age::default() }; AGES];
    for lives in [went_on, [Age::default(); AGES]] {
        assert_eq!(lasts_of(&lives), bounds(1.0));
    }
    // Of the first 64 seconds all is known: what comes then is like them.
    lives[7..].fill(Age::default());
    let young = lasts_of(&lives);
    assert!(young.iter().zip(found).all(|(&one, other)| is_close(one, other)), "{young:?}");
    // All end after six seconds.
    let mut round = [Age { passed: 10.0, ..Age::default() }; AGES];
    round[3] = Age { ended: 10.0, ..Age::default() };
    round[4..].fill(Age::default());
    assert!(lasts_of(&round)[4..].iter().all(|&lasts| near(lasts, 6.0)), "{:?}", lasts_of(&round));
    // Four of eight thousand that have come to the fourth age have ended, the others have not passed it yet.
    round[3] = Age { ended: 4.0, ..Age::default() };
    let mut alive = [0; AGES];
    alive[3] = 8000;
    assert!(lasts(&round, &alive, 1.0)[4] > 7.99, "{:?}", lasts(&round, &alive, 1.0));
}

#[test]
fn of_what_is_not_known_a_read_is_expected() {
    let unknown = [Age::default(); AGES];
    let part = 1.0 - f64::exp(-1.0);
    assert!(near(saved(&unknown, 50.0, 6.0), 6.0 * part));
    assert_eq!(saved(&unknown, 50.0, 0.0), 0.0);
    // Nothing ever ended: then nothing will, as far as is known.
    assert_eq!(saved(&lives(100.0, 0.0, 0.0), 50.0, 6.0), 0.0);
    // The first 16 seconds are known: what comes then is like them.
    let mut young = lives(100.0, 1.0, 4.0);
    young[5..].fill(Age::default());
    assert!(near(saved(&young, 50.0, 0.0), saved(&lives(100.0, 1.0, 4.0), 50.0, 0.0)));
}

#[test]
fn ages_double() {
    assert_eq!(
        [0.0, 0.9, 1.0, 1.9, 2.0, 3.9, 4.0, 1e9].map(|now| age(0.0, now, 1.0)),
        [0, 0, 1, 1, 2, 2, 3, 17]
    );
}

#[test]
fn only_write_back_saves_a_write_at_once() {
    let worth = |write| {
        let mut ledger = Ledger::new(1.0, 0.0);
        let kind = Kind::of(true, 2, false, 0, false);
        ledger.observe(kind, [1, 2].into_iter(), 0.0);
        ledger.served(
            kind,
            ServedBy::BackingWrite,
            Offer { offered: 2, ..Offer::default() },
            NOMINAL.backing_write,
        );
        value(&mut ledger, 1.0, spans(100.0), write);
        (ledger.worth(kind), ledger.offered(kind))
    };
    assert_eq!(worth(WritePolicy::WriteBack), (1e-3, 2.0));
    assert_eq!(worth(WritePolicy::WriteThrough), (0.0, 2.0));
}

#[test]
fn a_block_that_is_read_again_and_again_is_worth_more_than_one_that_is_written_anew() {
    let mut ledger = Ledger::new(0.25, 0.0);
    let (read, write) = (Kind::of(false, 1, false, 1, false), Kind::of(true, 1, false, 1, false));
    for second in 1..200u64 {
        for key in 0..10 {
            ledger.observe(read, [key].into_iter(), second as f64);
            ledger.observe(write, [1000 + key].into_iter(), second as f64);
        }
        value(&mut ledger, second as f64 + 0.5, spans(20.0), WritePolicy::WriteThrough);
    }
    // All reads are followed by another, which saves 4 ms, and that is so again: no more than ten of them, and some of these are known by now.
    assert!((0.01..0.04).contains(&ledger.worth(read)), "{}", ledger.worth(read));
    assert_eq!(ledger.worth(write), 0.0);
}

#[test]
fn what_can_enter_later_is_worth_no_more_than_the_next_read_and_its_price() {
    let worth = |price: Option<f64>| {
        let mut ledger = Ledger::new(0.25, 0.0);
        let read = Kind::of(false, 1, false, 1, false);
        for second in 1..200u64 {
            ledger.set_price(price.map(|write| Price { write, place: 0.0 }));
            (0..10).for_each(|key| ledger.observe(read, [key].into_iter(), second as f64));
            value(&mut ledger, second as f64 + 0.5, spans(20.0), WritePolicy::WriteThrough);
        }
        ledger.worth(read)
    };
    // The next read is certain, and saves 4 ms. How many follow it matters only where they cannot have the block enter for less.
    let [unpriced, high, low, none] = [None, Some(20e-3), Some(1e-3), Some(0.0)].map(worth);
    assert!(unpriced > 0.015 && high > 0.015, "{unpriced} {high}");
    assert!((low - 5e-3).abs() < 1e-4 && (none - 4e-3).abs() < 1e-4, "{low} {none}");
}

#[test]
fn of_a_cold_block_more_reads_are_expected_while_its_tenant_is_young() {
    let worth = |price: Option<f64>, now| {
        let mut ledger = Ledger::new(1.0, 0.0);
        ledger.set_price(price.map(|place| Price { write: 0.0, place }));
        ledger.observe(Kind::of(true, 1, false, 0, false), [1].into_iter(), 10.0);
        value(&mut ledger, now, spans(100.0), WritePolicy::WriteThrough);
        ledger.worth(Kind::of(false, 1, false, 0, false))
    };
    let part = 1.0 - f64::exp(-1.0);
    // The next read saves 4 ms.
    assert!(near(worth(Some(1e-3), 20.0), part * 5e-3));
    assert!(near(worth(None, 20.0), part * 4e-3 * (1.0 + UNPRICED)));
    assert!(near(worth(Some(1e-3), 111.0), part * 4e-3));
}

#[test]
fn where_writes_are_scarce_a_read_that_would_wait_saves_others_as_well() {
    // Blocks that were accessed once, by a tenant that is not young: a read is expected with a probability of 1 - 1/e. A thousand requests took so long past the SSD, beside a guess that counts for 16.
    let worth = |write: bool, blocks: usize, took: f64, scarce: f64| {
        let (mut ledger, kind) = (Ledger::new(1.0, 0.0), Kind::of(write, blocks, false, 0, false));
        let by = if write { ServedBy::BackingWrite } else { ServedBy::ReadMiss };
        ledger.observe(kind, (0..blocks as u64).collect::<Vec<_>>().into_iter(), 0.0);
        let offer = Offer { offered: blocks as u64, ..Offer::default() };
        (0..1000).for_each(|_| ledger.served(kind, by, offer, took));
        ledger.set_price(Some(Price::default()));
        ledger.set_scarce(scarce);
        value(&mut ledger, 200.0, spans(100.0), WritePolicy::WriteBack);
        ledger.worth(kind) * blocks as f64
    };
    let mean = (1000.0 * 0.1 + 16.0 * NOMINAL.read_miss) / 1016.0;
    let part = 1.0 - f64::exp(-1.0);
    // 10 ms are taken for a read of a block itself, 80 for one of 128, the rest is waiting.
    for (blocks, alone) in [(1, 10e-3), (16, 10e-3), (128, 80e-3)] {
        for scarce in [0.0, 0.5, 1.0] {
            let wanted = part * (mean - 1e-3 + 4.0 * scarce * (mean - alone));
            assert!(near(worth(false, blocks, 0.1, scarce), wanted), "{blocks} {scarce}");
        }
        assert_eq!(worth(false, blocks, alone, 1.0), worth(false, blocks, alone, 0.0));
    }
    // A write saves no more than itself.
    assert!(worth(true, 1, 0.1, 1.0) == worth(true, 1, 0.1, 0.0) && worth(true, 1, 0.1, 0.0) > 0.09);
}

#[test]
fn writes_are_scarce_where_what_takes_no_place_has_a_price() {
    let of = |write, place| Price { write, place }.of_writes();
    assert_eq!([of(0.0, 0.0), of(0.0, 2.0), of(2.0, 0.0), of(1.0, 3.0)], [0.0, 0.0, 1.0, 0.25]);
}

#[test]
fn where_blocks_stay_for_ever_a_read_is_expected_all_the_same() {
    let mut ledger = Ledger::new(1.0, 0.0);
    value(&mut ledger, 10.0, spans(f64::INFINITY), WritePolicy::WriteThrough);
    assert!(ledger.worth(Kind::of(false, 1, false, 0, false)) > 4e-3);
}

#[test]
fn the_sample_is_bounded_and_stands_for_all() {
    let mut ledger = Ledger::new(0.25, 0.0);
    let read = Kind::of(false, 1, false, 0, false);
    for at in 0..200_000u64 {
        ledger.observe(read, [at % 100_000].into_iter(), at as f64 / 1e4);
    }
    value(&mut ledger, 20.0, spans(100.0), WritePolicy::WriteBack);
    assert!(ledger.sample.len() <= SAMPLE && ledger.sample.len() > SAMPLE / 4, "{}", ledger.sample.len());
    let ended: f64 = ledger.counts.count(read.index()).lives.iter().map(|age| age.ended).sum();
    assert!(ended > 1000.0, "{ended}");
}

/// A write of each of ten blocks every second, and one of a block that is never written again.
fn written_again(seconds: u64) -> (Ledger, [Kind; 2]) {
    let mut ledger = Ledger::new(0.25, 0.0);
    let (anew, again) = (Kind::of(true, 1, false, 0, false), Kind::of(true, 1, false, 1, true));
    for second in 0..seconds {
        let now = second as f64;
        for key in 0..10 {
            ledger.observe(again, [key].into_iter(), now);
            ledger.served(again, ServedBy::CachedWrite, taken(1, 1), NOMINAL.cached_write);
        }
        ledger.observe(anew, [1000 + second].into_iter(), now);
        ledger.served(anew, ServedBy::CachedWrite, taken(1, 0), NOMINAL.cached_write);
    }
    (ledger, [anew, again])
}

#[test]
fn who_waits_for_dirty_blocks_waits_for_those_that_are_not_written_again() {
    let (mut ledger, [anew, again]) = written_again(100);
    // One in eleven is written back, and each time somebody waits 5 ms for it.
    ledger.waited(100, 100.0 * 5e-3);
    value(&mut ledger, 100.0, spans(40.0), WritePolicy::WriteBack);
    // A write saves 2 ms.
    assert!((ledger.worth(again) - 2e-3).abs() < 2e-4, "{}", ledger.worth(again));
    assert!((-3.2e-3..-1.5e-3).contains(&ledger.worth(anew)), "{}", ledger.worth(anew));
}

#[test]
fn a_block_that_is_written_again_is_worth_a_place_where_places_have_a_price() {
    let worth = |price| {
        let (mut ledger, [_, again]) = written_again(100);
        ledger.set_price(Some(price));
        value(&mut ledger, 100.0, spans(40.0), WritePolicy::WriteBack);
        for second in 100..200u64 {
            (0..10).for_each(|key| ledger.observe(again, [key].into_iter(), second as f64));
            value(&mut ledger, second as f64 + 0.5, spans(40.0), WritePolicy::WriteBack);
        }
        ledger.worth(again)
    };
    let price = |write, place| worth(Price { write, place });
    // Where places are for nothing, and where only writes are not, it is worth what the write itself saves.
    assert!((price(0.0, 0.0) - 2e-3).abs() < 1e-4 && (price(1e-3, 0.0) - 2e-3).abs() < 1e-4);
    // The next write needs no place then, in about half of the lives that are counted.
    assert!(price(0.0, 1e-3) > 2.3e-3, "{}", price(0.0, 1e-3));
}

#[test]
fn what_is_resident_takes_no_place() {
    let (ledger, [anew, again]) = written_again(100);
    assert!(ledger.takes_place(again) < 0.01 && ledger.takes_place(anew) > 0.99);
    let (read, unknown) = (Kind::of(false, 1, false, 3, false), Kind::of(true, 4, false, 2, false));
    assert_eq!((ledger.takes_place(read), ledger.takes_place(unknown)), (1.0, 0.0));
}

#[test]
fn what_was_served_elsewhere_counts_like_what_was_seen() {
    let (kind, mut one, mut other) =
        (Kind::of(true, 2, false, 0, false), Ledger::new(1.0, 0.0), Ledger::new(1.0, 0.0));
    let mut offers = Offers::default();
    for _ in 0..5 {
        one.served(kind, ServedBy::BackingWrite, Offer { offered: 2, taken: 1, resident: 1 }, 0.5);
        offers.blocks[kind.index()] += 2;
        offers.taken[kind.index()] += 1;
        offers.resident[kind.index()] += 1;
        let took = &mut offers.took[ServedBy::BackingWrite as usize][kind.shape()];
        (took.count, took.seconds) = (took.count + 1, took.seconds + 0.5);
    }
    other.absorb(&offers);
    for ledger in [&mut one, &mut other] {
        ledger.observe(kind, [1, 2].into_iter(), 0.0);
        value(ledger, 1.0, spans(100.0), WritePolicy::WriteBack);
    }
    assert_eq!((one.worth(kind), one.offered(kind)), (other.worth(kind), other.offered(kind)));
    assert!(one.offered(kind) == 10.0 && one.worth(kind) > 0.0);
    assert_eq!(one.takes_place(kind), other.takes_place(kind));
}

#[test]
fn a_request_that_is_heard_of_late_does_not_count_back() {
    let mut ledger = Ledger::new(1.0, 0.0);
    let read = Kind::of(false, 1, false, 0, false);
    ledger.observe(read, [1].into_iter(), 0.0);
    value(&mut ledger, 10.0, spans(100.0), WritePolicy::WriteBack);
    ledger.observe(read, [1].into_iter(), 9.0);
    let lived: f64 = ledger.counts.count(read.index()).lives.iter().map(|age| age.lived).sum();
    assert_eq!(lived, 10.0);
}

#[test]
fn a_tenant_that_does_nothing_takes_no_memory() {
    let mut ledger = Ledger::new(1.0, 0.0);
    value(&mut ledger, 10.0, spans(100.0), WritePolicy::WriteBack);
    ledger.fade(0.5);
    assert_eq!((ledger.memory_bytes(), ledger.offered(Kind::default())), (0, 0.0));
    // Its worth is that of any other of which nothing is known.
    let mut other = Ledger::new(1.0, 3.0);
    other.count_until(10.0);
    other.value_like(&ledger);
    let mut same = Ledger::new(1.0, 3.0);
    value(&mut same, 10.0, spans(100.0), WritePolicy::WriteBack);
    assert!(
        Kind::all().all(|kind| other.worth(kind) == same.worth(kind)) && other.worth(Kind::default()) > 0.0
    );
    assert!(other.is_blank() && other.seconds == same.seconds);
}

#[test]
fn what_was_offered_is_told_by_what_it_is_usually_worth() {
    let mut ledger = Ledger::new(0.25, 0.0);
    let read = Kind::of(false, 1, false, 0, false);
    for second in 1..200u64 {
        (0..10).for_each(|key| ledger.observe(read, [key].into_iter(), (second * 10) as f64));
        value(&mut ledger, (second * 10 + 1) as f64, spans(50.0), WritePolicy::WriteThrough);
    }
    // Each is read every ten seconds.
    let mut worths = |stay, usual| {
        ledger.demand = Demand::default();
        ledger.demand.offer(read, 7);
        ledger.value(Spans { stay, usual, youth: 1.0 }, WritePolicy::WriteThrough, &NOMINAL);
        let told: Vec<_> = ledger.lately().collect();
        (told[0], ledger.worth(read), told.len())
    };
    let [(of_long, long, kinds), (of_short, short, _)] = [worths(1000.0, 1000.0), worths(1.0, 1000.0)];
    assert!(of_long == (7.0, long) && of_short == (7.0, short) && kinds == 1);
    assert!(long > 1.2 * short, "{long} {short}");
    let (told, worth, _) = worths(1000.0, 1.0);
    assert!(told == (7.0, short) && worth == long, "{told:?} {worth}");
}

#[test]
fn who_was_idle_for_long_is_known_by_what_it_did() {
    let mut ledger = Ledger::new(0.25, 0.0);
    let read = Kind::of(false, 1, false, 0, false);
    let worth = |ledger: &mut Ledger, now| {
        value(ledger, now, spans(50.0), WritePolicy::WriteBack);
        ledger.worth(read)
    };
    // Blocks that are hardly ever read again.
    for at in 0..1000u64 {
        ledger.observe(read, [at].into_iter(), at as f64 / 10.0);
        ledger.count_until(at as f64 / 10.0);
        ledger.served(read, ServedBy::ReadMiss, Offer { offered: 1, ..Offer::default() }, 4e-3);
    }
    let before = worth(&mut ledger, 100.0);
    assert!(before < 1e-5);
    ledger.fade(0.9);
    assert!(!ledger.sleep());
    for hour in 1..1000 {
        assert!(worth(&mut ledger, 3600.0 * f64::from(hour)) < 1e-5);
        assert_eq!(ledger.offered(read), 0.0);
        ledger.fade(0.9);
    }
    assert_eq!(ledger.sample.len(), 0);
    // With what is new the old fades.
    let now = 3.6e6;
    ledger.observe(read, [7].into_iter(), now);
    (0..500).for_each(|_| {
        ledger.observe(read, [7].into_iter(), now);
        ledger.fade(0.9);
    });
    assert!(worth(&mut ledger, now) > 1e-3);
}

/// However many histories its blocks may have that nobody has seen, of which each would have a number of blocks that is guessed.
#[test]
fn what_a_block_of_a_read_saves_is_told_by_the_reads_that_came() {
    let mut ledger = Ledger::new(1.0, 0.0);
    let kind = Kind::of(false, 1024, false, 0, false);
    (0..50u64)
        .for_each(|at| ledger.observe(kind, (0..1024u16).map(|block| at * 1024 + u64::from(block)), 0.5));
    value(&mut ledger, 1.0, spans(10.0), WritePolicy::WriteBack);
    assert!(near(ledger.read_saves[kind.shape()], 4e-3 / 1024.0), "{:?}", ledger.read_saves);
}

#[test]
fn requests_for_no_block_count_for_nothing() {
    let worth = |empty: usize| {
        let mut ledger = Ledger::new(1.0, 0.0);
        let kind = Kind::of(false, 1, false, 0, false);
        (0..empty).for_each(|_| ledger.observe(kind, std::iter::empty(), 0.5));
        (0..10).for_each(|key| ledger.observe(kind, [key].into_iter(), 0.5));
        value(&mut ledger, 1.0, spans(10.0), WritePolicy::WriteBack);
        ledger.worth(kind)
    };
    assert_eq!(worth(10), worth(0));
}
