//! Clients that break the protocol: their connection ends, or gets the protocol's error, and nobody else notices.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::time::Duration;

use crate::common::daemon::Larder;
use crate::common::nbd::{Client, Failure, OPT_GO, PAYLOAD_MAX, READ, WRITE, go, option_header, request};
use crate::common::pattern::{random, stamp};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;

/// NBD's numbers of errors and replies.
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const ERR_UNSUP: u32 = 1 << 31 | 1;
const ERR_INVALID: u32 = 1 << 31 | 3;
const ERR_UNKNOWN: u32 = 1 << 31 | 6;
const ERR_TOO_BIG: u32 = 1 << 31 | 9;

/// A daemon with a well-behaved client at work, on the same reactor as the export `t0` for the others.
struct Scene {
    larder: Larder,
    traffic: Traffic,
}

impl Scene {
    fn new() -> Self {
        let setup = Setup::new("1MiB").tenant("t", "write_policy = \"wt\"");
        let larder = setup.volume("t0", 4 * MIB).volume("t1", 4 * MIB).start();
        let traffic = Traffic::verified(&larder.socket("t1"), "t1", 512);
        Self { larder, traffic }
    }

    fn greeted(&self) -> Client {
        Client::greeted(&self.larder.socket("t0")).expect("a greeting")
    }

    fn negotiating(&self) -> Client {
        Client::negotiating(&self.larder.socket("t0")).expect("a greeting")
    }

    fn connected(&self) -> Client {
        Client::connect(&self.larder.socket("t0"), "t0")
    }

    /// Others are served, on both exports; the daemon ends cleanly.
    fn finish(self) {
        self.traffic.goes_on();
        self.connected().read(0, 512).expect("a read on a new connection");
        self.traffic.finish();
        self.larder.stop();
    }
}

/// Send bytes that the server may refuse to take to the end.
fn send(client: &mut Client, bytes: &[u8]) {
    // It may have closed already, which is what the caller looks at next.
    let _ = client.stream.write_all(bytes);
}

fn errno(result: Result<impl std::fmt::Debug, Failure>) -> u32 {
    match result {
        Err(Failure::Refused(errno)) => errno,
        other => panic!("neither refused nor open: {other:?}"),
    }
}

