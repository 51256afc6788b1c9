//! An NBD backing driven with blocking calls, one request at a time: for the offline tools.

use super::connect::NbdBacking;
use larder_nbd::client::{Event, Outstanding, Outstandings, ReplyParser};
use larder_nbd::consts::tflag;
use larder_nbd::{Command, Request};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::time::Duration;

/// A server that says nothing for this long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a write where the server takes as many.
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// A connection to an export.
#[derive(Debug)]
pub(crate) struct BlockingNbd {
    socket: Socket,
    parser: ReplyParser,
    bytes: u64,
    write_max: u32,
    flushes: bool,
    cookie: u64,
}

/// The one request that waits.
struct Waiting {
    cookie: u64,
    outstanding: Outstanding,
}

impl Outstandings for Waiting {
    fn outstanding(&mut self, cookie: u64) -> Option<&mut Outstanding> {
        (cookie == self.cookie).then_some(&mut self.outstanding)
    }
}

impl BlockingNbd {
    /// Go on with a connection.
    pub fn new(backing: NbdBacking) -> Self {
        let (bytes, connection) = (backing.bytes(), backing.connection);
        let agreed = connection.agreed;
        Self {
            socket: connection.socket.into(),
            parser: ReplyParser::new(agreed.structured, agreed.base_allocation),
            bytes,
            write_max: agreed.block.max.clamp(4096, WRITE_BYTES_MAX) / 4096 * 4096,
            flushes: agreed.flags & tflag::SEND_FLUSH != 0,
            cookie: 0,
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Write, in as many requests as the server wants.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (at, piece) in (0..).zip(bytes.chunks(self.write_max as usize)) {
            self.ask(Command::Write, offset + at * u64::from(self.write_max), piece)?;
        }
        Ok(())
    }

    /// Flush. A server that offers no flush is taken to have nothing to flush.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.flushes { self.ask(Command::Flush, 0, &[]) } else { Ok(()) }
    }

    fn ask(&mut self, command: Command, offset: u64, payload: &[u8]) -> io::Result<()> {
        self.socket.set_read_timeout(Some(TIMEOUT))?;
        self.socket.set_write_timeout(Some(TIMEOUT))?;
        self.cookie += 1;
        // A payload has at most WRITE_BYTES_MAX.
        let length = payload.len() as u32;
        let request = Request { cookie: self.cookie, command, flags: 0, offset, length };
        self.socket.write_all(&request.encode())?;
        self.socket.write_all(payload)?;
        self.answer(Waiting { cookie: self.cookie, outstanding: Outstanding::new(&request) })
    }

    fn answer(&mut self, mut waiting: Waiting) -> io::Result<()> {
        let mut input = [0; 4096];
        loop {
            let count = self.socket.read(&mut input)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (consumed, event) =
                self.parser.next(&input[..count], &mut waiting).map_err(io::Error::other)?;
            match event {
                None => {}
                Some(Event::Done { .. }) if consumed < count => {
                    return Err(io::Error::other("the server says more than it was asked"));
                }
                // The protocol's error numbers are Linux's.
                Some(Event::Done { result, .. }) => {
                    return result.map_err(|code| io::Error::from_raw_os_error(code.to_wire() as i32));
                }
                Some(_) => return Err(io::Error::other("the server answers with data to a write")),
            }
        }
    }
}

impl Drop for BlockingNbd {
    /// A server may hold a connection that breaks off for an error.
    fn drop(&mut self) {
        let goodbye = Request { cookie: 0, command: Command::Disconnect, flags: 0, offset: 0, length: 0 };
        let _ = self.socket.write_all(&goodbye.encode());
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_server::{FLUSHES, FakeServer, Greeting, Peer};
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    /// A client of a server that tells each request's kind, offset and length, and lets `answer` answer.
    fn connect(
        flags: u16,
        answer: impl Fn(&mut Peer, super::super::fake_server::Asked) -> io::Result<()> + Send + Sync + 'static,
    ) -> (BlockingNbd, Receiver<(u16, u64, u32)>, FakeServer) {
        let (tell, told) = channel();
        let greeting = Greeting { flags, block_max: 8704, ..Greeting::default() };
        let server = FakeServer::new(
            move |_| greeting,
            move |peer, _| loop {
                let asked = peer.request()?;
                if asked.kind == super::super::fake_server::WRITE {
                    peer.payload(asked.len)?;
                }
                // The test may have ended.
                let _ = tell.send((asked.kind, asked.offset, asked.len));
                answer(peer, asked)?;
            },
        );
        let client = BlockingNbd::new(NbdBacking::connect(&server.uri()).unwrap());
        (client, told, server)
    }

    #[test]
    fn writes_are_cut_as_the_server_wants_and_flushed() {
        let (mut client, told, _server) = connect(FLUSHES, |peer, asked| peer.answer(asked, &[]));
        client.write(4096, &[7; 16_384 + 512]).unwrap();
        client.flush().unwrap();
        drop(client);
        let expected = [(1, 4096, 8192), (1, 12_288, 8192), (1, 20_480, 512), (3, 0, 0), (2, 0, 0)];
        assert_eq!(told.iter().take(5).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn errors_and_ends_are_told() {
        let (mut client, ..) = connect(FLUSHES, |_, _| Err(io::ErrorKind::ConnectionReset.into()));
        assert_eq!(client.flush().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let (mut client, ..) = connect(FLUSHES, |peer, asked| peer.answer(asked, &[1]));
        assert!(client.write(0, &[0; 512]).unwrap_err().to_string().contains("more than it was asked"));
        // It offers no flush.
        let (mut client, told, _server) = connect(1, |peer, asked| peer.answer(asked, &[]));
        client.flush().unwrap();
        drop(client);
        assert_eq!(told.iter().next(), Some((2, 0, 0)));
    }
}
