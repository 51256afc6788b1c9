//! Real files: locks, sizes, and what is told from what.

use crate::offline::{Content, Disk, OpenDisk, StoppedCache, StoppedError, content, new_uuid};
use crate::sys;
use larder_engine::format::*;
use std::fs::{self, File};

/// The header of a cache of format 1.
fn version_one() -> Vec<u8> {
    let step = |crc: u32| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    let mut page = vec![0; 4096];
    page[..8].copy_from_slice(b"LARDERCD");
    page[8] = 1;
    let crc = !page[..4092]
        .iter()
        .fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)));
    page[4092..].copy_from_slice(&crc.to_le_bytes());
    page
}

#[test]
fn a_cache_in_use_is_told_apart_and_looking_is_shared() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("cache");
    let in_use = |outcome: Result<StoppedCache, StoppedError>| {
        let error = outcome.unwrap_err();
        assert!(error.remedy().contains("stop the daemon"), "{error}");
        matches!(error, StoppedError::InUse { .. })
    };
    let missing = StoppedCache::open(&path).unwrap_err();
    assert!(missing.remedy().contains("larder cache format"), "{missing}");
    fs::write(&path, [0; 8192]).unwrap();
    // As a daemon holds it.
    let daemon = File::open(&path).unwrap();
    assert!(sys::try_lock(&daemon).unwrap());
    assert!(in_use(StoppedCache::open(&path)) && in_use(StoppedCache::open_to_read(&path)));
    drop(daemon);
    let (one, two) = (StoppedCache::open_to_read(&path).unwrap(), StoppedCache::open_to_read(&path).unwrap());
    assert!(in_use(StoppedCache::open(&path)));
    drop((one, two));
    let open = StoppedCache::open(&path).unwrap();
    assert!(!sys::try_lock(&File::open(&path).unwrap()).unwrap());
    assert!(matches!(StoppedCache::create(&path), Err(StoppedError::Open(_))), "it exists");
    assert_eq!(fs::read(&path).unwrap().len(), 8192);
    drop(open);
    assert!(sys::try_lock(&File::open(&path).unwrap()).unwrap());
}

/// As the kernel does with the files of a daemon that was killed.
#[test]
fn whoever_lets_go_soon_is_waited_for() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("cache");
    fs::write(&path, [0; 8192]).unwrap();
    for open in [StoppedCache::open, StoppedCache::open_to_read] {
        let daemon = File::open(&path).unwrap();
        assert!(sys::try_lock(&daemon).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                drop(daemon);
            });
            open(&path).unwrap();
        });
    }
}

#[test]
fn what_a_file_holds_is_told() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("cache");
    let layout = Layout::for_slots(4096, 512, 1000).unwrap();
    let mut cache = StoppedCache::create(&path).unwrap();
    cache.grow(layout.device_bytes()).unwrap();
    assert_eq!(
        (Medium::bytes(&cache), content(&mut cache).unwrap()),
        (layout.device_bytes(), Content::Nothing)
    );
    cache.write(layout.device_bytes() - 1, &[1]).unwrap();
    assert_eq!(content(&mut cache).unwrap(), Content::Foreign);
    let uuid = new_uuid().unwrap();
    assert_ne!(uuid, new_uuid().unwrap());
    format(&mut cache, &Superblock::new(uuid, layout)).unwrap();
    assert_eq!(content(&mut cache).unwrap(), Content::Cache);
    assert_eq!(recover(&mut cache).unwrap().superblock().uuid, uuid);
    Harm::Superblock(0).inflict(&mut cache).unwrap();
    assert_eq!(content(&mut cache).unwrap(), Content::Cache);
    Harm::Superblocks.inflict(&mut cache).unwrap();
    assert_eq!(content(&mut cache).unwrap(), Content::Foreign);
    drop(cache);
    fs::write(&path, [version_one(), vec![9; 8192]].concat()).unwrap();
    assert_eq!(content(&mut StoppedCache::open_to_read(&path).unwrap()).unwrap(), Content::VersionOne);
    fs::write(&path, [0; 100]).unwrap();
    assert_eq!(content(&mut StoppedCache::open_to_read(&path).unwrap()).unwrap(), Content::Nothing);
}

#[test]
fn zeroes_are_zeroes_whether_or_not_the_file_system_can() {
    for folder in [".", "/dev/shm"] {
        let folder = tempfile::tempdir_in(folder).unwrap();
        let path = folder.path().join("cache");
        fs::write(&path, vec![7; 3 << 20]).unwrap();
        let mut cache = StoppedCache::open(&path).unwrap();
        cache.zero(4096, (2 << 20) + 512).unwrap();
        cache.flush().unwrap();
        let bytes = fs::read(&path).unwrap();
        let end = 4096 + (2 << 20) + 512;
        assert_eq!((bytes.len(), bytes[4095], bytes[end]), (3 << 20, 7, 7));
        assert!(bytes[4096..end].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn a_file_is_written_as_a_backing() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("disk");
    fs::write(&path, [1; 8192]).unwrap();
    let mut disk = OpenDisk::open(path.to_str().unwrap()).unwrap();
    disk.write(4096, &[2; 512]).unwrap();
    disk.flush().unwrap();
    assert_eq!(disk.bytes(), 8192);
    let bytes = fs::read(&path).unwrap();
    assert_eq!((bytes.len(), bytes[4095], bytes[4096], bytes[4608]), (8192, 1, 2, 1));
    for (text, part) in [("/nowhere/at all", "does not exist"), ("ftp://x", "ftp://x"), (".", "a directory")]
    {
        let error = OpenDisk::open(text).unwrap_err();
        assert!(error.to_string().contains(part) && !error.remedy().is_empty(), "{error}");
    }
}
