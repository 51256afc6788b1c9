//! libCacheSim's CSV: a request for an object a line.
//!
//! That program is told the columns by its user; here the first line tells them. Where it is a header,
//! columns are found by name, in any order and among others: the object (`obj_id`, `obj-id`, `id`, `key` or `lbn`),
//! the time in seconds (`time`, `timestamp`, `real_time` or `clock_time`), the size in bytes (`obj_size`,
//! `obj-size` or `size`), and what is done (`op` or `operation`: a word, or the first byte of a SCSI command in
//! hexadecimal, as in that program's own `trace.csv`). Without a header they are
//! `time,obj_id,obj_size`, and perhaps `op`. The fields are parted by what parts the first line: commas,
//! tabs, `|` or `:`.
//!
//! Objects are blocks as in [`oracle_general`](super::oracle_general): an access is one block of 4 KiB whatever the
//! size of the object, the lower 51 bits of its id are the block, the upper 13 bits number the volume. An id that is
//! no number below 2^64 is an error: names must be numbered first. Without a time, a request's time is its place in
//! the file, from 0, in nanoseconds; without an `op`, it reads.

use crate::error::Wrong;
use crate::input::Input;
use crate::read::bytes::DeviceVolume;
use crate::read::columns::{Column, SECOND_NS};
use crate::read::lines::{LineFormat, LineSource};
use crate::read::oracle_general::{BLOCK_BITS, BLOCK_BYTES};
use crate::read::vscsi;
use crate::source::Source;
use crate::volumes::Volumes;
use crate::{Request, RequestKind};

const SEPARATORS: &[u8] = b",\t|:";

const HEADER: Column = Column {
    name: "the header",
    expected: "a column obj_id, and time, obj_size and op where there are such",
};
const TIME: Column = Column { name: "time", expected: "a time in seconds below 2^64 ns" };
const SIZE: Column = Column { name: "obj_size", expected: "a whole number of bytes" };
const OP: Column = Column {
    name: "op",
    expected: "read, get, gets, write, set, add, replace, update, cas, append, prepend, incr, decr or delete, \
               or a SCSI command that reads or writes, such as 28 or 2a",
};
const ID: Column = Column { name: "obj_id", expected: "a whole number below 2^64" };

pub(crate) fn source(input: Input) -> Box<dyn Source> {
    Box::new(LineSource::new(input, Csv { layout: None, requests: 0, volume: DeviceVolume::default() }))
}

struct Csv {
    /// None before the first line.
    layout: Option<Layout>,
    requests: u64,
    volume: DeviceVolume,
}

impl LineFormat for Csv {
    const COLUMNS: &'static str = "the columns of the header, or time,obj_id,obj_size and perhaps op";

    fn parse(&mut self, _: bool, line: &[u8], volumes: &mut Volumes) -> Result<Option<Request>, Wrong> {
        let layout = match &mut self.layout {
            Some(layout) => layout,
            none => {
                let (layout, is_header) = Layout::of(line)?;
                let layout = none.insert(layout);
                if is_header {
                    return Ok(None);
                }
                layout
            }
        };
        let [id, time, size, op] = layout.fields(line)?;
        let id = ID.number(id.unwrap_or_default())?;
        size.map_or(Ok(0), |size| SIZE.number(size))?;
        let time_ns = time.map_or(Ok(self.requests), |time| TIME.time(time, SECOND_NS))?;
        let kind = op.map_or(Ok(RequestKind::Read), kind)?;
        let upper = id >> BLOCK_BITS;
        let volume = self.volume.index(volumes, upper, || upper.to_string())?;
        let offset = (id & ((1 << BLOCK_BITS) - 1)) * u64::from(BLOCK_BYTES);
        self.requests += 1;
        Ok(Some(Request { time_ns, volume, kind, offset, len: BLOCK_BYTES }))
    }
}

/// Where the columns stand.
struct Layout {
    separator: u8,
    /// Of id, time, size and op: the number of the column, from 0, where there is one.
    places: [Option<usize>; 4],
}

/// Of the same four: how a header calls them.
const NAMES: [&[&str]; 4] = [
    &["obj_id", "obj-id", "id", "key", "lbn"],
    &["time", "timestamp", "real_time", "clock_time"],
    &["obj_size", "obj-size", "size"],
    &["op", "operation"],
];

impl Layout {
    /// The layout that the first line tells, and whether that line is a header.
    fn of(line: &[u8]) -> Result<(Self, bool), Wrong> {
        let occurrences = |&&separator: &&u8| line.iter().filter(|&&byte| byte == separator).count();
        let separator = SEPARATORS.iter().rev().max_by_key(occurrences).copied().unwrap_or(b',');
        let fields = || line.split(|&byte| byte == separator).map(<[u8]>::trim_ascii);
        if fields().next().is_some_and(|first| TIME.time(first, SECOND_NS).is_ok()) {
            let op = match fields().count() {
                3 => None,
                4 => Some(3),
                _ => return Err(Wrong::new("the line", line, Csv::COLUMNS)),
            };
            return Ok((Self { separator, places: [Some(1), Some(0), Some(2), op] }, false));
        }
        let is_named = |field: &[u8], names: &[&str]| {
            names.iter().any(|name| field.eq_ignore_ascii_case(name.as_bytes()))
        };
        let places = NAMES.map(|names| fields().position(|field| is_named(field, names)));
        match places[0] {
            Some(_) => Ok((Self { separator, places }, true)),
            None => Err(HEADER.wrong(line)),
        }
    }

