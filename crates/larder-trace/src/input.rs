//! A trace file as bytes: decompressed where its first bytes say so, and its beginning looked at ahead.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

const BUFFER_BYTES: usize = 128 * 1024;

/// Memory that an xz file may ask for: a dictionary of 64 MiB is what `xz -9` takes.
const XZ_MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Bytes that tell the compression: bzip2's need most, its mark and that of its first block.
const MAGIC_BYTES: u64 = 10;

/// A source of bytes; `Send`, so that a trace can be read by a thread of its own.
pub(crate) type Input = Box<dyn BufRead + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Compression {
    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or one to be skipped: `pzstd` and seekable files begin so.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            // A first block, or the end of an empty file.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Self::Bzip2,
            _ => Self::None,
        }
    }
}

impl Compression {
    /// Its name, if there is one.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
            Self::Xz => Some("xz"),
            Self::Bzip2 => Some("bzip2"),
        }
    }
}

/// The content behind `raw`, and how that was compressed: decompressed if it begins as gzip, zstd, xz or bzip2 do, as it is otherwise.
/// Files put one after the other are read on; bytes after them that are none are an error.
pub(crate) fn decompressed(mut raw: impl Read + Send + 'static) -> io::Result<(Compression, Input)> {
    let mut magic = Vec::with_capacity(MAGIC_BYTES as usize);
    raw.by_ref().take(MAGIC_BYTES).read_to_end(&mut magic)?;
    let compression = Compression::of(&magic);
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(magic).chain(raw));
    let input: Input = match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => buffered(MultiGzDecoder::new(whole)),
        Compression::Zstd => buffered(zstd::Decoder::with_buffer(whole)?),
        Compression::Bzip2 => buffered(MultiBzDecoder::new(whole)),
        Compression::Xz => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, CONCATENATED)?;
            buffered(XzDecoder::new_stream(whole, stream))
        }
    };
    Ok((compression, input))
}

fn buffered(input: impl Read + Send + 'static) -> Input {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, input))
}

/// The beginning of an input, and the input from its beginning.
pub(crate) struct Peeked {
    /// The first bytes: fewer than were asked for only at the end, or before an error.
    pub(crate) start: Vec<u8>,
    /// True where that is all there is.
    pub(crate) whole: bool,
    /// True where reading failed after it.
    pub(crate) broken: bool,
    /// The input with those bytes, and the error after them where reading failed.
    pub(crate) input: Input,
}

/// Look at the first `bytes`. An error after the first byte is met again when `input` is read up to there.
pub(crate) fn peek(mut input: Input, bytes: u64) -> io::Result<Peeked> {
    let mut start = Vec::new();
    let error = input.by_ref().take(bytes).read_to_end(&mut start).err();
    let broken = error.is_some();
    let whole = !broken && (start.len() as u64) < bytes;
    let rest: Input = match error {
        None => input,
        Some(error) if start.is_empty() => return Err(error),
        Some(error) => Box::new(BufReader::new(Failing(Some(error)))),
    };
    Ok(Peeked { input: Box::new(Cursor::new(start.clone()).chain(rest)), start, whole, broken })
}

/// What an input is after an error: a decoder asked again may take the error for the end.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read_all(raw: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        decompressed(Cursor::new(raw))?.1.read_to_string(&mut text)?;
        Ok(text)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(text: &str) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(text: &str) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &str) -> Vec<u8> {
        zstd::encode_all(text.as_bytes(), 1).unwrap()
    }

    const COMPRESSORS: [fn(&str) -> Vec<u8>; 4] = [gzip, bzip2, xz, zstd];

    #[test]
    fn compression_is_told_by_the_first_bytes() {
        let text = "one line\nanother\n".repeat(1000);
        assert_eq!(read_all(text.clone().into_bytes()).unwrap(), text);
        for compress in COMPRESSORS {
            assert_eq!(read_all(compress(&text)).unwrap(), text);
            assert_eq!(read_all(compress("")).unwrap(), "");
        }
    }

    #[test]
    fn appended_members_are_read_on() {
        for compress in COMPRESSORS {
            assert_eq!(read_all([compress("a\n"), compress("b\n")].concat()).unwrap(), "a\nb\n");
        }
    }

    #[test]
    fn short_files_are_plain_text() {
        for text in ["", "a", "abc", "BZh9 is how this line begins"] {
            assert_eq!(read_all(text.into()).unwrap(), text);
        }
    }

    #[test]
    fn frames_to_be_skipped_are_skipped() {
        let skipped = [b"\x5a\x2a\x4d\x18\x03\0\0\0abc".to_vec(), zstd("a\n")].concat();
        assert_eq!(decompressed(Cursor::new(skipped.clone())).unwrap().0.name(), Some("zstd"));
        assert_eq!(read_all(skipped).unwrap(), "a\n");
    }

    /// Wherever it is cut, but where nothing is left that tells the compression.
    #[test]
    fn cut_off_compressed_data_is_an_error() {
        for compress in COMPRESSORS {
            let whole = compress(&"some text\n".repeat(100));
            for len in MAGIC_BYTES as usize..whole.len() {
                assert!(read_all(whole[..len].to_vec()).is_err(), "{len} of {} bytes", whole.len());
                let appended = [&whole, &whole[..len]].concat();
                assert!(read_all(appended).is_err(), "{len} of {} bytes after a whole file", whole.len());
            }
        }
    }

    #[test]
    fn what_comes_after_compressed_data_is_compressed_or_an_error() {
        for compress in COMPRESSORS {
            assert!(read_all([&compress("a\n"), &b"b\n"[..]].concat()).is_err());
        }
    }

    #[test]
    fn an_xz_file_that_asks_for_much_memory_is_refused() {
        let mut file = xz("a\n");
        assert_eq!(file[12..20], [2, 0, 0x21, 1, file[16], 0, 0, 0], "the header of the first block");
        // A dictionary of 64 MiB, which is fine, and one of 1 GiB.
        for (dictionary, fine) in [(28, true), (36, false)] {
            file[16] = dictionary;
            let mut sum = flate2::Crc::new();
            sum.update(&file[12..20]);
            file[20..24].copy_from_slice(&sum.sum().to_le_bytes());
            assert_eq!(read_all(file.clone()).is_ok(), fine, "{dictionary}");
        }
    }

    #[test]
    fn a_peek_takes_nothing_away() {
        for (bytes, whole) in [(3, false), (6, false), (7, true)] {
            let peeked = peek(Box::new(Cursor::new(b"abcdef")), bytes).unwrap();
            assert_eq!((&peeked.start[..], peeked.whole), (&b"abcdef"[..6.min(bytes as usize)], whole));
            assert!(!peeked.broken);
            let text = io::read_to_string(peeked.input).unwrap();
            assert_eq!(text, "abcdef");
        }
    }

    #[test]
    fn an_error_while_peeking_is_met_again_later() {
        let failing = || Failing(Some(io::Error::other("broken")));
        let input = Box::new(BufReader::new(Cursor::new(b"abc").chain(failing())));
        let mut peeked = peek(input, 10).unwrap();
        assert_eq!((&peeked.start[..], peeked.whole, peeked.broken), (&b"abc"[..], false, true));
        let mut text = Vec::new();
        assert_eq!(peeked.input.read_to_end(&mut text).unwrap_err().to_string(), "broken");
        assert_eq!(text, b"abc");
        let error = peek(Box::new(BufReader::new(failing())), 10).err().unwrap();
        assert_eq!(error.to_string(), "broken");
    }
}
