//! Arbitrary bytes against the server's side of NBD: the handshake, then requests.
//!
//! The first byte chooses the size of the chunks, the second whether a good handshake comes first, so that the fuzzer need
//! not discover one to reach the requests.
#![no_main]

use larder_nbd::consts::{OPTION_MAGIC, PAYLOAD_BYTES_MAX, REQUEST_BYTES, option, tflag};
use larder_nbd::server::{HANDSHAKE_REPLY_BYTES_MAX, Handshake, Negotiated, Progress};
use larder_nbd::{BlockSizes, Command, ExportInfo, Exports, Fault, Limits, Request};
use libfuzzer_sys::fuzz_target;

const SIZE: u64 = 1 << 20;

struct TwoVolumes;

impl Exports for TwoVolumes {
    fn count(&self) -> usize {
        2
    }

    fn name(&self, index: usize) -> &str {
        ["a", "b"][index]
    }

    fn info(&self, _index: usize) -> ExportInfo {
        ExportInfo {
            description: "a volume".to_owned(),
            size: SIZE,
            flags: tflag::SEND_FLUSH
                | tflag::SEND_FUA
                | tflag::SEND_TRIM
                | tflag::SEND_WRITE_ZEROES
                | tflag::SEND_DF,
            block: BlockSizes { min: 512, preferred: 4096, max: PAYLOAD_BYTES_MAX },
        }
    }
}

/// What a good client says: structured replies, then `GO`.
fn good_handshake() -> Vec<u8> {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    for (option, data) in [(option::STRUCTURED_REPLY, &b""[..]), (option::GO, b"\0\0\0\x01a\0\0")] {
        bytes.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        bytes.extend_from_slice(&option.to_be_bytes());
        bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
        bytes.extend_from_slice(data);
    }
    bytes
}

/// The handshake; where transmission begins, if it does.
fn handshake(input: &[u8], chunk: usize) -> Option<(Negotiated, usize)> {
    let mut out = Vec::new();
    let mut handshake = Handshake::new(&mut out);
    let mut position = 0;
    for piece in input.chunks(chunk) {
        let (consumed, progress) = handshake.feed(piece, &TwoVolumes, &mut out).ok()?;
        assert!(consumed <= piece.len());
        assert!(out.len() <= HANDSHAKE_REPLY_BYTES_MAX + 4096, "replies are bounded");
        position += consumed;
        match progress {
            Progress::NeedMore => assert_eq!(consumed, piece.len(), "nothing is left behind"),
            Progress::Ready(negotiated) => return Some((negotiated, position)),
            Progress::Closed => return None,
        }
    }
    None
}

/// Requests, until the connection would be closed.
fn transmission(mut input: &[u8], negotiated: Negotiated) {
    let limits = Limits {
        size: SIZE,
        flags: negotiated.flags,
        min_block: 512,
        max_payload: PAYLOAD_BYTES_MAX,
        base_allocation: negotiated.base_allocation,
    };
    while let Some((header, rest)) = input.split_first_chunk::<REQUEST_BYTES>() {
        let Ok(request) = Request::parse(header) else { return };
        assert_eq!(&request.encode(), header);
        match request.check(&limits) {
            Ok(()) if matches!(request.command, Command::Flush | Command::Disconnect) => {}
            Ok(()) => {
                assert!(request.length > 0);
                assert!(request.offset.checked_add(request.length.into()).is_some_and(|end| end <= SIZE));
                assert!(
                    matches!(request.command, Command::Trim | Command::WriteZeroes)
                        || request.length <= PAYLOAD_BYTES_MAX
                );
            }
            Err(Fault::Answer(code)) => assert_ne!(code.to_wire(), 0),
            Err(Fault::Close(_)) => return,
        }
        input = rest.get(request.payload_bytes() as usize..).unwrap_or_default();
    }
}

fuzz_target!(|data: &[u8]| {
    let [chunk, good, rest @ ..] = data else { return };
    let prefix = if good % 2 == 1 { good_handshake() } else { Vec::new() };
    let input = [&prefix, rest].concat();
    if let Some((negotiated, position)) = handshake(&input, usize::from(*chunk) + 1) {
        assert!(negotiated.export < 2);
        transmission(&input[position..], negotiated);
    }
});
