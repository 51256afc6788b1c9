//! What is done to a volume in use, on real files: it grows, is quiet, is forgotten.

use super::tests::{LONG, MIB, Rig, file, pattern};
use crate::mailbox::{DrainCommand, NewTenant, NewVolume, VolumeError};
use crate::nbd_backing::NbdBacking;
use crate::nbd_backing::fake_server::{DISCONNECT, FLUSH, FakeServer, Greeting, Peer};
use crate::{Backing, VolumeInfo, new_uuid};
use larder_engine::format;
use larder_engine::{
    CachingSpec, DirtyLimits, Drain, GrowError, IoError, RequestKind, TenantId, VolumeId, WritePolicy,
};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

const VOLUME: VolumeId = VolumeId(0);
/// Far more than a request takes that does not wait for anything.
const A_WHILE: Duration = Duration::from_millis(300);

fn told<T>(receiver: Receiver<T>) -> T {
    receiver.recv_timeout(LONG).unwrap()
}

fn quiesce(rig: &Rig, hold: Duration) -> Result<(), VolumeError> {
    told(rig.handle.quiesce(VOLUME, LONG, hold).unwrap())
}

#[test]
fn a_quiet_volume_does_not_change_until_it_is_thawed() {
    let (file, backing) = file(".", MIB);
    let rig = Rig::new(".", backing);
    rig.write(0, &pattern(1, 4096)).unwrap();
    quiesce(&rig, LONG).unwrap();
    assert!(rig.snapshot().volumes[0].quiet);
    assert_eq!(quiesce(&rig, LONG), Err(VolumeError::Quiet));
    let before = std::fs::read(file.path()).unwrap();
    assert_eq!(before[..4096], pattern(1, 4096));
    let writes: Vec<_> =
        (2..5_u8).map(|seed| rig.ask(RequestKind::Write, 0, 4096, pattern(seed, 4096))).collect();
    let cleared = rig.ask(RequestKind::WriteZeroes { no_hole: true }, 8192, 4096, Vec::new());
    assert_eq!(rig.read(0, 4096).unwrap(), pattern(1, 4096), "reads do not wait");
    assert!(writes[0].recv_timeout(A_WHILE).is_err() && cleared.try_recv().is_err());
    assert_eq!(std::fs::read(file.path()).unwrap(), before);
    assert!(told(rig.handle.thaw(VOLUME).unwrap()), "it was quiet until now");
    writes.into_iter().chain([cleared]).for_each(|answer| drop(told(answer).unwrap()));
    assert_eq!(rig.read(0, 4096).unwrap(), pattern(4, 4096), "in the order in which they came");
    assert!(!told(rig.handle.thaw(VOLUME).unwrap()));
    rig.stop().unwrap();
}

#[test]
fn who_drains_a_volume_that_is_quiet_finds_it_drained_when_it_is_not_any_more() {
    let (_file, backing) = file(".", MIB);
    let rig = Rig::new(".", backing);
    let draining = || rig.snapshot().volumes[0].draining;
    quiesce(&rig, LONG).unwrap();
    rig.handle.drain(VOLUME, DrainCommand::On).unwrap();
    assert!(told(rig.handle.thaw(VOLUME).unwrap()));
    rig.write(0, &pattern(1, 4096)).unwrap();
    rig.wait_until(|snapshot| snapshot.volumes[0].draining == Drain::Done, "it is not drained");
    quiesce(&rig, LONG).unwrap();
    rig.handle.drain(VOLUME, DrainCommand::Off).unwrap();
    assert_eq!(draining(), Drain::Done, "as long as it is quiet");
    assert!(told(rig.handle.thaw(VOLUME).unwrap()));
    assert_eq!(draining(), Drain::Off);
    rig.stop().unwrap();
}

#[test]
fn a_volume_that_nobody_thaws_goes_on_by_itself() {
    let (_file, backing) = file(".", MIB);
    let rig = Rig::new(".", backing);
    quiesce(&rig, A_WHILE).unwrap();
    let began = Instant::now();
    rig.write(0, &pattern(1, 4096)).unwrap();
    assert!(began.elapsed() < LONG);
    assert!(!told(rig.handle.thaw(VOLUME).unwrap()), "a snapshot taken so late is not a good one");
    rig.stop().unwrap();
}

#[test]
fn a_reactor_that_ends_lets_quiet_volumes_go_on() {
    let (file, backing) = file(".", MIB);
    let rig = Rig::new(".", backing);
    quiesce(&rig, LONG).unwrap();
    let write = rig.ask(RequestKind::Write, 0, 4096, pattern(7, 4096));
    rig.stop().unwrap();
    told(write).unwrap();
    assert_eq!(std::fs::read(file.path()).unwrap()[..4096], pattern(7, 4096));
}

#[test]
fn a_volume_grows_as_its_backing_has() {
    let (file, backing) = file(".", MIB);
    let rig = Rig::new(".", backing);
    let grow = || told(rig.handle.grow_volume(VOLUME).unwrap());
    assert_eq!(grow(), Err(VolumeError::Grow(GrowError::Size { from: MIB, to: MIB })));
    assert_eq!(rig.write(MIB, &pattern(1, 4096)), Err(IoError::Invalid));
    file.as_file().set_len(3 * MIB + 100).unwrap();
    assert_eq!(grow().unwrap().bytes / 4096, 3 * MIB / 4096);
    assert_eq!(rig.snapshot().volumes[0].info.bytes / MIB, 3);
    rig.write(MIB - 4096, &pattern(2, 8192)).unwrap();
    assert_eq!(rig.read(MIB - 4096, 8192).unwrap(), pattern(2, 8192));
    assert_eq!(rig.read(4 * MIB, 4096), Err(IoError::Invalid));
    file.as_file().set_len(2 * MIB).unwrap();
    assert!(matches!(grow(), Err(VolumeError::Grow(GrowError::Size { .. }))), "it never shrinks");
    rig.stop().unwrap();
}

