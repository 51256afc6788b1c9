//! One column: its values one after the other, a page in memory at a time.

use std::io::{self, Read, Seek, SeekFrom};

use super::bits::Hybrid;
use super::footer::{Chunk, Leaf, Physical};
use super::page::{self, Codec, Header, PAGE_BYTES_MAX, PageKind};
use super::thrift::Bad;
use super::values::{Cell, Dictionary, Values};
use crate::error::Wrong;
use crate::read::bytes::{wrong, wrong_number};
use crate::source::{Place, Stop};

/// Bytes read to find the header of a page; four times as many each time that it turns out longer (it can hold the
/// least and the greatest value).
const HEADER_BYTES: usize = 256;
const HEADER_BYTES_MAX: usize = 1 << 20;
/// The largest number that encodes levels as runs (3 is RLE), the only way since 2013.
const ENCODING_RLE: i64 = 3;

/// A file or memory.
pub(super) trait Stored: Read + Seek + Send {}
impl<T: Read + Seek + Send> Stored for T {}

/// The bytes of the table.
pub(super) struct Bytes {
    pub(super) stored: Box<dyn Stored>,
    pub(super) len: u64,
}

impl Bytes {
    /// The bytes from `at` on, at most `count`, and fewer only at the end.
    pub(super) fn read(&mut self, at: u64, count: usize) -> io::Result<Vec<u8>> {
        let count = self.len.saturating_sub(at).min(count as u64);
        let mut bytes = Vec::with_capacity(count as usize);
        self.stored.seek(SeekFrom::Start(at))?;
        self.stored.by_ref().take(count).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// A column of the current row group.
pub(super) struct Column {
    /// Its number among all columns of the table.
    pub(super) index: u64,
    /// Nanoseconds in a unit, where it holds times.
    pub(super) unit_ns: u64,
    pub(super) unsigned: bool,
    physical: Physical,
    optional: bool,
    codec: Codec,
    /// Where the next page begins, and where the last one ends.
    at: u64,
    end: u64,
    dictionary: Dictionary,
    page: Page,
}

/// A page of values.
struct Page {
    place: Place,
    data: Vec<u8>,
    /// Values that are still to come, missing ones too.
    left: i64,
    /// Tells which values are missing, where some can be.
    levels: Option<Hybrid>,
    values: Values,
}

impl Page {
    fn empty() -> Self {
        let values = Values::Plain { at: 0 };
        Self { place: Place::Byte(0), data: Vec::new(), left: 0, levels: None, values }
    }
}

impl Column {
    /// A column of the schema, at the beginning of no row group.
    pub(super) fn new(leaf: &Leaf<'_>, unit_ns: u64) -> Self {
        Self {
            index: leaf.index,
            unit_ns,
            unsigned: leaf.unsigned,
            physical: leaf.physical,
            optional: leaf.optional,
            codec: Codec::Plain,
            at: 0,
            end: 0,
            dictionary: Dictionary::default(),
            page: Page::empty(),
        }
    }

    /// Go to the row group in which the column is in `chunk`; `place` is the footer's.
    pub(super) fn enter(&mut self, chunk: &Chunk, rows: i64, place: Place) -> Result<(), Stop> {
        if chunk.elsewhere {
            return Err(wrong(place, "a column", 0, "a column in the same file"));
        }
        if chunk.values != rows {
            let expected = "as many values in each column as the row group has rows";
            return Err(wrong(place, "values of a column", chunk.values as u64, expected));
        }
        let Some(codec) = Codec::of(chunk.codec) else {
            let expected = "none, snappy (1), gzip (2), zstd (6) or LZ4_RAW (7)";
            return Err(wrong(place, "compression", chunk.codec as u64, expected));
        };
        let first = chunk.dictionary.filter(|&at| 0 < at && at < chunk.data).unwrap_or(chunk.data);
        let range = u64::try_from(first).ok().zip(u64::try_from(chunk.len).ok());
        let Some((at, end)) = range.and_then(|(at, len)| Some((at, at.checked_add(len)?))) else {
            return Err(wrong(place, "pages of a column", first as u64, "a range of the file"));
        };
        (self.codec, self.at, self.end) = (codec, at, end);
        (self.dictionary, self.page) = (Dictionary::default(), Page::empty());
        Ok(())
    }

    /// The next value.
    pub(super) fn next(&mut self, bytes: &mut Bytes) -> Result<Cell<'_>, Stop> {
        while self.page.left == 0 {
            self.next_page(bytes)?;
        }
        let Page { place, data, left, levels, values } = &mut self.page;
        *left -= 1;
        let present = match levels {
            None => Some(1),
            Some(levels) => levels.next(data),
        };
        let cell = match present {
            Some(0) => Some(Cell::Null),
            Some(_) => values.next(self.physical, data, &self.dictionary),
            None => None,
        };
        let cell = cell.map(|cell| match cell {
            Cell::Int(number) if self.unsigned && self.physical == Physical::Int32 => {
                Cell::Int((number as u32).into())
            }
            cell => cell,
        });
        cell.ok_or_else(|| {
            wrong(*place, "a value of the page", *left as u64, "as many values as the page tells")
        })
    }

    /// Read the next page: the dictionary, or one of values.
    fn next_page(&mut self, bytes: &mut Bytes) -> Result<(), Stop> {
        let place = Place::Byte(self.at);
        if self.at >= self.end || self.at >= bytes.len {
            return Err(wrong(place, "a page", bytes.len, "another page of the column"));
        }
        let (header, header_bytes) = self.header(bytes)?;
        let compressed = bounded(place, "compressed size of the page", header.compressed)?;
        let body = self.at + header_bytes as u64;
        self.at = body + compressed as u64;
        if header.kind == PageKind::Other {
            return Ok(());
        }
        let raw = bytes.read(body, compressed).map_err(|error| Stop::Io(place, error))?;
        if raw.len() < compressed {
            return Err(wrong(place, "the page", raw.len() as u64, "as many bytes as its header tells"));
        }
        self.decode(place, &header, &raw)
    }

    /// The header of the page at the current place, and its length.
    fn header(&self, bytes: &mut Bytes) -> Result<(Header, usize), Stop> {
        const EXPECTED: &str = "the header of a page";
        let place = Place::Byte(self.at);
        let mut count = HEADER_BYTES;
        loop {
            let start = bytes.read(self.at, count).map_err(|error| Stop::Io(place, error))?;
            match page::header(&start) {
                Ok(header) => return Ok(header),
                Err(Bad::Short) if start.len() == count && count < HEADER_BYTES_MAX => count *= 4,
                Err(_) => {
                    let quoted = start.get(..8).unwrap_or(&start).escape_ascii().to_string();
                    return Err(Stop::Wrong(place, Wrong::new("the page", quoted.as_bytes(), EXPECTED)));
                }
            }
        }
    }

    fn decode(&mut self, place: Place, header: &Header, raw: &[u8]) -> Result<(), Stop> {
        let at = |wrong| Stop::Wrong(place, wrong);
        if header.kind == PageKind::Dictionary {
            return self.set_dictionary(header, raw).map_err(at);
        }
        let left =
            i64::from(i32::try_from(header.values).map_err(|_| {
                wrong(place, "values of the page", header.values as u64, "a number of 31 bits")
            })?);
        if left < 0 {
            return Err(wrong(place, "values of the page", left as u64, "a number of 31 bits"));
        }
        let (data, levels, values_at) = match header.kind {
            PageKind::DataV2 => self.second_version(header, raw),
            _ => self.first_version(header, raw),
        }
        .map_err(at)?;
        let Some(values) = Values::new(header.encoding, self.physical, &data, values_at) else {
            return Err(wrong(place, "encoding of the page", header.encoding as u64, ENCODINGS));
        };
        self.page = Page { place, data, left, levels, values };
        Ok(())
    }

    fn set_dictionary(&mut self, header: &Header, raw: &[u8]) -> Result<(), Wrong> {
        let data = self.decompress(header.uncompressed, raw, Vec::new())?;
        let values = usize::try_from(header.values).ok();
        let dictionary = values.and_then(|values| Dictionary::new(self.physical, data, values));
        self.dictionary = dictionary.ok_or_else(|| {
            wrong_number("the dictionary", header.values as u64, "as many plain values as its header tells")
        })?;
        Ok(())
    }

    /// Levels, after their length, and values are compressed together.
    fn first_version(&self, header: &Header, raw: &[u8]) -> Result<Parts, Wrong> {
        let data = self.decompress(header.uncompressed, raw, Vec::new())?;
        if !self.optional {
            return Ok((data, None, 0));
        }
        let bytes = data.first_chunk().copied().map(u32::from_le_bytes);
        let end = bytes.and_then(|bytes| (bytes as usize).checked_add(4)).filter(|&end| end <= data.len());
        match end.filter(|_| header.level_encoding == ENCODING_RLE) {
            Some(end) => Ok((data, Hybrid::new(1, 4), end)),
            None => {
                Err(wrong_number("levels of the page", header.level_encoding as u64, "runs of levels (3)"))
            }
        }
    }

    /// Levels come first, and are not compressed.
    fn second_version(&self, header: &Header, raw: &[u8]) -> Result<Parts, Wrong> {
        let number = |value| usize::try_from(value).ok();
        let parts = number(header.repetition_bytes).zip(number(header.definition_bytes));
        let levels = parts.and_then(|(repetition, definition)| repetition.checked_add(definition));
        let Some((levels, (repetition, _))) = levels.filter(|&levels| levels <= raw.len()).zip(parts) else {
            return Err(wrong_number(
                "levels of the page",
                raw.len() as u64,
                "as many bytes as the header tells",
            ));
        };
        let (start, rest) = raw.split_at(levels);
        let data = if header.plain {
            raw.to_vec()
        } else {
            let uncompressed = header.uncompressed.saturating_sub(levels as i64);
            self.decompress(uncompressed, rest, start.to_vec())?
        };
        Ok((data, self.optional.then(|| Hybrid::new(1, repetition)).flatten(), levels))
    }

    /// `start`, and what `raw` stands for.
    fn decompress(&self, uncompressed: i64, raw: &[u8], mut start: Vec<u8>) -> Result<Vec<u8>, Wrong> {
        const EXPECTED: &str = "at most 64 MiB";
        let len = usize::try_from(uncompressed).ok().filter(|&len| len <= PAGE_BYTES_MAX);
        let len = len.ok_or_else(|| wrong_number("size of the page", uncompressed as u64, EXPECTED))?;
        let done = self.codec.decompress(raw, len, &mut start);
        done.map_err(|error| {
            Wrong::new("the page", error.to_string().as_bytes(), "a page that can be decompressed")
        })?;
        Ok(start)
    }
}

/// The bytes of a page, its levels, and where its values begin.
type Parts = (Vec<u8>, Option<Hybrid>, usize);

const ENCODINGS: &str =
    "plain (0), a dictionary (2, 8), or differences (5, 6, 7), as fits the type of the column";

fn bounded(place: Place, field: &'static str, size: i64) -> Result<usize, Stop> {
    let bounded = usize::try_from(size).ok().filter(|&size| size <= PAGE_BYTES_MAX);
    bounded.ok_or_else(|| wrong(place, field, size as u64, "at most 64 MiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(codec: Codec) -> Column {
        let (physical, name) = (Physical::Int64, &b"offset"[..]);
        let (optional, repeated, unsigned) = (false, false, false);
        let leaf = Leaf { name, index: 0, physical, optional, repeated, unsigned, time_unit: None };
        Column { codec, ..Column::new(&leaf, 1) }
    }

    /// A few kilobytes that stand for more than a page may hold.
    #[test]
    fn a_page_beyond_all_bounds_is_refused_before_it_takes_memory() {
        let bomb = zstd::encode_all(io::repeat(0).take(PAGE_BYTES_MAX as u64 + 1), 1).unwrap();
        let refused = |bytes: i64| column(Codec::Zstd).decompress(bytes, &bomb, Vec::new()).unwrap_err();
        assert_eq!(refused(PAGE_BYTES_MAX as i64 + 1).field, "size of the page");
        assert_eq!(refused(-1).field, "size of the page");
        assert!(refused(100).found.contains("another length"));
        assert!(bounded(Place::Byte(0), "x", PAGE_BYTES_MAX as i64).is_ok());
        assert!(bounded(Place::Byte(0), "x", PAGE_BYTES_MAX as i64 + 1).is_err());
    }
}
