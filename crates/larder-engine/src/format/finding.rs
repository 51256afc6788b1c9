//! What can be wrong with a cache, in words, and how bad it is.

use super::entry::BlockId;
use super::superblock::Unusable;
use std::fmt;
use std::ops::Range;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is lost: the other copy has it, or a crash explains it.
    Note,
    /// Clean blocks are lost; the backings have them.
    Clean,
    /// Blocks that the backings do not have may be lost.
    Dirty,
}

/// Something that is not as a writer without faults would have left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A copy of the superblock cannot be used; the other one can.
    Superblock {
        /// 0 or 1.
        copy: u8,
        /// Why.
        why: Unusable,
    },
    /// The superblock says that metadata could not be written.
    NeedsCheck,
    /// A copy of the volume table is torn or damaged.
    VolumeTable {
        /// 0 or 1.
        copy: u8,
        /// True if the other copy is as new as it must be.
        other_is_good: bool,
    },
    /// A copy of a page of the slot table is torn or damaged; the other one has all that is needed.
    PageCopy {
        /// The page.
        page: u32,
        /// 0 or 1.
        copy: u8,
    },
    /// Neither copy of a page is good, or what is left is older than the journal.
    PageLost {
        /// The page.
        page: u32,
        /// The slots that it is about.
        slots: Range<u32>,
        /// Those of them that the journal does not tell about either.
        unknown: u32,
        /// True if there may have been dirty blocks among them.
        dirty: bool,
    },
    /// A sector of the ring is torn or damaged, which no replay needs: it is where the next record goes, or has been
    /// replayed long ago.
    Sector {
        /// Counted from the ring's start.
        sector: u64,
        /// True at the end of the journal, where a power cut tears a sector. A record that had just become durable
        /// would look the same if it were damaged.
        at_end: bool,
    },
    /// The data that a record at the end of the journal tells of are not there: it and what is after it do not count. That is what a power cut leaves of a commit
    /// that was not yet durable. Had it just become so, and were the data damaged, it would look the same.
    NotArrived {
        /// The record's sequence.
        sequence: u64,
        /// Whose data.
        block: BlockId,
        /// Where they are not.
        slot: u32,
    },
    /// A record is missing that was durable, and with it all after it.
    RecordLost {
        /// Its sequence.
        sequence: u64,
        /// The last record that is known to have been durable.
        durable: u64,
        /// True if it may have told about dirty blocks.
        dirty: bool,
    },
    /// An entry names a slot that the cache does not have.
    NoSuchSlot {
        /// The record.
        sequence: u64,
        /// The slot.
        slot: u32,
    },
    /// An entry does not fit what the slot held.
    Misfit {
        /// The record.
        sequence: u64,
        /// The slot.
        slot: u32,
    },
    /// An entry frees a slot that is free already.
    FreedTwice {
        /// The record.
        sequence: u64,
        /// The slot.
        slot: u32,
    },
    /// A slot holds a dirty block, and the superblock says that there are none.
    NotDirty {
        /// Which block.
        block: BlockId,
        /// Where it is.
        slot: u32,
        /// True if it was cleaned in a record that is lost.
        cleaned: bool,
    },
    /// A block is in several slots.
    Duplicate {
        /// Which block.
        block: BlockId,
        /// One of the slots.
        slot: u32,
        /// True if what this slot holds is dirty.
        dirty: bool,
    },
    /// A block of a volume that the volume table does not have.
    NoSuchVolume {
        /// Which block.
        block: BlockId,
        /// Where it is.
        slot: u32,
        /// True if it is dirty.
        dirty: bool,
    },
    /// A block past the end of its volume.
    BeyondEnd {
        /// Which block.
        block: BlockId,
        /// Where it is.
        slot: u32,
        /// True if it is dirty.
        dirty: bool,
    },
    /// A block's data fails its checksum, or cannot be read.
    Data {
        /// Which block.
        block: BlockId,
        /// Where it is.
        slot: u32,
        /// True if it is dirty.
        dirty: bool,
    },
    /// There is more than is listed one by one.
    More {
        /// Findings not listed.
        count: u64,
        /// The worst of them.
        severity: Severity,
    },
}