#[test]
fn what_is_forgotten_is_read_from_the_backing() {
    let (file, backing) = file(".", MIB);
    let rig = Rig::new(".", backing);
    rig.write(0, &pattern(1, 64 << 10)).unwrap();
    rig.read(0, 64 << 10).unwrap();
    rig.wait_until(|snapshot| snapshot.tenants[0].occupied_blocks > 0, "nothing is cached");
    told(rig.handle.forget_volume(VOLUME).unwrap()).unwrap();
    assert_eq!(rig.snapshot().tenants[0].occupied_blocks, 0);
    std::fs::write(file.path(), pattern(9, MIB)).unwrap();
    assert_eq!(rig.read(0, 4096).unwrap(), pattern(9, 4096));
    let unknown = told(rig.handle.forget_volume(VolumeId(7)).unwrap());
    assert_eq!(unknown, Err(VolumeError::Unknown));
    rig.stop().unwrap();
}

fn new(tenant: TenantId, backing: Backing) -> NewVolume {
    let (name, identity) = ("new".to_owned(), backing.identity());
    let known = format::Volume { id: 0, name, uuid: new_uuid(), bytes: backing.bytes(), identity };
    NewVolume { tenant, backing, ordered: false, known }
}

fn join(rig: &Rig, tenant: TenantId, backing: Backing) -> Result<(VolumeId, VolumeInfo), VolumeError> {
    told(rig.handle.join_volume(new(tenant, backing)).unwrap())
}

fn leave(rig: &Rig, volume: VolumeId) -> Result<(), VolumeError> {
    told(rig.handle.leave_volume(volume).unwrap())
}

fn drained(rig: &Rig, volume: VolumeId) {
    rig.handle.drain(volume, DrainCommand::On).unwrap();
    let done = |snapshot: &crate::ReactorSnapshot| {
        snapshot.volumes.iter().any(|now| now.volume == volume && now.draining == Drain::Done)
    };
    rig.wait_until(done, "it is not drained");
}

#[test]
fn volumes_and_tenants_come_and_go() {
    let (_file, backing) = file(".", MIB);
    let rig = Rig::new(".", backing);
    let (caching, dirty) = (CachingSpec::default(), DirtyLimits::default());
    let tenant = NewTenant { quota_blocks: 100, policy: WritePolicy::WriteThrough, caching, dirty };
    let tenant = told(rig.handle.add_tenant(tenant).unwrap()).unwrap();
    assert_eq!(tenant, TenantId(1));
    let (other, backing) = file(".", 2 * MIB);
    let (volume, info) = join(&rig, tenant, backing).unwrap();
    assert_eq!((volume, info.bytes), (VolumeId(1), 2 * MIB));
    assert_eq!(rig.ask_of(volume, RequestKind::Write, MIB, 4096, pattern(3, 4096)).map(drop), Ok(()));
    assert_eq!(rig.ask_of(volume, RequestKind::Read, MIB, 4096, Vec::new()), Ok(pattern(3, 4096)));
    assert_eq!(rig.snapshot().tenants[1].occupied_blocks, 1);
    assert_eq!(leave(&rig, volume), Err(VolumeError::Dirty), "it is to be drained first");
    drained(&rig, volume);
    assert_eq!(leave(&rig, volume), Ok(()));
    assert_eq!(rig.ask_of(volume, RequestKind::Read, MIB, 4096, Vec::new()), Err(IoError::Invalid));
    assert_eq!(rig.ask_of(volume, RequestKind::Flush, 0, 0, Vec::new()), Err(IoError::Invalid));
    let snapshot = rig.snapshot();
    assert_eq!((snapshot.volumes.len(), snapshot.tenants[1].occupied_blocks), (1, 0));
    assert_eq!(leave(&rig, volume), Err(VolumeError::Unknown));
    // The file is closed, and whoever comes next is somebody else.
    other.as_file().try_lock().unwrap();
    let nobody = join(&rig, TenantId(9), file(".", MIB).1).unwrap_err();
    assert_eq!(nobody, VolumeError::Unknown);
    assert_eq!(join(&rig, tenant, file(".", MIB).1).unwrap().0, VolumeId(2));
    rig.write(0, &pattern(1, 4096)).unwrap();
    rig.stop().unwrap();
}

#[test]
fn a_server_is_taken_leave_of() {
    let (_file, backing) = file(".", MIB);
    let rig = Rig::new(".", backing);
    let (tell, asked) = std::sync::mpsc::channel();
    let serve = move |peer: &mut Peer, _| {
        loop {
            let request = peer.request().inspect_err(|_| _ = tell.send(None))?;
            tell.send(Some(request.kind)).unwrap();
            if request.kind == FLUSH {
                peer.answer(request, &[])?;
            }
        }
    };
    let server = FakeServer::new(|_| Greeting::default(), serve);
    let backing = Backing::Nbd(NbdBacking::connect(&server.uri()).unwrap());
    let (volume, _) = join(&rig, TenantId(0), backing).unwrap();
    drained(&rig, volume);
    assert_eq!(leave(&rig, volume), Ok(()));
    let asked: Vec<_> = (0..3).map(|_| asked.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(asked, [Some(FLUSH), Some(DISCONNECT), None], "the connection ends with a word");
    rig.stop().unwrap();
    assert_eq!(server.connections(), 1, "nobody comes back");
}
