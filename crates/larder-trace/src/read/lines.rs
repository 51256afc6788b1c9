//! Text formats: a line at a time, each line bounded.

use std::io::{self, Read};

use crate::Request;
use crate::error::Wrong;
use crate::input::Input;
use crate::source::{Place, Source, Stop};
use crate::volumes::Volumes;

/// A format of one request a line.
pub(crate) trait LineFormat: Send {
    /// What a line looks like, for errors.
    const COLUMNS: &'static str;

    /// The request on a line (without its end, and never blank), or none where the line is a comment or a
    /// header; `first` tells that no line has been parsed before. Takes no memory unless the line is wrong.
    fn parse(&mut self, first: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong>;
}

/// A trace of lines. Blank lines are passed over, and so is a byte order mark (UTF-8) at the beginning.
pub(crate) struct LineSource<F> {
    lines: Lines,
    format: F,
    /// No line has been parsed yet.
    first: bool,
}

impl<F: LineFormat> LineSource<F> {
    pub(crate) fn new(input: Input, format: F) -> Self {
        Self { lines: Lines::new(input), format, first: true }
    }
}

impl<F: LineFormat> Source for LineSource<F> {
    fn read(&mut self, volumes: &mut Volumes, out: &mut Vec<Request>, max: usize) -> Result<(), Stop> {
        let end = out.len().saturating_add(max);
        while out.len() < end {
            let number = self.lines.number() + 1;
            let parsed = match self.lines.next() {
                Ok(Line::End) => return Ok(()),
                Ok(Line::Text(line)) if is_blank(line) => continue,
                Ok(Line::Text(line)) => self.format.parse(std::mem::take(&mut self.first), line, volumes),
                Ok(Line::TooLong(start)) => Err(Wrong::new("the line", start, F::COLUMNS)),
                Err(error) => return Err(Stop::Io(Place::Line(number - 1), error)),
            };
            match parsed {
                Ok(Some(request)) => out.push(request),
                Ok(None) => {}
                Err(wrong) => return Err(Stop::Wrong(Place::Line(number), wrong)),
            }
        }
        Ok(())
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.first().is_none_or(u8::is_ascii_whitespace) && line.trim_ascii().is_empty()
}

/// Longest line, in bytes: no trace format comes near it, and what is no text must not fill the memory.
pub(crate) const LINE_BYTES_MAX: usize = 4096;

/// Bytes read at a time. Large enough to make a call of the decoder cheap, small enough to stay in the
/// processor's cache.
const BUFFER_BYTES: usize = 256 * 1024;

/// The mark that some editors put at the beginning of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The beginning of a text without that mark.
pub(crate) fn without_mark(start: &[u8]) -> &[u8] {
    start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start)
}

/// The lines of a text, without their ends (`\n` or `\r\n`).
pub(crate) struct Lines {
    input: Input,
    buffer: Vec<u8>,
    /// What of the buffer is read from the input but not handed out: `buffer[start..end]`.
    start: usize,
    end: usize,
    number: u64,
}

/// A line that is longer than [`LINE_BYTES_MAX`], or no more lines, or a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Text(&'a [u8]),
    TooLong(&'a [u8]),
    End,
}

impl Lines {
    pub(crate) fn new(input: Input) -> Self {
        Self { input, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, number: 0 }
    }

    /// Lines read so far: the number of the last one, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line. Not called again after a line that is too long.
    pub(crate) fn next(&mut self) -> io::Result<Line<'_>> {
        let start = self.start;
        let (end, next) = match memchr::memchr(b'\n', &self.buffer[start..self.end]) {
            Some(at) => (start + at, start + at + 1),
            None => return self.next_across_buffers(),
        };
        self.start = next;
        Ok(self.line(start, end))
    }

