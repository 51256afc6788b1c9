//! Replies against the encoders of our server, against known bytes, and against bytes that mean nothing.

use super::*;
use crate::wire::Put;
use crate::{Request, reply};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A driver for tests: requests with their buffers, and what became of them.
#[derive(Default)]
struct Driver {
    waiting: BTreeMap<u64, Outstanding>,
    buffers: BTreeMap<u64, Vec<u8>>,
    extents: Vec<(u32, u32)>,
    done: BTreeMap<u64, Result<(), ErrorCode>>,
}

struct Waiting<'a>(&'a mut BTreeMap<u64, Outstanding>);

impl Outstandings for Waiting<'_> {
    fn outstanding(&mut self, cookie: u64) -> Option<&mut Outstanding> {
        self.0.get_mut(&cookie)
    }
}

impl Driver {
    fn with(command: Command, offset: u64, length: u32) -> Self {
        let mut driver = Self::default();
        driver.send(1, command, offset, length);
        driver
    }

    fn send(&mut self, cookie: u64, command: Command, offset: u64, length: u32) {
        let request = Request { cookie, command, flags: 0, offset, length };
        self.waiting.insert(cookie, Outstanding::new(&request));
        self.buffers.insert(cookie, vec![0xee; length as usize]);
    }

    fn receive(&mut self, parser: &mut ReplyParser, mut input: &[u8]) -> Result<(), ReplyError> {
        loop {
            let (consumed, event) = parser.next(input, &mut Waiting(&mut self.waiting))?;
            assert!(consumed <= input.len());
            input = &input[consumed..];
            match event {
                None => {
                    assert!(input.is_empty());
                    return Ok(());
                }
                Some(Event::Payload { cookie, at, length }) => {
                    let count = (length as usize).min(input.len());
                    self.buffers.get_mut(&cookie).unwrap()[at as usize..][..count]
                        .copy_from_slice(&input[..count]);
                    input = &input[count..];
                    parser.payload_taken(count as u32);
                    if count == 0 {
                        return Ok(());
                    }
                }
                Some(Event::Hole { cookie, at, length }) => {
                    self.buffers.get_mut(&cookie).unwrap()[at as usize..][..length as usize].fill(0);
                }
                Some(Event::Status { length, flags, .. }) => self.extents.push((length, flags)),
                Some(Event::Done { cookie, result }) => {
                    assert!(self.waiting.remove(&cookie).is_some());
                    self.done.insert(cookie, result);
                }
            }
        }
    }
}

/// A chunk with these flags and this payload.
fn chunk(flags: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u32(STRUCTURED_REPLY_MAGIC);
    bytes.put_u16(flags);
    bytes.put_u16(kind);
    bytes.put_u64(1);
    bytes.put_u32(payload.len() as u32);
    bytes.extend_from_slice(payload);
    bytes
}

fn data_chunk(flags: u16, offset: u64, data: &[u8]) -> Vec<u8> {
    chunk(flags, chunk::OFFSET_DATA, &[&offset.to_be_bytes()[..], data].concat())
}

fn structured() -> ReplyParser {
    ReplyParser::new(true, Some(7))
}

/// What a parser makes of one reply to a read of 8 bytes at 100.
fn read_gives(bytes: &[u8]) -> Result<Driver, ReplyError> {
    let mut driver = Driver::with(Command::Read, 100, 8);
    driver.receive(&mut structured(), bytes).map(|()| driver)
}

#[test]
fn simple_replies() {
    let mut driver = Driver::default();
    driver.send(1, Command::Read, 0, 4);
    driver.send(2, Command::Write, 0, 4);
    driver.send(3, Command::Read, 0, 4);
    let replies = [
        &reply::simple(2, Err(ErrorCode::NoSpace))[..],
        &reply::simple(1, Ok(())),
        b"data",
        &reply::simple(3, Err(ErrorCode::Io)),
    ];
    driver.receive(&mut ReplyParser::new(false, None), &replies.concat()).unwrap();
    assert_eq!(driver.buffers[&1], b"data");
    let expected = BTreeMap::from([(1, Ok(())), (2, Err(ErrorCode::NoSpace)), (3, Err(ErrorCode::Io))]);
    assert_eq!(driver.done, expected);
}

