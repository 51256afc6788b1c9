//! Reading Parquet tables: a request a row.
//!
//! Columns are found by their names, in any order and any case; others are left out:
//!
//! | what | names | type |
//! |---|---|---|
//! | time | `time`, `timestamp`, `ts`, or with `_ns`, `_us`, `_ms`, `_s` | whole number: in the unit of the name, else that of the declared time stamp, else ns |
//! | tenant | `tenant`, `host`, `hostname`, `vm` | text or whole number |
//! | volume | `volume`, `disk`, `device`, `device_id`, `lun` | text or whole number |
//! | kind | `kind`, `op`, `operation`, `type` | text: `read`, `write`, `flush`, `discard`, or `r`, `w`, `f`, `d`, in any case |
//! | offset | `offset` | whole number, bytes |
//! | length | `len`, `length`, `size` | whole number, bytes |
//!
//! Offset and length must be there. Without a time, requests are numbered in nanoseconds from 0; without a kind they are
//! reads; without a tenant or a volume they are those of tenant `` and volume `0`.
//!
//! Read are all encodings and compressions that today's writers choose for such columns (not Brotli, LZO and the LZ4 of
//! Hadoop). Memory is the footer (at most 64 MiB), and a page (at most 64 MiB) and a dictionary for each of the six columns.
//!
//! The footer is at the end: a table that comes as a stream, or compressed as a whole, is first read into memory, 256 MiB of it at most.
//!
//! **Why a reader of its own.** The `parquet` crate, which writes our tables, and which the tests hold this reader against,
//! panics on some damaged files, and takes memory by what a file claims; a trace can come from anywhere.

mod bits;
mod column;
mod footer;
mod page;
mod thrift;
mod values;

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};

use crate::error::Wrong;
use crate::input::Input;
use crate::read::bytes::wrong;
use crate::source::{Place, Source, Stop};
use crate::volumes::{NAME_BYTES_MAX, Volumes};
use crate::{Format, Request, RequestKind};
use column::{Bytes, Column, Stored};
use footer::{Footer, Leaf, Physical};
use values::Cell;

const MAGIC: &[u8; 4] = b"PAR1";
/// The magic, the length of the footer and the magic again.
const FRAME_BYTES: u64 = 12;
const FOOTER_BYTES_MAX: u32 = 64 << 20;
/// Longest table that is not in a file of its own.
const STREAM_BYTES_MAX: u64 = 256 << 20;

/// A reader of the table in `input`, which is read into memory first.
pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(Parquet::Stream(input))
}

/// True if `start` begins with the magic.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// A file at its beginning: a table, which is read where it is, or something else.
pub(crate) enum Opened {
    Table(Box<dyn Source>),
    Other(File),
}

impl Opened {
    /// A table if the file can be one in this format, and begins with the magic.
    pub(crate) fn new(mut file: File, format: Option<Format>) -> io::Result<Self> {
        if format.is_some_and(|format| format != Format::Parquet) || !file.metadata()?.is_file() {
            return Ok(Self::Other(file));
        }
        let mut start = Vec::new();
        file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
        file.rewind()?;
        Ok(if looks_like(&start) { Self::Table(Box::new(Parquet::File(file))) } else { Self::Other(file) })
    }
}

enum Parquet {
    Stream(Input),
    File(File),
    Open(Box<Table>),
    /// It could not be opened.
    Failed,
}

impl Source for Parquet {
    fn read(&mut self, volumes: &mut Volumes, out: &mut Vec<Request>, max: usize) -> Result<(), Stop> {
        loop {
            let bytes = match std::mem::replace(self, Self::Failed) {
                Self::Open(mut table) => {
                    let read = table.read(volumes, out, max);
                    *self = Self::Open(table);
                    return read;
                }
                Self::Stream(input) => in_memory(input)?,
                Self::File(file) => in_file(file)?,
                Self::Failed => return Ok(()),
            };
            match bytes {
                Some(bytes) => *self = Self::Open(Box::new(Table::open(bytes)?)),
                None => return Ok(()),
            }
        }
    }
}

