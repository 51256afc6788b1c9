//! The server's handshake against known bytes, and against bytes that mean nothing.

use super::*;
use crate::consts::{OPTION_REPLY_MAGIC, info};
use crate::export::tests::Named;
use crate::wire::Put;
use proptest::prelude::*;

const GREETING_BYTES: usize = 18;

fn started(client_flags: u32) -> Handshake {
    let mut handshake = Handshake::new(&mut Vec::new());
    let outcome = handshake.feed(&client_flags.to_be_bytes(), &Named(vec![]), &mut Vec::new());
    assert_eq!(outcome, Ok((4, Progress::NeedMore)));
    handshake
}

fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u64(OPTION_MAGIC);
    bytes.put_u32(option);
    bytes.put_u32(data.len() as u32);
    bytes.extend_from_slice(data);
    bytes
}

/// Replies as (option, type, data).
fn replies(mut bytes: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.u64(), Some(OPTION_REPLY_MAGIC));
        let (option, kind, length) = (reader.u32().unwrap(), reader.u32().unwrap(), reader.u32().unwrap());
        all.push((option, kind, reader.bytes(length as usize).unwrap().to_vec()));
        bytes = reader.bytes(reader.remaining()).unwrap();
    }
    all
}

fn ask(
    handshake: &mut Handshake,
    exports: &Named,
    option: u32,
    data: &[u8],
) -> (Vec<(u32, u32, Vec<u8>)>, Progress) {
    let bytes = option_bytes(option, data);
    let mut out = Vec::new();
    let (consumed, progress) = handshake.feed(&bytes, exports, &mut out).unwrap();
    assert_eq!(consumed, bytes.len());
    (replies(&out), progress)
}

fn kinds(replies: &[(u32, u32, Vec<u8>)]) -> Vec<u32> {
    replies.iter().map(|reply| reply.1).collect()
}

fn named(name: &str, rest: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    data.put_u32(name.len() as u32);
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(rest);
    data
}

fn meta(export: &str, query: &str) -> Vec<u8> {
    let mut data = named(export, &1u32.to_be_bytes());
    data.extend_from_slice(&named(query, &[]));
    data
}

/// "Newstyle negotiation": `NBDMAGIC`, `IHAVEOPT`, handshake flags.
#[test]
fn the_greeting_byte_for_byte() {
    let mut out = Vec::new();
    Handshake::new(&mut out);
    assert_eq!(out, b"NBDMAGICIHAVEOPT\x00\x03");
    assert_eq!(out.len(), GREETING_BYTES);
}

/// `NBD_OPT_GO` answered by `NBD_INFO_EXPORT`, `NBD_INFO_BLOCK_SIZE` and an acknowledgement.
#[test]
fn go_byte_for_byte() {
    let mut handshake = started(3);
    let input = b"IHAVEOPT\0\0\0\x07\0\0\0\x07\0\0\0\x01a\0\0rest";
    let mut out = Vec::new();
    let (consumed, progress) = handshake.feed(input, &Named(vec!["a"]), &mut out).unwrap();
    assert_eq!(&input[consumed..], b"rest");
    let negotiated = Negotiated { export: 0, flags: 5, structured: false, base_allocation: false };
    assert_eq!(progress, Progress::Ready(negotiated));
    let magic = b"\x00\x03\xe8\x89\x04\x55\x65\xa9";
    let expected = [
        &magic[..],
        b"\0\0\0\x07\0\0\0\x03\0\0\0\x0c\0\0\0\0\0\0\0\x10\0\0\0\x05",
        magic,
        b"\0\0\0\x07\0\0\0\x03\0\0\0\x0e\0\x03\0\0\x02\0\0\0\x10\0\x02\0\0\0",
        magic,
        b"\0\0\0\x07\0\0\0\x01\0\0\0\0",
    ]
    .concat();
    assert_eq!(out, expected);
}

/// `NBD_OPT_EXPORT_NAME` has an answer of its own: size, flags, and 124 zeroes unless agreed otherwise.
#[test]
fn export_name_byte_for_byte() {
    for (flags, zeroes) in [(0, 124), (1, 124), (3, 0)] {
        let mut out = Vec::new();
        let (_, progress) = started(flags)
            .feed(&option_bytes(option::EXPORT_NAME, b"a"), &Named(vec!["a"]), &mut out)
            .unwrap();
        assert!(matches!(progress, Progress::Ready(_)));
        assert_eq!(out[..10], [0, 0, 0, 0, 0, 0x10, 0, 0, 0, 5]);
        assert_eq!(out[10..], vec![0; zeroes]);
    }
}

#[test]
fn export_name_of_nothing_closes() {
    let outcome =
        started(3).feed(&option_bytes(option::EXPORT_NAME, b"x"), &Named(vec!["a"]), &mut Vec::new());
    let message = r#"there is no export named "x" here; there is "a""#;
    assert_eq!(outcome, Err(HandshakeError::ExportName(message.into())));
}

