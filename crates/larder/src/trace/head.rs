//! `larder trace head`: the first requests of a trace.

use std::io::{self, Write};

use larder_trace::{Request, RequestKind, Volume};
use serde::Serialize;

use super::options::Head;
use super::text::{self, Columns, Side, grouped};
use super::{BATCH, Failure, tell};

/// A request as a line of JSON: the columns of a Parquet trace.
#[derive(Serialize)]
struct Line<'a> {
    time_ns: u64,
    tenant: &'a str,
    volume: &'a str,
    kind: &'static str,
    offset: u64,
    len: u32,
}

impl<'a> Line<'a> {
    fn new(request: &Request, volume: &'a Volume) -> Self {
        let Request { time_ns, offset, len, .. } = *request;
        let Volume { tenant, disk } = volume;
        Self { time_ns, tenant, volume: disk, kind: kind(request.kind), offset, len }
    }

    fn cells(&self) -> [String; 6] {
        [
            text::seconds(self.time_ns),
            text::name(self.tenant),
            text::name(self.volume),
            self.kind.to_owned(),
            grouped(self.offset),
            grouped(self.len.into()),
        ]
    }
}

fn kind(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Read => "read",
        RequestKind::Write => "write",
        RequestKind::Flush => "flush",
        RequestKind::Discard => "discard",
    }
}

/// Print what the options say.
pub fn show(options: &Head) -> Result<(), Failure> {
    let mut input = options.trace.open(options.format)?;
    let mut out = io::stdout().lock();
    let mut columns = columns();
    let (mut left, mut batch, mut is_first) = (options.requests, Vec::new(), true);
    while left > 0 && input.read_batch(&mut batch, left.min(BATCH as u64) as usize)? {
        left -= batch.len() as u64;
        let volumes = input.volumes();
        let lines: Vec<_> =
            batch.iter().map(|request| Line::new(request, &volumes[request.volume as usize])).collect();
        let text = if options.json { json(&lines) } else { table(&mut columns, &lines, is_first) };
        out.write_all(text.as_bytes()).map_err(|error| Failure::of_stdout(&error))?;
        is_first = false;
        batch.clear();
    }
    if is_first {
        tell(&format!("note: {}: there are no requests to show\n", options.trace));
    }
    out.flush().map_err(|error| Failure::of_stdout(&error))
}

fn columns() -> Columns<6> {
    Columns::new([
        ("time (s)", Side::Right),
        ("tenant", Side::Left),
        ("volume", Side::Left),
        ("kind", Side::Left),
        ("offset (B)", Side::Right),
        ("length (B)", Side::Right),
    ])
}

fn table(columns: &mut Columns<6>, lines: &[Line<'_>], is_first: bool) -> String {
    let rows: Vec<_> = lines.iter().map(Line::cells).collect();
    let head = if is_first { columns.head(&rows) } else { String::new() };
    head + &columns.lines(&rows)
}

fn json(lines: &[Line<'_>]) -> String {
    lines
        .iter()
        .map(|line| serde_json::to_string(line).expect("numbers and text are always JSON") + "\n")
        .collect()
}
