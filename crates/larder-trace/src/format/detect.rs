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

use std::io::Cursor;

use crate::input::{Input, peek};
use crate::read::columns::{MICROSECOND_NS, SECTOR_BYTES};
use crate::read::lines::without_mark;
use crate::volumes::Volumes;
use crate::{Format, Request, TraceError};

/// Bytes that are looked at.
const WINDOW_BYTES: u64 = 64 * 1024;

/// Requests as far apart as this, on average, have their times in nanoseconds.
const NANOSECONDS_GAP: u64 = 50_000;

/// The format of `input`, and the input with all its bytes.
pub(super) fn detect(file: &str, input: Input) -> Result<(Format, Input), TraceError> {
    let file = || file.to_owned();
    let peeked = peek(input, WINDOW_BYTES).map_err(|source| TraceError::Open { file: file(), source })?;
    match format_of(&peeked.start, peeked.whole) {
        Some(format) => Ok((format, peeked.input)),
        None => Err(TraceError::Unknown { file: file() }),
    }
}

/// The format of a file that begins so; `whole` where that is all of it.
fn format_of(start: &[u8], whole: bool) -> Option<Format> {
    let is_empty = whole && without_mark(start).trim_ascii().is_empty();
    if is_empty {
        Some(Format::Plain)
    } else {
        marked(start).or_else(|| text(start, whole)).or_else(|| records(start))
    }
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

fn text(start: &[u8], whole: bool) -> Option<Format> {
    // The last line may be cut.
    let lines = if whole { start } else { &start[..=memchr::memrchr(b'\n', start)?] };
    TEXTS.into_iter().find_map(|format| refined(format, &requests(format, lines)?))
}

/// The requests of a text in this format; none if it is not.
fn requests(format: Format, lines: &[u8]) -> Option<Vec<Request>> {
    let mut source = super::reader(format, Box::new(Cursor::new(lines.to_vec())))?;
    let mut requests = Vec::new();
    // No line is longer than the window, and none gives two requests.
    source.read(&mut Volumes::default(), &mut requests, WINDOW_BYTES as usize).ok()?;
    Some(requests)
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
