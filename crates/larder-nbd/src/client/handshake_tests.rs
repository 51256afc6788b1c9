//! The client's handshake against our server, against older servers, and against bytes that mean nothing.

use super::*;
use crate::export::tests::Named;
use crate::server;
use proptest::prelude::*;

const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\x00\x03";

/// Replies of a server, as bytes.
fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u64(OPTION_REPLY_MAGIC);
    bytes.put_u32(option);
    bytes.put_u32(kind);
    bytes.put_u32(data.len() as u32);
    bytes.extend_from_slice(data);
    bytes
}

fn export_info() -> Vec<u8> {
    reply(option::GO, rep::INFO, b"\0\0\0\0\0\0\0\0\x10\0\0\x05")
}

/// A client that was greeted and refused structured replies: it asks for GO.
fn asking_go() -> Handshake {
    let mut client = Handshake::new("a").unwrap();
    client.feed(GREETING, &mut Vec::new()).unwrap();
    let refused = reply(option::STRUCTURED_REPLY, rep::ERR_UNSUP, b"");
    let mut out = Vec::new();
    assert_eq!(client.feed(&refused, &mut out).unwrap().1, Progress::NeedMore);
    assert_eq!(out, b"IHAVEOPT\0\0\0\x07\0\0\0\x09\0\0\0\x01a\0\x01\0\x03");
    client
}

fn feed(client: &mut Handshake, input: &[u8]) -> Result<Progress, HandshakeError> {
    client.feed(input, &mut Vec::new()).map(|(_, progress)| progress)
}

