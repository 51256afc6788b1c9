//! Which blocks an analysis looks at.

/// Which blocks an analysis looks at: all, or those whose hash is low enough (SHARDS: Waldspurger, Park, Garthwaite,
/// Ahmad; FAST'15).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// All blocks: exact, in memory proportional to the footprint.
    Exact,
    /// This share of the blocks, above 0 and up to 1: memory proportional to the footprint times the rate.
    Rate(f64),
    /// At most this many blocks: the rate starts at 1 and falls as the footprint grows. Constant memory.
    Blocks(u32),
}
