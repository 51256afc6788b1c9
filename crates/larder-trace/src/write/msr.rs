//! Writing MSR Cambridge CSV.

use std::io::Write;

use super::names::Names;
use crate::volumes::NAME_BYTES_MAX;
use crate::{Format, Request, RequestKind, Volume, WriteError};

/// Nanoseconds in a tick of a FILETIME.
const TICK_NS: u64 = 100;

/// Writes an MSR Cambridge trace: reads and writes, with their time cut to 100 ns. The response time is written as 0.
///
/// The tenant is the host and the disk its number. Where there is no tenant, or the disk is no number, the host is what
/// the volume [displays as](Volume), and its disk 0. A comma in the host becomes a colon.
pub struct MsrWriter<W: Write> {
    out: W,
    names: Names,
}

impl<W: Write> MsrWriter<W> {
    /// A writer to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self { out, names: Names::new(Format::Msr, host_and_disk) }
    }

    /// Write one read or write for `volume` ([`Request::volume`] is not looked at).
    pub fn write(&mut self, request: &Request, volume: &Volume) -> Result<(), WriteError> {
        let Request { time_ns, kind, offset, len, .. } = *request;
        if !matches!(kind, RequestKind::Read | RequestKind::Write) {
            return Err(WriteError::Kind { format: Format::Msr, kind });
        }
        let (name, _) = self.names.of(volume)?;
        writeln!(self.out, "{},{name},{},{offset},{len},0", time_ns / TICK_NS, kind.as_str())?;
        Ok(())
    }

    /// Flush, and give the output back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The columns Hostname and DiskNumber.
fn host_and_disk(volume: &Volume) -> Result<String, &'static str> {
    let Volume { tenant, disk } = volume;
    let is_number = disk.parse::<u64>().is_ok_and(|number| number.to_string() == *disk);
    let (host, disk) = match tenant.as_str() {
        tenant if !tenant.is_empty() && is_number => (tenant.to_owned(), disk.as_str()),
        _ => (volume.to_string(), "0"),
    };
    if host.is_empty() || host.len() > NAME_BYTES_MAX {
        Err("a host has a name of 1 to 255 bytes")
    } else if host.contains(['\n', '\r']) || host.trim() != host {
        Err("a host has no line ends in its name, and no spaces at its edges")
    } else {
        Ok(format!("{},{disk}", host.replace(',', ":")))
    }
}
