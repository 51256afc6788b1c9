//! What happens in a history, as data: made from a seed before anything is played.
//!
//! Places and sizes are numbers that mean something in any state (a share of a volume, a count), so that a script needs to know nothing of
//! how the engine takes it.

use crate::fault::{Fault, Faults};
use crate::plan::{Plan, any_caching, any_policy, any_quota, any_sharing, any_watermarks, disk_bytes};
use larder_engine::{CachingSpec, RequestKind, Sharing, Watermarks, WritePolicy};
use larder_io::sim::{FaultKind, Rng};

/// Lives that a script has at most.
pub const LIVES_MAX: u64 = 4;

/// A request, or a fault, or time that passes.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A guest asks for something.
    Ask(Ask),
    /// A guest flushes a volume.
    Flush {
        /// The volume's number.
        disk: usize,
    },
    /// So many operations end.
    Steps(u64),
    /// All operations end.
    Settle,
    /// A second has passed.
    Tick,
    /// A tenant's quota changes.
    Quota {
        /// Its number.
        tenant: usize,
        /// Blocks.
        blocks: u32,
    },
    /// What a tenant may hold where partitions lend changes.
    Most {
        /// Its number.
        tenant: usize,
        /// Blocks.
        blocks: u32,
    },
    /// A tenant's write policy changes.
    Policy {
        /// Its number.
        tenant: usize,
        /// The new one.
        policy: WritePolicy,
    },
    /// A tenant's replacement and admission change.
    Caching {
        /// Its number.
        tenant: usize,
        /// The new ones.
        caching: CachingSpec,
    },
    /// What a tenant may still write to the cache device changes.
    Limit {
        /// Its number.
        tenant: usize,
        /// Blocks that may enter, and then blocks of newer data; `None` for as many as it likes.
        blocks: Option<(u64, u64)>,
    },
    /// What all tenants together may still write to the cache device changes.
    CommonLimit {
        /// Blocks; `None` for as many as they like.
        blocks: Option<u64>,
    },
    /// Another part of a tenant's requests may write to the cache device.
    Doors {
        /// Its number.
        tenant: usize,
        /// Of eight requests so many; `None` for no doors at all, of any tenant.
        eighths: Option<u8>,
    },
    /// Partitions lend each other what they do not use, or no longer.
    Lending(bool),
    /// A cleaner keeps so many blocks free, or none does any more.
    Watermarks(Option<Watermarks>),
    /// A mover fills a tenant's partition, or every miss.
    Mover {
        /// Its number.
        tenant: usize,
        /// The mover does.
        moves: bool,
    },
    /// The movers come.
    MoveIn,
    /// Tenants share a partition in another way, or no longer.
    Sharing(Sharing),
    /// A volume comes, if it can.
    Join {
        /// Whose it is.
        tenant: usize,
        /// Its size.
        bytes: u64,
        /// Its writes have an order.
        ordered: bool,
    },
    /// A volume leaves, as soon as it can, and somebody else writes to its backing.
    Leave {
        /// Its number.
        disk: usize,
    },
    /// A backing becomes longer, and its volume grows in use, if it can.
    Grow {
        /// Its number.
        disk: usize,
        /// By how many blocks.
        blocks: u64,
    },
    /// The next operations of a kind fail.
    Errors {
        /// Whose: the cache's data, its metadata, a backing.
        of: Part,
        /// Which operations.
        kind: FaultKind,
        /// How many.
        count: u32,
    },
    /// A bit of cached data flips.
    Rot {
        /// Which, as far as it reaches.
        at: u64,
    },
    /// The next write of cached data does nothing.
    Lose,
    /// The next write of cached data lands elsewhere.
    Misdirect {
        /// Where, as far as it reaches.
        at: u64,
    },
    /// A device takes this long from now on.
    Latency {
        /// Which.
        of: Part,
        /// Ticks at most.
        ticks: u64,
    },
    /// The cache device does not answer.
    Gone {
        /// It has lost its power, too: of what it was not told to flush any part is lost, and it is a new one to whoever has it open.
        power: bool,
    },
    /// It answers again; where it was given up, and let go of, it is gone on with when nothing is under way.
    Back,
}

