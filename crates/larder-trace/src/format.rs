//! The formats: their names, and the reader of each.

mod detect;

use std::fmt;
use std::str::FromStr;

use crate::TraceError;
use crate::input::Input;
use crate::read;
use crate::source::Source;

/// A trace format. Its name (`--format`) is what [`fmt::Display`] writes and [`FromStr`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `msr`: MSR Cambridge CSV.
    Msr,
    /// `spc`: CSV of the Storage Performance Council, as in the UMass repository.
    Spc,
    /// `fiu`: the text of Florida International University's traces, with a hash of every block's content.
    Fiu,
    /// `blkparse`: the default text of `blkparse`.
    Blkparse,
    /// `blktrace`: the kernel's binary records.
    Blktrace,
    /// `vscsi`: binary records of CloudPhysics.
    Vscsi,
    /// `alibaba`: CSV of Alibaba's block storage (2020).
    Alibaba,
    /// `tencent`: CSV of Tencent's Cloud Block Storage.
    Tencent,
    /// `systor`: CSV of the Systor'17 traces of virtual desktops.
    Systor,
    /// `srt`: binary records of Hewlett-Packard's traces.
    Srt,
    /// `disksim`: the ASCII input of DiskSim, in milliseconds and sectors.
    Disksim,
    /// `ssdsim`: the ASCII input of SSDSim, in nanoseconds and sectors.
    Ssdsim,
    /// `mqsim`: the ASCII input of MQSim: the same as `ssdsim`, which is what detection calls it.
    Mqsim,
    /// `dtrs`: Microsoft's production servers as ASCII, in microseconds and sectors.
    Dtrs,
    /// `heimdall`: cuts of MSR volumes as ASCII, in milliseconds and bytes.
    Heimdall,
    /// `fio`: fio's iolog, version 2 or 3.
    FioLog,
    /// `oracle-general`: libCacheSim's binary records with the time of the next access.
    OracleGeneral,
    /// `libcachesim-csv`: libCacheSim's CSV.
    LibCacheSimCsv,
    /// `lis`: the ARC paper's traces, in sectors of 512 bytes.
    Lis,
    /// `lis-pages`: the ARC paper's database traces, in pages of 4 KiB.
    LisPages,
    /// `parquet`: an Apache Parquet table.
    Parquet,
    /// `plain`: `R|W block [count]`, in blocks of 4 KiB.
    Plain,
}

impl Format {
    /// False where requests have no times but their order, which is told as nanoseconds.
    pub fn has_times(self) -> bool {
        !matches!(self, Self::Lis | Self::LisPages | Self::Plain)
    }

    /// All formats.
    pub const ALL: [Self; 22] = [
        Self::Msr,
        Self::Spc,
        Self::Fiu,
        Self::Blkparse,
        Self::Blktrace,
        Self::Vscsi,
        Self::Alibaba,
        Self::Tencent,
        Self::Systor,
        Self::Srt,
        Self::Disksim,
        Self::Ssdsim,
        Self::Mqsim,
        Self::Dtrs,
        Self::Heimdall,
        Self::FioLog,
        Self::OracleGeneral,
        Self::LibCacheSimCsv,
        Self::Lis,
        Self::LisPages,
        Self::Parquet,
        Self::Plain,
    ];

    /// Its name, as `--format` takes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Msr => "msr",
            Self::Spc => "spc",
            Self::Fiu => "fiu",
            Self::Blkparse => "blkparse",
            Self::Blktrace => "blktrace",
            Self::Vscsi => "vscsi",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Systor => "systor",
            Self::Srt => "srt",
            Self::Disksim => "disksim",
            Self::Ssdsim => "ssdsim",
            Self::Mqsim => "mqsim",
            Self::Dtrs => "dtrs",
            Self::Heimdall => "heimdall",
            Self::FioLog => "fio",
            Self::OracleGeneral => "oracle-general",
            Self::LibCacheSimCsv => "libcachesim-csv",
            Self::Lis => "lis",
            Self::LisPages => "lis-pages",
            Self::Parquet => "parquet",
            Self::Plain => "plain",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no format's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no trace format; there are {}", names())]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
}

/// The names of all formats, for errors.
pub(crate) fn names() -> String {
    Format::ALL.map(Format::as_str).join(", ")
}

impl FromStr for Format {
    type Err = UnknownFormat;

    /// Case, `-` and `_` do not count: `oracleGeneral` is `oracle-general`.
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let plain = |name: &str| name.replace(['-', '_'], "").to_ascii_lowercase();
        let found = Self::ALL.into_iter().find(|format| plain(format.as_str()) == plain(name));
        found.ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// A reader for `input`, and the format that it is in: `format`, or what the first bytes tell.
pub(crate) fn source(
    file: &str,
    input: Input,
    format: Option<Format>,
) -> Result<(Format, Box<dyn Source>), TraceError> {
    let (format, input) = match format {
        Some(format) => (format, input),
        None => detect::detect(file, input)?,
    };
    let source = reader(format, input);
    Ok((format, source))
}

/// The reader of a format.
fn reader(format: Format, input: Input) -> Box<dyn Source> {
    match format {
        Format::Msr => read::msr::source(input),
        Format::Spc => read::spc::source(input),
        Format::Fiu => read::fiu::source(input),
        Format::Blkparse => read::blkparse::source(input),
        Format::Blktrace => read::blktrace::source(input),
        Format::Vscsi => read::vscsi::source(input),
        Format::Alibaba => read::alibaba::source(input),
        Format::Tencent => read::tencent::source(input),
        Format::Systor => read::systor::source(input),
        Format::Srt => read::srt::source(input),
        Format::Disksim => read::ascii::disksim(input),
        Format::Ssdsim | Format::Mqsim => read::ascii::ssdsim(input),
        Format::Dtrs => read::ascii::dtrs(input),
        Format::Heimdall => read::ascii::heimdall(input),
        Format::FioLog => read::fio::source(input),
        Format::OracleGeneral => read::oracle_general::source(input),
        Format::LibCacheSimCsv => read::libcachesim::source(input),
        Format::Lis => read::lis::sectors(input),
        Format::LisPages => read::lis::pages(input),
        Format::Plain => read::plain::source(input),
        Format::Parquet => read::parquet::source(input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_format_is_read_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
            assert_eq!(format.as_str().to_uppercase().replace('-', "_").parse(), Ok(format));
        }
        assert_eq!("oracleGeneral".parse(), Ok(Format::OracleGeneral));
        let names: BTreeSet<_> = Format::ALL.map(Format::as_str).into();
        assert_eq!(names.len(), Format::ALL.len());
    }

    #[test]
    fn another_name_is_told_with_those_that_are() {
        let error = "csv".parse::<Format>().unwrap_err().to_string();
        assert!(error.starts_with(r#""csv" is no trace format; there are msr, spc, fiu, "#), "{error}");
        assert!("".parse::<Format>().is_err());
    }

    #[test]
    fn a_format_that_is_named_is_taken() {
        let lines = || Box::new(std::io::Cursor::new(b"5 1 0 0\n"));
        for format in [Format::Lis, Format::LisPages] {
            let trace = crate::Trace::new("t", lines(), Some(format)).unwrap();
            assert_eq!(trace.format(), format);
        }
    }
}
