//! What a format cannot hold of the requests that are written in it: counted, to be told.

use std::fmt::Write;

use larder_trace::{Format, Request, RequestKind, Volume};

use super::text::counted;

/// Bytes of the blocks that `oracle-general` holds accesses to.
const ACCESS_BYTES: u32 = 4096;

/// Something that is lost of a request or a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Loss {
    /// A flush is left out.
    Flush,
    /// A discard is left out.
    Discard,
    /// A request of no bytes is left out.
    Empty,
    /// A write becomes an access without a kind.
    Write,
    /// A request becomes accesses to whole blocks.
    Blocks,
    /// A time is cut to what the format can tell.
    Time,
    /// A time before that of the first request becomes the first's.
    Early,
    /// A volume gets another name.
    Name,
}

impl Loss {
    const ALL: [Self; 8] = [
        Self::Flush,
        Self::Discard,
        Self::Empty,
        Self::Write,
        Self::Blocks,
        Self::Time,
        Self::Early,
        Self::Name,
    ];

    /// What is special about the one request.
    pub fn why(self) -> &'static str {
        match self {
            Self::Flush => "is a flush",
            Self::Discard => "is a discard",
            Self::Empty => "has no bytes",
            Self::Write => "is a write",
            Self::Blocks => "is not for one block of 4 KiB",
            Self::Time => "has a finer time",
            Self::Early => "is earlier than the first",
            Self::Name => "is for a volume whose name the format does not hold",
        }
    }

    fn told(self, count: u64, resolution: &str) -> String {
        let requests = |what| format!("{} {what}", counted(count, "request", "requests"));
        match self {
            Self::Flush => format!("{} left out", counted(count, "flush", "flushes")),
            Self::Discard => format!("{} left out", counted(count, "discard", "discards")),
            Self::Empty => requests("of no bytes left out"),
            Self::Write => format!("{} told as accesses of no kind", counted(count, "write", "writes")),
            Self::Blocks => requests("told as accesses to whole blocks of 4 KiB"),
            Self::Time => format!("times of {} cut to {resolution}", counted(count, "request", "requests")),
            Self::Early => requests("earlier than the first told at its time"),
            Self::Name => format!("names of {} changed", counted(count, "volume", "volumes")),
        }
    }
}

/// What was lost so far.
#[derive(Debug)]
pub struct Losses {
    format: Format,
    counts: [u64; Loss::ALL.len()],
    /// The time from which the format counts: that of its first request.
    start_ns: Option<u64>,
}

impl Losses {
    /// Nothing, in this format.
    pub fn new(format: Format) -> Self {
        Self { format, counts: [0; Loss::ALL.len()], start_ns: None }
    }

    /// Count what is lost of a request. True if the format holds the rest.
    pub fn note(&mut self, request: &Request) -> bool {
        let before = self.left_out();
        match self.format {
            Format::Msr => self.note_kind(request.kind),
            Format::OracleGeneral => self.note_access(request),
            _ => {}
        }
        let held = self.left_out() == before;
        if held {
            self.note_time(request.time_ns);
        }
        held
    }

    fn left_out(&self) -> u64 {
        [Loss::Flush, Loss::Discard, Loss::Empty].map(|loss| self.counts[loss as usize]).iter().sum()
    }

    fn add(&mut self, loss: Loss, is_lost: bool) {
        self.counts[loss as usize] += u64::from(is_lost);
    }

    fn note_kind(&mut self, kind: RequestKind) {
        self.add(Loss::Flush, kind == RequestKind::Flush);
        self.add(Loss::Discard, kind == RequestKind::Discard);
    }

    fn note_access(&mut self, request: &Request) {
        let Request { kind, offset, len, .. } = *request;
        self.note_kind(kind);
        if matches!(kind, RequestKind::Read | RequestKind::Write) {
            self.add(Loss::Empty, len == 0);
            self.add(Loss::Write, len > 0 && kind == RequestKind::Write);
            let is_block = len == ACCESS_BYTES && offset.is_multiple_of(ACCESS_BYTES.into());
            self.add(Loss::Blocks, len > 0 && !is_block);
        }
    }

    fn note_time(&mut self, time_ns: u64) {
        let (unit_ns, _) = self.resolution();
        let start_ns = match self.format {
            Format::FioLog | Format::OracleGeneral => *self.start_ns.get_or_insert(time_ns),
            _ => 0,
        };
        self.add(Loss::Early, time_ns < start_ns);
        self.add(Loss::Time, !time_ns.saturating_sub(start_ns).is_multiple_of(unit_ns));
    }

