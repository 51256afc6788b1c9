//! A whole reactor on real devices, with a frontend that asks what a test tells it.

use super::*;
use crate::frontend::{Event, GuestRequest};
use crate::nbd_backing::NbdBacking;
use crate::nbd_backing::fake_server::{FLUSH, FakeServer, Greeting, Peer, READ, WRITE};
use crate::{
    Backing, Buffer, CachePlan, CacheSpec, Context, Frontend, Handle, MonitorSink, ReactorSnapshot,
    SharedPool, UnfinishedDevice, mailbox,
};
use larder_engine::{IoError, RequestKind, TenantId, VolumeId, WritePolicy};
use larder_nbd::{Address, Uri};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

pub(super) const MIB: u64 = 1 << 20;
pub(super) const LONG: Duration = Duration::from_secs(30);

/// What a test asks, and where the answer goes.
pub(super) struct Ask {
    request: GuestRequest,
    data: Vec<u8>,
    answer: mpsc::Sender<Answer>,
}

pub(super) type Answer = Result<Vec<u8>, IoError>;

/// Submits what it is told.
#[derive(Default)]
struct Asker {
    waiting: HashMap<u64, (GuestRequest, mpsc::Sender<Answer>)>,
    next: u64,
}

impl Frontend for Asker {
    type Command = Ask;

    fn start(&mut self, _: &mut Context) {}

    fn command(&mut self, cx: &mut Context, Ask { request, data, answer }: Ask) {
        let moves_data = matches!(request.kind, RequestKind::Read | RequestKind::Write);
        let buffer = moves_data.then(|| {
            let mut buffer = cx.buffer(request.len as usize).unwrap();
            buffer.fill(0xee);
            buffer[..data.len()].copy_from_slice(&data);
            buffer
        });
        self.next += 1;
        self.waiting.insert(self.next, (request, answer));
        cx.submit(request, buffer, self.next);
    }

    fn event(&mut self, _: &mut Context, event: Event) {
        panic!("no socket was given: {event:?}");
    }

    fn reply(&mut self, cx: &mut Context, cookie: u64, result: Result<(), IoError>, buffer: Option<Buffer>) {
        let (request, answer) = self.waiting.remove(&cookie).unwrap();
        let read = request.kind == RequestKind::Read;
        let data = buffer.as_deref().filter(|_| read).unwrap_or_default().to_vec();
        buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
        answer.send(result.map(|()| data)).unwrap();
    }

    fn end_of_batch(&mut self, _: &mut Context) {}
    fn tick(&mut self, _: &mut Context, _: Instant) {}
    fn stop(&mut self, _: &mut Context) {}

    fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// A reactor with one tenant and one volume.
pub(super) struct Rig {
    directory: tempfile::TempDir,
    pub handle: Handle<Ask>,
    pub thread: Option<ReactorThread>,
}

impl Rig {
    pub fn new(place: &str, backing: Backing) -> Self {
        Self::with_monitor(place, backing, Box::new(|_| Ok(())))
    }

    pub fn with_monitor(place: &str, backing: Backing, monitor: MonitorSink) -> Self {
        let directory = tempfile::tempdir_in(place).unwrap();
        let spec = CacheSpec { path: directory.path().join("cache.img"), size: MIB, block_bytes: 4096 };
        let cache = CachePlan::check(spec).unwrap().format().unwrap();
        let pool = SharedPool::new(cache.blocks());
        let mut builder = ReactorBuilder::new(ReactorConfig::default(), &cache, pool).unwrap();
        let tenant = builder.add_tenant(256, WritePolicy::WriteThrough).unwrap();
        builder.add_volume(tenant, backing).unwrap();
        builder.monitor(monitor);
        let (handle, inbox) = mailbox().unwrap();
        let thread = Some(builder.spawn(Asker::default(), inbox).unwrap());
        Self { directory, handle, thread }
    }

