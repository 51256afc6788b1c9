//! Ten thousand histories, each with a crash at least; and that a history follows from its seed.

use larder_simtest::{Fault, Faults, Options, play, soak};

#[test]
fn what_was_flushed_survives_and_stale_is_never_served() {
    let soaked = soak(0..10_000, 2, Options::default());
    if let Some(violation) = soaked.violation {
        panic!("seed {}: {}\n{}", violation.seed, violation.what, violation.lines.join("\n"));
    }
    let counts = soaked.counts;
    println!("{counts:?}");
    assert!(counts.histories == 10_000 && counts.crashes >= counts.histories);
    for (name, fault) in Fault::NAMES {
        assert!(counts.faults[fault as usize] > 100, "{name} hardly ever happens: {counts:?}");
    }
}

/// Operations, replies and images, to the byte.
#[test]
fn a_seed_names_one_history() {
    for seed in 20_000..20_100 {
        let first = play(seed, Options::default()).unwrap();
        assert!(first.counts.crashes > 0);
        assert_eq!(play(seed, Options::default()).unwrap(), first);
        assert_ne!(play(seed + 1, Options::default()).unwrap().digest, first.digest);
    }
}

/// Where only these faults are asked for, there are no others.
#[test]
fn faults_are_chosen_by_name() {
    let faults = Faults::named("kill,rot,storm").unwrap();
    let counts = soak(0..100, 1, Options { faults: Some(faults), ..Options::default() }).counts;
    for (name, fault) in Fault::NAMES {
        assert_eq!(counts.faults[fault as usize] > 0, faults.has(fault), "{name}: {counts:?}");
    }
}