/// All of `input`, or none if it is empty. What does not begin as a table is not read on.
fn in_memory(mut input: Input) -> Result<Option<Bytes>, Stop> {
    let mut table = Vec::new();
    let magic = MAGIC.len() as u64;
    for limit in [magic, STREAM_BYTES_MAX + 1 - magic] {
        let read = input.by_ref().take(limit).read_to_end(&mut table);
        read.map_err(|error| Stop::Io(Place::Byte(table.len() as u64), error))?;
        if !table.is_empty() && !looks_like(&table) {
            return Err(no_table(&table));
        }
    }
    match table.len() as u64 {
        0 => Ok(None),
        len if len > STREAM_BYTES_MAX => {
            let expected = "at most 256 MiB where the table is compressed as a whole or no file";
            Err(wrong(Place::Byte(STREAM_BYTES_MAX), "the table", len, expected))
        }
        len => Ok(Some(bytes(Cursor::new(table), len))),
    }
}

fn in_file(file: File) -> Result<Option<Bytes>, Stop> {
    let len = file.metadata().map_err(|error| Stop::Io(Place::Byte(0), error))?.len();
    Ok((len > 0).then(|| bytes(file, len)))
}

fn bytes(stored: impl Stored + 'static, len: u64) -> Bytes {
    Bytes { stored: Box::new(stored), len }
}

/// An open table.
struct Table {
    bytes: Bytes,
    footer: Footer,
    footer_place: Place,
    columns: Columns,
    /// The row that is read next, and how many the row group still holds.
    row: u64,
    left: i64,
}

/// The columns that tell a request.
#[derive(Default)]
struct Columns {
    time: Option<Column>,
    tenant: Option<Column>,
    volume: Option<Column>,
    kind: Option<Column>,
    offset: Option<Column>,
    len: Option<Column>,
    /// The name of a column that is wanted, and holds no numbers or names, or several in a row.
    unfit: Option<Vec<u8>>,
}

impl Columns {
    /// Take the column if it is one of the wanted, the first of its kind.
    fn visit(&mut self, leaf: &Leaf<'_>) {
        let name = leaf.name.to_ascii_lowercase();
        let mut unit_ns = 1;
        let role = match name.as_slice() {
            b"time" | b"timestamp" | b"ts" => {
                unit_ns = leaf.time_unit.unwrap_or(1);
                &mut self.time
            }
            b"tenant" | b"host" | b"hostname" | b"vm" => &mut self.tenant,
            b"volume" | b"disk" | b"device" | b"device_id" | b"lun" => &mut self.volume,
            b"kind" | b"op" | b"operation" | b"type" => &mut self.kind,
            b"offset" => &mut self.offset,
            b"len" | b"length" | b"size" => &mut self.len,
            name => match time_unit(name) {
                Some(unit) => {
                    unit_ns = unit;
                    &mut self.time
                }
                None => return,
            },
        };
        if role.is_none() && (leaf.repeated || leaf.physical == Physical::Other) {
            self.unfit = Some(name);
        } else {
            role.get_or_insert_with(|| Column::new(leaf, unit_ns));
        }
    }

    fn list(&mut self) -> impl Iterator<Item = &mut Column> {
        let Self { time, tenant, volume, kind, offset, len, .. } = self;
        [time, tenant, volume, kind, offset, len].into_iter().flatten()
    }
}

/// The nanoseconds in the unit that ends the name of a time.
fn time_unit(name: &[u8]) -> Option<u64> {
    let unit = [&b"timestamp_"[..], b"time_", b"ts_"].iter().find_map(|prefix| name.strip_prefix(*prefix))?;
    match unit {
        b"ns" => Some(1),
        b"us" => Some(1000),
        b"ms" => Some(1_000_000),
        b"s" => Some(1_000_000_000),
        _ => None,
    }
}

