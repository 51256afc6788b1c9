//! The NBD server over real sockets: what good clients get, and what bad ones cannot do.

// Tests may unwrap; the helpers among them too, which clippy does not know for tests.
#![allow(clippy::unwrap_used)]

mod support;

use larder_export::nbd::limits::{CONNECTIONS_PER_LISTENER, REQUESTS_PER_CONNECTION};
use larder_nbd::consts::{PAYLOAD_BYTES_MAX, cflag, option};
use larder_nbd::{Command, Request, client};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use support::{Client, Server, VOLUME_BYTES, ended, pattern, request};

const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;
const ESHUTDOWN: u32 = 108;

#[test]
fn what_is_written_is_read_in_all_sizes() {
    let server = Server::start(1);
    let mut client = server.client("v0");
    for (seed, length) in
        [512, 4096, 30_208, 32_768, 33_280, 131_072, 1 << 20, 32 << 20].into_iter().enumerate()
    {
        let data = pattern(seed as u64, length);
        client.write(512, &data);
        assert_eq!(client.read(512, length as u32), data, "{length}");
    }
    assert_eq!(client.read(0, 512), [0; 512]);
    drop(client);
    server.stop();
}

#[test]
fn both_transports_see_one_volume() {
    let server = Server::start(1);
    let (mut unix, mut tcp) = (server.client("v0"), server.tcp_client("v0"));
    let data = pattern(1, 70_000 / 512 * 512);
    tcp.write(4096, &data);
    assert_eq!(unix.read(4096, data.len() as u32), data);
    assert_eq!(server.table.connections("v0"), Some(2));
    drop((unix, tcp));
    server.stop();
}

#[test]
fn a_pipeline_of_many_sizes_keeps_every_byte() {
    let server = Server::start(1);
    let mut client = server.client("v0");
    let lengths: Vec<usize> = (0..200).map(|i| 512 * (1 + i * 37 % 150)).collect();
    let mut bytes = Vec::new();
    let mut offset = 0;
    for (index, length) in lengths.iter().enumerate() {
        let write = Request { cookie: index as u64, ..request(Command::Write, offset, *length as u32) };
        bytes.extend_from_slice(&write.encode());
        bytes.extend_from_slice(&pattern(index as u64, *length));
        offset += *length as u64;
    }
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || sender.write_all(&bytes).unwrap());
    let mut seen: Vec<u64> = lengths.iter().map(|_| client.receive()).map(|reply| reply.cookie).collect();
    sending.join().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (0..lengths.len() as u64).collect::<Vec<_>>());
    let mut offset = 0;
    for (index, length) in lengths.iter().enumerate() {
        assert_eq!(client.read(offset, *length as u32), pattern(index as u64, *length), "{index}");
        offset += *length as u64;
    }
    drop(client);
    server.stop();
}

