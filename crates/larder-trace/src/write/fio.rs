//! Writing fio's iolog, version 3.

use std::io::Write;

use super::names::Names;
use crate::volumes::NAME_BYTES_MAX;
use crate::{Format, Request, RequestKind, Volume, WriteError};

const MICROSECOND_NS: u64 = 1000;

/// Writes a log that `fio --read_iolog` replays (version 3, so fio 3.31 or later).
///
/// Times are microseconds since the first request, as fio's own; an earlier request is at 0. A volume is the file that it
/// [displays as](Volume), without spaces. A flush is a `sync`, a discard a `trim`.
/// (fio 3.33, which Debian 12 has, leaves out the trims of a log, with a message for each, and replays the rest.)
pub struct FioWriter<W: Write> {
    out: W,
    names: Names,
    /// The time of the first request.
    first_ns: Option<u64>,
    /// The time of the last line.
    last_us: u64,
}

impl<W: Write> FioWriter<W> {
    /// A writer to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self { out, names: Names::new(Format::FioLog, file_name), first_ns: None, last_us: 0 }
    }

    /// Write a request for `volume` ([`Request::volume`] is not looked at).
    pub fn write(&mut self, request: &Request, volume: &Volume) -> Result<(), WriteError> {
        let Request { time_ns, kind, offset, len, .. } = *request;
        let (file, is_new) = self.names.of(volume)?;
        let first_ns = match self.first_ns {
            Some(first_ns) => first_ns,
            None => {
                writeln!(self.out, "fio version 3 iolog")?;
                *self.first_ns.insert(time_ns)
            }
        };
        let time_us = time_ns.saturating_sub(first_ns) / MICROSECOND_NS;
        if is_new {
            writeln!(self.out, "{time_us} {file} add\n{time_us} {file} open")?;
        }
        writeln!(self.out, "{time_us} {file} {} {offset} {len}", action(kind))?;
        self.last_us = time_us;
        Ok(())
    }

    /// Close the files, flush, and give the output back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        if self.first_ns.is_none() {
            writeln!(self.out, "fio version 3 iolog")?;
        }
        for file in self.names.used() {
            writeln!(self.out, "{} {file} close", self.last_us)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

fn action(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Read => "read",
        RequestKind::Write => "write",
        RequestKind::Flush => "sync",
        RequestKind::Discard => "trim",
    }
}

fn file_name(volume: &Volume) -> Result<String, &'static str> {
    let name = volume.to_string();
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        Err("a file has a name of 1 to 255 bytes")
    } else if name.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        Err("a file has no spaces in its name")
    } else {
        Ok(name)
    }
}
