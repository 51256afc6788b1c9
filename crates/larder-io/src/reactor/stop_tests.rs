//! How a reactor ends where something does not: a device that hangs, a flush that fails, a panic, a silent server.

use super::tests::{LONG, MIB, Rig};
use super::*;
use crate::file::FileDevice;
use crate::nbd_backing::NbdBacking;
use crate::{
    Backing, Buffer, CachePlan, CacheSpec, Context, Event, Frontend, MonitorRecord, SharedPool,
    UnfinishedDevice, mailbox,
};
use larder_engine::{IoError, RequestKind};
use larder_nbd::{Address, Uri};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// A rig whose monitor tells the test.
fn monitored(backing: Backing) -> (Rig, mpsc::Receiver<Vec<MonitorRecord>>) {
    let (sink, batches) = mpsc::sync_channel(16);
    let monitor = Box::new(move |batch| sink.try_send(batch).map_err(|_| Vec::new()));
    (Rig::with_monitor("/dev/shm", backing, monitor), batches)
}

/// Whoever waits for the end of the monitor's batches must hear it.
fn assert_closed(batches: &mpsc::Receiver<Vec<MonitorRecord>>) {
    loop {
        match batches.recv_timeout(LONG) {
            Ok(_) => {}
            Err(end) => return assert_eq!(end, RecvTimeoutError::Disconnected, "the sink was kept"),
        }
    }
}

#[test]
fn a_device_that_hangs_is_named_and_keeps_nobody_waiting() {
    let (device, _other) = FileDevice::hanging(MIB);
    let (rig, batches) = monitored(Backing::File(device));
    let _answer = rig.ask(RequestKind::Read, 0, 4096, Vec::new());
    rig.wait_until(|now| now.volumes[0].backing.in_flight > 0, "the backing is not asked");
    let end = rig.stop_within(Duration::ZERO);
    let Err(ReactorError::Unfinished { requests: 1, devices, .. }) = &end else { panic!("{end:?}") };
    let named = [UnfinishedDevice { name: "/hanging".into(), operations: 1, flushed: false }];
    assert_eq!(devices[..], named);
    assert_closed(&batches);
}

#[test]
fn a_last_flush_that_fails_is_told() {
    let (device, _other) = FileDevice::hanging(MIB);
    let end = Rig::new("/dev/shm", Backing::File(device)).stop();
    let Err(ReactorError::Unfinished { requests: 0, operations: 0, devices }) = end else {
        panic!("{end:?}")
    };
    assert_eq!(devices, [UnfinishedDevice { name: "/hanging".into(), operations: 0, flushed: false }]);
}

#[test]
fn a_panic_is_told_and_keeps_nobody_waiting() {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    file.as_file().set_len(MIB).unwrap();
    let (rig, batches) = monitored(Backing::open(file.path().to_str().unwrap()).unwrap());
    // The frontend panics where nobody takes its answer: nobody did when it was asked.
    let (answer, nobody) = mpsc::channel();
    drop(nobody);
    rig.ask_for(answer, RequestKind::Read, 0, 4096, Vec::new());
    let thread = rig.thread.unwrap();
    assert!(matches!(thread.join_within(LONG), Err(ReactorError::Panicked)));
    assert_closed(&batches);
}

/// Does nothing while it is told to wait.
struct Waiter;

impl Frontend for Waiter {
    type Command = mpsc::Receiver<()>;

    fn start(&mut self, _: &mut Context) {}

    fn command(&mut self, _: &mut Context, until_hung_up: mpsc::Receiver<()>) {
        assert!(until_hung_up.recv().is_err());
    }

    fn event(&mut self, _: &mut Context, _: Event) {}
    fn reply(&mut self, _: &mut Context, _: u64, _: Result<(), IoError>, _: Option<Buffer>) {}
    fn end_of_batch(&mut self, _: &mut Context) {}
    fn tick(&mut self, _: &mut Context, _: Instant) {}
    fn stop(&mut self, _: &mut Context) {}

    fn is_idle(&self) -> bool {
        true
    }
}

#[test]
fn a_reactor_that_is_held_up_does_not_hold_up_who_waits_for_it() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let spec = CacheSpec { path: directory.path().join("cache.img"), size: MIB, block_bytes: 4096 };
    let cache = CachePlan::check(spec).unwrap().format().unwrap();
    let start = || {
        let pool = SharedPool::new(cache.blocks());
        let builder = ReactorBuilder::new(ReactorConfig::default(), &cache, pool).unwrap();
        let (handle, inbox) = mailbox().unwrap();
        (handle, builder.spawn(Waiter, inbox).unwrap())
    };
    let (handle, thread) = start();
    let (hold, held) = mpsc::channel();
    handle.frontend(held).unwrap();
    handle.stop(Duration::ZERO).unwrap();
    assert!(!thread.is_finished());
    let end = thread.join_within(Duration::from_millis(50));
    assert!(matches!(&end, Err(ReactorError::Stuck { name }) if name == "reactor"), "{end:?}");
    drop(hold);
    let (handle, thread) = start();
    handle.stop(Duration::ZERO).unwrap();
    thread.join_within(LONG).unwrap();
}

