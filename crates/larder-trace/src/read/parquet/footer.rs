//! The footer of a Parquet file: the columns, and where each row group keeps them.
//!
//! The footer can be long (a row group takes some 100 bytes a column). It is kept as it is, and a row group is decoded
//! only when its rows are read: memory is that of the footer, whatever the counts in it claim.

use super::thrift::{Bad, Compact, Kind};

/// How the values of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Int32,
    Int64,
    Bytes,
    /// One that no column of a trace has.
    Other,
}

impl Physical {
    fn of(code: i64) -> Self {
        match code {
            1 => Self::Int32,
            2 => Self::Int64,
            6 => Self::Bytes,
            _ => Self::Other,
        }
    }
}

/// A column at the top of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf<'a> {
    pub(super) name: &'a [u8],
    /// Its number among all columns, nested ones too.
    pub(super) index: u64,
    pub(super) physical: Physical,
    /// Values may be missing.
    pub(super) optional: bool,
    /// A row may hold several values.
    pub(super) repeated: bool,
    /// Numbers have no sign.
    pub(super) unsigned: bool,
    /// Nanoseconds in a unit, where the column is declared to be a time.
    pub(super) time_unit: Option<u64>,
}

/// A footer.
pub(super) struct Footer {
    bytes: Vec<u8>,
    /// Where the next row group stands, and how many are left.
    next_group: usize,
    groups_left: u64,
}

/// Where the wanted columns of a row group are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) rows: i64,
    /// In the order of the wanted columns.
    pub(super) chunks: Vec<Option<Chunk>>,
}

/// Where a column of a row group is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// In another file.
    pub(super) elsewhere: bool,
    pub(super) codec: i64,
    pub(super) values: i64,
    /// Bytes of all pages, with their headers.
    pub(super) len: i64,
    /// The first data page.
    pub(super) data: i64,
    /// The dictionary page, where there is one.
    pub(super) dictionary: Option<i64>,
}

impl Footer {
    /// The footer in `bytes`; `visit` gets every column at the top of the schema.
    pub(super) fn parse(bytes: Vec<u8>, mut visit: impl FnMut(&Leaf<'_>)) -> Result<Self, Bad> {
        let mut groups = (0, 0);
        let mut schema = false;
        Compact::new(&bytes, 0).fields(|reader, number, kind| match (number, kind) {
            (2, Kind::List) => {
                schema = true;
                read_schema(reader, &mut visit).map(|()| true)
            }
            (4, Kind::List) => {
                let mut ahead = *reader;
                let (count, kind) = ahead.list()?;
                groups = (count, ahead.at());
                if count > 0 && kind != Kind::Struct { Err(Bad::Wrong) } else { Ok(false) }
            }
            _ => Ok(false),
        })?;
        let (groups_left, next_group) = groups;
        if schema { Ok(Self { bytes, next_group, groups_left }) } else { Err(Bad::Wrong) }
    }

    /// The next row group, and in it the columns with these numbers (in rising order).
    pub(super) fn next_group(&mut self, wanted: &[u64]) -> Result<Option<Group>, Bad> {
        let Some(left) = self.groups_left.checked_sub(1) else { return Ok(None) };
        let mut reader = Compact::new(&self.bytes, self.next_group);
        let group = read_group(&mut reader, wanted)?;
        (self.next_group, self.groups_left) = (reader.at(), left);
        Ok(Some(group))
    }
}

/// The schema: elements in the order of a walk over the tree, each with its number of children.
fn read_schema(reader: &mut Compact<'_>, visit: &mut impl FnMut(&Leaf<'_>)) -> Result<(), Bad> {
    let (count, kind) = reader.list()?;
    if count == 0 || kind != Kind::Struct {
        return Err(Bad::Wrong);
    }
    read_element(reader)?;
    // Elements that are still to come below the element at the top that was met last.
    let mut below = 0u64;
    let mut leaves = 0;
    for _ in 1..count {
        let (mut leaf, children) = read_element(reader)?;
        let at_top = below == 0;
        below = below.saturating_sub(1).saturating_add(children);
        if children == 0 {
            leaf.index = leaves;
            leaves += 1;
            if at_top {
                visit(&leaf);
            }
        }
    }
    Ok(())
}