impl Table {
    fn open(mut bytes: Bytes) -> Result<Self, Stop> {
        let (raw, place) = footer_bytes(&mut bytes)?;
        let mut columns = Columns::default();
        let Ok(footer) = Footer::parse(raw, |leaf| columns.visit(leaf)) else {
            return Err(damaged_footer(place));
        };
        if let Some(name) = &columns.unfit {
            let expected = "a column of whole numbers or text, one value a row";
            return Err(Stop::Wrong(place, Wrong::new("a column", name, expected)));
        }
        if columns.offset.is_none() || columns.len.is_none() {
            let found = if columns.offset.is_none() { "no offset" } else { "no len, length or size" };
            let expected = "a column of offsets and one of lengths";
            return Err(Stop::Wrong(place, Wrong::new("the table", found.as_bytes(), expected)));
        }
        Ok(Self { bytes, footer, footer_place: place, columns, row: 0, left: 0 })
    }

    fn read(&mut self, volumes: &mut Volumes, out: &mut Vec<Request>, max: usize) -> Result<(), Stop> {
        let end = out.len() + max;
        while out.len() < end {
            if self.left > 0 {
                out.push(self.request(volumes)?);
                (self.row, self.left) = (self.row + 1, self.left - 1);
            } else if !self.next_group()? {
                break;
            }
        }
        Ok(())
    }

    /// Go to the next row group, if there is one.
    fn next_group(&mut self) -> Result<bool, Stop> {
        let place = self.footer_place;
        let mut wanted: Vec<u64> = self.columns.list().map(|column| column.index).collect();
        wanted.sort_unstable();
        let group = self.footer.next_group(&wanted).map_err(|_| damaged_footer(place))?;
        let Some(group) = group else { return Ok(false) };
        if group.rows < 0 {
            return Err(wrong(place, "rows of a row group", group.rows as u64, "a number of 63 bits"));
        }
        for column in self.columns.list() {
            let at = wanted.binary_search(&column.index);
            let Some(chunk) = at.ok().and_then(|at| group.chunks[at]) else {
                return Err(wrong(place, "a row group", column.index, "all columns of the schema"));
            };
            column.enter(&chunk, group.rows, place)?;
        }
        self.left = group.rows;
        Ok(true)
    }

    /// The request of the next row.
    fn request(&mut self, volumes: &mut Volumes) -> Result<Request, Stop> {
        let Self { bytes, columns, row, .. } = self;
        let place = Place::Row(*row);
        let at = |wrong| Stop::Wrong(place, wrong);
        let time_ns = match &mut columns.time {
            None => *row,
            Some(column) => {
                let time = whole(column, bytes, place, "time")?;
                let unit = column.unit_ns;
                time.and_then(|time| time.checked_mul(unit)).ok_or_else(|| at(no_time(time)))?
            }
        };
        let kind = match &mut columns.kind {
            None => RequestKind::Read,
            Some(column) => kind(column.next(bytes)?).map_err(at)?,
        };
        let tenant = name(columns.tenant.as_mut(), bytes, "")?;
        let disk = name(columns.volume.as_mut(), bytes, "0")?;
        let volume = volumes.index("tenant or volume", &tenant, &disk).map_err(at)?;
        let offset = match &mut columns.offset {
            None => None,
            Some(column) => whole(column, bytes, place, "offset")?,
        };
        let len = match &mut columns.len {
            None => None,
            Some(column) => whole(column, bytes, place, "length")?,
        };
        let (offset, len) = range(kind, offset, len).map_err(at)?;
        Ok(Request { time_ns, volume, kind, offset, len })
    }
}

const TABLE_EXPECTED: &str = "a Parquet table: PAR1 at the beginning and at the end";

/// It begins so, and not as a table does.
fn no_table(start: &[u8]) -> Stop {
    Stop::Wrong(Place::Byte(0), Wrong::new("the table", start, TABLE_EXPECTED))
}

/// The footer, and where it stands.
fn footer_bytes(bytes: &mut Bytes) -> Result<(Vec<u8>, Place), Stop> {
    let at = |place| move |error| Stop::Io(place, error);
    let start = bytes.read(0, MAGIC.len()).map_err(at(Place::Byte(0)))?;
    if bytes.len < FRAME_BYTES || !start.starts_with(MAGIC) {
        return Err(no_table(&start));
    }
    let tail_at = bytes.len - 8;
    let tail = bytes.read(tail_at, 8).map_err(at(Place::Byte(tail_at)))?;
    let Some(len) = tail.strip_suffix(MAGIC).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes)
    else {
        return Err(Stop::Wrong(Place::Byte(tail_at), Wrong::new("the end", &tail, TABLE_EXPECTED)));
    };
    if len > FOOTER_BYTES_MAX || u64::from(len) > bytes.len - FRAME_BYTES {
        let expected = "a footer that lies in the file, of at most 64 MiB";
        return Err(wrong(Place::Byte(tail_at), "length of the footer", len.into(), expected));
    }
    let place = Place::Byte(tail_at - u64::from(len));
    let footer = bytes.read(tail_at - u64::from(len), len as usize).map_err(at(place))?;
    Ok((footer, place))
}

