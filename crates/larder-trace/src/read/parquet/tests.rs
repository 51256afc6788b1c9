//! Against the `parquet` crate, which writes the tables.

use std::io::Cursor;
use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use super::*;
use crate::{Trace, TraceError, Volume};

/// A column of values, some of them missing.
#[derive(Clone)]
enum Values {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<&'static str>>),
}

fn ints<const N: usize>(values: [i64; N]) -> Values {
    Values::Ints(values.map(Some).to_vec())
}

fn texts<const N: usize>(values: [&'static str; N]) -> Values {
    Values::Texts(values.map(Some).to_vec())
}

impl Values {
    /// Write these values to a column of any type: the definition levels, where the column has some, then the values that are there.
    fn write(&self, writer: &mut ColumnWriter<'_>, optional: bool) {
        let levels: Vec<i16> = match self {
            Self::Ints(values) => values.iter().map(|value| value.is_some().into()).collect(),
            Self::Texts(values) => values.iter().map(|value| value.is_some().into()).collect(),
        };
        let levels = optional.then_some(levels.as_slice());
        let written = match (self, writer) {
            (Self::Ints(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                let values: Vec<i64> = values.iter().flatten().copied().collect();
                writer.write_batch(&values, levels, None)
            }
            (Self::Ints(values), ColumnWriter::Int32ColumnWriter(writer)) => {
                let values: Vec<i32> = values.iter().flatten().map(|&value| value as i32).collect();
                writer.write_batch(&values, levels, None)
            }
            (Self::Ints(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                let values: Vec<f64> = values.iter().flatten().map(|&value| value as f64).collect();
                writer.write_batch(&values, levels, None)
            }
            (Self::Texts(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let values: Vec<ByteArray> = values.iter().flatten().map(|&value| value.into()).collect();
                writer.write_batch(&values, levels, None)
            }
            _ => panic!("a column of another type"),
        };
        written.unwrap();
    }
}

/// A table of these row groups.
fn table(schema: &str, groups: &[Vec<Values>], properties: WriterPropertiesBuilder) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    for columns in groups {
        let optional: Vec<bool> =
            writer.schema_descr().columns().iter().map(|column| column.max_def_level() > 0).collect();
        let mut group = writer.next_row_group().unwrap();
        for (column, optional) in columns.iter().zip(optional) {
            let mut writer = group.next_column().unwrap().unwrap();
            column.write(writer.untyped(), optional);
            writer.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder()
}

fn trace(table: Vec<u8>) -> Trace {
    Trace::new("t", Cursor::new(table), None).unwrap()
}

fn requests(table: Vec<u8>) -> Vec<Request> {
    trace(table).map(Result::unwrap).collect()
}

fn error(table: Vec<u8>) -> String {
    let mut trace = Trace::new("t", Cursor::new(table), Some(Format::Parquet)).unwrap();
    trace.find_map(Result::err).expect("an error").to_string()
}

const MINIMAL: &str = "required int64 offset; required int64 len;";

#[test]
fn columns_are_found_by_their_names_in_any_order() {
    let schema = "required int32 SIZE; optional binary op (STRING); required double latency; \
        required group meta { required int64 offset; required int64 lun; } \
        required int64 Offset; required int64 device_id; optional binary host; \
        required int64 timestamp (TIMESTAMP(MICROS,true)); required int64 time_ns;";
    let columns = vec![
        ints([512, 4096, 77]),
        texts(["R", "wRiTe", "flush"]),
        ints([1, 2, 3]),
        ints([-1, -1, -1]),
        ints([-1, -1, -1]),
        ints([1 << 62, 0, 5]),
        ints([7, 8, 7]),
        Values::Texts(vec![Some("a"), None, Some("a")]),
        ints([5, 4, 3]),
        ints([9, 9, 9]),
    ];
    let mut trace = trace(table(schema, &[columns], plain()));
    let found: Vec<Request> = trace.by_ref().map(Result::unwrap).collect();
    let request = |time_ns, volume, kind, offset, len| Request { time_ns, volume, kind, offset, len };
    let expected = [
        request(5000, 0, RequestKind::Read, 1 << 62, 512),
        request(4000, 1, RequestKind::Write, 0, 4096),
        request(3000, 0, RequestKind::Flush, 0, 0),
    ];
    assert_eq!(found, expected);
    assert_eq!(trace.volumes(), [Volume::new("a", 7), Volume::new("", 8)]);
    assert_eq!(trace.format(), Format::Parquet);
}

#[test]
fn times_are_in_the_unit_of_their_name_or_type() {
    for (column, nanoseconds) in [
        ("int64 time", 1),
        ("int64 ts_us", 1000),
        ("int32 time_ms", 1_000_000),
        ("int64 timestamp_s", 1_000_000_000),
        ("int64 ts (TIMESTAMP_MILLIS)", 1_000_000),
        ("int64 ts (TIMESTAMP(MILLIS,false))", 1_000_000),
        ("int64 ts (TIMESTAMP(NANOS,true))", 1),
    ] {
        let schema = format!("required {column}; {MINIMAL}");
        let found = requests(table(&schema, &[vec![ints([3]), ints([0]), ints([1])]], plain()));
        assert_eq!(found[0].time_ns, 3 * nanoseconds, "{column}");
    }
}

#[test]
fn what_is_missing_is_read_in_order() {
    let found =
        requests(table(MINIMAL, &[vec![ints([8, 9]), ints([1, 2])], vec![ints([7]), ints([3])]], plain()));
    let expected = [(0, 8, 1), (1, 9, 2), (2, 7, 3)];
    let kind = RequestKind::Read;
    let expected = expected.map(|(time_ns, offset, len)| Request { time_ns, volume: 0, kind, offset, len });
    assert_eq!(found, expected);
}

#[test]
fn numbers_without_a_sign_use_all_their_bits() {
    let schema = "required int64 offset (INTEGER(64,false)); required int32 len (UINT_32);";
    let found = requests(table(schema, &[vec![ints([-9, 0]), ints([8, -1])]], plain()));
    assert_eq!((found[0].offset, found[1].len), (u64::MAX - 8, u32::MAX));
}

#[test]
fn what_is_no_request_is_named_with_its_row() {
    let column = |name: &str, kind: &str| format!("optional {kind} {name};");
    let minimal = column("offset", "int64") + &column("len", "int64");
    for (extra, values, told) in [
        ("", [ints([0, -1]), ints([1, 1])].to_vec(), "row 1: offset is \"-1\""),
        ("", [ints([0, i64::MAX]), ints([1, 1 << 32])].to_vec(), "row 1: length is \"4294967296\""),
        ("", [Values::Ints(vec![Some(1), None]), ints([1, 1])].to_vec(), "row 1: offset is \"nothing\""),
        (
            "optional binary kind;",
            [ints([0, 0]), ints([1, 1]), texts(["r", "x"])].to_vec(),
            "row 1: kind is \"x\"",
        ),
        ("optional int32 op;", [ints([0, 0]), ints([1, 1]), ints([0, 0])].to_vec(), "row 0: kind is \"0\""),
        (
            "optional binary ts;",
            [ints([0, 0]), ints([1, 1]), texts(["1", "2"])].to_vec(),
            "row 0: time is \"1\"",
        ),
        (
            "optional int64 time_s;",
            [ints([0, 0]), ints([1, 1]), ints([0, 1 << 40])].to_vec(),
            "row 1: time is \"1099511627776\"",
        ),
    ] {
        let error = error(table(&format!("{minimal}{extra}"), &[values], plain()));
        assert!(error.starts_with(&format!("t: {told}, expected ")), "{error}");
    }
}

#[test]
fn a_table_without_the_columns_says_which() {
    let footer = |schema: &str, values: Vec<Values>| error(table(schema, &[values], plain()));
    assert!(footer("required int64 len;", vec![ints([1])]).contains("the table is \"no offset\""));
    assert!(footer("required int64 offset;", vec![ints([1])]).contains("\"no len, length or size\""));
    let doubles = footer("required double offset; required int64 len;", vec![ints([1]), ints([1])]);
    assert!(doubles.contains("a column is \"offset\", expected a column of whole numbers"), "{doubles}");
    let repeated = "repeated int64 offset; required int64 len;";
    assert!(error(table(repeated, &[], plain())).contains("a column is \"offset\""));
}

/// Requests whose columns take turns between long runs and many different values.
fn varied() -> Vec<Values> {
    let rows = 0..3000i64;
    let hashed = |row: i64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64);
    let names = ["", "a", "alpha", "alpine", "beta", "b"];
    let chosen = |row: i64| (hashed(row) as u64 >> 61) as usize % names.len();
    vec![
        Values::Ints(rows.clone().map(|row| Some(row * 1000 + (hashed(row) & 0xff))).collect()),
        Values::Texts(rows.clone().map(|row| Some(names[chosen(row / 9)])).collect()),
        Values::Texts(rows.clone().map(|row| (row % 7 != 0).then_some(names[chosen(row)])).collect()),
        Values::Ints(
            rows.clone().map(|row| (row < 2000).then_some(hashed(row) & 0xffff_ffff_f000)).collect(),
        ),
        Values::Ints(
            rows.clone().map(|row| Some(if row < 900 { 4096 } else { hashed(row) & 0xffff })).collect(),
        ),
        Values::Texts(
            rows.map(|row| Some(if row < 2000 && row % 5 != 0 { "write" } else { "flush" })).collect(),
        ),
    ]
}

const VARIED: &str = "required int64 time_ns; required binary tenant; optional binary volume; \
    optional int64 offset; required int32 len; optional binary kind;";

/// What they must be read as: computed from the values, not from a table.
fn expected() -> Vec<(u64, RequestKind, u64, u32, Volume)> {
    let [
        Values::Ints(times),
        Values::Texts(tenants),
        Values::Texts(disks),
        Values::Ints(offsets),
        Values::Ints(lens),
        Values::Texts(kinds),
    ] = &varied()[..]
    else {
        panic!("six columns")
    };
    let row = |row: usize| {
        let volume = Volume::new(tenants[row].unwrap(), disks[row].unwrap_or(""));
        let time = times[row].unwrap() as u64;
        match kinds[row] {
            Some("write") => {
                (time, RequestKind::Write, offsets[row].unwrap() as u64, lens[row].unwrap() as u32, volume)
            }
            _ => (time, RequestKind::Flush, 0, 0, volume),
        }
    };
    (0..times.len()).map(row).collect()
}

#[test]
fn all_versions_encodings_and_compressions_read_alike() {
    let expected = expected();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
    ];
    let numbers = [Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED];
    let names = [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for (turn, codec) in codecs.into_iter().enumerate() {
            let mut properties = plain()
                .set_writer_version(version)
                .set_compression(codec)
                .set_write_batch_size(64)
                .set_data_page_row_count_limit(if turn == 0 { 1_000_000 } else { 500 })
                .set_dictionary_enabled(turn % 2 == 0);
            for column in ["time_ns", "offset", "len"] {
                properties = properties.set_column_encoding(column.into(), numbers[turn % 2]);
            }
            for column in ["tenant", "volume", "kind"] {
                properties = properties.set_column_encoding(column.into(), names[turn % 3]);
            }
            let mut trace = trace(table(VARIED, &[varied()], properties));
            let found: Vec<Request> = trace.by_ref().map(Result::unwrap).collect();
            let found = found.into_iter().map(|request| {
                let Request { time_ns, volume, kind, offset, len } = request;
                (time_ns, kind, offset, len, trace.volumes()[volume as usize].clone())
            });
            assert!(found.eq(expected.iter().cloned()), "{version:?} {codec}");
        }
    }
}

#[test]
fn a_file_is_read_where_it_is_and_a_stream_from_memory() {
    let table = table(VARIED, &[varied(), varied()], plain());
    let expected = requests(table.clone());
    assert_eq!(expected.len(), 6000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    std::fs::write(&path, &table).unwrap();
    for format in [None, Some(Format::Parquet)] {
        let trace = Trace::open(&path, format).unwrap();
        assert_eq!(trace.format(), Format::Parquet);
        assert!(trace.map(Result::unwrap).eq(expected.iter().copied()));
    }
    assert!(Trace::open(&path, Some(Format::Msr)).unwrap().next().unwrap().is_err());
    let compressed = zstd::encode_all(&table[..], 1).unwrap();
    assert_eq!(requests(compressed), expected);
}

#[test]
fn a_table_that_is_cut_off_or_none_at_all_is_an_error() {
    let table = table(VARIED, &[varied()], plain());
    for end in (1..table.len()).step_by(97) {
        assert!(error(table[..end].to_vec()).starts_with("t: byte "), "{end}");
    }
    assert!(error(b"PAR1".to_vec()).contains("byte 0: the table is \"PAR1\", expected a Parquet table"));
    assert!(Trace::new("t", Cursor::new(Vec::new()), Some(Format::Parquet)).unwrap().next().is_none());
    let end = error([&table[..table.len() - 8], &[0xff, 0xff, 0xff, 0xff], b"PAR1"].concat());
    assert!(end.contains("length of the footer is \"4294967295 (0xffffffff)\""), "{end}");
}

#[test]
fn what_does_not_begin_as_a_table_is_not_read_on() {
    let failing = Cursor::new(b"PAR2").chain(io::repeat(0));
    let mut trace = Trace::new("t", failing, Some(Format::Parquet)).unwrap();
    let error = trace.next().unwrap().unwrap_err().to_string();
    assert!(error.starts_with(r#"t: byte 0: the table is "PAR2", expected a Parquet table"#), "{error}");
}

/// A few compressed kilobytes can stand for it.
#[test]
fn a_stream_without_an_end_is_not_kept_in_memory() {
    let mut trace = Trace::new("t", Cursor::new(b"PAR1").chain(io::repeat(0)), None).unwrap();
    let error = trace.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("expected at most 256 MiB where the table is compressed as a whole"), "{error}");
}

#[test]
fn zeros_are_no_pages() {
    assert!(page::header(&[0; 300]).is_err());
    // Kind 0 and two sizes of 0; without any of them.
    let header = [0x15, 0, 0x15, 0, 0x15, 0, 0];
    assert_eq!(page::header(&header).map(|(_, bytes)| bytes), Ok(header.len()));
    assert!(page::header(&header[2..]).is_err());
    assert!(page::header(&[0x15, 0, 0x15, 0, 0]).is_err());
}

#[test]
fn an_error_comes_after_the_rows_before_it_and_once() {
    let mut table = table(
        MINIMAL,
        &[vec![ints([1, 2]), ints([1, 1])], vec![ints([3]), ints([1])]],
        plain().set_dictionary_enabled(false),
    );
    // The page header of the second row group's first column: what stands after the two columns of the first.
    let second = table.windows(8).position(|bytes| bytes == 3u64.to_le_bytes()).unwrap();
    table[second - 12..second].fill(0xff);
    let mut trace = trace(table);
    let found: Vec<Result<Request, TraceError>> = trace.by_ref().collect();
    assert_eq!(found.iter().filter(|request| request.is_ok()).count(), 2);
    assert_eq!(found.len(), 3);
    assert!(matches!(found[2], Err(TraceError::Syntax { .. })));
}

/// What one table gives: requests, then at most one error, and an end.
fn drain(table: Vec<u8>) -> Result<(), TestCaseError> {
    let mut trace = Trace::new("t", Cursor::new(table), Some(Format::Parquet)).unwrap();
    let mut errors = 0;
    for request in trace.by_ref().take(20_000) {
        errors += usize::from(request.is_err());
    }
    prop_assert!(errors <= 1);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_never_panics(damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6), version in 0..2) {
        let version = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][version as usize];
        let mut columns = varied();
        for column in &mut columns {
            match column {
                Values::Ints(values) => values.truncate(100),
                Values::Texts(values) => values.truncate(100),
            }
        }
        let mut table = table(VARIED, &[columns], plain().set_writer_version(version).set_compression(Compression::LZ4_RAW));
        for (at, byte) in damage {
            let at = usize::from(at) % table.len();
            table[at] = byte;
        }
        drain(table)?;
    }

    #[test]
    fn arbitrary_metadata_never_panics(footer in proptest::collection::vec(any::<u8>(), 0..200)) {
        let len = (footer.len() as u32).to_le_bytes();
        drain([&MAGIC[..], &footer, &len, MAGIC].concat())?;
    }
}
