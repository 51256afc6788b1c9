//! A start: recovery, the offline check, and what an operator does where the cache is refused.

use super::swap::dirty_in;
use super::{World, engine_config};
use crate::plan::Disk;
use larder_engine::format::{
    Finding, RecoverError, Recovered, SUPERBLOCK_BYTES, Severity, SlotState, Uuid, Volume, check, recover,
    recover_after,
};
use larder_engine::{Engine, OpenError, Planted, TenantId};
use larder_io::sim::{Rng, SharedSlots, SimDevice};

impl World {
    /// What is on the cache device now.
    pub fn recovered(&mut self) -> Recovered {
        recover(self.host.cache()).expect("the cache is whole")
    }

    /// Start an engine on what is there.
    pub(crate) fn start(&mut self) {
        // Those that had left are there again.
        self.leaving.clear();
        self.held.clear();
        let recovered = self.recover_or_format();
        let (engine, pool) = self.open_or_mend(recovered);
        self.before = self.metadata();
        self.excuses.data_failed = false;
        self.host.cache().forgive();
        self.truth = None;
        self.host.restart(engine, pool);
        self.check();
    }

    /// Data of the last commit are not there, and may be so because they were damaged: nobody can tell that from a power cut, and something that guests were told is
    /// durable may be gone.
    pub(super) fn may_be_damage(&self, recovered: &Recovered) -> bool {
        let gone = |finding: &Finding| matches!(finding, Finding::NotArrived { .. });
        self.excuses.spoiled && recovered.findings().iter().any(gone)
    }

    /// Everything comes from somewhere else.
    pub(super) fn begin_anew(&mut self) {
        self.tell(|| "something may be lost: all volumes are written anew".into());
        (0..self.plan.disks.len()).for_each(|disk| self.rewritten(disk));
    }

    fn recover_or_format(&mut self) -> Recovered {
        let loss = self.loss.take();
        let found = match &loss {
            Some(loss) => recover_after(self.host.cache(), loss.mark),
            None => recover_with(self.host.cache(), self.plan.planted),
        };
        match found {
            Ok(recovered) if self.may_be_damage(&recovered) => self.begin_anew(),
            Ok(recovered) => {
                self.tell(|| format!("  recovered: {:?}, {:?}", dirty_in(&recovered), recovered.findings()));
                self.check_findings(&recovered, loss.is_some());
                self.check_truth(&recovered);
                let Some(loss) = loss else { return recovered };
                // What was written down may be lost: an operator has to see to a cache that says that it needs a check.
                if recovered.superblock().needs_check && !self.excuses.spoiled && self.rng.below(4) == 0 {
                    self.tell(|| "nobody knows why".into());
                    return recovered;
                }
                if let Some(mended) = self.again(&loss) {
                    self.counts.returned_at_start += 1;
                    self.counts.back += mended.blocks().count() as u64;
                    return mended;
                }
                if !loss.failed.is_empty() {
                    assert!(self.excuses.harmed, "what no backing has is given up without a reason");
                    self.begin_anew();
                }
            }
            Err(error) => {
                assert!(self.excuses.harmed, "a cache without damage is refused: {error}");
                if !self.are_all_through() {
                    self.begin_anew();
                }
            }
        }
        self.tell(|| "a new cache is made".into());
        self.format();
        self.recovered()
    }

    /// Nothing is wrong that the faults have not put there.
    fn check_findings(&mut self, recovered: &Recovered, knows: bool) {
        self.check_superblocks(recovered);
        if self.excuses.harmed {
            return;
        }
        // By the offline check, too, every block that would be served is what was mapped.
        let mut wrong = check(self.host.cache(), true).expect("the cache is whole");
        if self.excuses.spoiled && knows {
            // Who does not know what was durable doubts more.
            wrong.clear();
        }
        if self.excuses.spoiled {
            wrong.retain(|finding| !matches!(finding, Finding::Data { .. }));
        }
        wrong.extend_from_slice(recovered.findings());
        if self.excuses.metadata_failed {
            wrong.retain(|finding| !matches!(finding, Finding::NeedsCheck));
        }
        // A copy that was being written may be torn: nothing is lost.
        let worst = wrong.iter().map(Finding::severity).max();
        assert!(worst <= Some(Severity::Note), "{wrong:?}");
    }

    /// Damage that is not said to cost dirty blocks costs none.
    fn check_truth(&self, recovered: &Recovered) {
        if let Some(truth) = &self.truth
            && !is_lossy(recovered)
        {
            let found = dirty_in(recovered);
            assert_eq!(found, *truth, "dirty blocks are not as they were: {:?}", recovered.findings());
        }
    }

    /// A superblock that nobody has written as it is was torn or damaged, and is known for that.
    pub(super) fn check_superblocks(&mut self, recovered: &Recovered) {
        for (copy, first) in (0u8..).zip(&self.superblocks) {
            let offset = u64::from(copy) * SUPERBLOCK_BYTES as u64;
            let mut bytes = vec![0; SUPERBLOCK_BYTES];
            let device = self.host.cache();
            device.content().read(offset, &mut bytes);
            let written = device.watched().iter().filter(|(at, _)| *at == offset).map(|(_, bytes)| bytes);
            let whole = written.chain([first]).any(|written| *written == bytes);
            let of_copy =
                |finding: &Finding| matches!(finding, Finding::Superblock { copy: of, .. } if *of == copy);
            let found = recovered.findings().iter().any(of_copy);
            assert!(whole || found, "superblock {copy} is as nobody has written it, and is taken for whole");
        }
    }

