//! What is counted per tenant, in blocks unless said otherwise.

/// Counters of one tenant, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantStats {
    /// Block reads served without reading the backing for them: from the cache device, or from a fill that was already under way.
    pub read_hits: u64,
    /// Block reads that read the backing.
    pub read_misses: u64,
    /// Block writes that found the block cached (under `ro` they invalidate it).
    pub write_hits: u64,
    /// Block writes that did not.
    pub write_misses: u64,
    /// Blocks that left the cache to make room, or because the quota fell.
    pub evictions: u64,
    /// Blocks that left the cache because a write, discard, write-zeroes or error made them stale.
    pub invalidations: u64,
    /// SSD writes caused by fills.
    pub ssd_fill_blocks: u64,
    /// SSD writes caused by guest writes; a write of a part of a block counts as one.
    pub ssd_guest_write_blocks: u64,
    /// Bytes of `ssd_fill_blocks`.
    pub ssd_fill_bytes: u64,
    /// Bytes of `ssd_guest_write_blocks`.
    pub ssd_guest_write_bytes: u64,
    /// Blocks that did not enter since the tenant may write no more to the cache device for now ([`crate::WriteLimit`]).
    pub refused_blocks: u64,
    /// Newer data of cached blocks that went to the backing alone, for the same reason.
    pub diverted_blocks: u64,
    /// Blocks that were not written to the cache device since their requests are worth less than others ([`crate::Engine::set_doors`]).
    pub turned_away_blocks: u64,
    /// Blocks read from the backing; a read of a part of a block counts as one, and so does one that is cached, and is read since it lies between others.
    pub backing_reads: u64,
    /// Blocks written to the backing; a write of a part of a block counts as one.
    pub backing_writes: u64,
    /// Failed operations on the cache device.
    pub cache_errors: u64,
    /// Blocks read from the cache device that were not what had been written there: they are read from the backing instead.
    pub checksum_errors: u64,
    /// Dirty blocks written back; also counted in `backing_writes`.
    pub cleaned_blocks: u64,
    /// Dirty blocks that could not be read back from the cache device.
    pub lost_blocks: u64,
    /// Failed operations on the backing.
    pub backing_errors: u64,
}
