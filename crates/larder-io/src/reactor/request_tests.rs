//! What a reactor counts of guests' requests, on real files: how many, how large, and whether they had to wait for the backing.

use super::tests::{MIB, Rig, file, pattern};
use crate::Latencies;
use larder_engine::{IoError, RequestKind, WritePolicy};

fn latencies(rig: &Rig) -> Latencies {
    let snapshot = rig.snapshot();
    snapshot.latencies.first().map_or_else(Latencies::default, |(_, latencies)| **latencies)
}

/// Read hits and misses, write hits and misses, flushes.
fn counts(rig: &Rig) -> [u64; 5] {
    let Latencies { read_hit, read_miss, write_hit, write_miss, flush } = latencies(rig);
    [read_hit, read_miss, write_hit, write_miss, flush].map(|histogram| histogram.count())
}

fn tells_hits_from_misses_in(place: &str) {
    let (_file, backing) = file(place, MIB);
    let rig = Rig::new(place, backing);
    assert!(rig.snapshot().latencies.is_empty(), "who asks for nothing takes no memory");
    rig.read(0, 8192).unwrap();
    rig.wait_until(|snapshot| snapshot.in_flight == 0, "the fill does not end");
    assert_eq!(counts(&rig), [0, 1, 0, 0, 0]);
    rig.read(0, 8192).unwrap();
    rig.read(512, 1024).unwrap();
    assert_eq!(counts(&rig), [2, 1, 0, 0, 0]);
    rig.read(4096, 8192).unwrap();
    assert_eq!(counts(&rig), [2, 2, 0, 0, 0], "half of it is on the backing alone");
    rig.write(0, &pattern(1, 4096)).unwrap();
    assert_eq!(counts(&rig), [2, 2, 0, 1, 0], "a write-through waits for the backing");
    rig.ask(RequestKind::Flush, 0, 0, Vec::new()).recv().unwrap().unwrap();
    rig.ask(RequestKind::Discard, 4096, 4096, Vec::new()).recv().unwrap().unwrap();
    assert_eq!(counts(&rig), [2, 2, 0, 1, 1]);
    assert_eq!(rig.read(MIB, 4096), Err(IoError::Invalid));
    assert_eq!(counts(&rig), [2, 2, 0, 1, 1], "an error is no latency");

    let requests = rig.snapshot().volumes[0].requests;
    let read = (requests.read.requests, requests.read.bytes, requests.read.errors);
    assert_eq!(read, (5, 8192 + 8192 + 1024 + 8192 + 4096, 1));
    assert_eq!((requests.write.requests, requests.write.bytes, requests.write.errors), (1, 4096, 0));
    assert_eq!((requests.flush.requests, requests.flush.bytes, requests.discard.bytes), (1, 0, 4096));
    rig.stop().unwrap();
}

#[test]
fn hits_and_misses_are_told_apart_on_the_disk() {
    tells_hits_from_misses_in(".");
}

/// Where whole requests begin and end within a turn of the loop.
#[test]
fn hits_and_misses_are_told_apart_in_memory() {
    tells_hits_from_misses_in("/dev/shm");
}

#[test]
fn requests_take_time_also_where_they_end_in_the_turn_in_which_they_came() {
    let (_file, backing) = file("/dev/shm", MIB);
    let rig = Rig::new("/dev/shm", backing);
    rig.handle.set_write_policy(larder_engine::TenantId(0), WritePolicy::ReadOnly).unwrap();
    for _ in 0..10 {
        rig.read(0, 4096).unwrap();
        rig.write(8192, &pattern(1, 4096)).unwrap();
    }
    let Latencies { read_hit, write_miss, .. } = latencies(&rig);
    assert_eq!((read_hit.count(), write_miss.count()), (9, 10));
    assert!(read_hit.sum_ns() > 0 && write_miss.sum_ns() > 0, "{read_hit:?} {write_miss:?}");
    rig.stop().unwrap();
}
