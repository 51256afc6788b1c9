//! An engine whose cache survives, under power cuts at any moment: histories by seed, held against what flushes promise, and against the
//! backings. And the proof that this can fail: bugs are planted, and each is found.

mod directed;
mod known_answers;
mod modes;
mod rig;

use larder_engine::format::Shape;
use larder_engine::{Planted, Request, RequestKind, SECTOR_BYTES, VolumeId, WritePolicy};
use larder_io::sim::{FaultModel, Rng, ask};
use rig::{CrashRig, Plan};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Slots that the tenants may use; the others spread them over several pages.
const SLOTS: u32 = 700;

fn plan(seed: u64, planted: Option<Planted>) -> Plan {
    let mut rng = Rng::new(seed ^ 0x706c_616e);
    let block_bytes = [4096, 8192][rng.below(2) as usize];
    let sector_bytes = [512, 512, 4096][rng.below(3) as usize];
    let shape = Shape {
        block_bytes,
        sector_bytes,
        slots: SLOTS,
        records: 32 + rng.below(9),
        volume_table_bytes: 4096,
    };
    let policy = |rng: &mut Rng| POLICIES[rng.below(POLICIES.len() as u64) as usize];
    let tenants: Vec<_> =
        (0..1 + rng.below(2)).map(|_| (2 + rng.below(12) as u32, policy(&mut rng))).collect();
    let volume = |rng: &mut Rng| {
        let tail = rng.below(2) * rng.below(8) * SECTOR_BYTES;
        (rng.below(tenants.len() as u64) as usize, (4 + rng.below(16)) * u64::from(block_bytes) + tail)
    };
    let volumes = (0..1 + rng.below(2)).map(|_| volume(&mut rng)).collect();
    let region_blocks = 1 << rng.below(4);
    let (backing, cache) = faults(&mut rng);
    Plan { shape, region_blocks, cache_align: sector_bytes, tenants, volumes, seed, backing, cache, planted }
}

/// Half of the histories are on sound devices. An error of the cache device in metadata would end the cache for good, so only its reads
/// fail here.
fn faults(rng: &mut Rng) -> (FaultModel, FaultModel) {
    let sound = FaultModel::default();
    let failing = FaultModel { write_error: 0.05, flush_error: 0.1, discard_error: 0.1, ..sound.clone() };
    match rng.below(8) {
        0..=3 => (sound.clone(), sound),
        4 => (FaultModel { read_error: 0.1, ..failing }, FaultModel { read_error: 0.1, ..sound }),
        5 => (sound.clone(), FaultModel { read_error: 0.2, ..sound }),
        _ => (failing, sound),
    }
}

const POLICIES: [WritePolicy; 5] = [
    WritePolicy::ReadOnly,
    WritePolicy::WriteThrough,
    WritePolicy::WriteThrough,
    WritePolicy::WriteBack,
    WritePolicy::WriteBack,
];

/// One history.
struct Run {
    rig: CrashRig,
    rng: Rng,
    plan: Plan,
}

impl Run {
    fn new(seed: u64, planted: Option<Planted>) -> Self {
        let plan = plan(seed, planted);
        Self { rig: CrashRig::new(plan.clone()), rng: Rng::new(seed), plan }
    }

    fn play(&mut self) {
        for _ in 0..2 + self.rng.below(3) {
            for _ in 0..self.rng.below(80) {
                self.act();
            }
            match self.rng.below(8) {
                0 => self.rig.stop(),
                1..=2 => self.rig.kill(),
                _ => self.rig.cut(),
            }
            if self.rng.chance(0.7) {
                self.rig.read_everything();
            }
        }
        self.rig.settle();
        self.rig.stop();
        self.rig.read_everything();
    }

    fn act(&mut self) {
        match self.rng.below(40) {
            0..=9 => self.ask(RequestKind::Read),
            10..=18 => self.ask(RequestKind::Write),
            19..=20 => self.flush(),
            21 => self.ask(RequestKind::Discard),
            22 => self.ask(RequestKind::WriteZeroes { no_hole: true }),
            23..=24 => self.rig.tick(),
            25 => self.rig.settle(),
            26 => self.change(),
            _ => (0..1 + self.rng.below(6)).for_each(|_| {
                self.rig.step();
            }),
        }
    }

    fn change(&mut self) {
        let tenant = self.rng.below(self.plan.tenants.len() as u64) as usize;
        match self.rng.below(3) {
            0 => self.rig.set_quota(tenant, 2 + self.rng.below(12) as u32),
            _ => {
                let policy = POLICIES[self.rng.below(POLICIES.len() as u64) as usize];
                self.rig.set_write_policy(tenant, policy);
            }
        }
    }

    fn volume(&mut self) -> (VolumeId, u64) {
        let volume = self.rng.below(self.plan.volumes.len() as u64);
        (VolumeId(volume as u16), self.plan.volumes[volume as usize].1)
    }

    fn flush(&mut self) {
        let (volume, _) = self.volume();
        self.rig.submit(ask::flush(volume));
    }

    /// Whole blocks for the most part, near the start of the volume more often than not.
    fn ask(&mut self, kind: RequestKind) {
        let (volume, bytes) = self.volume();
        let block = u64::from(self.plan.shape.block_bytes);
        let blocks = bytes.div_ceil(block);
        let first = self.rng.below(blocks).min(self.rng.below(blocks));
        let (start, end) = (first * block, (first + 1 + self.rng.below(3)) * block);
        let (start, end) = match self.rng.below(4) {
            0 => (start + self.rng.below(4) * SECTOR_BYTES, end - self.rng.below(4) * SECTOR_BYTES),
            1 if self.rng.chance(0.5) => {
                let first = start + self.rng.below(8) * SECTOR_BYTES;
                (first, first + (1 + self.rng.below(3)) * SECTOR_BYTES)
            }
            _ => (start, end),
        };
        let (start, end) = (start.min(bytes - SECTOR_BYTES), end.min(bytes));
        let fua = self.rng.below(6) == 0;
        self.rig.submit(Request { fua, ..ask::of(kind, volume, start, end - start) });
    }
}

#[test]
fn what_was_flushed_survives_and_stale_is_never_served() {
    let seeds = std::env::var("CRASH_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3000);
    let first = std::env::var("CRASH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let failing: Vec<u64> = (first..first + seeds)
        .filter(|&seed| catch_unwind(AssertUnwindSafe(|| Run::new(seed, None).play())).is_err())
        .collect();
    assert!(failing.is_empty(), "seeds {failing:?} fail: replay one with CRASH_SEED=… CRASH_SEEDS=1");
}

/// The first seed that finds a bug.
fn found_by(bug: Planted) -> Option<u64> {
    (0..5000).find(|&seed| catch_unwind(AssertUnwindSafe(|| Run::new(seed, Some(bug)).play())).is_err())
}

#[test]
fn planted_bugs_are_found() {
    let bugs = [
        Planted::MarkSkipped,
        Planted::MarkNotAwaited,
        Planted::SlotBeforeFree,
        Planted::MapBeforeData,
        Planted::MapBeforeBacking,
        Planted::UnmarkBeforeBacking,
        Planted::UnmarkKeepsStale,
        Planted::FlushBeforeMap,
        Planted::FuaIgnored,
        Planted::CleanBeforeFlush,
        Planted::CleanBeforeMap,
        Planted::DirtyEvicted,
        Planted::FreeBeforeFlush,
    ];
    let found = bugs.map(|bug| (bug, found_by(bug)));
    println!("bug, and the first seed that finds it: {found:?}");
    assert!(found.iter().all(|(_, seed)| seed.is_some()), "{found:?}");
}