const READ: u16 = 0;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;

/// An NBD server of one megabyte that answers everything but reads, and tells which commands came on which connection.
struct Server {
    directory: tempfile::TempDir,
    commands: mpsc::Receiver<(usize, u16)>,
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(socket_of(directory.path())).unwrap();
        let (tell, commands) = mpsc::channel();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                // An error is the end of this connection.
                let _ = serve(stream.unwrap(), number, &tell);
            }
        });
        Self { directory, commands }
    }

    fn uri(&self) -> Uri {
        Uri { address: Address::Unix(socket_of(self.directory.path())), export: String::new() }
    }

    fn backing(&self) -> Backing {
        Backing::Nbd(NbdBacking::connect(&self.uri()).unwrap())
    }
}

fn socket_of(directory: &Path) -> PathBuf {
    directory.join("socket")
}

fn serve(mut stream: UnixStream, number: usize, tell: &mpsc::Sender<(usize, u16)>) -> io::Result<()> {
    greet(&mut stream)?;
    loop {
        let mut request = [0; 28];
        stream.read_exact(&mut request)?;
        let command = u16::from_be_bytes([request[6], request[7]]);
        tell.send((number, command)).map_err(io::Error::other)?;
        match command {
            READ => {}
            DISCONNECT => return Ok(()),
            _ => {
                let reply = [&0x6744_6698_u32.to_be_bytes()[..], &[0; 4], &request[8..16]].concat();
                stream.write_all(&reply)?;
            }
        }
    }
}

/// Refuse every option until the client takes the export.
fn greet(stream: &mut UnixStream) -> io::Result<()> {
    const GO: u32 = 7;
    const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
    /// Flush and trim.
    const FLAGS: u16 = 1 | 1 << 2 | 1 << 5;
    stream.write_all(b"NBDMAGICIHAVEOPT\x00\x03")?;
    stream.read_exact(&mut [0; 4])?;
    loop {
        let mut option = [0; 16];
        stream.read_exact(&mut option)?;
        let [code, len] = [8, 12].map(|at| u32::from_be_bytes(option[at..at + 4].try_into().unwrap()));
        stream.read_exact(&mut vec![0; len as usize])?;
        let mut reply = |kind: u32, data: &[u8]| {
            let head = [&OPTION_REPLY.to_be_bytes()[..], &code.to_be_bytes(), &kind.to_be_bytes()].concat();
            stream.write_all(&[&head, &(data.len() as u32).to_be_bytes()[..], data].concat())
        };
        if code == GO {
            reply(3, &[&[0, 0][..], &MIB.to_be_bytes(), &FLAGS.to_be_bytes()].concat())?;
            return reply(1, &[]);
        }
        reply(0x8000_0001, &[])?;
    }
}

#[test]
fn an_nbd_backing_is_flushed_left_politely_and_not_connected_again() {
    let server = Server::new();
    // No time at all to drain: there still is some to flush.
    let rig = Rig::new("/dev/shm", server.backing());
    let answer = rig.ask(RequestKind::Discard, 0, 4096, Vec::new());
    answer.recv_timeout(LONG).unwrap().unwrap();
    rig.stop_within(Duration::ZERO).unwrap();
    // Time in which a connection would be made again.
    thread::sleep(Duration::from_millis(300));
    let connection = NbdBacking::connect(&server.uri()).unwrap();
    let commands: Vec<_> = server.commands.try_iter().collect();
    assert_eq!(commands, [(0, TRIM), (0, FLUSH), (0, DISCONNECT)]);
    drop(connection);
    let late = Rig::new("/dev/shm", server.backing());
    late.stop().unwrap();
    assert_eq!(
        server.commands.recv_timeout(LONG).unwrap(),
        (2, DISCONNECT),
        "the third connection, after the first and the test's; nothing was changed on it, so nothing is flushed"
    );
}

#[test]
fn a_server_that_is_silent_at_the_end_is_named() {
    let server = Server::new();
    let rig = Rig::new("/dev/shm", server.backing());
    let answer = rig.ask(RequestKind::Read, 0, 4096, Vec::new());
    assert_eq!(server.commands.recv_timeout(LONG).unwrap(), (0, READ));
    let end = rig.stop_within(Duration::ZERO);
    let Err(ReactorError::Unfinished { requests: 1, operations: 0, devices }) = end else {
        panic!("{end:?}")
    };
    // It answers the flush.
    assert_eq!(devices, [UnfinishedDevice { name: server.uri().to_string(), operations: 1, flushed: true }]);
    assert_eq!(answer.recv_timeout(LONG).unwrap(), Err(IoError::Io));
}