    pub fn ask(&self, kind: RequestKind, offset: u64, len: u64, data: Vec<u8>) -> mpsc::Receiver<Answer> {
        let (answer, receiver) = mpsc::channel();
        self.ask_for(answer, kind, offset, len, data);
        receiver
    }

    /// Ask another volume than the first.
    pub fn ask_of(
        &self,
        volume: VolumeId,
        kind: RequestKind,
        offset: u64,
        len: u64,
        data: Vec<u8>,
    ) -> Answer {
        let (answer, receiver) = mpsc::channel();
        let request = GuestRequest { volume, kind, offset, len, fua: false };
        self.handle.frontend(Ask { request, data, answer }).unwrap();
        receiver.recv_timeout(LONG).unwrap()
    }

    /// Ask, and have the answer sent there.
    pub fn ask_for(
        &self,
        answer: mpsc::Sender<Answer>,
        kind: RequestKind,
        offset: u64,
        len: u64,
        data: Vec<u8>,
    ) {
        let request = GuestRequest { volume: VolumeId(0), kind, offset, len, fua: false };
        self.handle.frontend(Ask { request, data, answer }).unwrap();
    }

    pub fn read(&self, offset: u64, len: u64) -> Answer {
        self.ask(RequestKind::Read, offset, len, Vec::new()).recv_timeout(LONG).unwrap()
    }

    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), IoError> {
        let answer = self.ask(RequestKind::Write, offset, data.len() as u64, data.to_vec());
        answer.recv_timeout(LONG).unwrap().map(|_| ())
    }

    fn without_data(&self, kind: RequestKind, offset: u64, len: u64) -> Result<(), IoError> {
        self.ask(kind, offset, len, Vec::new()).recv_timeout(LONG).unwrap().map(|_| ())
    }

    pub fn snapshot(&self) -> ReactorSnapshot {
        self.handle.snapshot().unwrap().recv_timeout(LONG).unwrap()
    }

    pub fn wait_until(&self, is_so: impl Fn(&ReactorSnapshot) -> bool, otherwise: &str) {
        let deadline = Instant::now() + LONG;
        while !is_so(&self.snapshot()) {
            assert!(Instant::now() < deadline, "{otherwise}");
        }
    }

    /// Until a read succeeds at a place that was not read before.
    fn wait_for_service(&self, offset: u64) {
        let deadline = Instant::now() + LONG;
        while self.read(offset, 4096).is_err() {
            assert!(Instant::now() < deadline, "service does not resume");
        }
    }

    pub fn stop(self) -> Result<(), ReactorError> {
        self.stop_within(LONG)
    }

    pub fn stop_within(mut self, within: Duration) -> Result<(), ReactorError> {
        self.handle.stop(within).unwrap();
        self.thread.take().unwrap().join()
    }
}

pub(super) fn pattern(seed: u8, len: u64) -> Vec<u8> {
    (0..len).map(|at| (at / 512) as u8 ^ seed).collect()
}

pub(super) fn file(place: &str, bytes: u64) -> (tempfile::NamedTempFile, Backing) {
    let file = tempfile::NamedTempFile::new_in(place).unwrap();
    file.as_file().set_len(bytes).unwrap();
    let backing = Backing::open(file.path().to_str().unwrap()).unwrap();
    (file, backing)
}

