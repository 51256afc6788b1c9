//! A stream with a given share of each request class, a given footprint, and given reuse distances.

mod distances;
mod owed;
mod timeline;

pub use distances::Distances;

use super::VOLUME_BYTES_MAX;
use crate::{Request, RequestKind, Rng};
use distances::Sampler;
use owed::{CLASSES, Class, Counts, Owed};
use timeline::Timeline;

/// Most distinct blocks of a mix: what it remembers of them takes at most 64 bytes each.
const FOOTPRINT_MAX: u64 = 1 << 26;

/// Most requests of a mix: shares of it are whole numbers in a double.
const REQUESTS_MAX: u64 = 1 << 53;

/// How far demands may be apart that say the same thing twice: six shares of a table, each rounded to a thousandth,
/// add up to one within 0.003.
const TOLERANCE: f64 = 0.003;

/// Shares of the six request classes, each from 0 to 1. The class of an access follows from its kind and from the kind
/// of the last access to the same block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassShares {
    /// First accesses that read.
    pub cr: f64,
    /// First accesses that write.
    pub cw: f64,
    /// Reads after a read.
    pub rar: f64,
    /// Reads after a write.
    pub raw: f64,
    /// Writes after a read.
    pub war: f64,
    /// Writes after a write.
    pub waw: f64,
}

impl ClassShares {
    /// The share of first accesses.
    pub fn first(&self) -> f64 {
        self.cr + self.cw
    }

    /// The share of reads.
    pub fn read(&self) -> f64 {
        self.cr + self.rar + self.raw
    }

    /// In the order of [`CLASSES`].
    fn list(&self) -> [f64; 6] {
        [self.cr, self.cw, self.rar, self.raw, self.war, self.waw]
    }
}

/// What a mix is to be. Every request is for one block.
#[derive(Clone, Debug, PartialEq)]
pub struct MixWorkload {
    /// Shares of the request classes; they add up to 1 (within 0.003, and are scaled to it).
    pub shares: ClassShares,
    /// Distinct blocks. Each has one first access: `requests` times the share of those, within 0.003 of the requests.
    pub footprint_blocks: u64,
    /// Block accesses.
    pub requests: u64,
    /// Share of reads; it follows from the classes, and where it is given it must agree with them (within 0.003).
    pub read_share: Option<f64>,
    /// Reuse distances of the accesses that are not first.
    pub distances: Distances,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// First byte of the part of the volume that is used: `footprint_blocks` blocks.
    pub first_byte: u64,
    /// Nanoseconds from one request to the next.
    pub interval_ns: u64,
}

/// Why a mix cannot be generated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MixError {
    /// Not a share.
    #[error("a share of {share} {class} is not between 0 and 1")]
    Share {
        /// The class.
        class: &'static str,
        /// What was asked for.
        share: f64,
    },
    /// The shares are not those of one whole.
    #[error("the shares of the six classes add up to {0}, not to 1")]
    Sum(f64),
    /// More than can be remembered or counted.
    #[error("a mix has 1 to 2^53 requests to 1 to 2^26 blocks, not {requests} to {footprint_blocks}")]
    Size {
        /// Requests asked for.
        requests: u64,
        /// Blocks asked for.
        footprint_blocks: u64,
    },
    /// Each block of the footprint has one first access, no more and no less.
    #[error(
        "{first} of {requests} requests are first accesses (CR, CW): that is not a footprint of \
         {footprint_blocks} blocks"
    )]
    Footprint {
        /// The share of first accesses.
        first: f64,
        /// Requests asked for.
        requests: u64,
        /// Blocks asked for.
        footprint_blocks: u64,
    },
    /// The share of reads contradicts the classes.
    #[error("a share of {read_share} reads contradicts the classes (CR, RAR, RAW), which have {classes}")]
    Read {
        /// What was asked for.
        read_share: f64,
        /// What the classes have.
        classes: f64,
    },
    /// No order of the requests has these classes: each RAW takes a block that CW or WAR left written, each WAR one
    /// that CR or RAW left read, and RAR and WAW need such blocks too.
    #[error(
        "no sequence has these classes: of {requests} requests {raw} RAW and {waw} WAW need blocks that {cw} CW and \
         {war} WAR leave written, {war} WAR and {rar} RAR blocks that {cr} CR and {raw} RAW leave read"
    )]
    Impossible {
        /// Requests asked for.
        requests: u64,
        /// Of these, first reads; and so on.
        cr: u64,
        /// First writes.
        cw: u64,
        /// Reads after reads.
        rar: u64,
        /// Reads after writes.
        raw: u64,
        /// Writes after reads.
        war: u64,
        /// Writes after writes.
        waw: u64,
    },
    /// The distribution cannot be drawn from.
    #[error("reuse distances {0}")]
    Distances(&'static str),
    /// Blocks of no bytes, or beyond what a 64-bit offset reaches.
    #[error(
        "{footprint_blocks} blocks of {block_bytes} bytes from byte {first_byte} on are empty, or pass the end of any \
         volume (2^63 bytes)"
    )]
    Range {
        /// First byte to use.
        first_byte: u64,
        /// Blocks asked for.
        footprint_blocks: u64,
        /// Bytes of a block.
        block_bytes: u32,
    },
}

