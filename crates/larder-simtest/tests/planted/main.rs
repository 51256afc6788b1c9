//! The proof that the simulation can fail: bugs are planted, and each is found.

mod directed;
#[path = "../support/mod.rs"]
mod support;

use larder_engine::Planted;
use larder_simtest::{Options, soak};

/// The first seed, or one of the first two, that finds a bug. Most are found by one of the first hundred; `UnmarkBeforeBacking` by one of a thousand.
fn found_by(bug: Planted) -> Option<u64> {
    soak(0..10_000, 2, Options { planted: Some(bug), ..Options::default() })
        .violation
        .map(|violation| violation.seed)
}

/// Those that random histories find. The others are met too rarely to be sure: each has a history that leads right to it.
const RANDOM: [Planted; 29] = [
    Planted::MarkSkipped,
    Planted::MarkNotAwaited,
    Planted::SlotBeforeFree,
    Planted::MapBeforeData,
    Planted::MapBeforeBacking,
    Planted::UnmarkBeforeBacking,
    Planted::UnmarkKeepsStale,
    Planted::FlushBeforeMap,
    Planted::FuaIgnored,
    Planted::CleanBeforeFlush,
    Planted::CleanBeforeMap,
    Planted::DirtyEvicted,
    Planted::FreeBeforeFlush,
    Planted::SumsIgnored,
    Planted::FreeSkipped,
    Planted::BackingSkippedOnHit,
    Planted::StaleFill,
    Planted::TornSuperblock,
    Planted::HoleReplayed,
    Planted::DraftsInOnePlace,
    Planted::DraftNotPut,
    Planted::OrderPassed,
    Planted::VersionDropped,
    Planted::OthersUnpinned,
    Planted::EpochUnflushed,
    Planted::EpochGoesOn,
    Planted::GrowthUntold,
    Planted::JoinUntold,
    Planted::LeftBehind,
];

#[test]
fn planted_bugs_are_found() {
    let found = RANDOM.map(|bug| (bug, found_by(bug)));
    println!("bug, and a seed that finds it: {found:?}");
    assert!(found.iter().all(|(_, seed)| seed.is_some()), "{found:?}");
}

#[test]
fn no_bug_is_left_out() {
    for (name, bug) in Planted::NAMES {
        assert!(RANDOM.contains(&bug) || directed::BUGS.iter().any(|(known, _)| *known == bug), "{name}");
    }
}