    /// The next line where the buffer does not hold it whole.
    #[cold]
    fn next_across_buffers(&mut self) -> io::Result<Line<'_>> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        loop {
            let known = self.end;
            if known > LINE_BYTES_MAX {
                return Ok(self.line(0, known));
            }
            self.end += self.fill()?;
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[known..self.end]) {
                self.start = known + at + 1;
                return Ok(self.line(0, known + at));
            }
            if self.end == known {
                self.start = known;
                return Ok(if known == 0 { Line::End } else { self.line(0, known) });
            }
        }
    }

    /// Read into the rest of the buffer; zero at the end.
    fn fill(&mut self) -> io::Result<usize> {
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// The line at these places of the buffer.
    #[inline]
    fn line(&mut self, start: usize, end: usize) -> Line<'_> {
        self.number += 1;
        let line = &self.buffer[start..end];
        if line.len() > LINE_BYTES_MAX {
            return Line::TooLong(line);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.number {
            1 => Line::Text(without_mark(line)),
            _ => Line::Text(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{BufReader, Cursor};

    fn lines(text: impl Into<Vec<u8>>) -> Lines {
        Lines::new(Box::new(Cursor::new(text.into())))
    }

    #[test]
    fn lines_end_in_either_way_and_are_bounded() {
        let text = [b"a\r\nb\n\nc".to_vec(), vec![b'x'; LINE_BYTES_MAX + 5]].concat();
        let mut lines = lines(text);
        for expected in [&b"a"[..], b"b", b""] {
            assert_eq!(lines.next().unwrap(), Line::Text(expected));
        }
        assert!(matches!(lines.next().unwrap(), Line::TooLong(line) if line.starts_with(b"cxxx")));
        assert_eq!(lines.number(), 4);
    }

    #[test]
    fn a_line_as_long_as_allowed_and_a_longer_one() {
        for (len, fits) in [(LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false)] {
            let text = [vec![b'x'; len], b"\nshort\n".to_vec()].concat();
            assert_eq!(matches!(lines(text).next().unwrap(), Line::Text(_)), fits, "{len}");
        }
        // A line without an end takes no more than the buffer.
        let mut endless = Lines::new(Box::new(BufReader::new(io::repeat(b'x'))));
        assert!(matches!(endless.next().unwrap(), Line::TooLong(line) if line.len() <= BUFFER_BYTES));
    }

    #[test]
    fn a_byte_order_mark_counts_only_at_the_beginning() {
        let mut lines = lines(*b"\xef\xbb\xbfa\n\xef\xbb\xbfb");
        assert_eq!(lines.next().unwrap(), Line::Text(b"a"));
        assert_eq!(lines.next().unwrap(), Line::Text(b"\xef\xbb\xbfb"));
        assert_eq!(lines.next().unwrap(), Line::End);
        assert_eq!(lines.next().unwrap(), Line::End);
    }

    #[test]
    fn blank_lines_are_told_from_others() {
        for (line, blank) in [("", true), (" \t", true), (" a", false), ("a ", false)] {
            assert_eq!(is_blank(line.as_bytes()), blank, "{line:?}");
        }
    }

    /// Gives a few bytes at a time, and is interrupted between.
    struct Dripping(Cursor<Vec<u8>>, bool);

    impl Read for Dripping {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            let few = out.len().min(7);
            if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(&mut out[..few]) }
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(
            parts in proptest::collection::vec(("[a-z]{0,200}", prop::bool::ANY), 0..20), dripping: bool,
        ) {
            let text: String = parts.iter().map(|(line, windows)| format!("{line}{}", if *windows { "\r\n" } else { "\n" })).collect();
            let input: Input = match dripping {
                true => Box::new(BufReader::with_capacity(16, Dripping(Cursor::new(text.into_bytes()), false))),
                false => Box::new(Cursor::new(text.into_bytes())),
            };
            let mut lines = Lines::new(input);
            for (line, _) in &parts {
                prop_assert_eq!(lines.next().unwrap(), Line::Text(line.as_bytes()));
            }
            prop_assert_eq!(lines.next().unwrap(), Line::End);
            prop_assert_eq!(lines.number(), parts.len() as u64);
        }

        #[test]
        fn lines_longer_than_a_buffer_in_sum_are_all_found(lengths in proptest::collection::vec(0..LINE_BYTES_MAX, 100..200)) {
            let text: Vec<u8> = lengths.iter().flat_map(|&len| [vec![b'x'; len], vec![b'\n']].concat()).collect();
            let mut lines = lines(text);
            for len in lengths {
                prop_assert!(matches!(lines.next().unwrap(), Line::Text(line) if line.len() == len));
            }
            prop_assert_eq!(lines.next().unwrap(), Line::End);
        }
    }
}
