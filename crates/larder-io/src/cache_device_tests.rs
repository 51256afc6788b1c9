//! Cache devices on real files: what is refused, and that nothing is written then.

use super::*;
use std::path::PathBuf;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir_in(".").unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("cache.img")
    }

    fn with(content: &[u8], len: u64) -> Self {
        let place = Self::new();
        std::fs::write(place.path(), content).unwrap();
        File::options().write(true).open(place.path()).unwrap().set_len(len).unwrap();
        place
    }

    fn spec(&self, size: u64) -> CacheSpec {
        CacheSpec { path: self.path(), size, block_bytes: 4096 }
    }

    fn check(&self, size: u64) -> Result<CachePlan, CacheError> {
        CachePlan::check(self.spec(size))
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn a_new_file_is_created_whole() {
    let place = Place::new();
    let plan = place.check(MIB).unwrap();
    assert!(!place.path().exists(), "checking writes nothing");
    let cache = plan.format().unwrap();
    assert_eq!((cache.blocks(), cache.data_bytes()), (256, MIB));
    assert_eq!(std::fs::metadata(place.path()).unwrap().len(), MIB + HEADER_BYTES);
    drop(cache);
    assert_eq!(place.check(MIB).unwrap().format().unwrap().blocks(), 256, "ours is taken again");
}

#[test]
fn an_existing_file_is_used_as_far_as_it_goes() {
    assert_eq!(Place::with(b"", MIB).check(MIB).unwrap().blocks(), 255);
    assert_eq!(Place::with(b"", 4 * MIB).check(MIB).unwrap().blocks(), 256);
    let place = Place::with(b"", MIB);
    let cache = place.check(MIB).unwrap().format().unwrap();
    assert_eq!((cache.blocks(), cache.device().bytes()), (255, MIB));
}

#[test]
fn a_file_that_is_too_small_tells_both_sizes() {
    let place = Place::with(b"", MIB - 4096);
    let error = place.check(MIB).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("has 1044480 bytes, less than the configured 1048576"), "{text}");
    assert!(error.remedy().contains("at most 1044480"));
}

#[test]
fn foreign_content_is_refused_and_left_alone() {
    let mut btrfs = vec![0; 0x1_0040];
    btrfs.extend_from_slice(b"_BHRfS_M");
    for content in [b"precious".to_vec(), btrfs] {
        let place = Place::with(&content, MIB);
        let before = std::fs::read(place.path()).unwrap();
        for error in [place.check(MIB).unwrap_err(), CachePlan::check_kept(place.spec(MIB)).unwrap_err()] {
            let remedy = error.remedy();
            assert!(matches!(error, CacheError::Foreign { .. }) && remedy.contains("wipefs -a"), "{error}");
        }
        assert!(std::fs::read(place.path()).unwrap() == before);
    }
}

#[test]
fn a_second_user_is_refused() {
    let place = Place::new();
    let cache = place.check(MIB).unwrap().format().unwrap();
    let clone = cache.device().try_clone().unwrap();
    drop(cache);
    assert!(
        matches!(place.check(MIB).unwrap_err(), CacheError::InUse { .. }),
        "a reactor's handle keeps the lock"
    );
    drop(clone);
    place.check(MIB).unwrap();
}

#[test]
fn impossible_sizes_are_refused_before_anything_is_written() {
    let place = Place::new();
    assert!(matches!(place.check(4095).unwrap_err(), CacheError::BlockCount { blocks: 0, .. }));
    assert!(matches!(place.check(1 << 43).unwrap_err(), CacheError::NoRoom { .. }));
    assert!(matches!(place.check(1 << 62).unwrap_err(), CacheError::BlockCount { .. }));
    assert!(!place.path().exists());
}

#[test]
fn a_directory_that_is_missing_is_named() {
    let place = Place::new();
    let path = place.directory.path().join("absent/cache.img");
    let error = CachePlan::check(CacheSpec { path, size: MIB, block_bytes: 4096 }).unwrap_err();
    assert!(error.to_string().contains("absent does not exist"), "{error}");
}

#[test]
fn a_file_that_cannot_be_completed_is_removed() {
    let place = Place::new();
    let plan = place.check(MIB).unwrap();
    let spec = CacheSpec { block_bytes: 1 << 31, ..place.spec(MIB) };
    let stolen = CachePlan { spec, room: Room::cold(u32::MAX), ..plan };
    assert!(stolen.format().is_err());
    assert!(!place.path().exists());
}
