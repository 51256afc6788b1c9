//! The proof that the simulation can fail: bugs are planted, and each is found.

mod directed;
#[path = "../support/mod.rs"]
mod support;

use larder_engine::Planted;
use larder_simtest::{Options, soak};

/// Seeds within which each of the eleven is found, and any other that random histories find.
const SOON: u64 = 5_000;
const LATER: u64 = 10_000;

/// The first of these seeds, or one of the first two, that finds a bug. Most are found by one of the first hundred; `UnmarkBeforeBacking` by one of some thousand.
fn found_by(bug: Planted) -> Option<u64> {
    let seeds = if ELEVEN.contains(&bug) { SOON } else { LATER };
    soak(0..seeds, 2, Options { planted: Some(bug), ..Options::default() })
        .violation
        .map(|violation| violation.seed)
}

/// What any engine of this kind may get wrong.
const ELEVEN: [Planted; 11] = [
    // A mapping is durable before its data.
    Planted::MapBeforeData,
    // A flush is acknowledged early.
    Planted::FlushBeforeMap,
    // An invalidation is not in the journal.
    Planted::FreeSkipped,
    // Write-through that skips the backing on a hit.
    Planted::BackingSkippedOnHit,
    // A fill that a write has overtaken stays.
    Planted::StaleFill,
    // Checksums are not compared.
    Planted::SumsIgnored,
    // The cleaner frees before the backing was flushed.
    Planted::CleanBeforeFlush,
    // A torn superblock is accepted.
    Planted::TornSuperblock,
    // The journal is replayed past a hole.
    Planted::HoleReplayed,
    // A dirty block is evicted.
    Planted::DirtyEvicted,
    // FUA is a plain write.
    Planted::FuaIgnored,
];

/// Those that random histories find. The others are met too rarely to be sure: each has a history that leads right to it.
const RANDOM: [Planted; 31] = [
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
    Planted::LostServed,
    Planted::JustCleanServed,
];

#[test]
fn planted_bugs_are_found() {
    let found = RANDOM.map(|bug| (bug, found_by(bug)));
    println!("bug, and a seed that finds it: {found:?}");
    assert!(found.iter().all(|(_, seed)| seed.is_some()), "{found:?}");
}

#[test]
fn no_bug_is_left_out() {
    assert!(ELEVEN.iter().all(|bug| RANDOM.contains(bug)));
    for (name, bug) in Planted::NAMES {
        assert!(RANDOM.contains(&bug) || directed::BUGS.iter().any(|(known, _)| *known == bug), "{name}");
    }
}
