//! Arbitrary bytes against the client's side of NBD: the handshake, then replies to requests of every kind.
//!
//! The first byte chooses the size of the chunks, the second whether a good handshake is taken for granted, so that the
//! fuzzer need not discover one to reach the replies.
#![no_main]

use larder_nbd::client::{Event, Handshake, Outstanding, Outstandings, Progress, ReplyParser};
use larder_nbd::{Command, Request};
use libfuzzer_sys::fuzz_target;

const LENGTH: u32 = 4096;

/// One request of each kind waits; the cookie is its place.
struct Waiting([Option<Outstanding>; 8]);

impl Outstandings for Waiting {
    fn outstanding(&mut self, cookie: u64) -> Option<&mut Outstanding> {
        self.0.get_mut(usize::try_from(cookie).ok()?)?.as_mut()
    }
}

impl Waiting {
    fn new() -> Self {
        use Command::{BlockStatus, Flush, Read, Write, WriteZeroes};
        let commands = [Read, Read, Read, BlockStatus, BlockStatus, Write, Flush, WriteZeroes];
        Self(commands.map(|command| {
            Some(Outstanding::new(&Request { cookie: 0, command, flags: 0, offset: 0, length: LENGTH }))
        }))
    }
}

/// The handshake: what was agreed, and where transmission begins.
fn handshake(input: &[u8], chunk: usize) -> Option<((bool, Option<u32>), usize)> {
    let mut client = Handshake::new("a").ok()?;
    let mut out = Vec::new();
    let mut position = 0;
    for piece in input.chunks(chunk) {
        let (consumed, progress) = client.feed(piece, &mut out).ok()?;
        assert!(consumed <= piece.len());
        assert!(out.len() <= 256, "a client says four things at most");
        position += consumed;
        match progress {
            Progress::NeedMore => assert_eq!(consumed, piece.len(), "nothing is left behind"),
            Progress::Ready(connected) => {
                assert!(connected.block.is_valid() && i64::try_from(connected.size).is_ok());
                return Some(((connected.structured, connected.base_allocation), position));
            }
        }
    }
    None
}

/// One piece of the stream of replies. False once the server broke the protocol.
fn replies(parser: &mut ReplyParser, waiting: &mut Waiting, filled: &mut [u32; 8], mut input: &[u8]) -> bool {
    loop {
        let Ok((consumed, event)) = parser.next(input, waiting) else { return false };
        input = &input[consumed..];
        match event {
            None => {
                assert!(input.is_empty(), "nothing is left behind");
                return true;
            }
            Some(Event::Payload { cookie, at, length }) => {
                assert!(length > 0 && at + length <= LENGTH);
                let count = length.min(input.len() as u32);
                input = &input[count as usize..];
                parser.payload_taken(count);
                filled[cookie as usize] += count;
                if count == 0 {
                    return true;
                }
            }
            Some(Event::Hole { cookie, at, length }) => {
                assert!(length > 0 && at + length <= LENGTH);
                filled[cookie as usize] += length;
            }
            Some(Event::Status { cookie, length, .. }) => {
                filled[cookie as usize] += length;
                assert!(
                    length > 0 && filled[cookie as usize] <= LENGTH,
                    "no more is described than was asked"
                );
            }
            Some(Event::Done { cookie, result }) => {
                assert!(waiting.0[cookie as usize].take().is_some(), "a request ends once");
                assert!(
                    cookie > 2 || result.is_err() || filled[cookie as usize] == LENGTH,
                    "a read is whole"
                );
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let [chunk, good, rest @ ..] = data else { return };
    let chunk = usize::from(*chunk) + 1;
    let started = match good % 4 {
        0 => handshake(rest, chunk),
        1 => Some(((false, None), 0)),
        _ => Some(((true, Some(1)), 0)),
    };
    let Some(((structured, base_allocation), position)) = started else { return };
    let mut parser = ReplyParser::new(structured, base_allocation);
    let (mut waiting, mut filled) = (Waiting::new(), [0; 8]);
    for piece in rest[position..].chunks(chunk) {
        if !replies(&mut parser, &mut waiting, &mut filled, piece) {
            return;
        }
    }
});
