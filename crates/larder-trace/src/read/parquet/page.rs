//! Pages: their headers, and what is in them once decompressed.

use std::io::{self, Read};

use super::thrift::{Bad, Compact, Kind};

/// Most bytes of a page, compressed or not. Writers aim at 1 MiB.
pub(super) const PAGE_BYTES_MAX: usize = 64 << 20;

/// The header of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: PageKind,
    /// Bytes that follow the header.
    pub(super) compressed: i64,
    pub(super) uncompressed: i64,
    pub(super) values: i64,
    pub(super) encoding: i64,
    /// How definition levels are stored (first version only).
    pub(super) level_encoding: i64,
    /// Bytes of the levels, which are not compressed (second version only).
    pub(super) repetition_bytes: i64,
    pub(super) definition_bytes: i64,
    /// The values are not compressed, whatever the column's compression (second version only).
    pub(super) plain: bool,
}

/// What a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Values, of the first version: levels and values compressed as one.
    Data,
    /// Values, of the second version.
    DataV2,
    Dictionary,
    /// One that can be left out.
    #[default]
    Other,
}

/// The header at the beginning of `bytes`, and its length. One without kind and sizes is none: zeros are no pages.
pub(super) fn header(bytes: &[u8]) -> Result<(Header, usize), Bad> {
    let mut header = Header::default();
    let mut required = [false; 3];
    let mut reader = Compact::new(bytes, 0);
    reader.fields(|reader, number, kind| {
        if let (1..=3, Kind::Int) = (number, kind) {
            required[number as usize - 1] = true;
        }
        match (number, kind) {
            (1, Kind::Int) => header.kind = page_kind(reader.int()?),
            (2, Kind::Int) => header.uncompressed = reader.int()?,
            (3, Kind::Int) => header.compressed = reader.int()?,
            (5, Kind::Struct) => data_header(reader, &mut header)?,
            (7, Kind::Struct) => dictionary_header(reader, &mut header)?,
            (8, Kind::Struct) => data_header_v2(reader, &mut header)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if required == [true; 3] { Ok((header, reader.at())) } else { Err(Bad::Wrong) }
}

fn page_kind(code: i64) -> PageKind {
    match code {
        0 => PageKind::Data,
        2 => PageKind::Dictionary,
        3 => PageKind::DataV2,
        _ => PageKind::Other,
    }
}

fn data_header(reader: &mut Compact<'_>, header: &mut Header) -> Result<(), Bad> {
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (1, Kind::Int) => header.values = reader.int()?,
            (2, Kind::Int) => header.encoding = reader.int()?,
            (3, Kind::Int) => header.level_encoding = reader.int()?,
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn dictionary_header(reader: &mut Compact<'_>, header: &mut Header) -> Result<(), Bad> {
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (1, Kind::Int) => header.values = reader.int()?,
            (2, Kind::Int) => header.encoding = reader.int()?,
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn data_header_v2(reader: &mut Compact<'_>, header: &mut Header) -> Result<(), Bad> {
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (1, Kind::Int) => header.values = reader.int()?,
            (4, Kind::Int) => header.encoding = reader.int()?,
            (5, Kind::Int) => header.definition_bytes = reader.int()?,
            (6, Kind::Int) => header.repetition_bytes = reader.int()?,
            (7, Kind::False) => header.plain = true,
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// How pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Snappy,
    Gzip,
    Zstd,
    Lz4,
}

impl Codec {
    /// The codec of a column, if it is known. Brotli, LZO and the LZ4 of Hadoop are not.
    pub(super) fn of(code: i64) -> Option<Self> {
        match code {
            0 => Some(Self::Plain),
            1 => Some(Self::Snappy),
            2 => Some(Self::Gzip),
            6 => Some(Self::Zstd),
            7 => Some(Self::Lz4),
            _ => None,
        }
    }

    /// Append to `out` what `bytes` stand for, which must be exactly `len` bytes.
    pub(super) fn decompress(self, bytes: &[u8], len: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let before = out.len();
        match self {
            Self::Plain => out.extend_from_slice(bytes),
            Self::Gzip => stream(flate2::read::MultiGzDecoder::new(bytes), len, out)?,
            Self::Zstd => stream(zstd::Decoder::with_buffer(bytes)?, len, out)?,
            Self::Snappy => snappy(bytes, len, out)?,
            Self::Lz4 => lz4(bytes, len, out)?,
        }
        if out.len() - before == len { Ok(()) } else { Err(another_length()) }
    }
}

/// Read at most one byte more than there should be: that tells a page which is too long, and no memory is spent on it.
fn stream(decoder: impl Read, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
    decoder.take(len as u64 + 1).read_to_end(out).map(drop)
}

fn snappy(bytes: &[u8], len: usize, out: &mut Vec<u8>) -> io::Result<()> {
    if snap::raw::decompress_len(bytes)? != len {
        return Err(another_length());
    }
    let before = out.len();
    out.resize(before + len, 0);
    let count = snap::raw::Decoder::new().decompress(bytes, &mut out[before..])?;
    out.truncate(before + count);
    Ok(())
}

/// A byte of LZ4 stands for at most 255.
const LZ4_RATIO_MAX: usize = 255;

fn lz4(bytes: &[u8], len: usize, out: &mut Vec<u8>) -> io::Result<()> {
    if len > bytes.len().saturating_mul(LZ4_RATIO_MAX) {
        return Err(another_length());
    }
    let before = out.len();
    out.resize(before + len, 0);
    let count = lz4_flex::block::decompress_into(bytes, &mut out[before..])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    out.truncate(before + count);
    Ok(())
}

fn another_length() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the page has another length than its header tells")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_as_long_as_told_takes_no_memory() {
        for codec in [Codec::Plain, Codec::Snappy, Codec::Gzip, Codec::Zstd, Codec::Lz4] {
            let mut out = Vec::new();
            assert!(codec.decompress(&[0x10; 20], PAGE_BYTES_MAX, &mut out).is_err(), "{codec:?}");
            assert!(out.capacity() < 1 << 16, "{codec:?}: {}", out.capacity());
        }
    }
}
