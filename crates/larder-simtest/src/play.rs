//! One history, from its seed to its digest.

use crate::caught::caught;
use crate::fault::{Counts, Fault, Faults};
use crate::plan::Plan;
use crate::script::{Act, Ask, End, Life, Part, Script};
use crate::trace::Trace;
use crate::world::World;
use larder_engine::{Planted, Request, SECTOR_BYTES, VolumeId};
use larder_io::sim::{FaultKind, Rng, SimDevice, Strike, ask};

/// Lines of a history that a violation comes with.
const LINES: usize = 60;

/// How histories are played.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// These faults in each history; some of all kinds where there are none.
    pub faults: Option<Faults>,
    /// A bug to be found.
    pub planted: Option<Planted>,
}

/// A history has come to its end, and nothing was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of all operations, replies and images.
    pub digest: u64,
    /// What has happened.
    pub counts: Counts,
}

/// Something was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The history's name.
    pub seed: u64,
    /// What was broken.
    pub what: String,
    /// What had happened: the last lines.
    pub lines: Vec<String>,
}

/// Play the history of a seed.
pub fn play(seed: u64, options: Options) -> Result<Outcome, Box<Violation>> {
    caught(|| play_through(seed, options, Trace::default())).map_err(|_| {
        // The same again, told line by line.
        let trace = Trace::last(LINES);
        let again = caught(|| play_through(seed, options, trace.clone()));
        let what = again.err().unwrap_or_else(|| "what was wrong at first is right when played again".into());
        Box::new(Violation { seed, what, lines: trace.lines() })
    })
}

/// Play the history of a seed, and tell all of it: its lines, and how it ended.
pub fn told(seed: u64, options: Options) -> (Vec<String>, Result<Outcome, String>) {
    let trace = Trace::last(usize::MAX);
    let end = caught(|| play_through(seed, options, trace.clone()));
    (trace.lines(), end)
}

/// Play the history of a seed. Panics where something is wrong.
fn play_through(seed: u64, options: Options, trace: Trace) -> Outcome {
    let faults = options.faults.unwrap_or_else(|| Faults::all().some(&mut Rng::new(seed ^ 0x6661_756c)));
    let plan = Plan { planted: options.planted, ..Plan::of(seed, faults) };
    let script = Script::of(&plan, faults);
    let mut world = World::traced(plan, trace);
    for life in &script.lives {
        live(&mut world, life);
    }
    world.settle();
    world.stop();
    world.read_everything();
    world.drain();
    world.host().digest_images();
    Outcome { digest: world.digest().value(), counts: world.counts() }
}

fn live(world: &mut World, life: &Life) {
    let mut change = life.change;
    if life.early {
        world.count(Fault::Early);
    }
    for act in &life.acts {
        world.act(act);
    }
    let kept = match life.end {
        End::Cut => {
            world.cut_off();
            None
        }
        End::Kill => {
            world.kill_off();
            None
        }
        End::KillAlone => {
            world.kill_alone();
            None
        }
        End::Stop => {
            // A volume of which the cache holds dirty blocks cannot change.
            if change.is_some() {
                world.drain();
                change = change.filter(|_| world.host().engine().lost().next().is_none());
                change = change.filter(|_| world.failed().is_empty());
            }
            world.stop_cleanly()
        }
    };
    // Where a backing has failed the last flush the cache still holds what was overtaken there.
    change = change.filter(|_| !world.holds_dirty());
    if let Some((harm, at)) = life.harm {
        world.harm(harm, at);
    }
    if let Some(change) = change {
        world.change(change);
    }
    world.start();
    if life.harm.is_none() && change.is_none() {
        world.check_kept(kept);
    }
    if life.look {
        world.read_everything();
    }
}

impl World {
    /// Let this happen.
    pub fn act(&mut self, act: &Act) {
        self.tell(|| format!("{act:?}"));
        match *act {
            Act::Ask(ask) => self.ask(ask),
            Act::Flush { disk } if !self.is_served(disk) => {}
            Act::Flush { disk } => self.submit(ask::flush(VolumeId(disk as u16))),
            Act::Steps(count) => (0..count).for_each(|_| _ = self.step()),
            Act::Settle => self.settle(),
            Act::Tick => self.tick(),
            Act::Quota { tenant, blocks } => {
                self.count(Fault::Change);
                self.set_quota(tenant, blocks);
            }
            Act::Most { tenant, blocks } => {
                self.count(Fault::Change);
                self.set_most(tenant, blocks);
            }
            Act::Caching { tenant, caching } => {
                self.count(Fault::Change);
                self.set_caching(tenant, caching);
            }
            Act::Limit { tenant, blocks } => {
                self.count(Fault::Change);
                self.set_write_limit(tenant, blocks);
            }
            Act::CommonLimit { blocks } => {
                self.count(Fault::Change);
                self.set_common_limit(blocks);
            }
            Act::Doors { tenant, eighths } => {
                self.count(Fault::Change);
                self.set_doors(tenant, eighths);
            }
            Act::Lending(lending) => {
                self.count(Fault::Change);
                self.set_lending(lending);
            }
            Act::Watermarks(watermarks) => {
                self.count(Fault::Change);
                self.set_watermarks(watermarks);
            }
            Act::Mover { tenant, moves } => {
                self.count(Fault::Change);
                self.set_mover(tenant, moves);
            }
            Act::MoveIn => self.move_in(),
            Act::Sharing(sharing) => {
                self.count(Fault::Change);
                self.set_sharing(sharing);
            }
            Act::Join { tenant, bytes, ordered } => {
                self.count(Fault::Change);
                self.join(tenant, bytes, ordered);
            }
            Act::Leave { disk } => {
                self.count(Fault::Change);
                self.leave(disk);
            }
            Act::Grow { disk, .. } if !self.is_served(disk) => {}
            Act::Grow { disk, blocks } => {
                self.count(Fault::Change);
                self.grow(disk, blocks);
            }
            Act::Policy { tenant, policy } => {
                self.count(Fault::Change);
                self.set_write_policy(tenant, policy);
            }
            _ => self.hurt(act),
        }
    }