    /// An engine that goes on with the cache: at once, or when an operator has mended it.
    fn open_or_mend(&mut self, mut recovered: Recovered) -> (Engine, SharedSlots) {
        for _ in 0..2 {
            let pool = self.free_slots(&recovered);
            let (engine, opened) = self.engine(&recovered, pool.clone());
            match opened {
                Ok(()) => return (engine, pool),
                Err(OpenError::NeedsCheck) => {
                    assert!(self.excuses.metadata_failed, "a cache needs a check without a reason");
                }
                Err(OpenError::Recover(RecoverError::MayLoseDirty(_) | RecoverError::RepairFirst(_))) => {
                    assert!(self.excuses.harmed, "a cache without damage is refused: {opened:?}");
                }
                Err(error) => panic!("the cache cannot be opened: {error}"),
            }
            self.mend(&recovered);
            recovered = self.recovered();
        }
        panic!("a mended cache is refused");
    }

    pub(super) fn free_slots(&mut self, recovered: &Recovered) -> SharedSlots {
        let free = recovered.slots().filter(|(_, state)| *state == SlotState::Free).map(|(slot, _)| slot);
        let mut free: Vec<u32> = free.collect();
        for at in (1..free.len()).rev() {
            free.swap(at, self.rng.below(at as u64 + 1) as usize);
        }
        if self.plan.lending {
            // So that they are wanted.
            free.truncate(8 + self.rng.below(40) as usize);
        }
        let pool = SharedSlots::of(free, self.plan.shape.slots);
        // A few at a time in half of the histories: so one that came back too early is soon in use again.
        let mut rng = Rng::new(self.plan.seed ^ 0x736c_6f74);
        if rng.below(2) == 0 {
            pool.set_take_max(1 + rng.below(4) as usize);
        }
        pool
    }

    /// An engine that goes on with the cache, if it can.
    pub fn engine(&self, recovered: &Recovered, pool: SharedSlots) -> (Engine, Result<(), OpenError>) {
        let mut engine = Engine::new(engine_config(&self.plan), Box::new(pool))
            .with_hash_seed(self.plan.seed)
            .with_spare_slots(self.plan.spare_slots);
        plant(&mut engine, self.plan.planted);
        engine.set_lending(self.plan.lending);
        engine.set_sharing(self.plan.sharing);
        engine.set_watermarks(self.plan.watermarks);
        engine.set_stream_bypass(self.plan.lending.then_some(2 * self.plan.block_bytes()));
        for tenant in &self.plan.tenants {
            let id = engine.add_tenant(tenant.quota, tenant.policy);
            engine.set_bounds(id, 0, tenant.most);
            engine.set_caching(id, tenant.caching);
            engine.set_dirty_limits(id, tenant.dirty);
            engine.set_mover(id, self.plan.lending && (self.plan.seed ^ u64::from(id.0)) & 2 == 0);
        }
        for disk in &self.plan.disks {
            let volume = engine.add_volume(TenantId(disk.tenant as u16), disk.bytes);
            engine.set_ordered(volume, disk.ordered);
        }
        let opened = engine.open_cache(recovered, self.volumes());
        (engine, opened)
    }

    /// The disks as the cache knows them.
    pub(super) fn volumes(&self) -> Vec<Volume> {
        let here = (0u8..).zip(&self.plan.disks).filter(|(number, _)| !self.is_gone(usize::from(*number)));
        here.map(|(number, disk)| Self::known(number, disk)).collect()
    }

    /// One of them.
    pub(super) fn known(number: u8, disk: &Disk) -> Volume {
        Volume {
            id: 0,
            identity: format!("disk {number} [{}]", disk.identity),
            name: format!("volume {number}"),
            uuid: Uuid([number; 16]),
            bytes: disk.bytes,
        }
    }
}

/// Dirty blocks may be lost, or out of date.
pub(super) fn is_lossy(recovered: &Recovered) -> bool {
    let of =
        |finding: &Finding| !matches!(finding, Finding::NeedsCheck) && finding.severity() == Severity::Dirty;
    recovered.findings().iter().any(of)
}

#[cfg(feature = "planted")]
fn recover_with(device: &mut SimDevice, bug: Option<Planted>) -> Result<Recovered, RecoverError> {
    larder_engine::recover_planted(device, bug)
}

/// Without the feature there are no bugs to plant.
#[cfg(not(feature = "planted"))]
fn recover_with(device: &mut SimDevice, _: Option<Planted>) -> Result<Recovered, RecoverError> {
    recover(device)
}

#[cfg(feature = "planted")]
fn plant(engine: &mut Engine, bug: Option<Planted>) {
    bug.into_iter().for_each(|bug| engine.plant(bug));
}

#[cfg(not(feature = "planted"))]
fn plant(_: &mut Engine, _: Option<Planted>) {}