#[test]
fn one_chunk_is_a_reply() {
    let driver = read_gives(&[&reply::data(1, 100, 8)[..], b"12345678"].concat()).unwrap();
    assert_eq!((&driver.buffers[&1][..], driver.done[&1]), (&b"12345678"[..], Ok(())));
    assert_eq!(read_gives(&reply::hole(1, 100, 8)).unwrap().buffers[&1], [0; 8]);
}

#[test]
fn chunks_in_any_order_and_a_hole() {
    let mut hole = 102u64.to_be_bytes().to_vec();
    hole.put_u32(3);
    let bytes = [
        data_chunk(0, 105, b"678"),
        chunk(0, chunk::OFFSET_HOLE, &hole),
        data_chunk(0, 100, b"12"),
        reply::none(1).to_vec(),
    ];
    let driver = read_gives(&bytes.concat()).unwrap();
    assert_eq!(driver.buffers[&1], b"12\x00\x00\x00678");
    assert_eq!(driver.done[&1], Ok(()));
}

#[test]
fn errors_with_and_without_offset() {
    let mut out = Vec::new();
    reply::error_with_message(&mut out, 1, ErrorCode::Io, "a scratch");
    assert_eq!(read_gives(&out).unwrap().done[&1], Err(ErrorCode::Io));
    assert_eq!(read_gives(&reply::error(1, ErrorCode::Shutdown)).unwrap().done[&1], Err(ErrorCode::Shutdown));
    let mut at = vec![0, 0, 0, 28, 0, 1, b'x'];
    at.put_u64(104);
    let bytes = [chunk(0, chunk::ERROR_OFFSET, &at), data_chunk(1, 100, b"1234")].concat();
    assert_eq!(read_gives(&bytes).unwrap().done[&1], Err(ErrorCode::NoSpace));
    let unknown_kind = chunk(1, 0x8123, &[0, 0, 0, 5, 0, 0, 9, 9, 9]);
    assert_eq!(read_gives(&unknown_kind).unwrap().done[&1], Err(ErrorCode::Io));
}

#[test]
fn block_status_is_told_and_cut() {
    let mut driver = Driver::with(Command::BlockStatus, 0, 1000);
    let mut out = Vec::new();
    let extents = [reply::Extent { length: 600, flags: 3 }, reply::Extent { length: 600, flags: 0 }];
    reply::block_status(&mut out, 1, 7, &extents);
    driver.receive(&mut structured(), &out).unwrap();
    assert_eq!(driver.extents, [(600, 3), (400, 0)]);
    assert_eq!(driver.done[&1], Ok(()));
}

#[test]
fn content_that_was_not_asked_for() {
    let error = |bytes: &[u8]| read_gives(bytes).err();
    assert_eq!(error(&data_chunk(1, 99, b"1")), Some(ReplyError::BadRange));
    assert_eq!(error(&data_chunk(1, 104, b"12345")), Some(ReplyError::BadRange));
    let twice = [data_chunk(0, 100, b"1234"), data_chunk(1, 102, b"3456")].concat();
    assert_eq!(error(&twice), Some(ReplyError::BadRange));
    assert_eq!(error(&reply::hole(1, 100, 0)), Some(ReplyError::BadRange));
    assert_eq!(error(&data_chunk(1, 100, b"1234")), Some(ReplyError::Incomplete));
    assert_eq!(error(&reply::none(1)), Some(ReplyError::Incomplete));
}

#[test]
fn chunks_of_bad_form() {
    let error = |bytes: &[u8]| read_gives(bytes).err();
    let bad_length = |kind, bytes| Some(ReplyError::ChunkLength { kind, bytes });
    assert_eq!(error(&chunk(1, chunk::NONE, b"x")), bad_length(chunk::NONE, 1));
    assert_eq!(error(&chunk(0, chunk::NONE, b"")), Some(ReplyError::UnexpectedChunk(chunk::NONE)));
    assert_eq!(error(&data_chunk(1, 100, b"")), bad_length(chunk::OFFSET_DATA, 8));
    assert_eq!(error(&chunk(1, chunk::OFFSET_HOLE, &[0; 13])), bad_length(chunk::OFFSET_HOLE, 13));
    assert_eq!(error(&chunk(1, chunk::ERROR, &[0; 5])), bad_length(chunk::ERROR, 5));
    assert_eq!(error(&chunk(1, chunk::ERROR, &[0, 0, 0, 5, 0, 1])), bad_length(chunk::ERROR, 6));
    assert_eq!(error(&chunk(1, chunk::ERROR, &[0; 6])), Some(ReplyError::NoError));
    assert_eq!(error(&chunk(1, 3, b"")), Some(ReplyError::UnexpectedChunk(3)));
    assert_eq!(error(&chunk(1, chunk::BLOCK_STATUS, &[0; 12])), Some(ReplyError::UnexpectedChunk(5)));
}

