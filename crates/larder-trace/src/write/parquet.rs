//! Writing Parquet tables.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::{Request, RequestKind, Volume, WriteError};

/// The table, a request a row. Names and kinds are stored once each, in dictionaries.
const SCHEMA: &str = "
    message trace {
        required int64 time_ns (INTEGER(64,false));
        required binary tenant (STRING);
        required binary volume (STRING);
        required binary kind (STRING);
        required int64 offset (INTEGER(64,false));
        required int32 len (INTEGER(32,false));
    }";

/// Rows of a row group, which are held back until it is full.
const GROUP_ROWS: usize = 1 << 18;
/// Rows of a column that are handed over at a time.
const BATCH_ROWS: usize = 4096;

/// Writes a table that holds a trace without loss, compressed with zstd.
///
/// The columns are `time_ns` (unsigned, 64 bits), `tenant`, `volume` (text), `kind` (`read`, `write`, `flush` or `discard`), `offset` (unsigned, 64 bits) and `len` (unsigned,
/// 32 bits), none of them with missing values. Some 10 MiB of rows are held back.
pub struct ParquetWriter<W: Write + Send> {
    out: SerializedFileWriter<W>,
    rows: Vec<Row>,
    /// The volumes of the rows held back.
    volumes: Vec<Volume>,
}

struct Row {
    request: Request,
    /// The volume among those of the writer.
    volume: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Result<Self, WriteError> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let out = SerializedFileWriter::new(out, schema, properties()?)?;
        Ok(Self { out, rows: Vec::new(), volumes: Vec::new() })
    }

    /// Write a request for `volume` ([`Request::volume`] is not looked at).
    pub fn write(&mut self, request: &Request, volume: &Volume) -> Result<(), WriteError> {
        if self.volumes.last() != Some(volume) {
            self.volumes.push(volume.clone());
        }
        self.rows.push(Row { request: *request, volume: self.volumes.len() - 1 });
        if self.rows.len() == GROUP_ROWS {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), WriteError> {
        let names = |name: fn(&Volume) -> &str| -> Vec<ByteArray> {
            self.volumes.iter().map(|volume| name(volume).into()).collect()
        };
        let (tenants, disks) = (names(|volume| &volume.tenant), names(|volume| &volume.disk));
        let rows = &self.rows;
        let mut group = self.out.next_row_group()?;
        write_column::<Int64Type, W>(&mut group, rows, |row| row.request.time_ns as i64)?;
        write_column::<ByteArrayType, W>(&mut group, rows, |row| tenants[row.volume].clone())?;
        write_column::<ByteArrayType, W>(&mut group, rows, |row| disks[row.volume].clone())?;
        write_column::<ByteArrayType, W>(&mut group, rows, |row| kind(row.request.kind).into())?;
        write_column::<Int64Type, W>(&mut group, rows, |row| row.request.offset as i64)?;
        write_column::<Int32Type, W>(&mut group, rows, |row| row.request.len as i32)?;
        group.close()?;
        self.rows.clear();
        self.volumes.clear();
        Ok(())
    }

    /// Write what is held back and the footer, flush, and give the output back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        let mut out = self.out.into_inner()?;
        out.flush()?;
        Ok(out)
    }
}

fn properties() -> Result<WriterPropertiesPtr, WriteError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    // Times rise and offsets are many: a dictionary of them would be as large as they are.
    for (column, encoding) in [("time_ns", Encoding::DELTA_BINARY_PACKED), ("offset", Encoding::PLAIN)] {
        let column = ColumnPath::from(column);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, encoding);
    }
    Ok(Arc::new(properties.build()))
}

/// Write the next column of a row group.
fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    value: impl Fn(&Row) -> T::T,
) -> Result<(), WriteError> {
    let mut column = group.next_column()?.expect("a row group has the columns of the schema");
    for batch in rows.chunks(BATCH_ROWS) {
        let values: Vec<T::T> = batch.iter().map(&value).collect();
        column.typed::<T>().write_batch(&values, None, None)?;
    }
    column.close()?;
    Ok(())
}

fn kind(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Read => "read",
        RequestKind::Write => "write",
        RequestKind::Flush => "flush",
        RequestKind::Discard => "discard",
    }
}

impl From<ParquetError> for WriteError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(cause) => Self::Io(*cause),
                Err(cause) => Self::Io(io::Error::other(cause)),
            },
            error => Self::Io(io::Error::other(error)),
        }
    }
}