fn serves_everything_in(place: &str) {
    let (file, backing) = file(place, 4 * MIB + 512);
    let rig = Rig::new(place, backing);
    let data = pattern(1, 64 << 10);
    rig.write(512, &data).unwrap();
    for _ in 0..3 {
        assert_eq!(rig.read(512, 64 << 10).unwrap(), data);
    }
    assert_eq!(rig.read(4 * MIB, 512).unwrap(), vec![0; 512]);
    rig.without_data(RequestKind::Flush, 0, 0).unwrap();
    rig.without_data(RequestKind::WriteZeroes { no_hole: true }, 512, 4096).unwrap();
    rig.without_data(RequestKind::Discard, 512, 4096).unwrap();
    assert_eq!(rig.read(512, 8192).unwrap(), [&[0; 4096], &data[4096..8192]].concat());
    assert_eq!(rig.read(4 * MIB + 512, 512), Err(IoError::Invalid));
    assert_eq!(rig.read(100, 512), Err(IoError::Invalid));
    let snapshot = rig.snapshot();
    let tenant = &snapshot.tenants[0];
    assert!(tenant.stats.read_hits > 0 && tenant.occupied_blocks > 0, "{snapshot:?}");
    rig.wait_until(|snapshot| snapshot.in_flight == 0, "fills do not end");
    assert!(snapshot.cache.reads > 0 && snapshot.volumes[0].backing.writes > 0);
    rig.stop().unwrap();
    let on_backing = std::fs::read(file.path()).unwrap();
    assert!(on_backing[4608..512 + (64 << 10)] == data[4096..], "a write-through reaches the backing");
}

#[test]
fn serves_everything_on_the_disk() {
    serves_everything_in(".");
}

#[test]
fn serves_everything_in_memory() {
    serves_everything_in("/dev/shm");
}

#[test]
fn many_requests_at_once_all_end() {
    for place in [".", "/dev/shm"] {
        let (_file, backing) = file(place, 4 * MIB);
        let rig = Rig::new(place, backing);
        let answers: Vec<_> = (0..1000_u64)
            .map(|n| match n % 3 {
                0 => rig.ask(RequestKind::Write, n * 4096 % MIB, 4096, pattern(n as u8, 4096)),
                _ => rig.ask(RequestKind::Read, n * 8192 % MIB, 12288, Vec::new()),
            })
            .collect();
        for answer in answers {
            answer.recv_timeout(LONG).unwrap().unwrap();
        }
        rig.wait_until(|snapshot| snapshot.buffer_bytes == 0, "a buffer did not come back");
        rig.stop().unwrap();
    }
}

#[test]
fn quota_and_policy_change_while_it_runs() {
    let (_file, backing) = file("/dev/shm", 4 * MIB);
    let rig = Rig::new("/dev/shm", backing);
    rig.write(0, &pattern(3, MIB)).unwrap();
    assert_eq!(rig.snapshot().tenants[0].occupied_blocks, 256);
    rig.handle.set_quota(TenantId(0), 10).unwrap();
    rig.handle.set_write_policy(TenantId(0), WritePolicy::ReadOnly).unwrap();
    rig.handle.set_quota(TenantId(7), 10).unwrap();
    assert_eq!(rig.read(0, MIB).unwrap(), pattern(3, MIB));
    rig.wait_until(|snapshot| snapshot.tenants[0].occupied_blocks <= 10, "the tenant does not shrink");
    assert_eq!(rig.snapshot().tenants[0].write_policy, WritePolicy::ReadOnly);
    rig.stop().unwrap();
}

#[test]
fn the_lock_on_the_cache_goes_with_the_reactor() {
    let (_file, backing) = file("/dev/shm", MIB);
    let rig = Rig::new("/dev/shm", backing);
    let spec = CacheSpec { path: rig.directory.path().join("cache.img"), size: MIB, block_bytes: 4096 };
    assert!(CachePlan::check(spec.clone()).is_err());
    let Rig { handle, thread, directory } = rig;
    handle.stop(LONG).unwrap();
    thread.unwrap().join().unwrap();
    CachePlan::check(spec).unwrap();
    drop(directory);
}

