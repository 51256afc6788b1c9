//! Writers: one per format, and [`TraceWriter`] in front of them.

mod fio;
mod msr;
mod names;
mod oracle_general;
mod parquet;

use std::io::{Seek, Write};

pub use fio::FioWriter;
pub use msr::MsrWriter;
pub use oracle_general::OracleGeneralWriter;
pub use parquet::ParquetWriter;

use crate::{Format, Request, Volume, WriteError};

/// Writes a trace in one of [`TraceWriter::FORMATS`]. What a format cannot hold is an error, not left out.
pub struct TraceWriter<W: Write + Send> {
    writer: Writer<W>,
}

enum Writer<W: Write + Send> {
    Msr(MsrWriter<W>),
    Fio(FioWriter<W>),
    OracleGeneral(OracleGeneralWriter<W>),
    Parquet(Box<ParquetWriter<W>>),
}

impl TraceWriter<Vec<u8>> {
    /// The formats that can be written.
    pub const FORMATS: [Format; 4] = [Format::Msr, Format::FioLog, Format::OracleGeneral, Format::Parquet];
}

impl<W: Write + Send> TraceWriter<W> {
    /// A writer to a file, which should be buffered.
    pub fn new(format: Format, out: W) -> Result<Self, WriteError>
    where
        W: Seek,
    {
        match format {
            Format::OracleGeneral => {
                Ok(Self { writer: Writer::OracleGeneral(OracleGeneralWriter::new(out)?) })
            }
            _ => Self::streamed(format, out),
        }
    }

    /// A writer to a pipe or a compressor: every format but `oracle-general`, which goes back in its output.
    pub fn streamed(format: Format, out: W) -> Result<Self, WriteError> {
        let writer = match format {
            Format::Msr => Writer::Msr(MsrWriter::new(out)),
            Format::FioLog => Writer::Fio(FioWriter::new(out)),
            Format::Parquet => Writer::Parquet(Box::new(ParquetWriter::new(out)?)),
            Format::OracleGeneral => return Err(WriteError::Streamed(format)),
            _ => return Err(WriteError::Format(format)),
        };
        Ok(Self { writer })
    }

    /// Write a request for `volume`.
    pub fn write(&mut self, request: &Request, volume: &Volume) -> Result<(), WriteError> {
        match &mut self.writer {
            Writer::Msr(writer) => writer.write(request, volume),
            Writer::Fio(writer) => writer.write(request, volume),
            Writer::OracleGeneral(writer) => writer.write(request),
            Writer::Parquet(writer) => writer.write(request, volume),
        }
    }

    /// Write what is still held back, flush, and give the output back. Without it the trace is not whole.
    pub fn finish(self) -> Result<W, WriteError> {
        match self.writer {
            Writer::Msr(writer) => writer.finish(),
            Writer::Fio(writer) => writer.finish(),
            Writer::OracleGeneral(writer) => writer.finish(),
            Writer::Parquet(writer) => writer.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