#[test]
fn the_list_names_every_export() {
    let (replies, progress) = ask(&mut started(3), &Named(vec!["a", "bc"]), option::LIST, &[]);
    assert_eq!(progress, Progress::NeedMore);
    let server = |name: &str| (option::LIST, rep::SERVER, named(name, &[]));
    assert_eq!(replies, [server("a"), server("bc"), (option::LIST, rep::ACK, vec![])]);
    let (replies, _) = ask(&mut started(3), &Named(vec![]), option::LIST, b"x");
    assert_eq!(kinds(&replies), [rep::ERR_INVALID]);
}

#[test]
fn info_tells_what_is_asked_and_stays() {
    let mut handshake = started(3);
    let request = named("a", &[0, 2, 0, 1, 0, 2]);
    let (replies, progress) = ask(&mut handshake, &Named(vec!["a"]), option::INFO, &request);
    assert_eq!(progress, Progress::NeedMore);
    let told: Vec<u16> =
        replies.iter().filter(|r| r.1 == rep::INFO).map(|r| u16::from_be_bytes([r.2[0], r.2[1]])).collect();
    assert_eq!(told, [info::EXPORT, info::NAME, info::DESCRIPTION, info::BLOCK_SIZE]);
    assert_eq!(replies[1].2, b"\0\x01a");
    assert_eq!(replies[2].2, b"\0\x02volume a");
}

#[test]
fn an_unknown_export_is_refused_with_the_names_there_are() {
    let (replies, progress) =
        ask(&mut started(3), &Named(vec!["a", "b"]), option::GO, &named("x\n", &[0, 0]));
    assert_eq!(progress, Progress::NeedMore);
    let message = br#"there is no export named "x\n" here; there is "a", "b""#;
    assert_eq!(replies, [(option::GO, rep::ERR_UNKNOWN, message.to_vec())]);
}

#[test]
fn unknown_and_tls_options_are_unsupported() {
    let mut handshake = started(3);
    for option in [option::STARTTLS, 4, 11, 4711] {
        let (replies, progress) = ask(&mut handshake, &Named(vec!["a"]), option, b"whatever");
        assert_eq!((kinds(&replies), progress), (vec![rep::ERR_UNSUP], Progress::NeedMore));
    }
}

#[test]
fn meta_contexts_need_structured_replies_and_hold_for_one_export() {
    let exports = Named(vec!["a", "b"]);
    let mut handshake = started(3);
    let (replies, _) = ask(&mut handshake, &exports, option::SET_META_CONTEXT, &meta("a", BASE_ALLOCATION));
    assert_eq!(kinds(&replies), [rep::ERR_INVALID]);
    let (replies, _) = ask(&mut handshake, &exports, option::STRUCTURED_REPLY, &[]);
    assert_eq!(kinds(&replies), [rep::ACK]);
    let (replies, _) = ask(&mut handshake, &exports, option::SET_META_CONTEXT, &meta("a", BASE_ALLOCATION));
    assert_eq!(
        replies[0],
        (option::SET_META_CONTEXT, rep::META_CONTEXT, b"\0\0\0\x01base:allocation".to_vec())
    );
    assert!(handshake.negotiated(0, 0).base_allocation);
    assert!(!handshake.negotiated(1, 0).base_allocation);
    let (_, progress) = ask(&mut handshake, &exports, option::GO, &named("a", &[0, 0]));
    let flags = tflag::HAS_FLAGS | tflag::SEND_FLUSH | tflag::SEND_DF;
    let negotiated = Negotiated { export: 0, flags, structured: true, base_allocation: true };
    assert_eq!(progress, Progress::Ready(negotiated));
}

#[test]
fn choosing_other_contexts_forgets_the_first() {
    let exports = Named(vec!["a"]);
    let mut handshake = started(3);
    ask(&mut handshake, &exports, option::STRUCTURED_REPLY, &[]);
    ask(&mut handshake, &exports, option::SET_META_CONTEXT, &meta("a", BASE_ALLOCATION));
    let (replies, _) = ask(&mut handshake, &exports, option::SET_META_CONTEXT, &meta("a", "base:"));
    assert_eq!(kinds(&replies), [rep::ACK]);
    assert!(!handshake.negotiated(0, 0).base_allocation);
}

#[test]
fn listed_contexts() {
    let exports = Named(vec!["a"]);
    let mut handshake = started(3);
    let all = named("a", &0u32.to_be_bytes());
    for data in [all, meta("a", "base:"), meta("a", BASE_ALLOCATION)] {
        let (replies, _) = ask(&mut handshake, &exports, option::LIST_META_CONTEXT, &data);
        assert_eq!(kinds(&replies), [rep::META_CONTEXT, rep::ACK]);
    }
    let (replies, _) = ask(&mut handshake, &exports, option::LIST_META_CONTEXT, &meta("a", "qemu:"));
    assert_eq!(kinds(&replies), [rep::ACK]);
}