#[test]
fn a_broken_handshake_ends_the_connection() {
    let scene = Scene::new();
    let no_magic = [&b"IHAVEOPX"[..], &option_header(OPT_GO, 0)[8..]].concat();
    let flags = |flags: u32| flags.to_be_bytes().to_vec();
    let openings = [
        flags(0xffff_ffff),
        [flags(3), no_magic].concat(),
        [flags(3), vec![0; 64]].concat(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
    ];
    for opening in openings {
        let mut client = scene.greeted();
        send(&mut client, &opening);
        assert!(client.until_closed().is_empty(), "an answer to {opening:?}");
        scene.traffic.goes_on();
    }
    scene.finish();
}

#[test]
fn options_that_are_unknown_or_wrong_are_refused_and_the_next_one_counts() {
    let scene = Scene::new();
    let mut client = scene.negotiating();
    let mut reply = |option: u32, data: &[u8]| {
        client.send_option(option, data).expect("an option sent");
        let (answered, kind, _) = client.option_reply().expect("a reply");
        assert_eq!(answered, option);
        kind
    };
    assert_eq!(reply(0xdead, b""), ERR_UNSUP);
    assert_eq!(reply(5, b""), ERR_UNSUP, "TLS");
    assert_eq!(reply(0xdead, &[7; 5000]), ERR_UNSUP);
    assert_eq!(reply(OPT_GO, &go("nobody")), ERR_UNKNOWN);
    assert_eq!(reply(OPT_GO, b"\0\0\0\x09t0\0\0"), ERR_INVALID);
    assert_eq!(reply(OPT_GO, b"\0"), ERR_INVALID);
    client.send_option(OPT_GO, &go("t0")).expect("an option sent");
    let kinds: Vec<_> =
        std::iter::from_fn(|| client.option_reply().ok()).map(|reply| reply.1).take(3).collect();
    assert!(kinds.contains(&1), "no acknowledgement among {kinds:?}");
    scene.finish();
}

#[test]
fn an_option_of_4_gib_is_not_waited_for() {
    let scene = Scene::new();
    let mut client = scene.negotiating();
    send(&mut client, &option_header(0xdead, u32::MAX));
    send(&mut client, &[0; 4096]);
    match client.option_reply() {
        Ok((_, kind, _)) => assert_eq!(kind, ERR_TOO_BIG),
        Err(_) => assert!(client.until_closed().is_empty()),
    }
    scene.finish();
}

#[test]
fn a_request_without_magic_ends_the_connection() {
    let scene = Scene::new();
    let mut client = scene.connected();
    send(&mut client, &[0; 28]);
    assert!(client.until_closed().is_empty());
    scene.finish();
}

#[test]
fn an_oversized_write_ends_the_connection_or_is_refused() {
    let scene = Scene::new();
    for len in [PAYLOAD_MAX + 512, u32::MAX - 511] {
        let mut client = scene.connected();
        send(&mut client, &request(WRITE, 1, 0, len));
        match client.reply(1) {
            Err(Failure::Refused(errno)) => assert_eq!(errno, EINVAL),
            Err(Failure::Broken(error)) => assert_ne!(error.kind(), ErrorKind::WouldBlock, "no answer"),
            Ok(()) => panic!("a write of {len} bytes without its data succeeded"),
        }
        scene.traffic.goes_on();
    }
    scene.finish();
}

#[test]
fn requests_that_cannot_be_served_are_refused_and_the_connection_goes_on() {
    let scene = Scene::new();
    let mut client = scene.connected();
    let size = 4 * MIB;
    assert_eq!(errno(client.read(size, 512)), EINVAL);
    assert_eq!(errno(client.read(size - 512, 1024)), EINVAL);
    assert_eq!(errno(client.read(u64::MAX - 511, 512)), EINVAL);
    assert_eq!(errno(client.write(size, &[1; 512])), ENOSPC);
    assert_eq!(errno(client.write(size - 512, &[1; 1024])), ENOSPC);
    assert_eq!(errno(client.read(1, 512)), EINVAL);
    assert_eq!(errno(client.write(0, &[1; 100])), EINVAL);
    let cookie = client.send(0x7777, 0, 512, &[]).expect("a request sent");
    assert_eq!(errno(client.reply(cookie)), EINVAL, "an unknown command");
    assert_eq!(client.read(0, 512).expect("a read after all that"), [0; 512]);
    assert_eq!(client.read(size - 512, 512).expect("the last sector"), [0; 512]);
    scene.finish();
}

#[test]
fn half_a_request_then_silence_or_the_end_disturbs_nobody() {
    let scene = Scene::new();
    let silent: Vec<_> = [1, 4, 13, 27]
        .map(|len| {
            let mut client = scene.connected();
            send(&mut client, &request(READ, 1, 0, 4096)[..len]);
            client
        })
        .into();
    let mut handshakes: Vec<_> = (0..4).map(|_| scene.negotiating()).collect();
    handshakes.iter_mut().for_each(|client| send(client, &option_header(OPT_GO, 100)[..11]));
    scene.traffic.goes_on();
    drop(silent);
    drop(handshakes);
    scene.finish();
}

#[test]
fn a_disconnect_in_mid_write_leaves_whole_sectors() {
    let scene = Scene::new();
    let (old, new) = (stamp(1, 1, 0, 16 * BLOCK), stamp(1, 2, 0, 16 * BLOCK));
    scene.connected().write(0, &old).expect("the old data");
    for sent in [0, 1, 512, 4096, 30_000, 16 * BLOCK as usize - 1] {
        let mut client = scene.connected();
        send(&mut client, &request(WRITE, 1, 0, new.len() as u32));
        send(&mut client, &new[..sent]);
        drop(client);
        scene.traffic.goes_on();
        let found = scene.connected().read(0, new.len() as u32).expect("a read after the disconnect");
        let torn =
            found.chunks(512).zip(old.chunks(512).zip(new.chunks(512))).find(|(f, (o, n))| f != o && f != n);
        assert!(torn.is_none(), "a sector that nobody wrote, after {sent} bytes");
    }
    scene.finish();
}

#[test]
fn a_client_that_never_takes_its_replies_disturbs_nobody() {
    let scene = Scene::new();
    let mut client = scene.connected();
    client.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    // Far more data than the server may keep for one connection; at some point it stops listening to this one.
    for cookie in 0..2000 {
        if client.stream.write_all(&request(READ, cookie, 0, 1 << 20)).is_err() {
            break;
        }
    }
    scene.traffic.goes_on();
    let resident = resident_bytes(&scene);
    assert!(resident < 700 * MIB, "{resident} bytes are resident");
    scene.finish();
}

/// Memory of the daemon as the kernel counts it.
fn resident_bytes(scene: &Scene) -> u64 {
    let path = format!("/proc/{}/status", scene.larder.id());
    let status = std::fs::read_to_string(path).expect("the state of a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

#[test]
fn garbage_ends_the_connection() {
    let scene = Scene::new();
    let mut state = 42;
    for round in 0..40 {
        let mut client = if round % 2 == 0 { scene.greeted() } else { scene.connected() };
        let len = 28 + random(&mut state, 4096);
        let garbage: Vec<u8> = (0..len).map(|_| random(&mut state, 256) as u8).collect();
        send(&mut client, &garbage);
        // It fails where the server has closed already.
        let _ = client.stream.shutdown(Shutdown::Write);
        client.until_closed();
    }
    scene.finish();
}
