//! What a cache on trial counts.

use std::ops::AddAssign;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of requests and blocks; each starts at zero.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Reads and writes.
    requests,
    /// Reads and writes all of whose blocks were hits.
    request_hits,
    /// Reads.
    read_requests,
    /// Reads all of whose blocks were hits.
    read_request_hits,
    /// Flushes.
    flushes,
    /// Discards.
    discards,
    /// Blocks that reads accessed.
    block_reads,
    /// Blocks that writes accessed.
    block_writes,
    /// Those of `block_reads` that were resident.
    read_hits,
    /// Those of `block_writes` that were resident and took the write.
    write_hits,
    /// Blocks that entered after a read of them missed. Each is one block written to the SSD.
    fills,
    /// Blocks of writes that went to the SSD, whether resident before or not.
    guest_writes,
    /// Blocks that left for others to enter.
    evictions,
    /// Those of `evictions` that were dirty.
    dirty_evictions,
    /// Blocks that left because a write went past them (`ro`).
    invalidations,
    /// Blocks that left because a discard covered them.
    discarded,
    /// Blocks read from the backing.
    backing_reads,
    /// Blocks written to the backing.
    backing_writes,
}

impl Counters {
    /// Blocks that entered, of reads and of writes.
    pub fn entered(&self) -> u64 {
        self.fills + self.guest_writes.saturating_sub(self.write_hits)
    }

    /// Blocks written to the SSD.
    pub fn ssd_writes(&self) -> u64 {
        self.fills + self.guest_writes
    }
}
