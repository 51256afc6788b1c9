//! rECS against a full scan, its smoothing against figures worked out by hand, and the stamps against a plain list.

use super::*;
use larder_policy::Rng;
use proptest::prelude::*;

struct Cache(Vec<Option<Held>>);

impl Places for Cache {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }

    fn at(&self, place: u32) -> Option<Held> {
        self.0[place as usize]
    }
}

fn held(tenant: u16, referenced: bool) -> Option<Held> {
    Some(Held { tenant, referenced })
}

/// A window of `periods` periods, each over `blocks` places.
fn window(recs: &mut Recs, cache: &Cache, periods: u32, blocks: u32) {
    for _ in 0..periods {
        recs.begin_period(cache);
        recs.scan(cache, blocks);
    }
    recs.end_window();
}

/// `blocks` blocks of one tenant, the first `referenced` of them hit.
fn partly(blocks: usize, referenced: usize) -> Cache {
    Cache((0..blocks).map(|at| held(0, at < referenced)).collect())
}

#[test]
fn smoothing_keeps_four_fifths_of_the_old_value() {
    let mut recs = Recs::new(1);
    assert_eq!((recs.smoothed(0), recs.sampled(0)), (None, None));
    let expected = [(10, 1.0, 1.0), (5, 0.5, 0.9), (0, 0.0, 0.72), (10, 1.0, 0.776)];
    for (referenced, sampled, smoothed) in expected {
        window(&mut recs, &partly(10, referenced), 5, 10);
        assert!((recs.sampled(0).expect("sensible") - sampled).abs() < 1e-12);
        assert!((recs.smoothed(0).expect("sensible") - smoothed).abs() < 1e-12, "{recs:?}");
    }
}

#[test]
fn a_window_is_the_mean_of_its_periods_ratios() {
    let mut recs = Recs::with_alpha(0.0, 1).expect("sensible");
    for (blocks, referenced) in [(10, 1), (1000, 400), (0, 0), (2, 2)] {
        let cache = partly(blocks, referenced);
        recs.begin_period(&cache);
        recs.scan(&cache, u32::MAX);
    }
    recs.end_window();
    // The period that met no block does not count.
    assert!((recs.smoothed(0).expect("sensible") - (0.1 + 0.4 + 1.0) / 3.0).abs() < 1e-12);
}

#[test]
fn a_tenant_without_blocks_is_not_a_number_of_any_kind() {
    let mut recs = Recs::new(1);
    window(&mut recs, &Cache(vec![]), 5, 100);
    assert_eq!((recs.smoothed(0), scan_all(&Cache(vec![]))), (None, vec![]));
    let cache = Cache(vec![held(2, true), None]);
    window(&mut recs, &cache, 5, 100);
    assert_eq!((recs.smoothed(0), recs.smoothed(2), recs.smoothed(9)), (None, Some(1.0), None));
    assert_eq!(
        scan_all(&cache).iter().map(|usage| usage.ratio()).collect::<Vec<_>>(),
        [None, None, Some(1.0)]
    );
    // It has lost its blocks: nothing new is known of it, until it is forgotten.
    window(&mut recs, &Cache(vec![None; 10]), 5, 100);
    assert_eq!((recs.smoothed(2), recs.sampled(2)), (Some(1.0), None));
    recs.forget(2);
    assert_eq!(recs.smoothed(2), None);
}

#[test]
fn a_window_without_periods_changes_nothing() {
    let mut recs = Recs::new(1);
    window(&mut recs, &partly(10, 5), 1, 10);
    recs.end_window();
    assert_eq!((recs.smoothed(0), recs.sampled(0)), (Some(0.5), None));
}

#[test]
fn an_alpha_out_of_range_is_refused() {
    for alpha in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
        assert!(Recs::with_alpha(alpha, 0).is_err(), "{alpha}");
    }
}

#[test]
fn a_period_looks_at_each_place_once_at_most_and_survives_a_smaller_cache() {
    let mut recs = Recs::new(3);
    let cache = partly(10, 5);
    recs.begin_period(&cache);
    assert_eq!([7, 7, 7].map(|blocks| recs.scan(&cache, blocks)), [7, 3, 0]);
    let smaller = partly(4, 4);
    recs.begin_period(&cache);
    assert_eq!((recs.scan(&cache, 3), recs.scan(&smaller, 10), recs.scan(&smaller, 10)), (3, 1, 0));
}

/// Hits that lie together at the front: right only if a period is as likely to look at one place as at any other, at
/// the end of the cache too.
#[test]
fn every_place_is_looked_at_equally_often() {
    for front in [true, false] {
        let cache = Cache((0..1000).map(|at| held(0, (at < 100) == front)).collect());
        let mut recs = Recs::with_alpha(0.0, 7).expect("sensible");
        window(&mut recs, &cache, 20_000, 50);
        let expected = if front { 0.1 } else { 0.9 };
        // A period is nearly all hits or none: its deviation is about 0.3, that of the mean 0.3 / √20,000 = 0.002.
        assert!((recs.sampled(0).expect("sensible") - expected).abs() < 0.008, "{:?}", recs.sampled(0));
    }
}