#[test]
fn a_client_that_does_not_listen_is_no_longer_heard() {
    let server = Server::start(1);
    let mut client = server.client("v0");
    let count = 150 * REQUESTS_PER_CONNECTION;
    let reads: Vec<u8> = (0..count)
        .flat_map(|index| Request { cookie: index as u64, ..request(Command::Read, 0, 2048) }.encode())
        .collect();
    client.stream.set_nonblocking(true).unwrap();
    let mut sent = 0;
    // Goes on until the socket takes nothing for a while: the server stopped receiving long before all was sent.
    for _ in 0..50 {
        while let Ok(more) = client.stream.write(&reads[sent..]) {
            sent += more;
            if more == 0 {
                break;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(sent > 0 && sent < reads.len(), "{sent} of {}", reads.len());
    client.stream.set_nonblocking(false).unwrap();
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || sender.write_all(&reads[sent..]).unwrap());
    for _ in 0..count {
        assert_eq!(client.receive().error, 0);
    }
    sending.join().unwrap();
    drop(client);
    server.stop();
}

#[test]
fn one_tenants_clients_cannot_take_the_memory_of_anothers() {
    let server = Server::start_on(1, 2);
    let data = pattern(7, 1 << 20);
    server.client("v1").write(0, &data);
    let mut hogs: Vec<_> = (0..8).map(|_| server.client("v0")).collect();
    let count = 24;
    for hog in &mut hogs {
        hog.stream.write_all(&request(Command::Read, 0, 4 << 20).encode().repeat(count)).unwrap();
    }
    assert_eq!(hogs[0].receive().error, 0, "the hogs are at it; from now on they take nothing");

    let mut good = server.client("v1");
    for index in 0..200 {
        let (offset, length) = (index * 4600 / 512 * 512, 4096 << (index % 5));
        let expected = &data[offset..offset + length];
        assert_eq!(good.read(offset as u64, length as u32), expected, "read {index}");
    }
    assert_eq!(server.client("v1").read(0, 1 << 20), data, "a new connection is served");
    assert_eq!(good.read(0, 32 << 20)[..1 << 20], data, "as is the longest request");

    // Nobody had to be thrown out for that: every read is answered in the end.
    std::thread::scope(|scope| {
        for (index, hog) in hogs.iter_mut().enumerate() {
            let owed = count - usize::from(index == 0);
            scope.spawn(move || assert!((0..owed).all(|_| hog.receive().error == 0)));
        }
    });
    drop((good, hogs));
    server.stop();
}

#[test]
fn a_flood_of_status_queries_is_answered_whole_beside_others() {
    let server = Server::start_on(1, 2);
    let mut floods: Vec<_> = (0..4).map(|_| server.client("v0")).collect();
    let count = 1000;
    for flood in &mut floods {
        let query = |cookie| Request { cookie, ..request(Command::BlockStatus, cookie * 4096, 65_536) };
        let read = |cookie| Request { cookie, ..request(Command::Read, cookie * 4096, 512) };
        let both = |cookie| [query(cookie).encode(), read(cookie).encode()].concat();
        flood.stream.write_all(&(0..count).flat_map(both).collect::<Vec<_>>()).unwrap();
    }
    let mut other = server.client("v1");
    assert!((0..50).all(|_| other.read(0, 4096) == [0; 4096]));
    for flood in &mut floods {
        let mut replies: Vec<_> = (0..2 * count).map(|_| flood.receive()).collect();
        replies.sort_by_key(|reply| (reply.cookie, reply.data.len()));
        for (index, pair) in replies.chunks(2).enumerate() {
            assert_eq!(pair.iter().map(|reply| reply.cookie).collect::<Vec<_>>(), [index as u64; 2]);
            // One extent: a length, and the flags of a hole that reads as zeroes.
            assert_eq!(pair[0].data, [0, 1, 0, 0, 0, 0, 0, 3]);
            assert_eq!((pair[1].error, pair[1].data.len()), (0, 512));
        }
    }
    drop((other, floods));
    server.stop();
}

#[test]
fn a_volume_of_another_reactor_is_served_there() {
    let server = Server::start(2);
    let data = pattern(3, 1 << 20);
    let mut client = server.client("v1");
    client.write(0, &data);
    assert_eq!(client.read(0, 1 << 20), data);
    assert_eq!((server.table.connections("v0"), server.table.connections("v1")), (Some(0), Some(1)));
    drop(client);
    assert_eq!(server.backing(1)[..1 << 20], data);
    server.stop();
}

/// A client that sends its first requests with the `GO`, without waiting: they have to arrive on the other reactor.
#[test]
fn requests_behind_the_handshake_are_handed_over() {
    let server = Server::start(2);
    let mut stream = server.connect();
    let mut bytes = 3u32.to_be_bytes().to_vec();
    bytes.extend_from_slice(b"IHAVEOPT");
    bytes.extend_from_slice(&option::EXPORT_NAME.to_be_bytes());
    bytes.extend_from_slice(b"\0\0\0\x02v1");
    bytes.extend_from_slice(&request(Command::Write, 512, 4096).encode());
    bytes.extend_from_slice(&pattern(4, 4096));
    stream.write_all(&bytes).unwrap();
    let mut answer = [0; 18 + 10 + 16];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[28..], larder_nbd::reply::simple(0x1234, Ok(())));
    assert_eq!(server.backing(1)[512..512 + 4096], pattern(4, 4096));
    drop(stream);
    server.stop();
}

#[test]
fn zeroes_trims_flushes_and_fua() {
    let server = Server::start(1);
    let mut client = server.client("v0");
    client.write(0, &pattern(5, 65536));
    let fua = |command, offset, length| Request { flags: cflag::FUA, ..request(command, offset, length) };
    assert_eq!(client.ask(&fua(Command::WriteZeroes, 4096, 8192), &[]).error, 0);
    assert_eq!(client.read(4096, 8192), vec![0; 8192]);
    assert_eq!(client.ask(&fua(Command::Trim, 16384, 4096), &[]).error, 0);
    assert_eq!(client.ask(&request(Command::Flush, 0, 0), &[]).error, 0);
    assert_eq!(client.ask(&fua(Command::Write, 20480, 512), &[7; 512]).error, 0);
    assert_eq!(server.backing(0)[20480..20992], [7; 512]);
    drop(client);
    server.stop();
}

#[test]
fn allocation_is_told() {
    let server = Server::start(1);
    let mut client = server.client("v0");
    client.write(1 << 20, &pattern(6, 1 << 20));
    let whole = client.ask(&request(Command::BlockStatus, 0, 4 << 20), &[]);
    let mib = |mib: u32, flags: u32| [(mib << 20).to_be_bytes(), flags.to_be_bytes()].concat();
    assert_eq!(whole.data, [mib(1, 3), mib(1, 0), mib(2, 3)].concat());
    let one = Request { flags: cflag::REQ_ONE, ..request(Command::BlockStatus, 1 << 20, 3 << 20) };
    assert_eq!(client.ask(&one, &[]).data, mib(1, 0));
    drop(client);
    server.stop();
}

/// A refused write's payload is skipped, whatever its length: the next request is understood.
#[test]
fn refusals_leave_the_stream_in_step() {
    let server = Server::start(1);
    let mut client = server.client("v0");
    for length in [512, 100_000 / 512 * 512, 2 << 20] {
        let beyond = request(Command::Write, VOLUME_BYTES, length);
        assert_eq!(client.ask(&beyond, &vec![1; length as usize]).error, ENOSPC);
        let unaligned = request(Command::Write, 1, length);
        assert_eq!(client.ask(&unaligned, &vec![1; length as usize]).error, EINVAL);
    }
    assert_eq!(client.ask(&request(Command::Read, VOLUME_BYTES, 512), &[]).error, EINVAL);
    assert_eq!(client.ask(&request(Command::Read, 0, PAYLOAD_BYTES_MAX + 512), &[]).error, EOVERFLOW);
    assert_eq!(client.ask(&request(Command::Cache, 0, 512), &[]).error, EINVAL);
    assert_eq!(client.ask(&request(Command::Other(77), 0, 512), &[]).error, EINVAL);
    assert_eq!(client.read(0, 512), [0; 512]);
    drop(client);
    server.stop();
}

#[test]
fn malformed_clients_end_alone() {
    let server = Server::start(1);
    let mut good = server.client("v0");
    let mut bad = server.client("v0");
    bad.stream.write_all(&[0xaa; 28]).unwrap();
    assert!(bad.is_closed(), "bad magic");
    let mut bad = server.client("v0");
    bad.send(&request(Command::Write, 0, PAYLOAD_BYTES_MAX + 512), &[]);
    assert!(bad.is_closed(), "oversized write");
    let mut bad = server.client("v0");
    bad.stream.write_all(&request(Command::Read, 0, 512).encode()[..13]).unwrap();
    bad.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(bad.is_closed(), "half a request");
    for (length, part) in [(4096, 1000), (1 << 20, 300_000)] {
        let mut bad = server.client("v0");
        bad.send(&request(Command::Write, 0, length), &vec![9; part]);
        bad.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(bad.is_closed(), "disconnect in mid-write");
    }
    assert_eq!(good.read(0, 4096), [0; 4096], "nothing of half a write is written");
    drop(good);
    server.stop();
}

#[test]
fn malformed_handshakes_end_alone() {
    let server = Server::start(1);
    let mut good = server.client("v0");
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\x03IHAVEOPU\0\0\0\x07\0\0\0\0", &[0xff; 64]] {
        let mut stream = server.connect();
        stream.read_exact(&mut [0; 18]).unwrap();
        stream.write_all(nonsense).unwrap();
        assert!(ended(&mut stream));
    }
    drop(server.connect());
    assert_eq!(good.read(0, 512), [0; 512]);
    drop(good);
    server.stop();
}