#[test]
fn the_first_words_byte_for_byte() {
    let mut client = Handshake::new("a").unwrap();
    let mut out = Vec::new();
    client.feed(GREETING, &mut out).unwrap();
    assert_eq!(out, b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0");
}

#[test]
fn a_plain_server_without_structured_replies() {
    let mut client = asking_go();
    feed(&mut client, &export_info()).unwrap();
    let Ok(Progress::Ready(connected)) = feed(&mut client, &reply(option::GO, rep::ACK, b"")) else {
        panic!()
    };
    let expected = Connected {
        size: 4096,
        flags: 5,
        block: BlockSizes::UNSTATED,
        structured: false,
        base_allocation: None,
    };
    assert_eq!(connected, expected);
}

#[test]
fn a_server_without_go_is_asked_by_name() {
    let mut client = asking_go();
    let mut out = Vec::new();
    client.feed(&reply(option::GO, rep::ERR_UNSUP, b""), &mut out).unwrap();
    assert_eq!(out, b"IHAVEOPT\0\0\0\x01\0\0\0\x01a");
    let (consumed, progress) = client.feed(b"\0\0\0\0\0\0\x10\0\0\x05more", &mut out).unwrap();
    assert_eq!(consumed, 10);
    assert!(matches!(progress, Progress::Ready(Connected { size: 4096, flags: 5, .. })));
}

#[test]
fn a_server_without_fixed_newstyle_sends_zeroes() {
    let mut client = Handshake::new("a").unwrap();
    let mut out = Vec::new();
    client.feed(b"NBDMAGICIHAVEOPT\0\0", &mut out).unwrap();
    assert_eq!(out, b"\0\0\0\0IHAVEOPT\0\0\0\x01\0\0\0\x01a");
    assert_eq!(feed(&mut client, b"\0\0\0\0\0\0\x10\0\0\x05"), Ok(Progress::NeedMore));
    assert!(matches!(feed(&mut client, &[0; 124]), Ok(Progress::Ready(_))));
}

#[test]
fn refusals_carry_the_servers_words() {
    let refuse = |kind, words: &[u8]| feed(&mut asking_go(), &reply(option::GO, kind, words)).unwrap_err();
    assert_eq!(refuse(rep::ERR_UNKNOWN, b"no \x1b"), HandshakeError::UnknownExport("no \\u{1b}".into()));
    assert_eq!(refuse(rep::ERR_TLS_REQD, b""), HandshakeError::TlsRequired(String::new()));
    assert_eq!(refuse(rep::ERR_SHUTDOWN, b""), HandshakeError::Shutdown(String::new()));
    let refused = refuse(rep::ERR_POLICY, b"why");
    assert_eq!(refused.to_string(), "the server refuses the export (error 0x80000002): why");
}

#[test]
fn what_is_no_newstyle_server() {
    let greet = |bytes: &[u8]| feed(&mut Handshake::new("a").unwrap(), bytes).unwrap_err();
    assert_eq!(greet(b"HTTP/1.1 400 Bad Request"), HandshakeError::NotNbd(0x4854_5450_2f31_2e31));
    assert_eq!(greet(b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53\0\0"), HandshakeError::Oldstyle);
}

#[test]
fn violations_are_errors() {
    let wrong = |bytes: &[u8]| matches!(feed(&mut asking_go(), bytes), Err(HandshakeError::Protocol(_)));
    assert!(wrong(&[0; 20]), "bad magic");
    assert!(wrong(&reply(option::LIST, rep::ACK, b"")), "option that was not sent");
    assert!(wrong(&reply(option::GO, rep::ACK, b"")), "no size");
    assert!(wrong(&reply(option::GO, rep::SERVER, b"")), "type of another option");
    assert!(wrong(&reply(option::GO, rep::INFO, b"\0\0\0")), "short information");
    assert!(wrong(&reply(option::GO, rep::INFO, &[0; 20])), "long information");
    let mut long = reply(option::GO, rep::INFO, b"");
    long[16..].copy_from_slice(&(OPTION_REPLY_BYTES_MAX + 1).to_be_bytes());
    assert!(wrong(&long), "long reply");
    assert!(
        wrong(&reply(option::GO, rep::INFO, b"\0\x01name").repeat(OPTION_REPLIES_MAX as usize)),
        "many replies"
    );
    let sizes = |sizes: &[u8]| {
        [export_info(), reply(option::GO, rep::INFO, sizes), reply(option::GO, rep::ACK, b"")].concat()
    };
    assert!(wrong(&sizes(b"\0\x03\0\0\0\0\0\0\x10\0\0\0\x10\0")), "block size zero");
    let huge = reply(option::GO, rep::INFO, b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x05");
    assert!(wrong(&[huge, reply(option::GO, rep::ACK, b"")].concat()), "size beyond i64");
}

#[test]
fn a_long_name_is_not_sent() {
    assert_eq!(Handshake::new(&"x".repeat(4097)).unwrap_err(), HandshakeError::NameTooLong);
}

/// Hand bytes from one side to the other in pieces of the given sizes until both are ready.
fn converse(name: &str, pieces: &[usize]) -> Result<(Connected, server::Negotiated), HandshakeError> {
    let exports = Named(vec!["a", "b"]);
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    let mut server = server::Handshake::new(&mut to_client);
    let mut client = Handshake::new(name)?;
    let (mut connected, mut negotiated) = (None, None);
    let mut sizes = pieces.iter().copied().cycle();
    while connected.is_none() || negotiated.is_none() {
        assert!(!to_client.is_empty() || !to_server.is_empty(), "both wait");
        let piece: Vec<u8> = to_client.drain(..sizes.next().unwrap().min(to_client.len())).collect();
        if let (consumed, Progress::Ready(ready)) = client.feed(&piece, &mut to_server)? {
            assert_eq!((consumed, to_client.len()), (piece.len(), 0));
            connected = Some(ready);
            continue;
        }
        if negotiated.is_some() {
            continue;
        }
        let piece: Vec<u8> = to_server.drain(..sizes.next().unwrap().min(to_server.len())).collect();
        match server.feed(&piece, &exports, &mut to_client).unwrap() {
            (consumed, server::Progress::Ready(ready)) => {
                assert_eq!((consumed, to_server.len()), (piece.len(), 0));
                negotiated = Some(ready);
            }
            (consumed, progress) => {
                assert_eq!((consumed, progress), (piece.len(), server::Progress::NeedMore));
            }
        }
    }
    Ok((connected.unwrap(), negotiated.unwrap()))
}

#[test]
fn an_unknown_export_of_our_server() {
    let words = r#"there is no export named \"x\" here; there is \"a\", \"b\""#;
    assert_eq!(converse("x", &[100]), Err(HandshakeError::UnknownExport(words.into())));
}

proptest! {
    #[test]
    fn client_and_server_agree_over_any_chunking(pieces in proptest::collection::vec(1usize..80, 1..20)) {
        let (connected, negotiated) = converse("b", &pieces).unwrap();
        prop_assert_eq!(connected.size, 1 << 20);
        prop_assert_eq!(connected.flags, negotiated.flags);
        prop_assert_eq!(connected.block, BlockSizes { min: 512, preferred: 4096, max: 32 << 20 });
        prop_assert!(connected.structured && negotiated.structured);
        prop_assert!(connected.base_allocation.is_some() && negotiated.base_allocation);
        prop_assert_eq!(negotiated.export, 1);
    }

    #[test]
    fn arbitrary_bytes_hold_nothing_large(input in proptest::collection::vec(any::<u8>(), 0..256), chunk in 1usize..40) {
        let mut client = asking_go();
        let mut out = Vec::new();
        for piece in input.chunks(chunk) {
            let Ok((consumed, _)) = client.feed(piece, &mut out) else { break };
            prop_assert!(consumed <= piece.len());
            prop_assert!(client.gather.bytes().len() <= OPTION_REPLY_BYTES_MAX as usize);
        }
        prop_assert!(out.len() <= 256);
    }
}