#[test]
fn the_monitor_sees_every_request() {
    let (_file, backing) = file("/dev/shm", MIB);
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let spec = CacheSpec { path: directory.path().join("cache.img"), size: MIB, block_bytes: 4096 };
    let cache = CachePlan::check(spec).unwrap().format().unwrap();
    let mut builder =
        ReactorBuilder::new(ReactorConfig::default(), &cache, SharedPool::new(cache.blocks())).unwrap();
    let tenant = builder.add_tenant(16, WritePolicy::ReadOnly).unwrap();
    builder.add_volume(tenant, backing).unwrap();
    let (sink, batches) = mpsc::sync_channel(16);
    builder.monitor(Box::new(move |batch| sink.try_send(batch).map_err(|_| Vec::new())));
    let (handle, inbox) = mailbox().unwrap();
    let rig = Rig { directory, handle, thread: Some(builder.spawn(Asker::default(), inbox).unwrap()) };
    rig.read(8192, 512).unwrap();
    rig.without_data(RequestKind::Flush, 0, 0).unwrap();
    rig.snapshot();
    let seen: Vec<_> = batches.try_iter().flatten().map(|r| (r.kind, r.offset, r.len)).collect();
    assert_eq!(seen, [(RequestKind::Read, 8192, 512), (RequestKind::Flush, 0, 0)]);
    rig.stop().unwrap();
}

/// An nbdkit on a file.
struct Nbdkit {
    directory: tempfile::TempDir,
    child: Option<Child>,
}

