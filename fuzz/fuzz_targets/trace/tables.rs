//! Good Parquet tables, in all encodings and without compression, for the fuzzer to damage: it would not come upon one by itself.

use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

const SCHEMA: &str = "message trace {
    required int64 time_ns;
    optional binary tenant;
    optional binary volume;
    required int64 offset;
    required int32 len;
    required binary kind;
}";

/// Rows of each table.
pub const ROWS: i64 = 40;
/// Kinds of requests, which are as good as any other names for tenants and volumes; two begin alike.
const NAMES: [&str; 4] = ["r", "read", "write", "flush"];

/// The tables.
pub fn all() -> Vec<Vec<u8>> {
    let encodings = [
        (true, Encoding::PLAIN, Encoding::PLAIN),
        (false, Encoding::PLAIN, Encoding::PLAIN),
        (false, Encoding::DELTA_BINARY_PACKED, Encoding::DELTA_LENGTH_BYTE_ARRAY),
        (false, Encoding::DELTA_BINARY_PACKED, Encoding::DELTA_BYTE_ARRAY),
    ];
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    versions
        .into_iter()
        .flat_map(|version| {
            encodings.map(|(dictionary, numbers, names)| table(version, dictionary, numbers, names))
        })
        .collect()
}

fn table(version: WriterVersion, dictionary: bool, numbers: Encoding, names: Encoding) -> Vec<u8> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_created_by(String::new())
        .set_dictionary_enabled(dictionary);
    for (columns, encoding) in
        [(["time_ns", "offset", "len"], numbers), (["tenant", "volume", "kind"], names)]
    {
        for column in columns {
            properties = properties.set_column_encoding(column.into(), encoding);
        }
    }
    let schema = Arc::new(parse_message_type(SCHEMA).expect("a good schema"));
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).expect("a writer");
    let optional: Vec<bool> =
        writer.schema_descr().columns().iter().map(|column| column.max_def_level() > 0).collect();
    let mut group = writer.next_row_group().expect("a row group");
    for optional in optional {
        let mut column = group.next_column().expect("a column").expect("as many as the schema has");
        write(column.untyped(), optional);
        column.close().expect("memory is not full");
    }
    group.close().expect("memory is not full");
    writer.into_inner().expect("memory is not full")
}

/// Values that are good ones of every column.
fn write(column: &mut ColumnWriter<'_>, optional: bool) {
    let levels: Vec<i16> = (0..ROWS).map(|row| (row % 8 != 7).into()).collect();
    let rows = (0..ROWS).filter(|row| !optional || row % 8 != 7);
    let levels = optional.then_some(levels.as_slice());
    let written = match column {
        ColumnWriter::Int64ColumnWriter(column) => {
            column.write_batch(&rows.map(|row| row * row * 4096).collect::<Vec<_>>(), levels, None)
        }
        ColumnWriter::Int32ColumnWriter(column) => {
            column.write_batch(&rows.map(|row| row as i32 % 3 * 512).collect::<Vec<_>>(), levels, None)
        }
        ColumnWriter::ByteArrayColumnWriter(column) => {
            let name = |row: i64| ByteArray::from(NAMES[row as usize / 3 % NAMES.len()]);
            column.write_batch(&rows.map(name).collect::<Vec<_>>(), levels, None)
        }
        _ => return,
    };
    written.expect("memory is not full");
}
