//! Names there and back, and what is said of names that mean nothing.

use super::*;
use proptest::prelude::*;

fn admission() -> impl Strategy<Value = AdmissionSpec> {
    prop_oneof![
        Just(AdmissionSpec::Always),
        Just(AdmissionSpec::Larc),
        Just(AdmissionSpec::Bloom),
        (1..=NTH_MAX).prop_map(AdmissionSpec::Nth),
        (0.0..=1.0f64).prop_map(AdmissionSpec::Probability),
    ]
}

fn policy() -> impl Strategy<Value = PolicySpec> {
    let clock = (1..=16u32).prop_map(|bits| PolicySpec::Clock { bits });
    prop_oneof![prop::sample::select(PolicySpec::all()), clock]
}

proptest! {
    #[test]
    fn what_is_printed_parses_back(policy in policy(), admission in admission()) {
        prop_assert_eq!(policy.to_string().parse(), Ok(policy));
        prop_assert_eq!(admission.to_string().parse(), Ok(admission));
        if let Ok(pair) = CachingSpec::new(policy, admission) {
            prop_assert_eq!(pair.to_string().parse(), Ok(pair));
        }
    }

    #[test]
    fn no_text_breaks_the_parsers(text in "[a-z0-9:+._ -]{0,12}|\\PC*") {
        let _ = (text.parse::<PolicySpec>(), text.parse::<AdmissionSpec>(), text.parse::<CachingSpec>());
    }
}

#[test]
fn names_are_those_that_users_know() {
    let names = PolicySpec::all().iter().map(PolicySpec::name).collect::<Vec<_>>().join(" ");
    let expected = "fifo lru clock lfu aging-lfu arc mq 2q lirs larc s3-fifo sieve w-tinylfu random belady";
    assert_eq!(names, expected);
    let aliases = ["s3fifo", "S3_FIFO", "twoq", "WTinyLFU", "opt", " ARC ", "Aging_LFU"];
    let parsed = aliases.map(|name| name.parse::<PolicySpec>().expect("a name").name());
    assert_eq!(parsed, ["s3-fifo", "s3-fifo", "2q", "w-tinylfu", "belady", "arc", "aging-lfu"]);
}

#[test]
fn no_name_means_two_policies() {
    let called = |name: &str| PolicySpec::all().iter().filter(|policy| policy.is_called(name)).count();
    for policy in PolicySpec::all() {
        assert!(policy.aliases().iter().chain([&policy.name()]).all(|name| called(name) == 1), "{policy}");
    }
}

#[test]
fn all_but_belady_are_online() {
    assert!(PolicySpec::online().iter().all(PolicySpec::is_online));
    assert_eq!(PolicySpec::online().len() + 1, PolicySpec::all().len());
    assert!(!PolicySpec::Belady.is_online());
}

#[test]
fn parameters() {
    assert_eq!("clock:1".parse(), Ok(PolicySpec::Clock { bits: 1 }));
    assert_eq!("clock".parse::<PolicySpec>().expect("a name").to_string(), "clock");
    assert_eq!("clock:4".parse::<PolicySpec>().expect("a name").to_string(), "clock");
    assert_eq!("nth".parse(), Ok(AdmissionSpec::Nth(2)));
    assert_eq!("nth:3".parse(), Ok(AdmissionSpec::Nth(3)));
    assert_eq!("prob:0.25".parse(), Ok(AdmissionSpec::Probability(0.25)));
}

#[test]
fn a_pair_of_policies() {
    let parsed = |text: &str| text.parse::<CachingSpec>().map(|pair| (pair.policy(), pair.admission()));
    assert_eq!(parsed("arc+larc"), Ok((PolicySpec::Arc, AdmissionSpec::Larc)));
    assert_eq!(parsed("clock:1+nth:3"), Ok((PolicySpec::Clock { bits: 1 }, AdmissionSpec::Nth(3))));
    assert_eq!(parsed("sieve"), Ok((PolicySpec::Sieve, AdmissionSpec::Always)));
    assert_eq!(parsed("larc"), Ok((PolicySpec::Larc, AdmissionSpec::Larc)));
    assert_eq!(parsed("arc+larc:when-full"), Ok((PolicySpec::Arc, AdmissionSpec::LarcWhenFull)));
    assert_eq!(
        "larc+larc:when-full".parse::<CachingSpec>().expect("a pair").to_string(),
        "larc+larc:when-full"
    );
    assert_eq!("larc+larc".parse::<CachingSpec>().expect("a pair").to_string(), "larc");
    assert_eq!("lru+larc".parse::<CachingSpec>().expect("a pair").to_string(), "lru+larc");
    assert_eq!("lru+always".parse::<CachingSpec>().expect("a pair").to_string(), "lru");
}

fn complaint<T: FromStr<Err = SpecError>>(text: &str) -> String {
    text.parse::<T>().map(|_| ()).expect_err("not a name").to_string()
}

#[test]
fn complaints_tell_what_would_do() {
    assert_eq!(
        complaint::<PolicySpec>("lur"),
        "unknown replacement policy `lur`; known are fifo, lru, clock, lfu, aging-lfu, arc, mq, 2q, lirs, larc, s3-fifo, sieve, w-tinylfu, random, belady"
    );
    assert_eq!(
        complaint::<AdmissionSpec>("second"),
        "unknown admission policy `second`; known are always, larc, larc:when-full, nth:N, bloom, prob:P"
    );
    assert_eq!(complaint::<PolicySpec>("arc:2"), "`arc` takes no parameter, but has `2`");
    assert_eq!(complaint::<AdmissionSpec>("bloom:2"), "`bloom` takes no parameter, but has `2`");
    assert_eq!(
        complaint::<PolicySpec>("clock:17"),
        "`17` is not what `clock` takes: the bits of its counters, 1 to 16"
    );
    assert_eq!(
        complaint::<AdmissionSpec>("nth:0"),
        "`0` is not what `nth` takes: the access at which a block enters, 1 to 255"
    );
    let expected = "the probability with which a block enters, 0 to 1, as in `prob:0.1`";
    for wrong in ["", "1.5", "NaN", "-0.1", "half"] {
        assert_eq!(
            complaint::<AdmissionSpec>(&format!("prob:{wrong}")),
            format!("`{wrong}` is not what `prob` takes: {expected}")
        );
    }
    assert_eq!(complaint::<AdmissionSpec>("prob"), format!("`` is not what `prob` takes: {expected}"));
}

#[test]
fn complaints_about_pairs() {
    assert_eq!(
        complaint::<CachingSpec>("larc+bloom"),
        "`larc` brings its own admission policy and cannot stand behind `bloom`; use `lru+bloom`, or `larc` alone"
    );
    assert!(complaint::<CachingSpec>("arc+").starts_with("unknown admission policy ``"));
    assert!(complaint::<CachingSpec>("+larc").starts_with("unknown replacement policy ``"));
    assert!(complaint::<CachingSpec>("arc+larc+nth").starts_with("unknown admission policy `larc+nth`"));
}