fn damaged_footer(place: Place) -> Stop {
    Stop::Wrong(place, Wrong::new("the footer", b"damaged", "the metadata of a Parquet table"))
}

/// The next number of a column, none where it is missing.
fn whole(
    column: &mut Column,
    bytes: &mut Bytes,
    place: Place,
    field: &'static str,
) -> Result<Option<u64>, Stop> {
    const EXPECTED: &str = "a whole number, not below 0";
    let unsigned = column.unsigned;
    match column.next(bytes)? {
        Cell::Null => Ok(None),
        Cell::Int(number) if number >= 0 || unsigned => Ok(Some(number as u64)),
        Cell::Int(number) => {
            Err(Stop::Wrong(place, Wrong::new(field, number.to_string().as_bytes(), EXPECTED)))
        }
        Cell::Bytes(text) => Err(Stop::Wrong(place, Wrong::new(field, text, EXPECTED))),
    }
}

/// The next name of a column; `missing` where there is no column, nothing where there is no value.
fn name(column: Option<&mut Column>, bytes: &mut Bytes, missing: &str) -> Result<Vec<u8>, Stop> {
    let Some(column) = column else { return Ok(missing.into()) };
    let unsigned = column.unsigned;
    Ok(match column.next(bytes)? {
        Cell::Null => Vec::new(),
        // A byte more than is allowed tells that it is too long.
        Cell::Bytes(text) => text[..text.len().min(NAME_BYTES_MAX + 1)].to_vec(),
        Cell::Int(number) if unsigned => (number as u64).to_string().into_bytes(),
        Cell::Int(number) => number.to_string().into_bytes(),
    })
}

fn kind(cell: Cell<'_>) -> Result<RequestKind, Wrong> {
    const EXPECTED: &str = "read, write, flush or discard, or the first letter";
    let text = match cell {
        Cell::Bytes(text) => text,
        Cell::Null => b"nothing",
        Cell::Int(number) => return Err(Wrong::new("kind", number.to_string().as_bytes(), EXPECTED)),
    };
    let is = |name: &str| {
        text.eq_ignore_ascii_case(name.as_bytes()) || text.eq_ignore_ascii_case(&name.as_bytes()[..1])
    };
    let kinds = [RequestKind::Read, RequestKind::Write, RequestKind::Flush, RequestKind::Discard];
    kinds.into_iter().find(|kind| is(kind.as_str())).ok_or_else(|| Wrong::new("kind", text, EXPECTED))
}

fn no_time(time: Option<u64>) -> Wrong {
    let found = time.map_or("nothing".to_owned(), |time| time.to_string());
    Wrong::new("time", found.as_bytes(), "a time of less than 2^64 ns")
}

/// The bytes of a request. A flush has none, whatever the table says.
fn range(kind: RequestKind, offset: Option<u64>, len: Option<u64>) -> Result<(u64, u32), Wrong> {
    if kind == RequestKind::Flush {
        return Ok((0, 0));
    }
    let quoted = |value: Option<u64>| value.map_or("nothing".to_owned(), |value| value.to_string());
    let Some(len) = len.and_then(|len| u32::try_from(len).ok()) else {
        return Err(Wrong::new("length", quoted(len).as_bytes(), "a whole number of bytes below 4 GiB"));
    };
    match offset.filter(|offset| offset.checked_add(len.into()).is_some()) {
        Some(offset) => Ok((offset, len)),
        None => Err(Wrong::new("offset", quoted(offset).as_bytes(), "a request that ends below 2^64 bytes")),
    }
}

#[cfg(test)]
mod tests;