    /// The unit of time of the format, in nanoseconds and in words.
    fn resolution(&self) -> (u64, &'static str) {
        match self.format {
            Format::Msr => (100, "100 ns"),
            Format::FioLog => (1000, "1 µs"),
            Format::OracleGeneral => (1_000_000_000, "1 s"),
            _ => (1, "1 ns"),
        }
    }

    /// Count what is lost of a volume that is met for the first time. `number` counts the volumes written.
    pub fn note_volume(&mut self, volume: &Volume, number: u32) {
        let Volume { tenant, disk } = volume;
        let is_number = disk.parse::<u64>().is_ok_and(|number| number.to_string() == *disk);
        let keeps = match self.format {
            Format::Msr => is_number && !tenant.is_empty() && !tenant.contains(','),
            Format::FioLog => tenant.is_empty(),
            Format::OracleGeneral => tenant.is_empty() && *disk == number.to_string(),
            _ => true,
        };
        self.add(Loss::Name, !keeps);
    }

    /// Something that was lost, if anything was.
    pub fn any(&self) -> Option<Loss> {
        Loss::ALL.into_iter().find(|&loss| self.counts[loss as usize] > 0)
    }

    /// Add what was lost elsewhere, in the same format.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// A line for each thing that was lost; `name` is where the trace was written to.
    pub fn told(&self, name: &str) -> String {
        let (_, resolution) = self.resolution();
        let mut text = String::new();
        for loss in Loss::ALL {
            let count = self.counts[loss as usize];
            if count > 0 {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "note: {name} ({}): {}", self.format, loss.told(count, resolution));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RequestKind::{Discard, Flush, Read, Write};

    fn request(time_ns: u64, kind: RequestKind, offset: u64, len: u32) -> Request {
        Request { time_ns, volume: 0, kind, offset, len }
    }

    /// Some of everything.
    fn requests() -> [Request; 6] {
        [
            request(1_000_000_150, Read, 0, 4096),
            request(1_000_000_150, Write, 0, 4096),
            request(5_000, Read, 512, 0),
            request(2_000_001_150, Write, 512, 4096),
            request(3_000_000_151, Flush, 0, 0),
            request(3_000_000_150, Discard, 4096, 4096),
        ]
    }

    fn told(format: Format) -> (Vec<bool>, String) {
        let mut losses = Losses::new(format);
        for (number, volume) in
            [Volume::new("web", 1), Volume::new("", 1), Volume::new("a", "sda")].iter().enumerate()
        {
            losses.note_volume(volume, number as u32);
        }
        let held = requests().iter().map(|request| losses.note(request)).collect();
        (held, losses.told("x"))
    }

    #[test]
    fn parquet_loses_nothing() {
        assert_eq!(told(Format::Parquet), (vec![true; 6], String::new()));
    }

    #[test]
    fn msr_holds_reads_and_writes() {
        let expected = "note: x (msr): 1 flush left out\nnote: x (msr): 1 discard left out\n\
            note: x (msr): times of 3 requests cut to 100 ns\nnote: x (msr): names of 2 volumes changed\n";
        assert_eq!(told(Format::Msr), (vec![true, true, true, true, false, false], expected.to_owned()));
    }

    #[test]
    fn fio_holds_times_since_the_first() {
        let expected = "note: x (fio): times of 1 request cut to 1 µs\n\
            note: x (fio): 1 request earlier than the first told at its time\nnote: x (fio): names of 2 volumes changed\n";
        assert_eq!(told(Format::FioLog), (vec![true; 6], expected.to_owned()));
    }

    #[test]
    fn oracle_general_holds_accesses() {
        let expected = "note: x (oracle-general): 1 flush left out\nnote: x (oracle-general): 1 discard left out\n\
            note: x (oracle-general): 1 request of no bytes left out\n\
            note: x (oracle-general): 2 writes told as accesses of no kind\n\
            note: x (oracle-general): 1 request told as accesses to whole blocks of 4 KiB\n\
            note: x (oracle-general): times of 1 request cut to 1 s\n\
            note: x (oracle-general): names of 2 volumes changed\n";
        assert_eq!(
            told(Format::OracleGeneral),
            (vec![true, true, false, true, false, false], expected.to_owned())
        );
    }

    #[test]
    fn counts_add_up() {
        let mut sum = Losses::new(Format::Msr);
        assert_eq!(sum.any(), None);
        for _ in 0..2 {
            let mut part = Losses::new(Format::Msr);
            assert!(!part.note(&request(0, Flush, 0, 0)));
            sum.merge(&part);
        }
        assert_eq!(
            (sum.any(), sum.told("x")),
            (Some(Loss::Flush), "note: x (msr): 2 flushes left out\n".to_owned())
        );
    }
}
