//! Bugs that tests plant, to see that the crash simulation finds them. Without the feature `planted` there are none.

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
}

#[cfg(feature = "planted")]
impl crate::Engine {
    /// Have this bug from now on.
    pub fn plant(&mut self, bug: Planted) {
        self.planted = Some(bug);
    }
}

impl crate::Engine {
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
}
