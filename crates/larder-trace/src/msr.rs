//! MSR Cambridge traces: reading and writing.
//!
//! CSV without a header (one is skipped where it is there), a request a line:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. The time stamp is a Windows FILETIME: ticks of 100 ns
//! since 1601. Offset and size are in bytes, the type is `Read` or `Write`, the response time (ticks) is not used.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use crate::error::Wrong;
use crate::input::{Line, Lines, decompressed};
use crate::{Request, RequestKind, TraceError, Volume, WriteError};

/// Nanoseconds in a tick of a FILETIME.
const TICK_NS: u64 = 100;

/// Volumes that one trace may have: the largest public collection has some ten thousand.
const VOLUMES_MAX: usize = 1 << 20;

/// Longest host name, in bytes.
const HOST_BYTES_MAX: usize = 255;

const FIELDS: usize = 7;
const COLUMNS: &str = "7 fields: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

/// Open an MSR Cambridge trace, plain or compressed with gzip or zstd.
pub fn open(path: impl AsRef<Path>) -> Result<MsrReader, TraceError> {
    let file = path.as_ref().display().to_string();
    match File::open(path) {
        Ok(raw) => MsrReader::new(file, raw),
        Err(source) => Err(TraceError::Open { file, source }),
    }
}

/// Reads the requests of an MSR Cambridge trace in the order of the file. Ends after the first error.
pub struct MsrReader {
    file: String,
    lines: Lines,
    volumes: Volumes,
    ended: bool,
}

impl MsrReader {
    /// A reader of `raw`, which may be compressed. `file` is how errors call it.
    pub fn new(file: impl Into<String>, raw: impl Read + Send + 'static) -> Result<Self, TraceError> {
        let file = file.into();
        match decompressed(raw) {
            Ok(text) => Ok(Self { file, lines: Lines::new(text), volumes: Volumes::default(), ended: false }),
            Err(source) => Err(TraceError::Open { file, source }),
        }
    }

    /// The volumes met so far: those that [`Request::volume`] counts.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes.list
    }

    /// Lines read so far.
    pub fn lines_read(&self) -> u64 {
        self.lines.number()
    }

    fn read(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            let before = self.lines.number();
            let wrong = match self.lines.next() {
                Ok(Line::End) => return Ok(None),
                Ok(Line::Text(line)) if is_no_request(line, before == 0) => continue,
                Ok(Line::Text(line)) => match parse(line, &mut self.volumes) {
                    Ok(request) => return Ok(Some(request)),
                    Err(wrong) => wrong,
                },
                Ok(Line::TooLong(start)) => Wrong::new("the line", start, COLUMNS),
                Err(source) => {
                    return Err(TraceError::Read { file: self.file.clone(), line: before, source });
                }
            };
            return Err(wrong.at(&self.file, before + 1));
        }
    }
}

impl Iterator for MsrReader {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read();
        self.ended = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

/// True for an empty line, and for a header.
fn is_no_request(line: &[u8], first: bool) -> bool {
    line.is_empty() || (first && line.starts_with(b"Timestamp,"))
}

fn parse(line: &[u8], volumes: &mut Volumes) -> Result<Request, Wrong> {
    let [time, host, disk, kind, offset, size, _] = fields(line)?;
    let ticks = number("Timestamp", time, "a FILETIME in ticks of 100 ns")?;
    let Some(time_ns) = ticks.checked_mul(TICK_NS) else {
        return Err(Wrong::new("Timestamp", time, "a FILETIME before the year 2185"));
    };
    let volume = volumes.index(host, disk)?;
    let kind = request_kind(kind)?;
    let start = number("Offset", offset, "a whole number of bytes")?;
    let len = narrow("Size", size, "a whole number of bytes below 4 GiB")?;
    if start.checked_add(u64::from(len)).is_none() {
        return Err(Wrong::new("Offset", offset, "a request that ends below 2^64 bytes"));
    }
    Ok(Request { time_ns, volume, kind, offset: start, len })
}

/// The fields of a line, without spaces around them.
fn fields(line: &[u8]) -> Result<[&[u8]; FIELDS], Wrong> {
    let mut found = [&line[..0]; FIELDS];
    let mut parts = line.split(|&byte| byte == b',');
    for field in &mut found {
        *field = parts.next().ok_or_else(|| Wrong::new("the line", line, COLUMNS))?.trim_ascii();
    }
    match parts.next() {
        None => Ok(found),
        Some(_) => Err(Wrong::new("the line", line, COLUMNS)),
    }
}

fn number(field: &'static str, digits: &[u8], expected: &'static str) -> Result<u64, Wrong> {
    let value = digits.iter().try_fold(0u64, |value, &byte| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    });
    value.filter(|_| !digits.is_empty()).ok_or_else(|| Wrong::new(field, digits, expected))
}

