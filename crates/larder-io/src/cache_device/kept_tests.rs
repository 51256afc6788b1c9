//! Caches that are kept, on real files: what is gone on with, made anew or refused, and that checking writes nothing.

use super::super::{CacheDevice, CacheError, CachePlan, CacheSpec};
use larder_engine::SessionMark;
use larder_engine::format::{
    BlockId, Entry, Epoch, Harm, Layout, Medium, MediumError, MediumMut, Recovered, Superblock, Uuid, Volume,
    VolumeTable, check, recover,
};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;

/// A place for a cache of 256 blocks.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir_in(".").unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("cache.img")
    }

    fn spec(&self, size: u64) -> CacheSpec {
        CacheSpec { path: self.path(), size, block_bytes: 4096 }
    }

    fn check(&self, size: u64) -> Result<CachePlan, CacheError> {
        let before = fs::read(self.path()).ok();
        let plan = CachePlan::check_kept(self.spec(size));
        assert!(fs::read(self.path()).ok() == before, "checking writes nothing");
        plan
    }

    fn start(&self, size: u64) -> (CacheDevice, Recovered) {
        let mut cache = self.check(size).unwrap().format().unwrap();
        let recovered = cache.take_recovered().expect("a cache that is kept");
        assert!(cache.is_kept() && cache.take_recovered().is_none());
        (cache, *recovered)
    }

    fn medium(&self) -> OnFile {
        OnFile(File::options().read(true).write(true).open(self.path()).unwrap())
    }

    /// A cache that was stopped cleanly with some blocks, dirty or clean.
    fn with_blocks(blocks: u32, dirty: bool) -> Self {
        let place = Self::new();
        let (cache, recovered) = place.start(MIB);
        drop(cache);
        write(&mut place.medium(), &recovered, blocks, dirty);
        place
    }

    fn recovered(&self) -> Recovered {
        recover(&mut self.medium()).unwrap()
    }
}

/// A session that maps the first blocks of a volume, which are zeroes, in two commits.
fn write(medium: &mut OnFile, recovered: &Recovered, blocks: u32, dirty: bool) {
    let mut session = recovered.open().unwrap();
    let (layout, salt) = (session.superblock.layout, session.superblock.salt());
    let volume =
        Volume { id: 0, name: "v".into(), uuid: Uuid([1; 16]), bytes: 8 * MIB, identity: "v".into() };
    let table = VolumeTable { generation: 1, volumes: vec![volume] };
    medium.write(layout.volume_table_offset(1), &table.encode(&layout, salt).unwrap()).unwrap();
    let superblock =
        Superblock { volumes_generation: 1, may_hold_dirty: dirty, ..session.superblock.clone() };
    medium.write(superblock.offset(), &superblock.encode()).unwrap();
    for slots in [0..blocks / 2, blocks / 2..blocks] {
        for slot in slots {
            let block = BlockId { volume: 0, block: slot.into() };
            let crc = salt.block(block, &[0; 4096]);
            session
                .journal
                .push(Entry::Map { block, dirty, epoch: Epoch::NONE, slot, crc, old: None })
                .unwrap();
        }
        for piece in session.journal.seal() {
            medium.write(piece.offset, &piece.bytes).unwrap();
        }
        session.journal.flushed(session.journal.sealed());
    }
}

struct OnFile(File);

impl Medium for OnFile {
    fn bytes(&self) -> u64 {
        self.0.metadata().unwrap().len()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.0.read_exact_at(into, offset).map_err(|e| MediumError { offset, reason: e.to_string() })
    }
}

impl MediumMut for OnFile {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.0.write_all_at(bytes, offset).map_err(|e| MediumError { offset, reason: e.to_string() })
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        Ok(())
    }
}