#[test]
fn block_status_of_bad_form() {
    let error = |payload: &[u8]| {
        let mut driver = Driver::with(Command::BlockStatus, 0, 1000);
        driver.receive(&mut structured(), &chunk(1, chunk::BLOCK_STATUS, payload)).err()
    };
    assert_eq!(error(&[0; 4]), Some(ReplyError::ChunkLength { kind: 5, bytes: 4 }));
    assert_eq!(error(&[0; 13]), Some(ReplyError::ChunkLength { kind: 5, bytes: 13 }));
    assert_eq!(error(&[0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0]), Some(ReplyError::BadStatus));
    assert_eq!(error(&[0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]), Some(ReplyError::BadStatus));
}

#[test]
fn replies_out_of_place() {
    let error = |structured, command, bytes: &[u8]| {
        let mut driver = Driver::with(command, 0, 8);
        driver.receive(&mut ReplyParser::new(structured, None), bytes).err()
    };
    assert_eq!(error(true, Command::Read, b"xxxx"), Some(ReplyError::BadMagic(0x7878_7878)));
    assert_eq!(error(true, Command::Read, &reply::simple(9, Ok(()))), Some(ReplyError::UnknownCookie(9)));
    assert_eq!(error(true, Command::Read, &reply::none(9)), Some(ReplyError::UnknownCookie(9)));
    assert_eq!(error(true, Command::Read, &reply::simple(1, Ok(()))), Some(ReplyError::WrongForm));
    assert_eq!(error(false, Command::Read, &reply::none(1)), Some(ReplyError::WrongForm));
    assert_eq!(error(true, Command::BlockStatus, &reply::simple(1, Ok(()))), Some(ReplyError::WrongForm));
    assert_eq!(error(true, Command::Write, &reply::simple(1, Ok(()))), None);
}

/// A reply to a read: pieces of its data in any order, as bytes.
fn pieces_of(data: &[u8], cuts: &[usize], order: &[prop::sample::Index]) -> Vec<u8> {
    let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut % data.len()).chain([0, data.len()]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut pieces: Vec<(usize, &[u8])> =
        bounds.windows(2).map(|pair| (pair[0], &data[pair[0]..pair[1]])).collect();
    for (from, to) in order.iter().enumerate() {
        let (from, to) = (from % pieces.len(), to.index(pieces.len()));
        pieces.swap(from, to);
    }
    let chunks = pieces.iter().flat_map(|(at, piece)| data_chunk(0, 100 + *at as u64, piece));
    chunks.chain(reply::none(1)).collect()
}

proptest! {
    #[test]
    fn data_arrives_whole_over_any_chunking(
        data in proptest::collection::vec(any::<u8>(), 1..200), cuts in proptest::collection::vec(any::<usize>(), 0..8),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..8), chunk in 1usize..64,
    ) {
        let mut driver = Driver::with(Command::Read, 100, data.len() as u32);
        let mut parser = structured();
        for piece in pieces_of(&data, &cuts, &order).chunks(chunk) {
            driver.receive(&mut parser, piece).unwrap();
        }
        prop_assert_eq!(driver.done[&1], Ok(()));
        prop_assert_eq!(&driver.buffers[&1], &data);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        start in prop_oneof![Just(&b""[..]), Just(&b"\x66\x8e\x33\xef\0"[..]), Just(&b"\x67\x44\x66\x98"[..])],
        input in proptest::collection::vec(0u8..9, 0..200), chunk in 1usize..64,
    ) {
        let mut driver = Driver::default();
        (0..9).for_each(|cookie| driver.send(cookie, Command::Read, 0, 64));
        let mut parser = structured();
        for piece in [start, &input].concat().chunks(chunk) {
            if driver.receive(&mut parser, piece).is_err() {
                break;
            }
            prop_assert!(parser.gather.bytes().len() <= 20);
        }
    }
}