    fn ask(&mut self, Ask { kind, disk, at, blocks, inset, fua }: Ask) {
        if !self.is_served(disk) {
            return;
        }
        // One that grows may not have its new size yet.
        let bytes = self.host().engine().volume_bytes(VolumeId(disk as u16));
        let block = self.plan().block_bytes();
        let first = (bytes.div_ceil(block) * at) >> 32;
        let start = (first * block + inset.0 * SECTOR_BYTES).min(bytes - SECTOR_BYTES);
        let end = ((first + blocks) * block - inset.1 * SECTOR_BYTES).min(bytes).max(start + SECTOR_BYTES);
        self.submit(Request { fua, ..ask::of(kind, VolumeId(disk as u16), start, end - start) });
    }

    /// A device misbehaves.
    fn hurt(&mut self, act: &Act) {
        if let Act::Errors { of: Part::Backing(disk), .. } | Act::Latency { of: Part::Backing(disk), .. } =
            *act
            && disk >= self.plan().disks.len()
        {
            // It could not come.
            return;
        }
        let layout = self.layout();
        let data = layout.data_offset()..layout.device_bytes();
        match *act {
            Act::Errors { of, kind, count } => self.fail(of, kind, count),
            Act::Rot { at } => {
                self.spoil(Fault::Rot);
                rot(self.host().cache(), data.start, at);
            }
            Act::Lose => {
                self.spoil(Fault::Lost);
                self.host().cache().strike_next(FaultKind::Write, data, Strike::Lose);
            }
            Act::Misdirect { at } => {
                self.spoil(Fault::Misdirected);
                // The longest write ends before the device does.
                let slot = (u64::from(layout.slots() - REACH) * (at >> 32)) >> 32;
                let strike = Strike::Misdirect(layout.slot_offset(slot as u32));
                self.host().cache().strike_next(FaultKind::Write, data, strike);
            }
            Act::Latency { of, ticks } => {
                self.count(Fault::Storm);
                self.device(of).set_latency((1, ticks));
            }
            Act::Gone { power } => self.lose_cache(power),
            Act::Back => self.back(),
            _ => unreachable!("{act:?} hurts nobody"),
        }
    }

    fn spoil(&mut self, fault: Fault) {
        self.count(fault);
        self.excuse_data();
    }

    fn fail(&mut self, of: Part, kind: FaultKind, count: u32) {
        let layout = self.layout();
        let bytes = match of {
            Part::Metadata => {
                self.count(Fault::MetadataErrors);
                self.excuse_metadata();
                0..layout.data_offset()
            }
            Part::Data => {
                self.count(Fault::CacheErrors);
                self.excuse_cache();
                if kind == FaultKind::Read && count > FEW {
                    self.excuse_order();
                }
                layout.data_offset()..layout.device_bytes()
            }
            Part::Backing(_) => {
                self.count(Fault::BackingErrors);
                self.excuse_backings();
                0..u64::MAX
            }
        };
        let device = self.device(of);
        (0..count).for_each(|_| device.strike_next(kind, bytes.clone(), Strike::Fail));
    }

    fn device(&mut self, of: Part) -> &mut SimDevice {
        match of {
            Part::Data | Part::Metadata => self.host().cache(),
            Part::Backing(disk) => self.host().backing(VolumeId(disk as u16)),
        }
    }
}

/// Reads that may fail in a row before any dirty block counts as lost.
const FEW: u32 = 3;

/// Slots that one write may cover.
const REACH: u32 = 128;

/// Flip a bit in what lies behind `start`.
fn rot(device: &mut SimDevice, start: u64, at: u64) {
    let pages: Vec<u64> =
        device.content().pages().map(|(page, _)| page * 4096).filter(|&page| page >= start).collect();
    let Some(&page) = pages.get((at >> 32) as usize % pages.len().max(1)) else { return };
    let offset = page + at % 4096;
    let mut byte = [0];
    device.content().read(offset, &mut byte);
    device.content_mut().write(offset, &[byte[0] ^ 1 << ((at >> 12) % 8)]);
}