/// An element of the schema, and its number of children.
fn read_element<'a>(reader: &mut Compact<'a>) -> Result<(Leaf<'a>, u64), Bad> {
    let mut children = 0;
    let mut leaf = Leaf {
        name: b"",
        index: 0,
        physical: Physical::Other,
        optional: false,
        repeated: false,
        unsigned: false,
        time_unit: None,
    };
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (1, Kind::Int) => leaf.physical = Physical::of(reader.int()?),
            (3, Kind::Int) => {
                let repetition = reader.int()?;
                (leaf.optional, leaf.repeated) = (repetition == 1, repetition == 2);
            }
            (4, Kind::Binary) => leaf.name = reader.binary()?,
            (5, Kind::Int) => children = u64::try_from(reader.int()?).map_err(|_| Bad::Wrong)?,
            (6, Kind::Int) => converted_type(reader.int()?, &mut leaf),
            (10, Kind::Struct) => logical_type(reader, &mut leaf)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((leaf, children))
}

const MILLISECOND_NS: u64 = 1_000_000;
const MICROSECOND_NS: u64 = 1000;

/// The older annotation: a number.
fn converted_type(code: i64, leaf: &mut Leaf<'_>) {
    match code {
        9 => leaf.time_unit = Some(MILLISECOND_NS),
        10 => leaf.time_unit = Some(MICROSECOND_NS),
        11..=14 => leaf.unsigned = true,
        _ => {}
    }
}

/// The newer annotation: a union. 8 is a time stamp, of which 2 is the unit; 10 is an integer, of which 2 tells whether it has a sign.
fn logical_type(reader: &mut Compact<'_>, leaf: &mut Leaf<'_>) -> Result<(), Bad> {
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (8, Kind::Struct) => reader.fields(|reader, number, kind| match (number, kind) {
                (2, Kind::Struct) => time_unit(reader, leaf).map(|()| true),
                _ => Ok(false),
            }),
            (10, Kind::Struct) => reader.fields(|_, number, kind| {
                if (number, kind) == (2, Kind::False) {
                    leaf.unsigned = true;
                }
                Ok(false)
            }),
            _ => reader.skip(kind, 8),
        }
        .map(|()| true)
    })
}

fn time_unit(reader: &mut Compact<'_>, leaf: &mut Leaf<'_>) -> Result<(), Bad> {
    reader.fields(|_, number, _| {
        leaf.time_unit = match number {
            1 => Some(MILLISECOND_NS),
            2 => Some(MICROSECOND_NS),
            3 => Some(1),
            _ => None,
        };
        Ok(false)
    })
}

fn read_group(reader: &mut Compact<'_>, wanted: &[u64]) -> Result<Group, Bad> {
    let mut group = Group { rows: 0, chunks: vec![None; wanted.len()] };
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (1, Kind::List) => read_chunks(reader, wanted, &mut group.chunks)?,
            (3, Kind::Int) => group.rows = reader.int()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(group)
}

fn read_chunks(reader: &mut Compact<'_>, wanted: &[u64], found: &mut [Option<Chunk>]) -> Result<(), Bad> {
    let (count, kind) = reader.list()?;
    if count > 0 && kind != Kind::Struct {
        return Err(Bad::Wrong);
    }
    for index in 0..count {
        let chunk = read_chunk(reader)?;
        if let Ok(place) = wanted.binary_search(&index) {
            found[place] = Some(chunk);
        }
    }
    Ok(())
}

fn read_chunk(reader: &mut Compact<'_>) -> Result<Chunk, Bad> {
    let mut chunk = Chunk::default();
    reader.fields(|reader, number, kind| match (number, kind) {
        (1, Kind::Binary) => {
            chunk.elsewhere = true;
            Ok(false)
        }
        (3, Kind::Struct) => read_chunk_metadata(reader, &mut chunk).map(|()| true),
        _ => Ok(false),
    })?;
    Ok(chunk)
}

fn read_chunk_metadata(reader: &mut Compact<'_>, chunk: &mut Chunk) -> Result<(), Bad> {
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (4, Kind::Int) => chunk.codec = reader.int()?,
            (5, Kind::Int) => chunk.values = reader.int()?,
            (7, Kind::Int) => chunk.len = reader.int()?,
            (9, Kind::Int) => chunk.data = reader.int()?,
            (11, Kind::Int) => chunk.dictionary = Some(reader.int()?),
            _ => return Ok(false),
        }
        Ok(true)
    })
}
