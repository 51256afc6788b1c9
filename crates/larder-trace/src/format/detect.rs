//! Which format a file is in, told from its content.
//!
//! The first 64 KiB (decompressed) are looked at. Binary formats have marks, or records that make sense one
//! after the other. A text is in the first format, from the most peculiar to the least, whose reader finds
//! no mistake in the whole lines of that part.
//!
//! Some formats have the same columns and differ in units alone:
//!
//! - Five columns with whole times are `ssdsim` or `mqsim` (ns, which is the same: `ssdsim`) or `dtrs` (µs).
//!   They are taken as nanoseconds if all times are multiples of 1000, or requests come 50,000 units apart
//!   or more on average: 20 a second if it were µs, 20,000 if ns.
//! - Five columns with decimals are `heimdall` (bytes) if all places and lengths are multiples of 512, else
//!   `disksim` (sectors).
//! - A `.lis` file counts pages (`lis-pages`) if every request is for one unit, else sectors (`lis`).
//!
//! Where that guess is wrong, the user names the format. A file without content is an empty trace, in
//! `plain`.
//!
//! A text with a mistake in that part is in the format whose reader accepts most lines before it finds one,
//! so that the mistake is told where it stands. If no reader accepts the first line, it is in none.

use std::io::{self, Cursor};

use crate::input::{Input, peek};
use crate::read::columns::{MICROSECOND_NS, SECTOR_BYTES};
use crate::read::lines::without_mark;
use crate::source::{Place, Stop};
use crate::volumes::Volumes;
use crate::{Format, Request, TraceError};

/// Bytes that are looked at.
const WINDOW_BYTES: u64 = 64 * 1024;

/// Requests as far apart as this, on average, have their times in nanoseconds.
const NANOSECONDS_GAP: u64 = 50_000;

/// The format of `input`, and the input with all its bytes.
pub(super) fn detect(file: &str, input: Input) -> Result<(Format, Input), TraceError> {
    let open = |source| TraceError::Open { file: file.to_owned(), source };
    let peeked = peek(input, WINDOW_BYTES).map_err(open)?;
    match format_of(&peeked.start, peeked.whole) {
        Some(format) => Ok((format, peeked.input)),
        // What is broken off may be too short to tell.
        None if peeked.broken => {
            let broken = io::copy(&mut { peeked.input }, &mut io::sink()).err();
            Err(open(broken.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())))
        }
        None => Err(TraceError::unknown(file, &peeked.start)),
    }
}

/// The format of a file that begins so; `whole` where that is all of it.
fn format_of(start: &[u8], whole: bool) -> Option<Format> {
    let is_empty = whole && without_mark(start).trim_ascii().is_empty();
    if is_empty {
        return Some(Format::Plain);
    }
    let lines = lines(start, whole);
    marked(start).or_else(|| text(lines)).or_else(|| records(start)).or_else(|| nearest(lines))
}

/// Binary formats with a mark at the beginning.
fn marked(start: &[u8]) -> Option<Format> {
    use crate::read;
    if read::parquet::looks_like(start) {
        Some(Format::Parquet)
    } else if read::srt::looks_like(start) {
        Some(Format::Srt)
    } else if read::blktrace::looks_like(start) {
        Some(Format::Blktrace)
    } else {
        None
    }
}

/// Binary formats of bare records.
fn records(start: &[u8]) -> Option<Format> {
    use crate::read;
    if read::vscsi::looks_like(start) {
        Some(Format::Vscsi)
    } else if read::oracle_general::looks_like(start) {
        Some(Format::OracleGeneral)
    } else {
        None
    }
}

/// The formats of text, from the most peculiar to the least; of those with the same columns, one.
const TEXTS: [Format; 14] = [
    Format::FioLog,
    Format::Blkparse,
    Format::Msr,
    Format::Systor,
    Format::Spc,
    Format::Alibaba,
    Format::Fiu,
    Format::Plain,
    Format::Tencent,
    Format::Ssdsim,
    Format::Heimdall,
    Format::Disksim,
    Format::Lis,
    Format::LibCacheSimCsv,
];

/// The whole lines of what a file begins with: the last one may be cut.
fn lines(start: &[u8], whole: bool) -> &[u8] {
    let end = if whole { start.len() } else { memchr::memrchr(b'\n', start).map_or(0, |last| last + 1) };
    &start[..end]
}

fn text(lines: &[u8]) -> Option<Format> {
    let good = |format| match read(format, lines) {
        (requests, None) if !lines.is_empty() => refined(format, &requests),
        _ => None,
    };
    TEXTS.into_iter().find_map(good)
}

/// The format whose reader accepts most lines before it finds a mistake; none where that is not a single one.
fn nearest(lines: &[u8]) -> Option<Format> {
    let accepted = |format| {
        let (requests, mistake) = read(format, lines);
        let Some(Place::Line(mistake)) = mistake else { return None };
        let before = without_mark(lines).split(|&byte| byte == b'\n').take(mistake as usize - 1);
        let says_something = |line: &&[u8]| !matches!(line.trim_ascii_start(), [] | [b'#', ..]);
        let accepted = before.filter(says_something).count();
        (accepted > 0).then_some((accepted, refined(format, &requests)?))
    };
    // Of several, the most peculiar, which `max_by_key` must meet last.
    TEXTS.into_iter().rev().filter_map(accepted).max_by_key(|&(lines, _)| lines).map(|(_, format)| format)
}

/// The requests of a text in this format, and where the first mistake is, if there is one.
fn read(format: Format, lines: &[u8]) -> (Vec<Request>, Option<Place>) {
    let mut requests = Vec::new();
    let mut source = super::reader(format, Box::new(Cursor::new(lines.to_vec())));
    // No line is longer than the window, and none gives two requests.
    let read = source.read(&mut Volumes::default(), &mut requests, WINDOW_BYTES as usize);
    (requests, read.err().map(|(Stop::Wrong(place, _) | Stop::Io(place, _))| place))
}

/// Of the formats with the columns of this one, the one whose units make sense of these requests.
fn refined(format: Format, requests: &[Request]) -> Option<Format> {
    let are_all = |good: fn(&Request) -> bool| requests.iter().all(good);
    Some(match format {
        Format::Ssdsim if !is_in_nanoseconds(requests) => Format::Dtrs,
        Format::Lis if are_all(|request| u64::from(request.len) == SECTOR_BYTES) => Format::LisPages,
        Format::Heimdall
            if !are_all(|request| {
                request.offset % SECTOR_BYTES == 0 && u64::from(request.len) % SECTOR_BYTES == 0
            }) =>
        {
            return None;
        }
        format => format,
    })
}

fn is_in_nanoseconds(requests: &[Request]) -> bool {
    let times = || requests.iter().map(|request| request.time_ns);
    let span = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    let gaps = (requests.len() as u64).saturating_sub(1).max(1);
    times().all(|time| time % MICROSECOND_NS == 0) || span / gaps >= NANOSECONDS_GAP
}

#[cfg(test)]
mod tests;