fn narrow(field: &'static str, digits: &[u8], expected: &'static str) -> Result<u32, Wrong> {
    let value = number(field, digits, expected)?;
    u32::try_from(value).map_err(|_| Wrong::new(field, digits, expected))
}

fn request_kind(name: &[u8]) -> Result<RequestKind, Wrong> {
    if name.eq_ignore_ascii_case(b"read") {
        Ok(RequestKind::Read)
    } else if name.eq_ignore_ascii_case(b"write") {
        Ok(RequestKind::Write)
    } else {
        Err(Wrong::new("Type", name, "Read or Write"))
    }
}

/// The volumes of a trace, numbered in the order in which they come.
#[derive(Default)]
struct Volumes {
    list: Vec<Volume>,
    numbers: BTreeMap<Volume, u32>,
    /// The volume of the last request: most requests are for the same.
    last: usize,
}

impl Volumes {
    fn index(&mut self, host: &[u8], disk: &[u8]) -> Result<u32, Wrong> {
        let number = narrow("DiskNumber", disk, "a whole number below 2^32")?;
        if self.list.get(self.last).is_none_or(|last| last.host.as_bytes() != host || last.disk != number) {
            self.last = self.look_up(host, number)? as usize;
        }
        Ok(self.last as u32)
    }

    fn look_up(&mut self, host: &[u8], disk: u32) -> Result<u32, Wrong> {
        let name =
            std::str::from_utf8(host).ok().filter(|name| !name.is_empty() && name.len() <= HOST_BYTES_MAX);
        let Some(name) = name else {
            return Err(Wrong::new("Hostname", host, "a name of 1 to 255 bytes in UTF-8"));
        };
        let volume = Volume { host: name.to_owned(), disk };
        if let Some(&known) = self.numbers.get(&volume) {
            return Ok(known);
        }
        if self.list.len() == VOLUMES_MAX {
            return Err(Wrong::new("Hostname", host, "no more than 1,048,576 volumes in a trace"));
        }
        let new = self.list.len() as u32;
        self.list.push(volume.clone());
        self.numbers.insert(volume, new);
        Ok(new)
    }
}

/// Writes an MSR Cambridge trace. The response time is written as 0.
pub struct MsrWriter<W: Write> {
    out: W,
}

impl<W: Write> MsrWriter<W> {
    /// A writer to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Write one read or write for `volume` ([`Request::volume`] is not looked at). Time is cut to 100 ns.
    pub fn write(&mut self, request: &Request, volume: &Volume) -> Result<(), WriteError> {
        let Request { time_ns, kind, offset, len, .. } = *request;
        if !matches!(kind, RequestKind::Read | RequestKind::Write) {
            return Err(WriteError::Kind(kind));
        }
        let Volume { host, disk } = volume;
        if host.is_empty()
            || host.len() > HOST_BYTES_MAX
            || host.contains([',', '\n', '\r'])
            || host.trim() != host
        {
            return Err(WriteError::Host(host.clone()));
        }
        writeln!(self.out, "{},{host},{disk},{},{offset},{len},0", time_ns / TICK_NS, kind.as_str())?;
        Ok(())
    }

    /// Flush, and give the output back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests;
