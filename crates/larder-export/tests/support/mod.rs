//! A server in this process, and a client that speaks NBD by hand.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod disk;
pub mod rogue;

use larder_engine::WritePolicy;
use larder_export::nbd::{Export, ExportTable, NbdFrontend};
use larder_export::vhost::{VhostFrontend, VhostVolume};
use larder_export::{ExportCommand, Exports, ListenAddress, Listener, Users, bind};
use larder_io::{
    Backing, CachePlan, CacheSpec, Handle, ReactorBuilder, ReactorConfig, ReactorSnapshot, ReactorThread,
    SharedPool, mailbox,
};
use larder_nbd::client::{self, Connected};
use larder_nbd::{Command, Request};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Size of every volume.
pub const VOLUME_BYTES: u64 = 64 << 20;
/// What a test waits at most before it fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Volumes `v0`, `v1`, … each of a tenant of its own, all offered over NBD on one Unix socket and on a TCP port, and each over vhost-user.
pub struct Server {
    pub directory: tempfile::TempDir,
    pub table: Arc<ExportTable>,
    pub tcp: SocketAddr,
    handles: Vec<Handle<ExportCommand>>,
    threads: Vec<ReactorThread>,
}

impl Server {
    /// Each volume on a reactor of its own.
    pub fn start(volumes: usize) -> Self {
        Self::start_on(volumes, volumes)
    }

    /// The volumes on so many reactors, in turn.
    pub fn start_on(reactors: usize, volumes: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let spec = CacheSpec { path: directory.path().join("cache"), size: 16 << 20, block_bytes: 4096 };
        let cache = CachePlan::check(spec).unwrap().format().unwrap();
        let pool = SharedPool::new(cache.blocks());
        let builder = |_| ReactorBuilder::new(ReactorConfig::default(), &cache, pool.clone()).unwrap();
        let mut builders: Vec<_> = (0..reactors).map(builder).collect();
        let exports: Vec<Export> =
            (0..volumes).map(|index| volume(&directory, &mut builders, index)).collect();
        let mut disks: Vec<Vec<VhostVolume>> = (0..reactors).map(|_| Vec::new()).collect();
        for Export { name, reactor, volume, info, .. } in exports.clone() {
            let listener =
                bind(&ListenAddress::Unix(directory.path().join(format!("{name}.vhost")))).unwrap();
            disks[reactor].push(VhostVolume { name, volume, info, listener, users: Users::default() });
        }
        let table = ExportTable::new(exports);
        let unix = bind(&ListenAddress::Unix(directory.path().join("socket"))).unwrap();
        let tcp = bind(&ListenAddress::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let ListenAddress::Tcp(port) = *tcp.address() else { panic!() };
        let (handles, threads) =
            run(builders, vec![(unix, Arc::clone(&table)), (tcp, Arc::clone(&table))], disks);
        Self { directory, table, tcp: port, handles, threads }
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// Where a hypervisor finds a volume.
    pub fn vhost_socket(&self, volume: usize) -> PathBuf {
        self.directory.path().join(format!("v{volume}.vhost"))
    }

    /// The backing of a volume, to be looked at when the server is gone.
    pub fn backing_file(&self, index: usize) -> fs::File {
        fs::File::open(self.directory.path().join(format!("backing{index}"))).unwrap()
    }

    /// What the backing of a volume holds.
    pub fn backing(&self, index: usize) -> Vec<u8> {
        fs::read(self.directory.path().join(format!("backing{index}"))).unwrap()
    }

    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A client that has chosen a volume.
    pub fn client(&self, export: &str) -> Client<UnixStream> {
        Client::negotiate(self.connect(), export)
    }

    pub fn tcp_client(&self, export: &str) -> Client<TcpStream> {
        let stream = TcpStream::connect(self.tcp).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client::negotiate(stream, export)
    }

    /// A reactor as it is now.
    pub fn snapshot(&self, reactor: usize) -> ReactorSnapshot {
        self.handles[reactor].snapshot().unwrap().recv_timeout(PATIENCE).unwrap()
    }

    /// Tell the reactors to stop, without waiting.
    pub fn begin_stop(&self) {
        self.handles.iter().for_each(|handle| handle.stop(PATIENCE).unwrap());
    }

    /// Stop, and see that everything ended in order.
    pub fn stop(self) {
        self.begin_stop();
        self.join();
    }

    pub fn join(self) {
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(!self.directory.path().join("socket").exists(), "the socket's file is removed");
    }
}

fn volume(directory: &tempfile::TempDir, builders: &mut [ReactorBuilder], index: usize) -> Export {
    let path = directory.path().join(format!("backing{index}"));
    fs::File::create(&path).unwrap().set_len(VOLUME_BYTES).unwrap();
    let reactor = index % builders.len();
    let builder = &mut builders[reactor];
    let tenant = builder.add_tenant(1024, WritePolicy::WriteThrough).unwrap();
    let volume = builder.add_volume(tenant, Backing::open(path.to_str().unwrap()).unwrap()).unwrap();
    let info = builder.volume(volume).unwrap();
    let (name, description, identity) = (format!("v{index}"), "a disk".into(), "this one".into());
    Export { name, description, identity, reactor, volume, info }
}

fn run(
    builders: Vec<ReactorBuilder>,
    mut listeners: Vec<(Listener, Arc<ExportTable>)>,
    mut disks: Vec<Vec<VhostVolume>>,
) -> (Vec<Handle<ExportCommand>>, Vec<ReactorThread>) {
    let (handles, inboxes): (Vec<_>, Vec<_>) = builders.iter().map(|_| mailbox().unwrap()).unzip();
    let start = |(index, (builder, inbox)): (usize, (ReactorBuilder, _))| {
        let nbd = NbdFrontend::new(index, handles.clone(), std::mem::take(&mut listeners));
        let vhost = VhostFrontend::new(handles[index].clone(), std::mem::take(&mut disks[index]));
        let frontend = Exports::new(nbd, vhost);
        builder.spawn(frontend, inbox).unwrap()
    };
    let threads = builders.into_iter().zip(inboxes).enumerate().map(start).collect();
    (handles, threads)
}

/// A client after its handshake, that sends whatever it is told.
pub struct Client<S> {
    pub stream: S,
    pub agreed: Connected,
}

/// A reply: its cookie, its error (0: none), and what was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub cookie: u64,
    pub error: u32,
    pub data: Vec<u8>,
}

impl<S: Read + Write> Client<S> {
    pub fn negotiate(mut stream: S, export: &str) -> Self {
        let mut handshake = client::Handshake::new(export).unwrap();
        let mut input = [0; 1];
        loop {
            stream.read_exact(&mut input).unwrap();
            let mut out = Vec::new();
            let (_, progress) = handshake.feed(&input, &mut out).unwrap();
            stream.write_all(&out).unwrap();
            if let client::Progress::Ready(agreed) = progress {
                return Self { stream, agreed };
            }
        }
    }

