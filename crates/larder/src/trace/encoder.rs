//! The bytes of a trace on their way to a file: compressed or not, and put together elsewhere first where the format goes back in its output.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use larder_trace::{Format, Request, TraceWriter, Volume, WriteError};

use super::options::Compression;

const BUFFER_BYTES: usize = 128 * 1024;

/// Compresses, or does not.
enum Encoder {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl Encoder {
    fn new(file: File, compression: Option<Compression>) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(match compression {
            None => Self::Plain(file),
            Some(Compression::Gzip) => Self::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Some(Compression::Zstd) => Self::Zstd(zstd_encoder(file)?),
        })
    }

    /// Write what is held back; the file.
    fn finish(self) -> io::Result<File> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

fn zstd_encoder(file: BufWriter<File>) -> io::Result<zstd::Encoder<'static, BufWriter<File>>> {
    let mut encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    // So that damage is found when it is read.
    encoder.include_checksum(true)?;
    Ok(encoder)
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    /// Does not reach the file: a compressor told to flush would compress less.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a trace in any format to any file.
pub struct TraceEncoder(Body);

enum Body {
    Streamed(Box<TraceWriter<Encoder>>),
    /// The format goes back in its output, which is a plain file.
    InPlace(Box<TraceWriter<File>>),
    /// It goes back, and the output cannot: the trace is put together in a file without a name, then copied.
    Spooled(Box<TraceWriter<File>>, Encoder),
}

impl TraceEncoder {
    /// A writer to `file`, an empty file in `folder`; no folder where it is a pipe or a device.
    pub fn new(
        file: File,
        format: Format,
        compression: Option<Compression>,
        folder: Option<&Path>,
    ) -> Result<Self, WriteError> {
        let goes_back = format == Format::OracleGeneral;
        Ok(Self(match (goes_back, compression, folder) {
            (false, ..) => {
                Body::Streamed(Box::new(TraceWriter::streamed(format, Encoder::new(file, compression)?)?))
            }
            (true, None, Some(_)) => Body::InPlace(Box::new(TraceWriter::new(format, file)?)),
            (true, ..) => {
                let spool = folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
                let writer = TraceWriter::new(format, tempfile::tempfile_in(spool)?)?;
                Body::Spooled(Box::new(writer), Encoder::new(file, compression)?)
            }
        }))
    }

    /// Write a request.
    pub fn write(&mut self, request: &Request, volume: &Volume) -> Result<(), WriteError> {
        match &mut self.0 {
            Body::Streamed(writer) => writer.write(request, volume),
            Body::InPlace(writer) | Body::Spooled(writer, _) => writer.write(request, volume),
        }
    }

    /// Write what is held back; the file.
    pub fn finish(self) -> Result<File, WriteError> {
        match self.0 {
            Body::Streamed(writer) => Ok(writer.finish()?.finish()?),
            Body::InPlace(writer) => writer.finish(),
            Body::Spooled(writer, mut encoder) => {
                let mut spool = writer.finish()?;
                spool.rewind()?;
                io::copy(&mut spool, &mut encoder)?;
                Ok(encoder.finish()?)
            }
        }
    }
}
