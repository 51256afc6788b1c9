//! What may go wrong in a history, by name.

use larder_io::sim::Rng;
use std::fmt;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The power goes, between any two operations: any part of what was not flushed is lost, and one sector may be torn.
    Cut,
    /// The process dies; the devices live on.
    Kill,
    /// Crashes in a row, the next one before the start is over.
    Early,
    /// A bit of cached data flips.
    Rot,
    /// A write of data to the cache device does nothing.
    Lost,
    /// A write of data to the cache device lands in another slot.
    Misdirected,
    /// Metadata of the stopped cache rots, is lost, lies in the wrong place or cannot be read.
    Metadata,
    /// Operations on cached data fail, now and then or many in a row.
    CacheErrors,
    /// Operations on metadata fail.
    MetadataErrors,
    /// Operations on backings fail, now and then or many in a row.
    BackingErrors,
    /// The cache device does not answer, maybe without its power, and is there again.
    Loss,
    /// A device becomes slow for a while.
    Storm,
    /// Quotas and write policies change, and volumes grow.
    Change,
    /// Volumes are resized, replaced by others and added while the engine is stopped.
    Volume,
}

impl Fault {
    /// All kinds, with their names.
    pub const NAMES: [(&str, Self); 14] = [
        ("cut", Self::Cut),
        ("kill", Self::Kill),
        ("early", Self::Early),
        ("rot", Self::Rot),
        ("lost", Self::Lost),
        ("misdirected", Self::Misdirected),
        ("metadata", Self::Metadata),
        ("cache-errors", Self::CacheErrors),
        ("metadata-errors", Self::MetadataErrors),
        ("backing-errors", Self::BackingErrors),
        ("loss", Self::Loss),
        ("storm", Self::Storm),
        ("change", Self::Change),
        ("volume", Self::Volume),
    ];
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults(u32);

impl Faults {
    /// Every kind.
    pub fn all() -> Self {
        Fault::NAMES.iter().fold(Self::default(), |set, &(_, fault)| set.with(fault))
    }

    /// This set and one more.
    #[must_use]
    pub fn with(self, fault: Fault) -> Self {
        Self(self.0 | 1 << fault as u32)
    }

    /// What one history has of this set: crashes and changes always, of the others some.
    #[must_use]
    pub fn some(self, rng: &mut Rng) -> Self {
        Fault::NAMES.iter().filter(|(_, fault)| self.has(*fault)).fold(Self::default(), |set, &(_, fault)| {
            let one_in = match fault {
                Fault::Cut | Fault::Kill | Fault::Change => 1,
                Fault::Early | Fault::Volume => 2,
                _ => 10,
            };
            if rng.below(one_in) == 0 { set.with(fault) } else { set }
        })
    }

    /// True if the kind is in the set.
    pub fn has(self, fault: Fault) -> bool {
        self.0 & 1 << fault as u32 != 0
    }

    /// Read names with commas between them; the name that is unknown is the error.
    pub fn named(list: &str) -> Result<Self, String> {
        list.split(',').map(str::trim).filter(|name| !name.is_empty()).try_fold(
            Self::default(),
            |set, name| {
                let found = Fault::NAMES.iter().find(|(known, _)| *known == name);
                found.map(|&(_, fault)| set.with(fault)).ok_or_else(|| name.to_owned())
            },
        )
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            Fault::NAMES.iter().filter(|(_, fault)| self.has(*fault)).map(|(name, _)| *name).collect();
        f.write_str(&names.join(","))
    }
}

/// What happened, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Histories played.
    pub histories: u64,
    /// Crashes: power cuts and deaths of the process.
    pub crashes: u64,
    /// Guest requests.
    pub requests: u64,
    /// Times that the cache device was given up.
    pub given_up: u64,
    /// Volumes that failed by that.
    pub failed: u64,
    /// Times that it was there again, and gone on with under guests that stayed.
    pub returned: u64,
    /// Times that a start went on with it.
    pub returned_at_start: u64,
    /// Dirty blocks that were there again with it.
    pub back: u64,
    /// Faults inflicted, by kind.
    pub faults: [u64; Fault::NAMES.len()],
}

impl Counts {
    /// One more fault of this kind.
    pub fn add(&mut self, fault: Fault) {
        self.faults[fault as usize] += 1;
    }

    /// The sum of two.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.histories += other.histories;
        self.crashes += other.crashes;
        self.requests += other.requests;
        self.given_up += other.given_up;
        self.failed += other.failed;
        self.returned += other.returned;
        self.returned_at_start += other.returned_at_start;
        self.back += other.back;
        self.faults.iter_mut().zip(other.faults).for_each(|(sum, more)| *sum += more);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for (at, (name, fault)) in (0..).zip(Fault::NAMES) {
            assert_eq!(fault as u32, at, "{name}");
            assert_eq!(Faults::named(name), Ok(Faults::default().with(fault)));
        }
        assert_eq!(Faults::named(&Faults::all().to_string()), Ok(Faults::all()));
        assert_eq!(Faults::named("cut, flood"), Err("flood".to_owned()));
        assert_eq!(Faults::named(""), Ok(Faults::default()));
    }
}