    pub fn send(&mut self, request: &Request, payload: &[u8]) {
        self.stream.write_all(&[&request.encode(), payload].concat()).unwrap();
    }

    /// The next reply, of a connection with structured replies.
    pub fn receive(&mut self) -> Reply {
        let magic = u32::from_be_bytes(self.take());
        if magic == larder_nbd::consts::SIMPLE_REPLY_MAGIC {
            let error = u32::from_be_bytes(self.take());
            return Reply { cookie: u64::from_be_bytes(self.take()), error, data: Vec::new() };
        }
        assert_eq!(magic, larder_nbd::consts::STRUCTURED_REPLY_MAGIC);
        let [_, done, kind @ ..]: [u8; 4] = self.take();
        let cookie = u64::from_be_bytes(self.take());
        let mut payload = vec![0; u32::from_be_bytes(self.take()) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        assert_eq!(done, 1, "one chunk is a reply");
        match u16::from_be_bytes(kind) {
            larder_nbd::consts::chunk::OFFSET_DATA => Reply { cookie, error: 0, data: payload.split_off(8) },
            larder_nbd::consts::chunk::BLOCK_STATUS => Reply { cookie, error: 0, data: payload.split_off(4) },
            larder_nbd::consts::chunk::ERROR => Reply {
                cookie,
                error: u32::from_be_bytes(payload[..4].try_into().unwrap()),
                data: Vec::new(),
            },
            other => panic!("chunk of type {other}"),
        }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Send one request and wait for its reply.
    pub fn ask(&mut self, request: &Request, payload: &[u8]) -> Reply {
        self.send(request, payload);
        let reply = self.receive();
        assert_eq!(reply.cookie, request.cookie);
        reply
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let reply = self.ask(&request(Command::Read, offset, length), &[]);
        assert_eq!(reply.error, 0);
        reply.data
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let reply = self.ask(&request(Command::Write, offset, data.len() as u32), data);
        assert_eq!(reply.error, 0);
    }

    /// True if the server has closed the connection, and sent nothing more.
    pub fn is_closed(&mut self) -> bool {
        ended(&mut self.stream)
    }
}

/// True if the stream ends here. A reset counts: the server closed with our bytes unread.
pub fn ended(stream: &mut impl Read) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => {
            matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe)
        }
    }
}

pub fn request(command: Command, offset: u64, length: u32) -> Request {
    Request { cookie: 0x1234, command, flags: 0, offset, length }
}

/// Bytes that differ from place to place and from seed to seed.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length.div_ceil(8)).flat_map(|_| next()).take(length).collect()
}
