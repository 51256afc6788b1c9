//! Arbitrary bytes as a trace, in every format.
//!
//! The first byte chooses what the rest is: a file, which may be compressed, in a given format or in one that is told from its
//! content; the inside of a Parquet table; or the damage that is done to a good table.
#![no_main]

#[path = "trace/tables.rs"]
mod tables;

use std::io::Cursor;
use std::sync::LazyLock;

use larder_trace::{Format, Trace};
use libfuzzer_sys::fuzz_target;

/// Requests read of one file: a few bytes of Parquet can stand for any number of equal rows.
const REQUESTS_MAX: usize = 50_000;

/// Tables to damage. Each is good before.
static TABLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let tables = tables::all();
    for table in &tables {
        let trace = Trace::new("good", Cursor::new(table.clone()), None).expect("it is recognised");
        let rows: Vec<_> = trace.map(|request| request.expect("a good row")).collect();
        assert_eq!(rows.len() as i64, tables::ROWS);
    }
    tables
});

/// The file, and its format if it is given.
fn file(choice: u8, bytes: &[u8]) -> (Option<Format>, Vec<u8>) {
    let choice = usize::from(choice);
    if let Some(format) = Format::ALL.get(choice) {
        return (Some(*format), bytes.to_vec());
    }
    match choice {
        0x80.. => (Some(Format::Parquet), damaged(&TABLES[choice % TABLES.len()], bytes)),
        0x60..0x80 => (Some(Format::Parquet), framed(bytes)),
        _ => (None, bytes.to_vec()),
    }
}

/// A table with these pages and this footer: the first byte is the length of the footer.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let (footer_bytes, inside) = bytes.split_first().unwrap_or((&0, bytes));
    [b"PAR1", inside, &u32::from(*footer_bytes).to_le_bytes(), b"PAR1"].concat()
}

/// The table with some bytes changed: each three bytes of `damage` are a place and what stands there.
fn damaged(table: &[u8], damage: &[u8]) -> Vec<u8> {
    let mut table = table.to_vec();
    let len = table.len();
    for change in damage.chunks_exact(3) {
        table[usize::from(u16::from_le_bytes([change[0], change[1]])) % len] = change[2];
    }
    table
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let (format, bytes) = file(*choice, bytes);
    // A stream that is damaged from the beginning, or is in no format, is refused at once.
    let Ok(mut trace) = Trace::new("fuzz", Cursor::new(bytes), format) else { return };
    let mut batch = Vec::new();
    let mut left = REQUESTS_MAX;
    while left > 0 {
        batch.clear();
        match trace.read_batch(&mut batch, left.min(1000)) {
            Ok(more) => assert_eq!(more, !batch.is_empty(), "a batch is empty at the end alone"),
            Err(error) => return drop(error.to_string()),
        }
        for request in &batch {
            assert!(request.offset.checked_add(u64::from(request.len)).is_some(), "{request:?}");
            assert!((request.volume as usize) < trace.volumes().len(), "{request:?}");
        }
        if batch.is_empty() {
            assert!(matches!(trace.read_batch(&mut batch, 1), Ok(false)), "the end is the end");
            return;
        }
        left -= batch.len();
    }
});