impl Finding {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        let of = |dirty| if dirty { Severity::Dirty } else { Severity::Clean };
        match *self {
            Self::Superblock { .. } | Self::PageCopy { .. } | Self::Sector { .. } => Severity::Note,
            Self::VolumeTable { other_is_good: true, .. } | Self::FreedTwice { .. } => Severity::Note,
            Self::NotArrived { .. } => Severity::Note,
            Self::NotDirty { cleaned, .. } => of(!cleaned),
            Self::NeedsCheck | Self::VolumeTable { .. } | Self::NoSuchSlot { .. } | Self::Misfit { .. } => {
                Severity::Dirty
            }
            Self::PageLost { unknown: 0, .. } => Severity::Note,
            Self::PageLost { dirty, .. } | Self::RecordLost { dirty, .. } => of(dirty),
            Self::Duplicate { dirty, .. } | Self::NoSuchVolume { dirty, .. } => of(dirty),
            Self::BeyondEnd { dirty, .. } | Self::Data { dirty, .. } => of(dirty),
            Self::More { severity, .. } => severity,
        }
    }

    /// True if there is a hole in what was durable: a session on top of it would leave it there.
    pub(super) fn is_hole(&self) -> bool {
        matches!(self, Self::RecordLost { .. } | Self::PageLost { unknown: 1.., .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |copy: &u8| if *copy == 0 { 'A' } else { 'B' };
        let kind = |dirty: &bool| if *dirty { "dirty" } else { "clean" };
        match self {
            Self::Superblock { copy, why } => {
                write!(f, "superblock {} {why}; the other copy is good", name(copy))
            }
            Self::NeedsCheck => write!(f, "an earlier session could not write its metadata"),
            Self::VolumeTable { copy, other_is_good: true } => {
                write!(f, "copy {copy} of the volume table is torn or damaged; the other one is good")
            }
            Self::VolumeTable { copy, .. } => write!(
                f,
                "copy {copy} of the volume table is torn, damaged or missing, and the other one is not good either: \
                 blocks cannot be told to belong to volumes"
            ),
            Self::PageCopy { page, copy } => {
                write!(
                    f,
                    "copy {copy} of page {page} of the slot table is torn or damaged; the other one is good"
                )
            }
            Self::PageLost { page, slots, unknown, dirty } => {
                let (start, end) = (slots.start, slots.end - 1);
                let may = if *dirty { "they may have been dirty" } else { "none of them was dirty" };
                write!(f, "page {page} of the slot table (slots {start} to {end}) is lost: ")?;
                match unknown {
                    0 => write!(f, "the journal has all of it"),
                    _ => write!(f, "up to {unknown} blocks that nothing else tells about; {may}"),
                }
            }
            Self::Sector { sector, at_end: true } => write!(
                f,
                "sector {sector} of the journal, where it ends, is torn or damaged: a power cut does this to a record \
                 that was not yet durable"
            ),
            Self::Sector { sector, .. } => {
                write!(f, "sector {sector} of the journal is torn or damaged; nothing needs it")
            }
            Self::NotArrived { sequence, block, slot } => write!(
                f,
                "record {sequence} of the journal, at its end, does not count, for the data of {block} are not in slot {slot}: a power cut does this to a write that \
                 was not yet durable"
            ),
            Self::RecordLost { sequence, durable, dirty } => write!(
                f,
                "record {sequence} of the journal is lost, and with it all changes from there on; records up to {durable} were durable{}",
                if *dirty { ", and may have told about dirty blocks" } else { "" }
            ),
            Self::NoSuchSlot { sequence, slot } => {
                write!(f, "record {sequence} of the journal names slot {slot}, which does not exist")
            }
            Self::Misfit { sequence, slot } => {
                write!(f, "record {sequence} of the journal does not fit what slot {slot} held before it")
            }
            Self::FreedTwice { sequence, slot } => {
                write!(f, "record {sequence} of the journal frees slot {slot}, which was free")
            }
            Self::NotDirty { block, slot, cleaned: true } => {
                write!(f, "{block} in slot {slot} was cleaned in a record that is lost: it is out of date")
            }
            Self::NotDirty { block, slot, .. } => {
                write!(f, "{block} in slot {slot} is dirty, and the superblock says that no block is")
            }
            Self::Duplicate { block, slot, dirty } => {
                write!(f, "{block} is in several slots, among them slot {slot} ({})", kind(dirty))
            }
            Self::NoSuchVolume { block, slot, dirty } => {
                write!(f, "{block} in slot {slot} ({}): there is no such volume", kind(dirty))
            }
            Self::BeyondEnd { block, slot, dirty } => {
                write!(f, "{block} in slot {slot} ({}) is past the volume's end", kind(dirty))
            }
            Self::Data { block, slot, dirty } => {
                write!(f, "the data of {block} in slot {slot} ({}) fails its checksum", kind(dirty))
            }
            Self::More { count, .. } => write!(f, "{count} more findings"),
        }
    }
}

/// Findings while they are made: all are counted, so many are listed.
#[derive(Debug, Default)]
pub(super) struct Findings {
    listed: Vec<Finding>,
    unlisted: u64,
    worst: Option<Severity>,
    /// The first that is a hole, listed or not.
    hole: Option<Finding>,
}

/// Findings that are listed one by one.
const LISTED_MAX: usize = 1000;

impl Findings {
    pub fn push(&mut self, finding: Finding) {
        if self.hole.is_none() && finding.is_hole() {
            self.hole = Some(finding.clone());
        }
        if self.listed.len() < LISTED_MAX {
            self.listed.push(finding);
        } else {
            self.unlisted += 1;
            self.worst = self.worst.max(Some(finding.severity()));
        }
    }

    /// Those of another look.
    pub fn absorb(&mut self, others: Self) {
        let Self { listed, unlisted, worst, hole } = others;
        self.unlisted += unlisted;
        self.worst = self.worst.max(worst);
        self.hole = self.hole.take().or(hole);
        listed.into_iter().for_each(|finding| self.push(finding));
    }

    pub fn hole(&self) -> Option<Finding> {
        self.hole.clone()
    }

    pub fn into_list(mut self) -> Vec<Finding> {
        if let Some(severity) = self.worst {
            self.listed.push(Finding::More { count: self.unlisted, severity });
        }
        self.listed
    }
}
