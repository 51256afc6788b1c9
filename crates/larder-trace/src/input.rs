//! A trace file as lines: decompressed where its first bytes say so, a bounded line at a time.

use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Longest line, in bytes: no trace format comes near it, and what is no text must not fill the memory.
pub(crate) const LINE_BYTES_MAX: usize = 4096;

const BUFFER_BYTES: usize = 128 * 1024;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A source of bytes; `Send`, so that a trace can be read by a thread of its own.
pub(crate) type Input = Box<dyn BufRead + Send>;

/// The text behind `raw`: decompressed if it begins as gzip or zstd do, as it is otherwise.
pub(crate) fn decompressed(mut raw: impl Read + Send + 'static) -> io::Result<Input> {
    let mut magic = Vec::with_capacity(ZSTD_MAGIC.len());
    raw.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut magic)?;
    let (gzip, zstd) = (magic.starts_with(&GZIP_MAGIC), magic.starts_with(&ZSTD_MAGIC));
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(magic).chain(raw));
    if gzip {
        return Ok(Box::new(BufReader::with_capacity(
            BUFFER_BYTES,
            flate2::bufread::MultiGzDecoder::new(whole),
        )));
    }
    if zstd {
        let text = zstd::Decoder::with_buffer(whole)?;
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, text)));
    }
    Ok(Box::new(whole))
}

/// The lines of a text, without their ends (`\n` or `\r\n`).
pub(crate) struct Lines {
    input: Input,
    line: Vec<u8>,
    number: u64,
}

/// A line that is longer than [`LINE_BYTES_MAX`], or no more lines, or a line.
pub(crate) enum Line<'a> {
    Text(&'a [u8]),
    TooLong(&'a [u8]),
    End,
}

impl Lines {
    pub(crate) fn new(input: Input) -> Self {
        Self { input, line: Vec::with_capacity(256), number: 0 }
    }

    /// Lines read so far: the number of the last one, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line.
    pub(crate) fn next(&mut self) -> io::Result<Line<'_>> {
        self.line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        if self.input.by_ref().take(limit).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(Line::End);
        }
        self.number += 1;
        if self.line.len() > LINE_BYTES_MAX {
            return Ok(Line::TooLong(&self.line));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Line::Text(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn read_all(raw: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        decompressed(Cursor::new(raw))?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compression_is_told_by_the_first_bytes() {
        let text = "one line\nanother\n".repeat(1000);
        assert_eq!(read_all(text.clone().into_bytes()).unwrap(), text);
        assert_eq!(read_all(gzip(&text)).unwrap(), text);
        assert_eq!(read_all(zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap(), text);
    }

    #[test]
    fn appended_members_are_read_on() {
        assert_eq!(read_all([gzip("a\n"), gzip("b\n")].concat()).unwrap(), "a\nb\n");
        let frames = [zstd::encode_all(&b"a\n"[..], 1).unwrap(), zstd::encode_all(&b"b\n"[..], 1).unwrap()];
        assert_eq!(read_all(frames.concat()).unwrap(), "a\nb\n");
    }

    #[test]
    fn short_files_are_plain_text() {
        for text in ["", "a", "abc"] {
            assert_eq!(read_all(text.into()).unwrap(), text);
        }
    }

    #[test]
    fn cut_off_compressed_data_is_an_error() {
        let mut cut = gzip(&"some text\n".repeat(100));
        cut.truncate(cut.len() - 10);
        assert!(read_all(cut).is_err());
    }

    #[test]
    fn lines_end_in_either_way_and_are_bounded() {
        let text = [b"a\r\nb\n\nc".to_vec(), vec![b'x'; LINE_BYTES_MAX + 5]].concat();
        let mut lines = Lines::new(Box::new(Cursor::new(text)));
        for expected in [&b"a"[..], b"b", b""] {
            assert!(matches!(lines.next().unwrap(), Line::Text(line) if line == expected));
        }
        assert!(matches!(lines.next().unwrap(), Line::TooLong(line) if line.len() == LINE_BYTES_MAX + 1));
        assert_eq!(lines.number(), 4);
    }
}