#[test]
fn a_new_file_has_its_metadata_beside_its_data() {
    let place = Place::new();
    assert_eq!((place.check(MIB).unwrap().blocks(), place.path().exists()), (256, false));
    let (cache, recovered) = place.start(MIB);
    assert_eq!((cache.blocks(), cache.data_bytes(), recovered.blocks().count()), (256, MIB, 0));
    let layout = recovered.superblock().layout;
    // A few slots are to spare.
    assert_eq!((cache.slots(), layout.slots()), (272, 272));
    assert_eq!(layout.device_bytes(), fs::metadata(place.path()).unwrap().len());
    assert_eq!(layout.sector_bytes(), cache.device().align() as usize);
    drop(cache);
    assert_eq!(check(&mut place.medium(), true).unwrap(), []);
    let (_, again) = place.start(MIB);
    assert_eq!(again.superblock().uuid, recovered.superblock().uuid, "it is the same cache");
}

#[test]
fn a_start_goes_on_with_what_is_there() {
    let place = Place::with_blocks(9, false);
    let plan = place.check(MIB).unwrap();
    assert_eq!((plan.blocks(), plan.recovered().map(|found| found.blocks().count())), (256, Some(9)));
    drop(plan);
    let before = fs::read(place.path()).unwrap();
    assert_eq!(place.start(MIB).1.blocks().count(), 9);
    assert!(fs::read(place.path()).unwrap() == before, "the engine writes first");
}

#[test]
fn a_device_of_just_the_size_holds_its_metadata_within_and_is_found_again() {
    let place = Place::new();
    File::create(place.path()).unwrap().set_len(MIB).unwrap();
    let (cache, made) = place.start(MIB);
    assert!((200..256).contains(&cache.blocks()), "{}", cache.blocks());
    assert_eq!(cache.device().bytes(), MIB);
    drop(cache);
    assert_eq!(place.start(MIB).1.superblock().uuid, made.superblock().uuid);
}

#[test]
fn another_size_or_block_is_made_anew_and_the_file_grows() {
    for (size, block_bytes, blocks) in [(2 * MIB, 4096, 512), (MIB / 2, 4096, 128), (MIB, 8192, 128)] {
        let place = Place::with_blocks(9, false);
        let old = place.recovered().superblock().uuid;
        let spec = CacheSpec { block_bytes, ..place.spec(size) };
        let plan = CachePlan::check_kept(spec.clone()).unwrap();
        assert_eq!((plan.blocks(), plan.recovered().is_none()), (blocks, true));
        let mut cache = plan.format().unwrap();
        let recovered = cache.take_recovered().unwrap();
        assert_eq!((cache.blocks(), recovered.blocks().count()), (blocks, 0));
        assert_ne!(recovered.superblock().uuid, old);
        assert!(cache.device().bytes() >= recovered.superblock().layout.device_bytes());
        drop(cache);
        assert!(CachePlan::check_kept(spec).unwrap().recovered().is_some(), "it is kept from then on");
    }
}

#[test]
fn a_cache_that_kept_nothing_is_made_anew_and_back() {
    let place = Place::new();
    drop(CachePlan::check(place.spec(MIB)).unwrap().format().unwrap());
    let (cache, first) = place.start(MIB);
    assert_eq!(cache.blocks(), 256, "the file has grown");
    drop(cache);
    let cold = CachePlan::check(place.spec(MIB)).unwrap().format().unwrap();
    assert!(!cold.is_kept());
    drop(cold);
    let header = fs::read(place.path()).unwrap();
    place.medium().write(0, &[0; 4096]).unwrap();
    assert!(place.check(MIB).unwrap().recovered().is_none(), "nor if the header is wiped");
    place.medium().write(0, &header[..4096]).unwrap();
    let (_, second) = place.start(MIB);
    assert_ne!(second.superblock().uuid, first.superblock().uuid, "nothing of the first one is found again");
}

/// What a guest has written into the first slot of a cache that keeps nothing is where the other superblock would be.
#[test]
fn a_forged_superblock_in_a_slot_counts_for_nothing() {
    let place = Place::new();
    drop(CachePlan::check(place.spec(MIB)).unwrap().format().unwrap());
    let forged = Superblock::new(Uuid([6; 16]), Layout::for_slots(4096, 512, 100).unwrap());
    place.medium().write(4096, &forged.encode()).unwrap();
    let (_, recovered) = place.start(MIB);
    assert_eq!(recovered.superblock().layout.slots(), 272);
    assert_ne!(recovered.superblock().uuid, forged.uuid);
}