/// A device, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The slots of the cache device.
    Data,
    /// Its metadata.
    Metadata,
    /// The backing of a volume, by number.
    Backing(usize),
}

/// What a guest asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// A read, write, discard or write-zeroes.
    pub kind: RequestKind,
    /// The volume's number.
    pub disk: usize,
    /// The first block, in 2^-32 of the volume.
    pub at: u64,
    /// Blocks.
    pub blocks: u64,
    /// Sectors left out at the start and at the end.
    pub inset: (u64, u64),
    /// Force unit access.
    pub fua: bool,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The power goes.
    Cut,
    /// The process dies.
    Kill,
    /// The process dies, and backings lose their power meanwhile.
    KillAlone,
    /// A clean stop; then the power goes, or not.
    Stop,
}

/// What happens to a part of the metadata while the cache is not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// A bit flips.
    Rot,
    /// It is what it was when the life began: what was written since is lost.
    Lost,
    /// Something else of its kind was written there.
    Misdirected,
    /// It cannot be read during the next start.
    Unreadable,
}

/// Something that changes between two lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A volume has another size.
    Resize {
        /// Its number.
        disk: usize,
        /// Its new size.
        bytes: u64,
    },
    /// Another volume takes its place, behind a backing that somebody else has written.
    Replace {
        /// Its number.
        disk: usize,
        /// The size of the new one.
        bytes: u64,
    },
    /// There is one more.
    Add {
        /// Whose it is.
        tenant: usize,
        /// Its size.
        bytes: u64,
    },
}

/// From a start to the next.
#[derive(Clone, Debug)]
pub struct Life {
    /// What happens.
    pub acts: Vec<Act>,
    /// It ends before its start is over, or soon after.
    pub early: bool,
    /// How it ends.
    pub end: End,
    /// What happens to the metadata after that: what, and where (as far as it reaches).
    pub harm: Option<(Harm, u64)>,
    /// What changes after that; only after a clean stop.
    pub change: Option<Change>,
    /// Everything is read after the next start.
    pub look: bool,
}

/// All of a history.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its lives; a clean stop follows the last one.
    pub lives: Vec<Life>,
}

impl Script {
    /// The script of a plan's seed, with these faults.
    pub fn of(plan: &Plan, faults: Faults) -> Self {
        let (rng, disks) = (Rng::new(plan.seed), plan.disks.len());
        let mut writer = Writer { rng, plan, faults, disks, wide: is_wide(plan), hot: [0; 4] };
        writer.hot = [0; 4].map(|_: u64| writer.rng.below(1 << 32));
        let count = 2 + writer.rng.below(LIVES_MAX - 1);
        Self { lives: (0..count).map(|number| writer.life(number == 0)).collect() }
    }
}

/// Many blocks, and many at a time.
fn is_wide(plan: &Plan) -> bool {
    plan.disks.iter().any(|disk| disk.bytes > 20 * plan.block_bytes())
}

struct Writer<'p> {
    rng: Rng,
    plan: &'p Plan,
    faults: Faults,
    /// Volumes that there are by now, at most.
    disks: usize,
    wide: bool,
    /// Where requests go again and again.
    hot: [u64; 4],
}

