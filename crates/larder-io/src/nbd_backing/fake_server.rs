//! An NBD server that does what a test tells it, wrong things included.

use larder_nbd::consts::{OPTION_REPLY_MAGIC, SIMPLE_REPLY_MAGIC};
use larder_nbd::{Address, Uri};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISCONNECT: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
/// It flushes, and does no more than it must.
pub(crate) const FLUSHES: u16 = 0b101;

/// What a client is told of the export.
#[derive(Clone, Copy)]
pub(crate) struct Greeting {
    pub bytes: u64,
    pub flags: u16,
    pub block_max: u32,
}

impl Default for Greeting {
    fn default() -> Self {
        Self { bytes: 64 << 20, flags: FLUSHES, block_max: 32 << 20 }
    }
}

/// A listener; every connection has its thread.
pub(crate) struct FakeServer {
    directory: tempfile::TempDir,
    connections: Arc<AtomicUsize>,
}

impl FakeServer {
    /// `greet` and `serve` are told the number of the connection, from 1 on.
    pub fn new(
        greet: impl Fn(usize) -> Greeting + Send + Sync + 'static,
        serve: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, deeds) = (Arc::clone(&connections), Arc::new((greet, serve)));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (number, deeds) = (count.fetch_add(1, Ordering::SeqCst) + 1, Arc::clone(&deeds));
                thread::spawn(move || {
                    let mut peer = Peer { stream };
                    // The client may leave at any time.
                    let _ = peer.shake_hands(&deeds.0, number).and_then(|()| (deeds.1)(&mut peer, number));
                });
            }
        });
        Self { directory, connections }
    }

    pub fn uri(&self) -> Uri {
        Uri { address: Address::Unix(self.directory.path().join("socket")), export: String::new() }
    }

    /// So many clients have come.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A client, past its handshake.
pub(crate) struct Peer {
    stream: UnixStream,
}

/// A request as it came, its payload not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub kind: u16,
    pub cookie: u64,
    pub offset: u64,
    pub len: u32,
}

impl Peer {
    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn shake_hands(&mut self, greet: impl Fn(usize) -> Greeting, number: usize) -> io::Result<()> {
        const GO: u32 = 7;
        self.stream.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
        self.bytes::<12>()?;
        loop {
            let option = u32::from_be_bytes(self.bytes()?);
            let len = u32::from_be_bytes(self.bytes()?);
            self.payload(len)?;
            if option != GO {
                self.reply(option, 0x8000_0001, &[])?;
                self.bytes::<8>()?;
                continue;
            }
            let Greeting { bytes, flags, block_max } = greet(number);
            let size = [&[0, 0][..], &bytes.to_be_bytes(), &flags.to_be_bytes()].concat();
            let blocks = [512, 4096, block_max].map(u32::to_be_bytes).concat();
            self.reply(option, 3, &size)?;
            self.reply(option, 3, &[&[0, 3][..], &blocks].concat())?;
            return self.reply(option, 1, &[]);
        }
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let head = [option, kind, data.len() as u32].map(u32::to_be_bytes).concat();
        self.stream.write_all(&[&OPTION_REPLY_MAGIC.to_be_bytes()[..], &head, data].concat())
    }

    /// The next request.
    pub fn request(&mut self) -> io::Result<Asked> {
        let _magic_and_flags = self.bytes::<6>()?;
        Ok(Asked {
            kind: u16::from_be_bytes(self.bytes()?),
            cookie: u64::from_be_bytes(self.bytes()?),
            offset: u64::from_be_bytes(self.bytes()?),
            len: u32::from_be_bytes(self.bytes()?),
        })
    }

    /// The payload of a write.
    pub fn payload(&mut self, len: u32) -> io::Result<Vec<u8>> {
        let mut data = vec![0; len as usize];
        self.stream.read_exact(&mut data)?;
        Ok(data)
    }

    /// Success, with data for a read.
    pub fn answer(&mut self, asked: Asked, data: &[u8]) -> io::Result<()> {
        let magic = SIMPLE_REPLY_MAGIC.to_be_bytes();
        self.stream.write_all(&[&magic[..], &[0; 4], &asked.cookie.to_be_bytes(), data].concat())
    }

    /// Do as a server does, with an empty disk that forgets.
    pub fn serve(&mut self) -> io::Result<()> {
        loop {
            let asked = self.request()?;
            match asked.kind {
                READ => self.answer(asked, &vec![0; asked.len as usize])?,
                WRITE => {
                    self.payload(asked.len)?;
                    self.answer(asked, &[])?;
                }
                DISCONNECT => return Ok(()),
                _ => self.answer(asked, &[])?,
            }
        }
    }
}