#[test]
fn what_an_earlier_version_made_without_slots_to_spare_is_gone_on_with() {
    let place = Place::new();
    let layout = Layout::for_slots(4096, 4096, 256).unwrap();
    File::create_new(place.path()).unwrap().set_len(layout.device_bytes()).unwrap();
    larder_engine::format::format(&mut place.medium(), &Superblock::new(Uuid([6; 16]), layout)).unwrap();
    write(&mut place.medium(), &place.recovered(), 9, false);
    let (cache, recovered) = place.start(MIB);
    assert_eq!((cache.blocks(), cache.slots(), recovered.blocks().count()), (256, 256, 9));
    drop(cache);
    // Not so one of another size.
    assert_eq!(place.start(MIB / 2).1.blocks().count(), 0);
}

#[test]
fn dirty_blocks_are_never_given_up() {
    let place = Place::with_blocks(5, true);
    let other_size = CacheSpec { size: 2 * MIB, ..place.spec(MIB) };
    let plans = [CachePlan::check_kept(other_size), CachePlan::check(place.spec(MIB))];
    for refused in plans {
        let error = refused.unwrap_err();
        assert!(matches!(error, CacheError::Dirty { blocks: 5, .. }), "{error}");
        assert!(error.remedy().contains("larder cache writeback "), "{}", error.remedy());
    }
    let (_, recovered) = place.start(MIB);
    assert_eq!(
        recovered.blocks().filter(|(_, contents)| contents.dirty).count(),
        5,
        "as configured it goes on"
    );
}

#[test]
fn a_cache_that_needs_a_check_is_refused_with_the_commands() {
    let place = Place::with_blocks(5, false);
    let last = place.recovered().superblock().clone();
    let told = Superblock { needs_check: true, ..last.successor() };
    place.medium().write(told.offset(), &told.encode()).unwrap();
    for refused in [place.check(MIB), CachePlan::check(place.spec(MIB))] {
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("needs a check"), "{error}");
        let remedy = error.remedy();
        let commands =
            ["check", "repair"].map(|verb| format!("larder cache {verb} {}", place.path().display()));
        assert!(commands.iter().all(|command| remedy.contains(command)), "{remedy}");
    }
}

#[test]
fn what_is_over_a_superblock_is_left_alone() {
    let place = Place::with_blocks(5, false);
    place.medium().write(0, &[7; 4096]).unwrap();
    let error = place.check(MIB).unwrap_err();
    assert!(matches!(error, CacheError::Overwritten { .. }), "{error}");
    place.medium().write(4096, &[7; 4096]).unwrap();
    assert!(matches!(place.check(MIB).unwrap_err(), CacheError::Foreign { .. }));
}

#[test]
fn two_broken_superblocks_are_no_cache_to_start_with() {
    let place = Place::with_blocks(5, false);
    for offset in [3000, 7096] {
        place.medium().write(offset, &[7]).unwrap();
    }
    let error = place.check(MIB).unwrap_err();
    assert!(matches!(error, CacheError::NoSuperblock { .. }), "{error}");
    for part in ["cache check", "cache restore --force DUMP"] {
        assert!(error.remedy().contains(part), "{part}: {}", error.remedy());
    }
}

/// A record that is lost costs its clean blocks, and a repair that nobody has to ask for.
#[test]
fn lost_metadata_of_clean_blocks_is_repaired_by_the_start() {
    let place = Place::with_blocks(9, false);
    Harm::Record(1).inflict(&mut place.medium()).unwrap();
    assert!(place.recovered().open().is_err());
    drop(place.check(MIB).unwrap());
    let (cache, recovered) = place.start(MIB);
    drop(cache);
    assert!(recovered.open().is_ok());
    assert_eq!(check(&mut place.medium(), false).unwrap(), []);
}