#[test]
fn abort_is_acknowledged() {
    let (replies, progress) = ask(&mut started(3), &Named(vec!["a"]), option::ABORT, &[]);
    assert_eq!((kinds(&replies), progress), (vec![rep::ACK], Progress::Closed));
}

#[test]
fn bad_flags_and_magic_close_for_good() {
    let exports = Named(vec!["a"]);
    let mut handshake = Handshake::new(&mut Vec::new());
    let outcome = handshake.feed(&[0, 0, 0, 4], &exports, &mut Vec::new());
    assert_eq!(outcome, Err(HandshakeError::ClientFlags(4)));
    assert_eq!(handshake.feed(b"more", &exports, &mut Vec::new()), Ok((0, Progress::Closed)));
    let outcome = started(3).feed(&[b'x'; 16], &exports, &mut Vec::new());
    assert_eq!(outcome, Err(HandshakeError::OptionMagic(0x7878_7878_7878_7878)));
}

#[test]
fn a_client_without_fixed_newstyle_only_names_an_export() {
    let outcome = started(0).feed(&option_bytes(option::LIST, &[]), &Named(vec![]), &mut Vec::new());
    assert_eq!(outcome, Err(HandshakeError::NotFixedNewstyle(option::LIST)));
}

#[test]
fn long_options_are_skipped_and_longer_ones_close() {
    let mut handshake = started(3);
    let exports = Named(vec!["a"]);
    let long = vec![0; OPTION_BYTES_MAX as usize + 1];
    let (replies, _) = ask(&mut handshake, &exports, option::GO, &long);
    assert_eq!(kinds(&replies), [rep::ERR_TOO_BIG]);
    let mut header = option_bytes(option::LIST, &[]);
    header[12..].copy_from_slice(&(OPTION_SKIP_BYTES_MAX + 1).to_be_bytes());
    let outcome = handshake.feed(&header, &exports, &mut Vec::new());
    let bytes = OPTION_SKIP_BYTES_MAX + 1;
    assert_eq!(outcome, Err(HandshakeError::OptionTooLong { option: option::LIST, bytes }));
}

#[test]
fn the_number_of_options_is_limited() {
    let mut handshake = started(3);
    let exports = Named(vec!["a"]);
    for _ in 0..OPTIONS_MAX {
        ask(&mut handshake, &exports, 99, &[]);
    }
    let outcome = handshake.feed(&option_bytes(99, &[]), &exports, &mut Vec::new());
    assert_eq!(outcome, Err(HandshakeError::TooManyOptions));
}

#[test]
fn the_volume_of_replies_is_limited() {
    let mut handshake = started(3);
    let exports = Named(vec!["a-rather-long-name"; 10_000]);
    ask(&mut handshake, &exports, option::LIST, &[]);
    ask(&mut handshake, &exports, option::LIST, &[]);
    let outcome = handshake.feed(&option_bytes(option::LIST, &[]), &exports, &mut Vec::new());
    assert_eq!(outcome, Err(HandshakeError::TooManyReplies));
}

/// Options that mean something, mixed with some that do not.
fn some_option() -> impl Strategy<Value = Vec<u8>> {
    let data = prop_oneof![
        Just(vec![]),
        Just(named("a", &[0, 0])),
        Just(meta("a", BASE_ALLOCATION)),
        proptest::collection::vec(any::<u8>(), 0..64),
    ];
    (0u32..13, data).prop_map(|(option, data)| option_bytes(option, &data))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_hold_nothing_large(input in proptest::collection::vec(any::<u8>(), 0..512), chunk in 1usize..64) {
        let exports = Named(vec!["a"]);
        let mut handshake = started(3);
        for piece in input.chunks(chunk) {
            let mut out = Vec::new();
            let Ok((consumed, _)) = handshake.feed(piece, &exports, &mut out) else { break };
            prop_assert!(consumed <= piece.len());
            prop_assert!(handshake.gather.bytes().len() <= OPTION_BYTES_MAX as usize);
        }
    }

    #[test]
    fn chunking_changes_nothing(options in proptest::collection::vec(some_option(), 0..12), chunk in 1usize..64) {
        let exports = Named(vec!["a", "b"]);
        let input = options.concat();
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        let expected = started(3).feed(&input, &exports, &mut whole);
        let mut handshake = started(3);
        let mut outcome = Ok((0, Progress::NeedMore));
        let mut total = 0;
        for piece in input.chunks(chunk) {
            outcome = handshake.feed(piece, &exports, &mut pieces);
            let Ok((consumed, Progress::NeedMore)) = outcome else { break };
            total += consumed;
        }
        let outcome = outcome.map(|(consumed, progress)| match progress {
            Progress::NeedMore => (total, progress),
            _ => (total + consumed, progress),
        });
        prop_assert_eq!(outcome, expected);
        prop_assert_eq!(pieces, whole);
    }
}