impl Nbdkit {
    fn new(bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disk = std::fs::File::create(directory.path().join("disk")).unwrap();
        disk.set_len(bytes).unwrap();
        Self { directory, child: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `options`: filters, and their parameters.
    fn start(&mut self, options: &[&str]) {
        let (socket, disk) = (self.path("socket"), self.path("disk"));
        let _ = std::fs::remove_file(&socket);
        let (filters, parameters): (Vec<&str>, Vec<&str>) =
            options.iter().copied().partition(|option| option.starts_with("--"));
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--exit-with-parent", "--unix"]).arg(&socket);
        command.args(filters).arg("file").arg(disk).args(parameters);
        let child = command.spawn().expect("nbdkit is needed: apt-get install nbdkit");
        self.child = Some(child);
        let deadline = Instant::now() + LONG;
        while NbdBacking::connect(&self.uri()).is_err() {
            assert!(Instant::now() < deadline, "nbdkit does not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn uri(&self) -> Uri {
        Uri { address: Address::Unix(self.path("socket")), export: String::new() }
    }

    fn backing(&self) -> Backing {
        Backing::Nbd(NbdBacking::connect(&self.uri()).unwrap())
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serves_over_nbd(filters: &[&str]) {
    let mut server = Nbdkit::new(8 * MIB);
    server.start(filters);
    let rig = Rig::new("/dev/shm", server.backing());
    let data = pattern(9, 3 * MIB);
    rig.write(4096, &data).unwrap();
    rig.without_data(RequestKind::Flush, 0, 0).unwrap();
    assert!(rig.read(4096, 3 * MIB).unwrap() == data);
    rig.without_data(RequestKind::WriteZeroes { no_hole: false }, 4096, MIB).unwrap();
    rig.without_data(RequestKind::Discard, 4096, MIB).unwrap();
    assert!(rig.read(4096, MIB).unwrap().iter().all(|&byte| byte == 0));
    assert_eq!(rig.read(4096 + MIB, 1000 * 512).unwrap(), data[MIB as usize..][..1000 * 512]);
    rig.stop().unwrap();
    let disk = std::fs::read(server.path("disk")).unwrap();
    assert!(disk[4096 + MIB as usize..][..2 * MIB as usize] == data[MIB as usize..]);
}

#[test]
fn serves_over_nbd_from_a_server_that_can_everything() {
    serves_over_nbd(&[]);
}

#[test]
fn serves_over_nbd_from_a_server_that_cannot_make_zeroes() {
    serves_over_nbd(&["--filter=nozero"]);
}

#[test]
fn serves_over_nbd_from_a_server_with_small_requests() {
    serves_over_nbd(&[
        "--filter=blocksize-policy",
        "blocksize-minimum=512",
        "blocksize-preferred=4096",
        "blocksize-maximum=65536",
        "blocksize-error-policy=error",
    ]);
}

#[test]
fn a_server_that_dies_costs_its_requests_and_comes_back() {
    let mut server = Nbdkit::new(8 * MIB);
    server.start(&[]);
    let rig = Rig::new("/dev/shm", server.backing());
    rig.write(0, &pattern(5, 8192)).unwrap();
    rig.without_data(RequestKind::Flush, 0, 0).unwrap();
    server.kill();
    assert_eq!(rig.read(MIB, 4096), Err(IoError::Io));
    assert_eq!(rig.read(0, 8192).unwrap(), pattern(5, 8192), "the cache goes on serving");
    server.start(&[]);
    rig.wait_for_service(2 * MIB);
    rig.write(4 * MIB, &pattern(5, 8192)).unwrap();
    server.kill();
    assert_eq!(rig.read(MIB, 4096), Err(IoError::Io));
    server.start(&[]);
    rig.wait_for_service(3 * MIB);
    assert_eq!(rig.without_data(RequestKind::Flush, 0, 0), Err(IoError::Io), "writes may have been lost");
    rig.without_data(RequestKind::Flush, 0, 0).unwrap();
    rig.write(0, &pattern(6, 8192)).unwrap();
    assert_eq!(rig.read(0, 8192).unwrap(), pattern(6, 8192));
    rig.stop().unwrap();
}

/// A server with a disk in memory, and a copy of it that flushes bring up to date. When it is told to crash, the copy is what remains.
fn forgetful(crash: mpsc::Receiver<()>) -> FakeServer {
    let blank = vec![0_u8; 64 << 20];
    let disks = Mutex::new((blank.clone(), blank, crash));
    let serve = move |peer: &mut Peer, _| {
        let (disk, stable, crash) = &mut *disks.lock().unwrap();
        loop {
            let asked = peer.request()?;
            if crash.try_recv().is_ok() {
                disk.clone_from(stable);
                return Ok(());
            }
            let range = asked.offset as usize..asked.offset as usize + asked.len as usize;
            match asked.kind {
                READ => peer.answer(asked, &disk[range])?,
                WRITE => {
                    disk[range].copy_from_slice(&peer.payload(asked.len)?);
                    peer.answer(asked, &[])?;
                }
                FLUSH => {
                    stable.clone_from(disk);
                    peer.answer(asked, &[])?;
                }
                _ => return Ok(()),
            }
        }
    };
    FakeServer::new(|_| Greeting::default(), serve)
}

/// A sector must not read as written from the cache, and as it was before once it is evicted.
#[test]
fn what_a_server_forgets_the_cache_forgets() {
    let (crash, crashes) = mpsc::channel();
    let server = forgetful(crashes);
    let rig = Rig::new("/dev/shm", Backing::Nbd(NbdBacking::connect(&server.uri()).unwrap()));
    let (kept, lost) = (pattern(7, 8192), pattern(8, 8192));
    rig.write(0, &kept).unwrap();
    rig.without_data(RequestKind::Flush, 0, 0).unwrap();
    rig.write(0, &lost).unwrap();
    rig.write(MIB, &lost).unwrap();
    assert_eq!(rig.read(0, 8192).unwrap(), lost);
    crash.send(()).unwrap();
    assert_eq!(rig.read(2 * MIB, 4096), Err(IoError::Io), "the crash");
    rig.wait_for_service(2 * MIB);
    assert_eq!(rig.read(0, 8192).unwrap(), kept);
    assert_eq!(rig.read(MIB, 8192).unwrap(), vec![0; 8192]);
    assert_eq!(rig.without_data(RequestKind::Flush, 0, 0), Err(IoError::Io), "writes were lost");
    rig.write(0, &lost).unwrap();
    rig.without_data(RequestKind::Flush, 0, 0).unwrap();
    assert_eq!(rig.read(0, 8192).unwrap(), lost);
    rig.stop().unwrap();
}

#[test]
fn a_disk_that_changed_its_size_is_not_taken_back() {
    let mut server = Nbdkit::new(8 * MIB);
    server.start(&[]);
    let rig = Rig::new("/dev/shm", server.backing());
    server.kill();
    std::fs::File::options().write(true).open(server.path("disk")).unwrap().set_len(16 * MIB).unwrap();
    server.start(&[]);
    for _ in 0..3 {
        assert_eq!(rig.read(MIB, 4096), Err(IoError::Io));
    }
    // Nothing was written, so a server that is gone at the end keeps nobody waiting.
    rig.stop().unwrap();
}

/// The server that is gone at the end is named, since nobody knows what it has kept.
fn assert_not_flushed(end: Result<(), ReactorError>, uri: &Uri) {
    let Err(ReactorError::Unfinished { requests: 0, devices, .. }) = &end else { panic!("{end:?}") };
    assert_eq!(devices[..], [UnfinishedDevice { name: uri.to_string(), operations: 0, flushed: false }]);
}

/// What happens to requests that are in flight when the server dies, large ones included.
#[test]
fn requests_in_flight_at_the_death_all_end() {
    let mut server = Nbdkit::new(64 * MIB);
    server.start(&["--filter=delay", "rdelay=200ms", "wdelay=200ms"]);
    let rig = Rig::new("/dev/shm", server.backing());
    let answers: Vec<_> = (0..40_u64)
        .map(|n| match n % 2 {
            0 => rig.ask(RequestKind::Read, n * MIB, MIB, Vec::new()),
            _ => rig.ask(RequestKind::Write, n * MIB, MIB, pattern(n as u8, MIB)),
        })
        .collect();
    std::thread::sleep(Duration::from_millis(50));
    server.kill();
    let failed = answers.iter().filter(|answer| answer.recv_timeout(LONG).unwrap().is_err()).count();
    assert!(failed > 0);
    rig.wait_until(|snapshot| snapshot.buffer_bytes == 0, "a buffer did not come back");
    assert_not_flushed(rig.stop(), &server.uri());
}

#[test]
fn the_loop_is_told_how_partitions_are_used_and_changes_how_they_are_run() {
    let (_file, backing) = file("/dev/shm", MIB);
    let rig = Rig::new("/dev/shm", backing);
    rig.handle.watch_hits(true).unwrap();
    rig.handle.set_caching(TenantId(0), "s3-fifo".parse().unwrap()).unwrap();
    rig.handle.set_lending(true).unwrap();
    let uses = || rig.handle.tenant_uses().unwrap().recv().unwrap();
    assert_eq!(uses()[0].effective, None, "it holds nothing");
    for _ in 0..2 {
        (0..64).for_each(|block| _ = rig.read(block * 4096, 4096));
    }
    let seen = uses();
    assert_eq!(seen.len(), 1);
    let used = seen[0];
    assert_eq!((used.read_hits.requests, used.read_misses.requests, used.occupied_blocks), (64, 64, 64));
    assert!(used.read_misses.total_ns > 0 && used.write_hits.requests + used.write_misses.requests == 0);
    assert_eq!(used.effective, Some(1.0));
    assert_eq!(uses()[0].effective, Some(0.0), "nothing was hit since");
    // Another replacement keeps what is there.
    rig.handle.set_caching(TenantId(0), "lru".parse().unwrap()).unwrap();
    (0..64).for_each(|block| _ = rig.read(block * 4096, 4096));
    assert_eq!(uses()[0].read_hits.requests, 128);
    // What is above the most for it leaves, though there is room.
    rig.handle.set_bounds(TenantId(0), 0, 0).unwrap();
    rig.handle.set_quota(TenantId(0), 40).unwrap();
    let deadline = Instant::now() + LONG;
    while uses()[0].occupied_blocks != 40 {
        assert!(Instant::now() < deadline, "it holds {}", uses()[0].occupied_blocks);
        std::thread::sleep(Duration::from_millis(10));
    }
    rig.stop().unwrap();
}