impl Writer<'_> {
    fn life(&mut self, first: bool) -> Life {
        let early = self.faults.has(Fault::Early) && self.rng.below(6) == 0;
        let acts = match early {
            true => (0..self.rng.below(6)).map(|_| self.hasty()).collect(),
            false => (0..self.rng.below(70)).map(|_| self.act()).collect(),
        };
        let end = self.end(first);
        let harm = (self.faults.has(Fault::Metadata) && self.rng.below(2) == 0).then(|| self.harm());
        let change = self.faults.has(Fault::Volume) && end == End::Stop && self.rng.below(2) == 0;
        let change = change.then(|| self.change());
        Life { acts, early, end, harm, change, look: self.rng.chance(0.6) }
    }

    /// The first life ends in a crash, if there are any.
    fn end(&mut self, first: bool) -> End {
        let (cut, kill) = (self.faults.has(Fault::Cut), self.faults.has(Fault::Kill));
        match self.rng.below(8) {
            0..=1 if !first || !(cut || kill) => End::Stop,
            0..=1 | 3 if kill => End::Kill,
            2 if kill => End::KillAlone,
            _ if cut => End::Cut,
            _ if kill => End::Kill,
            _ => End::Stop,
        }
    }

    fn harm(&mut self) -> (Harm, u64) {
        let harms = [Harm::Rot, Harm::Rot, Harm::Lost, Harm::Misdirected, Harm::Unreadable];
        (harms[self.rng.below(5) as usize], self.rng.next_u64())
    }

    fn change(&mut self) -> Change {
        let bytes = disk_bytes(&mut self.rng, self.plan.block_bytes(), self.wide);
        match self.rng.below(5) {
            0..=1 => Change::Resize { disk: self.disk(), bytes },
            2..=3 => Change::Replace { disk: self.disk(), bytes },
            _ => {
                self.disks += 1;
                Change::Add { tenant: self.tenant(), bytes }
            }
        }
    }

    fn act(&mut self) -> Act {
        if self.plan.limited && self.faults.has(Fault::Change) && self.rng.below(8) == 0 {
            return self.limit();
        }
        match self.rng.below(44) {
            0..=9 => self.ask(RequestKind::Read),
            10..=18 => self.ask(RequestKind::Write),
            19..=20 => Act::Flush { disk: self.disk() },
            21 => self.ask(RequestKind::Discard),
            22 => self.ask(RequestKind::WriteZeroes { no_hole: true }),
            23..=24 => Act::Tick,
            25 => Act::Settle,
            26..=29 => self.fault(),
            _ => Act::Steps(1 + self.rng.below(8)),
        }
    }

    /// What a guest does that was waiting.
    fn hasty(&mut self) -> Act {
        match self.rng.below(5) {
            0 => self.ask(RequestKind::Write),
            1 => self.ask(RequestKind::Read),
            2 => Act::Tick,
            _ => Act::Steps(1 + self.rng.below(4)),
        }
    }

    /// A fault of one of the kinds that there are; otherwise some time passes.
    fn fault(&mut self) -> Act {
        let kinds = [
            Fault::Change,
            Fault::Rot,
            Fault::Lost,
            Fault::Misdirected,
            Fault::CacheErrors,
            Fault::MetadataErrors,
            Fault::BackingErrors,
            Fault::Loss,
            Fault::Storm,
        ];
        let kinds: Vec<Fault> = kinds.into_iter().filter(|&kind| self.faults.has(kind)).collect();
        let Some(&kind) = kinds.get(self.rng.below(kinds.len() as u64) as usize) else {
            return Act::Steps(1 + self.rng.below(4));
        };
        let at = self.rng.next_u64();
        match kind {
            Fault::Rot => Act::Rot { at },
            Fault::Lost => Act::Lose,
            Fault::Misdirected => Act::Misdirect { at },
            Fault::CacheErrors if self.rng.below(8) == 0 => Act::Back,
            Fault::CacheErrors => self.errors(Part::Data),
            Fault::MetadataErrors => match self.rng.below(6) {
                0..=1 => self.errors(Part::Metadata),
                2..=3 => Act::Back,
                _ => Act::Tick,
            },
            Fault::BackingErrors => {
                let of = Part::Backing(self.disk());
                self.errors(of)
            }
            Fault::Loss if self.rng.below(3) == 0 => Act::Gone { power: self.rng.below(3) == 0 },
            Fault::Loss => Act::Back,
            Fault::Storm => self.storm(),
            Fault::Change => self.setting(),
            _ => Act::Tick,
        }
    }

    /// One, or a burst.
    fn errors(&mut self, of: Part) -> Act {
        let kinds = match of {
            Part::Data => [FaultKind::Read, FaultKind::Write, FaultKind::Read],
            Part::Metadata => [FaultKind::Write, FaultKind::Flush, FaultKind::Write],
            Part::Backing(_) => [FaultKind::Read, FaultKind::Write, FaultKind::Flush],
        };
        let kind = kinds[self.rng.below(3) as usize];
        // So many in a row end the cache.
        let count = if self.rng.below(3) == 0 { 1 + self.rng.below(40) as u32 } else { 1 };
        Act::Errors { of, kind, count }
    }

    fn storm(&mut self) -> Act {
        let of = if self.rng.below(2) == 0 { Part::Data } else { Part::Backing(self.disk()) };
        let ticks = [20, 20, 500, 5000][self.rng.below(4) as usize];
        Act::Latency { of, ticks }
    }

    fn setting(&mut self) -> Act {
        let tenant = self.tenant();
        if self.plan.lending && self.rng.below(3) == 0 {
            return match self.rng.below(8) {
                0 | 1 => Act::Lending(self.rng.below(3) > 0),
                2 => Act::Policy { tenant, policy: WritePolicy::WriteThroughNoAllocate },
                3 => Act::Mover { tenant, moves: self.rng.below(3) > 0 },
                4 | 5 => Act::MoveIn,
                6 => Act::Most { tenant, blocks: any_quota(&mut self.rng, self.wide) },
                _ => Act::Caching { tenant, caching: any_caching(&mut self.rng) },
            };
        }
        if self.plan.pooled && self.rng.below(3) == 0 {
            let watermarks = any_watermarks(&mut self.rng, self.plan.shape.slots);
            return if self.rng.below(2) == 0 {
                Act::Watermarks(watermarks)
            } else {
                // Beyond what there is: whoever comes takes what is free.
                Act::Quota { tenant, blocks: self.plan.shape.slots }
            };
        }
        if self.plan.shares && self.rng.below(2) == 0 {
            return Act::Sharing(any_sharing(&mut self.rng, self.wide));
        }
        match self.rng.below(5) {
            0 => Act::Grow { disk: self.disk(), blocks: 1 + self.rng.below(3) },
            1 if self.rng.below(2) == 0 => self.join(),
            1 => Act::Leave { disk: self.disk() },
            2 => Act::Quota { tenant, blocks: any_quota(&mut self.rng, self.wide) },
            _ => Act::Policy { tenant, policy: any_policy(&mut self.rng, self.plan.holds_back) },
        }
    }

    fn limit(&mut self) -> Act {
        if self.rng.below(3) == 0 {
            let eighths = (self.rng.below(4) > 0).then(|| self.rng.below(9) as u8);
            return Act::Doors { tenant: self.tenant(), eighths };
        }
        if self.rng.below(3) == 0 {
            return Act::CommonLimit { blocks: (self.rng.below(4) > 0).then(|| self.rng.below(20)) };
        }
        let blocks = (self.rng.below(4) > 0).then(|| (self.rng.below(12), self.rng.below(6)));
        Act::Limit { tenant: self.tenant(), blocks }
    }

    fn join(&mut self) -> Act {
        self.disks += 1;
        let bytes = disk_bytes(&mut self.rng, self.plan.block_bytes(), self.wide);
        let ordered = self.plan.holds_back && self.rng.below(3) == 0;
        Act::Join { tenant: self.tenant(), bytes, ordered }
    }

    fn disk(&mut self) -> usize {
        self.rng.below(self.disks as u64) as usize
    }

    fn tenant(&mut self) -> usize {
        self.rng.below(self.plan.tenants.len() as u64) as usize
    }

    /// Whole blocks for the most part; in few places, or near the start, more often than not.
    fn ask(&mut self, kind: RequestKind) -> Act {
        let disk = self.disk();
        let at = match self.rng.below(3) {
            0 => self.hot[self.rng.below(4) as usize],
            1 => self.rng.below(1 << 32),
            _ => self.rng.below(1 << 32).min(self.rng.below(1 << 32)),
        };
        let most = if self.wide && self.rng.below(2) == 0 { 40 } else { 3 };
        let blocks = 1 + self.rng.below(most);
        let inset = match self.rng.below(4) {
            0 => (self.rng.below(5), self.rng.below(5)),
            _ => (0, 0),
        };
        let fua = self.rng.below(6) == 0;
        Act::Ask(Ask { kind, disk, at, blocks, inset, fua })
    }
}