/// Three tenants with blocks scattered at random over the cache, as in a cache that was in use for long.
fn scattered(rng: &mut Rng) -> Cache {
    let shares = [0.9, 0.3, 0.02];
    let place = |_| {
        let tenant = rng.below(4) as u16;
        let referenced = rng.unit() < *shares.get(usize::from(tenant))?;
        held(tenant, referenced)
    };
    Cache((0..20_000).map(place).collect())
}

#[test]
fn a_sample_estimates_what_a_full_scan_counts() {
    let mut errors = [0.0; 3];
    for seed in 0..100 {
        let cache = scattered(&mut Rng::new(1000 + seed));
        let exact = scan_all(&cache);
        let mut recs = Recs::new(seed);
        window(&mut recs, &cache, 5, 800);
        for tenant in 0..3u16 {
            let truth = exact[usize::from(tenant)].ratio().expect("sensible");
            let error = recs.sampled(tenant).expect("sensible") - truth;
            // Some 5 × 200 of the tenant's blocks.
            let deviation = (truth * (1.0 - truth) / 1000.0).sqrt();
            assert!(error.abs() < 4.5 * deviation, "seed {seed}, tenant {tenant}: {error} from {truth}");
            errors[usize::from(tenant)] += error / deviation / 100.0;
        }
    }
    // The mean of a hundred errors of deviation 1.
    assert!(errors.iter().all(|mean| mean.abs() < 0.4), "{errors:?}");
}

fn places() -> impl Strategy<Value = Vec<Option<Held>>> {
    let place = prop::option::weighted(0.8, (0u16..4, any::<bool>()));
    prop::collection::vec(
        place.prop_map(|held| held.map(|(tenant, referenced)| Held { tenant, referenced })),
        0..200,
    )
}

proptest! {
    #[test]
    fn a_sample_of_everything_is_the_full_scan(
        places in places(), seed in any::<u64>(), periods in 1u32..6, step in 1u32..80,
    ) {
        let cache = Cache(places);
        let mut recs = Recs::with_alpha(0.0, seed).expect("sensible");
        for _ in 0..periods {
            recs.begin_period(&cache);
            while recs.scan(&cache, step) > 0 {}
        }
        recs.end_window();
        let exact = scan_all(&cache);
        for tenant in 0..5u16 {
            let blocks: Vec<_> = cache.0.iter().flatten().filter(|held| held.tenant == tenant).collect();
            let referenced = blocks.iter().filter(|held| held.referenced).count();
            let expected = Usage { blocks: blocks.len() as u64, referenced: referenced as u64 };
            prop_assert_eq!(exact.get(usize::from(tenant)).copied().unwrap_or_default(), expected);
            match (recs.smoothed(tenant), expected.ratio()) {
                (Some(found), Some(truth)) => prop_assert!((found - truth).abs() < 1e-12),
                (found, truth) => prop_assert_eq!(found, truth),
            }
        }
    }

    /// Longer than the numbers of windows last, with hits that are long past when their number comes back.
    #[test]
    fn a_place_is_referenced_in_the_window_of_its_last_hit_alone(
        places in 0u32..600, steps in prop::collection::vec((0u32..620, 0u8..4, 0u16..300), 1..60),
    ) {
        let mut references = References::new(places);
        let mut hits = vec![None; places as usize];
        let mut now = 0;
        for (place, action, windows) in steps {
            let hit = match action {
                0 => None,
                _ => Some(now),
            };
            if let Some(last) = hits.get_mut(place as usize) {
                *last = hit;
            }
            if action == 0 { references.reload(place) } else { references.hit(place) }
            for _ in 0..if action > 1 { windows } else { 0 } {
                references.begin_window();
                now += 1;
            }
            for (place, &last) in hits.iter().enumerate() {
                prop_assert_eq!(references.is_referenced(place as u32), last == Some(now));
            }
            prop_assert!(!references.is_referenced(places));
        }
    }
}

/// The whole way: hits are stamped, the places know them, a window finds them.
#[test]
fn stamps_and_places_make_the_paper_s_example() {
    struct Partition(References);
    impl Places for Partition {
        fn count(&self) -> u32 {
            100
        }
        fn at(&self, place: u32) -> Option<Held> {
            held(0, self.0.is_referenced(place))
        }
    }
    let mut partition = Partition(References::new(100));
    // m unique blocks of N: ten places, each hit several times; one of them gets other data.
    (0..30).for_each(|hit| partition.0.hit(hit % 10));
    partition.0.reload(3);
    assert_eq!(scan_all(&partition), [Usage { blocks: 100, referenced: 9 }]);
    partition.0.begin_window();
    assert_eq!(scan_all(&partition)[0].ratio(), Some(0.0));
}
