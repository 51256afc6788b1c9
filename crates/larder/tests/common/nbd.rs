//! A small NBD client over unix sockets, written from the protocol's text: it shares no code with the server under test.
//!
//! It sends one request at a time, and lends its socket to tests that want to break the rules.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Option: describe an export and start transmission.
pub const OPT_GO: u32 = 7;
/// Command: read.
pub const READ: u16 = 0;
/// Command: write.
pub const WRITE: u16 = 1;
/// Command: flush.
pub const FLUSH: u16 = 3;
/// The largest payload that the server has to take, in bytes.
pub const PAYLOAD_MAX: u32 = 32 << 20;

const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;

/// A wait beyond this is a failure.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a request did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The server's answer: an errno.
    Refused(u32),
    /// The connection ended, or said what it may not.
    Broken(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// A connection, before or after the handshake.
#[derive(Debug)]
pub struct Client {
    /// The socket, for tests that send what no client sends.
    pub stream: UnixStream,
    cookie: u64,
}

impl Client {
    /// Connect, and take the server's greeting; the client's flags are not sent yet.
    pub fn greeted(socket: &Path) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        expect(&greeting[..16] == b"NBDMAGICIHAVEOPT", "greeting")?;
        Ok(Self { stream, cookie: 0 })
    }

    /// Connect, and agree on fixed newstyle without zeroes.
    pub fn negotiating(socket: &Path) -> io::Result<Self> {
        let mut client = Self::greeted(socket)?;
        client.stream.write_all(&3u32.to_be_bytes())?;
        Ok(client)
    }

    /// Connect to an export.
    pub fn open(socket: &Path, export: &str) -> io::Result<Self> {
        let mut client = Self::negotiating(socket)?;
        client.send_option(OPT_GO, &go(export))?;
        loop {
            match client.option_reply()? {
                (OPT_GO, REPLY_INFO, _) => {}
                (OPT_GO, REPLY_ACK, _) => return Ok(client),
                (option, kind, data) => {
                    let message = String::from_utf8_lossy(&data);
                    return Err(io::Error::other(format!("option {option}: reply {kind:#x} {message}")));
                }
            }
        }
    }

    /// Connect to an export that must be there.
    pub fn connect(socket: &Path, export: &str) -> Self {
        Self::open(socket, export).unwrap_or_else(|error| panic!("{}: {export}: {error}", socket.display()))
    }

    /// Send an option.
    pub fn send_option(&mut self, option: u32, data: &[u8]) -> io::Result<()> {
        self.stream.write_all(&option_header(option, data.len() as u32))?;
        self.stream.write_all(data)
    }

    /// The next reply to an option: the option, the type of the reply, its data.
    pub fn option_reply(&mut self) -> io::Result<(u32, u32, Vec<u8>)> {
        let mut header = [0; 20];
        self.stream.read_exact(&mut header)?;
        expect(be64(&header, 0) == OPTION_REPLY_MAGIC, "magic of a reply to an option")?;
        let len = be32(&header, 16) as usize;
        expect(len < 65536, "length of a reply to an option")?;
        let mut data = vec![0; len];
        self.stream.read_exact(&mut data)?;
        Ok((be32(&header, 8), be32(&header, 12), data))
    }

    /// Read from the export.
    pub fn read(&mut self, offset: u64, len: u32) -> Result<Vec<u8>, Failure> {
        let cookie = self.send(READ, offset, len, &[])?;
        self.reply(cookie)?;
        let mut data = vec![0; len as usize];
        self.stream.read_exact(&mut data)?;
        Ok(data)
    }

    /// Write to the export.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        let cookie = self.send(WRITE, offset, data.len() as u32, data)?;
        self.reply(cookie)
    }

    /// Make all completed writes durable.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let cookie = self.send(FLUSH, 0, 0, &[])?;
        self.reply(cookie)
    }

    /// Send a request; its cookie.
    pub fn send(&mut self, command: u16, offset: u64, len: u32, payload: &[u8]) -> io::Result<u64> {
        self.cookie += 1;
        let mut message = request(command, self.cookie, offset, len).to_vec();
        message.extend_from_slice(payload);
        self.stream.write_all(&message)?;
        Ok(self.cookie)
    }

    /// The reply to a request; a read's data follows it.
    pub fn reply(&mut self, cookie: u64) -> Result<(), Failure> {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header)?;
        expect(be32(&header, 0) == REPLY_MAGIC, "magic of a reply")?;
        expect(be64(&header, 8) == cookie, "cookie of a reply")?;
        match be32(&header, 4) {
            0 => Ok(()),
            errno => Err(Failure::Refused(errno)),
        }
    }

    /// Read until the server closes the connection; the bytes until there.
    ///
    /// # Panics
    /// If it stays open.
    pub fn until_closed(&mut self) -> Vec<u8> {
        let (mut all, mut some) = (Vec::new(), [0; 4096]);
        loop {
            match self.stream.read(&mut some) {
                Ok(0) => return all,
                Ok(count) => all.extend_from_slice(&some[..count]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return all,
                Err(error) => panic!("the server does not close: {error}"),
            }
            assert!(all.len() < 1 << 20, "the server keeps talking");
        }
    }
}

/// The data of `GO`: the export's name, no information asked for.
pub fn go(export: &str) -> Vec<u8> {
    let mut data = (export.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(export.as_bytes());
    data.extend_from_slice(&[0, 0]);
    data
}

/// The header of an option with `len` bytes of data.
pub fn option_header(option: u32, len: u32) -> Vec<u8> {
    [&OPTION_MAGIC.to_be_bytes()[..], &option.to_be_bytes(), &len.to_be_bytes()].concat()
}

/// The header of a request.
pub fn request(command: u16, cookie: u64, offset: u64, len: u32) -> [u8; 28] {
    let mut header = [0; 28];
    header[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    header[6..8].copy_from_slice(&command.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..24].copy_from_slice(&offset.to_be_bytes());
    header[24..].copy_from_slice(&len.to_be_bytes());
    header
}

fn expect(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidData, format!("wrong {what}"))) }
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