/// Generates a mix.
///
/// **Classes and footprint** are exact: the shares are turned into whole numbers once (within two requests of the exact
/// share where shares and footprint agree), and each request draws its class in proportion to what is still owed, never
/// one after which the rest could not be had. So every part of the stream has the same mix, but for its beginning,
/// where there are few blocks to return to. Blocks are new in the order of their offsets.
///
/// **Reuse distances** are drawn independently of the class, and counted over all blocks, as an LRU stack does. A
/// distance is met exactly where the block that stands at it had its last access of the wanted kind; otherwise the
/// nearest block that had takes its place (of two as near, the one accessed later). In a stream of reads, or of
/// writes, alone it is therefore always exact; where both kinds are common it is off by a few blocks; where reads
/// and writes keep to blocks of their own (small RAW and WAR) and blocks of the wanted kind are rare, by as many
/// as lie between two of these. A distance beyond the blocks that there are takes the one not accessed for longest.
///
/// Takes time in the logarithm of the footprint for a request, and memory in the blocks accessed so far.
#[derive(Clone, Debug)]
pub struct ClassMix {
    owed: Owed,
    timeline: Timeline,
    distances: Sampler,
    rng: Rng,
    volume: u32,
    block_bytes: u32,
    first_byte: u64,
    interval_ns: u64,
    time_ns: u64,
}

impl ClassMix {
    /// The mix for `volume` (it becomes [`Request::volume`]), starting at time 0 with no block known.
    pub fn new(workload: &MixWorkload, volume: u32, seed: u64) -> Result<Self, MixError> {
        workload.check()?;
        Ok(Self {
            owed: Owed::new(workload.counts()?),
            timeline: Timeline::default(),
            distances: Sampler::new(workload.distances.clone())?,
            rng: Rng::new(seed),
            volume,
            block_bytes: workload.block_bytes,
            first_byte: workload.first_byte,
            interval_ns: workload.interval_ns,
            time_ns: 0,
        })
    }

    /// The block of the next request.
    fn block(&mut self, class: Class) -> u32 {
        // At most 2^26 blocks are new.
        let new = self.timeline.len() as u32;
        let Some(last) = class.last() else { return new };
        let distance = self.distances.draw(&mut self.rng);
        self.timeline.take(distance, last).expect("a class is drawn only if there is a block for it")
    }
}

impl Iterator for ClassMix {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let class = self.owed.draw(&mut self.rng)?;
        let block = self.block(class);
        self.timeline.push(block, class.kind());
        let time_ns = self.time_ns;
        self.time_ns = time_ns.saturating_add(self.interval_ns);
        let offset = self.first_byte + u64::from(block) * u64::from(self.block_bytes);
        let kind = match class.kind() {
            timeline::Kind::Read => RequestKind::Read,
            timeline::Kind::Write => RequestKind::Write,
        };
        Some(Request { time_ns, volume: self.volume, kind, offset, len: self.block_bytes })
    }
}

impl MixWorkload {
    fn check(&self) -> Result<(), MixError> {
        self.check_shares()?;
        let Self { footprint_blocks, requests, block_bytes, first_byte, .. } = *self;
        if !(1..=REQUESTS_MAX).contains(&requests) || !(1..=FOOTPRINT_MAX).contains(&footprint_blocks) {
            return Err(MixError::Size { requests, footprint_blocks });
        }
        let end = first_byte.checked_add(footprint_blocks * u64::from(block_bytes));
        if block_bytes == 0 || end.is_none_or(|end| end > VOLUME_BYTES_MAX) {
            return Err(MixError::Range { first_byte, footprint_blocks, block_bytes });
        }
        Ok(())
    }

    fn check_shares(&self) -> Result<(), MixError> {
        let shares = self.shares.list();
        for (class, share) in CLASSES.into_iter().zip(shares) {
            if !(0.0..=1.0).contains(&share) {
                return Err(MixError::Share { class: class.name(), share });
            }
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > TOLERANCE {
            return Err(MixError::Sum(sum));
        }
        let classes = self.shares.read();
        match self.read_share {
            Some(read_share) if (read_share - classes).abs() <= TOLERANCE => Ok(()),
            Some(read_share) => Err(MixError::Read { read_share, classes }),
            None => Ok(()),
        }
    }

    /// The shares as whole numbers: as many first accesses as blocks, the others among the rest of the requests.
    fn counts(&self) -> Result<Counts, MixError> {
        let Self { footprint_blocks, requests, .. } = *self;
        let first = self.shares.first();
        let contradiction = MixError::Footprint { first, requests, footprint_blocks };
        let apart = (first * requests as f64 - footprint_blocks as f64).abs();
        if apart > (TOLERANCE * requests as f64).max(1.0) || footprint_blocks > requests {
            return Err(contradiction);
        }
        let [cr, cw, rar, raw, war, waw] = self.shares.list();
        let firsts = owed::apportion(footprint_blocks, [cr, cw]);
        let others = owed::apportion(requests - footprint_blocks, [rar, raw, war, waw]);
        let (Some([cr, cw]), Some([rar, raw, war, waw])) = (firsts, others) else {
            return Err(contradiction);
        };
        let mut counts = Counts([cr, cw, rar, raw, war, waw]);
        counts.mend_rounding();
        match counts.completable([0, 0]) {
            true => Ok(counts),
            false => Err(MixError::Impossible { requests, cr, cw, rar, raw, war, waw }),
        }
    }
}

#[cfg(test)]
mod tests;