    /// Id, time, size and op of a line; all those that the layout has.
    fn fields<'a>(&self, line: &'a [u8]) -> Result<[Option<&'a [u8]>; 4], Wrong> {
        let mut found = [None; 4];
        for (number, field) in line.split(|&byte| byte == self.separator).enumerate() {
            let place = self.places.iter().position(|&place| place == Some(number));
            if let Some(place) = place {
                found[place] = Some(field.trim_ascii());
            }
        }
        let is_complete =
            self.places.iter().zip(&found).all(|(place, field)| place.is_some() == field.is_some());
        if is_complete { Ok(found) } else { Err(Wrong::new("the line", line, Csv::COLUMNS)) }
    }
}

const READS: &[&str] = &["read", "get", "gets", "r"];
const WRITES: &[&str] =
    &["write", "set", "add", "replace", "update", "cas", "append", "prepend", "incr", "decr", "w"];
const DISCARDS: &[&str] = &["delete"];

fn kind(op: &[u8]) -> Result<RequestKind, Wrong> {
    let kinds = [(READS, RequestKind::Read), (WRITES, RequestKind::Write), (DISCARDS, RequestKind::Discard)];
    let is_one_of = |names: &[&str]| names.iter().any(|name| op.eq_ignore_ascii_case(name.as_bytes()));
    let found = kinds.into_iter().find(|(names, _)| is_one_of(names)).map(|(_, kind)| kind);
    found.or_else(|| scsi_kind(op)).ok_or_else(|| OP.wrong(op))
}

/// What a SCSI command does, by its first byte in two hexadecimal digits.
fn scsi_kind(op: &[u8]) -> Option<RequestKind> {
    let digits = std::str::from_utf8(op).ok().filter(|op| op.len() == 2 && !op.starts_with('+'))?;
    let command = u16::from_str_radix(digits, 16).ok()?;
    vscsi::kind(command).filter(|&kind| kind != RequestKind::Flush)
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{check_errors, error, request, requests};
    use crate::{Format, RequestKind};

    #[test]
    fn without_a_header_the_columns_are_given() {
        let expected = ("0".to_owned(), RequestKind::Read, 1_500_000_000, 17 * 4096, 4096);
        assert_eq!(request(Format::LibCacheSimCsv, "1.5,17,8192"), expected);
        assert_eq!(request(Format::LibCacheSimCsv, "1.5|17|8192|get\r\n"), expected);
        assert_eq!(request(Format::LibCacheSimCsv, "1,2251799813685247,512,set").3, (1 << 63) - 4096);
    }

    #[test]
    fn the_upper_bits_of_an_id_are_the_volume() {
        let hash = u64::MAX - 4;
        let (volume, _, _, offset, _) = request(Format::LibCacheSimCsv, &format!("1,{hash},1,get"));
        assert_eq!((volume.as_str(), offset), ("8191", ((1 << 51) - 5) * 4096));
    }

    #[test]
    fn a_header_names_the_columns() {
        let text = "version\top\tOBJ_ID\tclock_time\tobj_size\n9\tupdate\t3\t2\t100\n";
        assert_eq!(
            request(Format::LibCacheSimCsv, text),
            ("0".to_owned(), RequestKind::Write, 2_000_000_000, 3 * 4096, 4096)
        );
        let only_ids = requests(Format::LibCacheSimCsv, "id\n5\n6\n");
        let found: Vec<_> =
            only_ids.iter().map(|request| (request.time_ns, request.offset, request.len)).collect();
        assert_eq!(found, [(0, 5 * 4096, 4096), (1, 6 * 4096, 4096)]);
    }

    #[test]
    fn operations_are_reads_writes_or_discards() {
        for (op, kind) in [
            ("GETS", RequestKind::Read),
            ("r", RequestKind::Read),
            ("cas", RequestKind::Write),
            ("delete", RequestKind::Discard),
            ("28", RequestKind::Read),
            ("8A", RequestKind::Write),
        ] {
            assert_eq!(request(Format::LibCacheSimCsv, &format!("1,2,3,{op}")).1, kind, "{op}");
        }
    }

    /// As the sample that comes with libCacheSim begins.
    #[test]
    fn scsi_commands_to_logical_blocks() {
        let text = "version,time,op,size,lbn\n1,33898,2a,512,42932745\n";
        let expected = ("0".to_owned(), RequestKind::Write, 33_898_000_000_000, 42_932_745 * 4096, 4096);
        assert_eq!(request(Format::LibCacheSimCsv, text), expected);
    }

    #[test]
    fn mistakes_are_told() {
        let cases = [
            ("1,2,3,35", r#"op is "35", expected read, get"#),
            ("1,2,3,+8", r#"op is "+8""#),
            ("1,2,3", r#"the line is "1,2,3", expected the columns of the header"#),
            ("-1,2,3,get", r#"time is "-1", expected a time in seconds"#),
            ("1,9be5,3,get", r#"obj_id is "9be5", expected a whole number below 2^64"#),
            ("1,18446744073709551616,3,get", r#"obj_id is "18446744073709551616""#),
            ("1,2,big,get", r#"obj_size is "big", expected a whole number of bytes"#),
            ("1,2,3,nop", r#"op is "nop", expected read, get"#),
        ];
        check_errors(Format::LibCacheSimCsv, "1,2,3,get", &cases);
        assert!(
            error(Format::LibCacheSimCsv, "1,2,3,4,5\n").starts_with(r#"line 1: the line is "1,2,3,4,5""#)
        );
        assert!(
            error(Format::LibCacheSimCsv, "when,what\n")
                .starts_with(r#"line 1: the header is "when,what", expected a column obj_id"#)
        );
    }
}