#[test]
fn an_unknown_export_is_named() {
    let server = Server::start(2);
    let mut stream = server.connect();
    let mut handshake = client::Handshake::new("v9").unwrap();
    let error = loop {
        let mut input = [0; 1];
        stream.read_exact(&mut input).unwrap();
        let mut out = Vec::new();
        match handshake.feed(&input, &mut out) {
            Ok(_) => stream.write_all(&out).unwrap(),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains(r#"no export named \"v9\" here; there is \"v0\", \"v1\""#), "{error}");
    drop(stream);
    server.stop();
}

#[test]
fn connections_are_limited_and_come_free() {
    let server = Server::start(1);
    let mut clients: Vec<_> = (0..CONNECTIONS_PER_LISTENER).map(|_| server.client("v0")).collect();
    assert!(ended(&mut server.connect()), "one too many");
    let mut last = clients.pop().unwrap();
    last.send(&request(Command::Disconnect, 0, 0), &[]);
    assert!(last.is_closed());
    let mut another = server.client("v0");
    assert_eq!(another.read(0, 512), [0; 512]);
    drop((clients, another));
    server.stop();
}

#[test]
fn a_goodbye_waits_for_the_replies() {
    let server = Server::start(1);
    let mut client = server.client("v0");
    let mut bytes: Vec<u8> = (0..100)
        .flat_map(|index| Request { cookie: index, ..request(Command::Read, index * 65536, 65536) }.encode())
        .collect();
    bytes.extend_from_slice(&request(Command::Disconnect, 0, 0).encode());
    client.stream.write_all(&bytes).unwrap();
    for _ in 0..100 {
        assert_eq!(client.receive().data.len(), 65536);
    }
    assert!(client.is_closed());
    server.stop();
}

#[test]
fn stopping_answers_what_is_in_flight_and_refuses_the_rest() {
    let server = Server::start(2);
    let mut idle = server.client("v0");
    let mut busy = server.client("v1");
    let count = 64;
    let bytes: Vec<u8> = (0..count)
        .flat_map(|index| {
            let write = Request { cookie: index, ..request(Command::Write, index << 19, 1 << 19) };
            [&write.encode()[..], &pattern(index, 1 << 19)].concat()
        })
        .collect();
    let mut sender = busy.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || drop(sender.write_all(&bytes)));
    let first = busy.receive();
    server.begin_stop();
    assert!(idle.is_closed());
    let mut acknowledged = vec![first.cookie];
    while let Some(reply) = next_reply(&mut busy) {
        match reply.error {
            0 => acknowledged.push(reply.cookie),
            error => assert_eq!(error, ESHUTDOWN),
        }
    }
    sending.join().unwrap();
    let backing = server.backing(1);
    for index in acknowledged {
        assert_eq!(backing[(index as usize) << 19..][..1 << 19], pattern(index, 1 << 19), "{index}");
    }
    server.join();
}

/// The next reply, or `None` at the end of the stream.
fn next_reply(client: &mut Client<UnixStream>) -> Option<support::Reply> {
    let mut header = [0; 1];
    let mut stream = client.stream.try_clone().ok()?;
    match stream.read(&mut header) {
        Ok(1) => Some(Client { stream: Prefixed(Some(header[0]), stream), agreed: client.agreed }.receive()),
        _ => None,
    }
}

/// A stream of which the first byte was read already.
struct Prefixed(Option<u8>, UnixStream);

impl Read for Prefixed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match (self.0, buffer.first_mut()) {
            (Some(byte), Some(first)) => {
                *first = byte;
                self.0 = None;
                Ok(1)
            }
            _ => self.1.read(buffer),
        }
    }
}

impl Write for Prefixed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.1.flush()
    }
}
