//! Bugs that tests plant, to see that the crash simulation finds them. Without the feature `planted` there are none.

#[cfg(feature = "planted")]
use crate::format::{Medium, RecoverError, Recovered, recover_with};
use crate::request::Part;
use crate::store::{BlockKey, EntryId, State};
use crate::{Engine, WritePolicy};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Writes go past trusted blocks without a mark.
    MarkSkipped,
    /// A write does not wait until its mark is durable.
    MarkNotAwaited,
    /// A slot is used again before its `Free` is durable.
    SlotBeforeFree,
    /// A block is mapped although the cache device may still lose its data.
    MapBeforeData,
    /// A block is mapped although the backing may still lose a write to it.
    MapBeforeBacking,
    /// A mark ends although the backing may still lose a write.
    UnmarkBeforeBacking,
    /// A mark ends while the journal maps blocks that were overwritten.
    UnmarkKeepsStale,
    /// The session's superblock is written before what recovery has read is durable.
    StartUnflushed,
    /// Guests are served before the superblock of the session is durable.
    ServedBeforeStart,
    /// Blocks are mapped before the backing was flushed for the first time since the start.
    MapBeforeFirstFlush,
    /// Blocks are mapped although a flush of their backing has failed.
    FailedFlushForgotten,
    /// A flush is acknowledged before its mappings are durable.
    FlushBeforeMap,
    /// A FUA write is acknowledged as any other.
    FuaIgnored,
    /// The cleaner calls blocks clean although the backing may still lose them.
    CleanBeforeFlush,
    /// The cleaner writes back blocks whose mapping is not durable.
    CleanBeforeMap,
    /// Dirty blocks are evicted like any other.
    DirtyEvicted,
    /// A write to the backing frees the dirty slot at once.
    FreeBeforeFlush,
    /// Checksums are not compared.
    SumsIgnored,
    /// The journal is not told of a block that leaves.
    FreeSkipped,
    /// A write-through to cached blocks does not reach the backing.
    BackingSkippedOnHit,
    /// A fill keeps no writes out of its blocks, and caches what was there before them.
    StaleFill,
    /// A superblock is taken for whole without a look at its checksum.
    TornSuperblock,
    /// Recovery goes on past a record of the journal that is missing.
    HoleReplayed,
    /// Drafts of a record are made in one place, each over the one before.
    DraftsInOnePlace,
    /// A start leaves the draft that it found where it is.
    DraftNotPut,
    /// Writes to an ordered backing do not wait for older epochs.
    OrderPassed,
    /// An older version of a block is not kept until it is written back.
    VersionDropped,
    /// Only the first of the tenants that share a partition keeps its blocks while it uses them.
    OthersUnpinned,
    /// The next epoch is written back although the backing may still lose the one before.
    EpochUnflushed,
    /// A flush does not end the epoch.
    EpochGoesOn,
    /// A volume grows, and the volume table is not told.
    GrowthUntold,
    /// A volume joins, and the volume table is not told.
    JoinUntold,
    /// A volume leaves, and what is cached of it stays.
    LeftBehind,
    /// Volumes are served on when the cache device has failed that alone has some of their data.
    LostServed,
    /// Likewise those of which all was written back just now, before the journal durably says so.
    JustCleanServed,
}

impl Planted {
    /// All of them, with their names.
    pub const NAMES: [(&str, Self); 35] = [
        ("mark-skipped", Self::MarkSkipped),
        ("mark-not-awaited", Self::MarkNotAwaited),
        ("slot-before-free", Self::SlotBeforeFree),
        ("map-before-data", Self::MapBeforeData),
        ("map-before-backing", Self::MapBeforeBacking),
        ("unmark-before-backing", Self::UnmarkBeforeBacking),
        ("unmark-keeps-stale", Self::UnmarkKeepsStale),
        ("start-unflushed", Self::StartUnflushed),
        ("served-before-start", Self::ServedBeforeStart),
        ("map-before-first-flush", Self::MapBeforeFirstFlush),
        ("failed-flush-forgotten", Self::FailedFlushForgotten),
        ("flush-before-map", Self::FlushBeforeMap),
        ("fua-ignored", Self::FuaIgnored),
        ("clean-before-flush", Self::CleanBeforeFlush),
        ("clean-before-map", Self::CleanBeforeMap),
        ("dirty-evicted", Self::DirtyEvicted),
        ("free-before-flush", Self::FreeBeforeFlush),
        ("sums-ignored", Self::SumsIgnored),
        ("free-skipped", Self::FreeSkipped),
        ("backing-skipped-on-hit", Self::BackingSkippedOnHit),
        ("stale-fill", Self::StaleFill),
        ("torn-superblock", Self::TornSuperblock),
        ("hole-replayed", Self::HoleReplayed),
        ("drafts-in-one-place", Self::DraftsInOnePlace),
        ("draft-not-put", Self::DraftNotPut),
        ("order-passed", Self::OrderPassed),
        ("version-dropped", Self::VersionDropped),
        ("others-unpinned", Self::OthersUnpinned),
        ("epoch-unflushed", Self::EpochUnflushed),
        ("epoch-goes-on", Self::EpochGoesOn),
        ("growth-untold", Self::GrowthUntold),
        ("join-untold", Self::JoinUntold),
        ("left-behind", Self::LeftBehind),
        ("lost-served", Self::LostServed),
        ("just-clean-served", Self::JustCleanServed),
    ];

    /// The bug of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, bug)| bug)
    }
}

/// Recovery with a bug.
#[cfg(feature = "planted")]
pub fn recover_planted(medium: &mut impl Medium, bug: Option<Planted>) -> Result<Recovered, RecoverError> {
    recover_with(medium, bug, None)
}

#[cfg(feature = "planted")]
impl Engine {
    /// Have this bug from now on.
    pub fn plant(&mut self, bug: Planted) {
        self.planted = Some(bug);
    }
}

impl Engine {
    /// True if a test has planted this bug.
    #[cfg(feature = "planted")]
    pub(crate) fn is_planted(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }

    /// There are no planted bugs.
    #[cfg(not(feature = "planted"))]
    pub(crate) fn is_planted(&self, _: Planted) -> bool {
        false
    }

    /// A bug: this write passes its backing by.
    pub(crate) fn skips_backing(&self, part: &Part) -> bool {
        let cached = |block| {
            let found = self.store.find(BlockKey { volume: part.volume, block });
            found.is_some_and(|entry| self.store.state(entry) == State::Valid)
        };
        self.is_planted(Planted::BackingSkippedOnHit)
            && self.write_policy(self.volume(part.volume).tenant) == WritePolicy::WriteThrough
            && self.blocks_of(part.start, part.end).all(cached)
    }

    /// A bug: a write goes past the fill of its block.
    pub(crate) fn passes_fill(&self, entry: EntryId) -> bool {
        self.is_planted(Planted::StaleFill) && self.store.state(entry) == State::Filling
    }
}