#[test]
fn lost_metadata_that_may_be_of_dirty_blocks_is_not() {
    let place = Place::with_blocks(9, true);
    Harm::Record(1).inflict(&mut place.medium()).unwrap();
    let error = place.check(MIB).unwrap_err();
    assert!(matches!(error, CacheError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("dirty blocks may be lost"), "{error}");
}

fn mark_of(place: &Place) -> SessionMark {
    let recovered = place.recovered();
    let Superblock { uuid, session, .. } = *recovered.superblock();
    SessionMark { uuid, session, record: recovered.next() - 1, part: 0 }
}

fn again(place: &Place, mark: SessionMark) -> Result<CachePlan, CacheError> {
    let before = fs::read(place.path()).ok();
    let plan = CachePlan::check_again(place.spec(MIB), mark);
    assert!(fs::read(place.path()).ok() == before, "checking writes nothing");
    plan
}

#[test]
fn a_cache_that_was_given_up_is_back_without_its_clean_blocks() {
    for (dirty, needs_check, kept) in [(true, false, 9), (false, false, 0), (true, true, 9), (false, true, 0)]
    {
        let place = Place::with_blocks(9, dirty);
        let mark = mark_of(&place);
        if needs_check {
            let told = Superblock { needs_check: true, ..place.recovered().superblock().successor() };
            place.medium().write(told.offset(), &told.encode()).unwrap();
        }
        let mut cache = again(&place, mark).unwrap().format().unwrap();
        let recovered = cache.take_recovered().unwrap();
        assert_eq!((recovered.blocks().count(), recovered.superblock().needs_check), (kept, false));
        drop(cache);
        assert_eq!(check(&mut place.medium(), false).unwrap(), []);
        assert_eq!(place.check(MIB).unwrap().recovered().map(|found| found.blocks().count()), Some(kept));
        // Somebody has repaired it since: that is a later session.
        assert!(again(&place, mark).is_ok());
    }
}

/// The device took no superblock that says that it was given up, and what was written last is damaged: of what is known to have been durable nothing is doubted for that.
#[test]
fn damaged_data_of_a_cache_that_was_given_up_cost_no_other_block() {
    let place = Place::with_blocks(9, true);
    let mark = mark_of(&place);
    // Data are looked at where they are of the last commit alone.
    let before = place.recovered();
    let mut session = before.open().unwrap();
    let superblock = &session.superblock;
    place.medium().write(superblock.offset(), &superblock.encode()).unwrap();
    let (layout, salt) = (session.superblock.layout, session.superblock.salt());
    for slot in [20, 21] {
        let (block, epoch) = (BlockId { volume: 0, block: slot.into() }, Epoch::NONE);
        let crc = salt.block(block, &[0; 4096]);
        session.journal.push(Entry::Write { block, epoch, slot, crc, old: None }).unwrap();
    }
    for piece in session.journal.seal() {
        place.medium().write(piece.offset, &piece.bytes).unwrap();
    }
    let mark = SessionMark { record: mark.record + 1, session: session.superblock.session, ..mark };
    assert_eq!(place.recovered().blocks().count(), 11);
    place.medium().write(layout.slot_offset(20), &[9; 4096]).unwrap();
    assert_eq!(place.recovered().blocks().count(), 9, "nobody can tell it from a power cut");
    let mut cache = again(&place, mark).unwrap().format().unwrap();
    assert_eq!(cache.take_recovered().unwrap().blocks().count(), 11);
}

#[test]
fn another_cache_or_an_older_state_is_not_taken_for_it() {
    let place = Place::with_blocks(9, true);
    let mark = mark_of(&place);
    let other = again(&place, SessionMark { uuid: Uuid([7; 16]), ..mark }).unwrap_err();
    assert!(matches!(other, CacheError::Another { .. }), "{other}");
    for newer in [
        SessionMark { record: mark.record + 1, ..mark },
        SessionMark { part: 20, ..mark },
        SessionMark { session: mark.session + 1, record: 0, ..mark },
    ] {
        let older = again(&place, newer).unwrap_err();
        assert!(matches!(older, CacheError::Older { .. }), "{older}");
        assert!(older.remedy().contains("not a copy"), "{}", older.remedy());
    }
    File::create(place.path()).unwrap().set_len(4 * MIB).unwrap();
    assert!(matches!(again(&place, mark).unwrap_err(), CacheError::Another { .. }), "an empty one");
    fs::remove_file(place.path()).unwrap();
    assert!(matches!(again(&place, mark).unwrap_err(), CacheError::Open(_)));
    assert!(!place.path().exists());
}
