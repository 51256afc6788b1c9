//! Cache sizes as people write them: `10GiB`, `5%` of the footprint, `1%..50%:10` for ten of them.

use std::str::FromStr;

use larder_daemon::units::{ExactSize, parse_size};
use larder_sim::BlockSize;

use crate::amount::share;
use crate::problem::Problem;

/// Sizes in one range.
const RANGE_MAX: u32 = 1000;

const RANGE_FORM: &str =
    "a range is written as \"1%..50%:10\" or \"1GiB..64GiB:7\": from, to, and how many sizes (2 to 1000)";

/// One or several cache sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeChoice {
    /// One.
    One(Size),
    /// So many, each larger than the one before by the same factor.
    Range(Size, Size, u32),
}

/// A cache size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// In bytes.
    Bytes(u64),
    /// As a share of the footprint, from 0 to 1.
    Share(f64),
}

impl Size {
    fn parse(text: &str) -> Result<Self, String> {
        match text.trim().strip_suffix('%') {
            Some(number) => share(number)
                .filter(|&share| share > 0.0)
                .map(Self::Share)
                .ok_or_else(|| format!("{text} is no share of the footprint: above 0%, up to 100%")),
            None => parse_size(text).map(Self::Bytes).map_err(|error| error.to_string()),
        }
    }

    /// The size between two of the same kind, `at` being 0 for this one and 1 for the other.
    fn towards(self, other: Self, at: f64) -> Self {
        let between = |from: f64, to: f64| from * (to / from).powf(at);
        match (self, other) {
            (Self::Bytes(from), Self::Bytes(to)) => {
                Self::Bytes(between(from as f64, to as f64).round() as u64)
            }
            (Self::Share(from), Self::Share(to)) => Self::Share(between(from, to)),
            _ => self,
        }
    }

    /// How many whole blocks that are; a share of a footprint is rounded, and never less than one.
    fn blocks(self, block: BlockSize, footprint_blocks: u64) -> Result<u64, Problem> {
        match self {
            Self::Share(share) => Ok(((footprint_blocks as f64 * share).round() as u64).max(1)),
            Self::Bytes(bytes) if bytes < block.bytes().into() => Err(Problem::new(
                format_args!(
                    "a cache of {bytes} bytes holds no block of {}",
                    ExactSize(block.bytes().into())
                ),
                "give a larger cache, or a smaller --block",
            )),
            Self::Bytes(bytes) => Ok(bytes / u64::from(block.bytes())),
        }
    }
}

impl SizeChoice {
    /// True if it can be told only of a known footprint.
    pub fn is_share(&self) -> bool {
        matches!(self, Self::One(Size::Share(_)) | Self::Range(Size::Share(_), ..))
    }

    fn sizes(self) -> Vec<Size> {
        match self {
            Self::One(size) => vec![size],
            Self::Range(from, to, count) => {
                (0..count).map(|at| from.towards(to, f64::from(at) / f64::from(count - 1))).collect()
            }
        }
    }
}

impl FromStr for SizeChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((from, rest)) = text.split_once("..") else { return Size::parse(text).map(Self::One) };
        let (to, count) = rest.split_once(':').ok_or(RANGE_FORM)?;
        let count =
            count.trim().parse().ok().filter(|count| (2..=RANGE_MAX).contains(count)).ok_or(RANGE_FORM)?;
        let (from, to) = (Size::parse(from)?, Size::parse(to)?);
        match (from, to) {
            (Size::Bytes(1..), Size::Bytes(1..)) | (Size::Share(_), Size::Share(_)) => {
                Ok(Self::Range(from, to, count))
            }
            _ => Err(RANGE_FORM.into()),
        }
    }
}

/// The sizes in blocks, each once, from the smallest. The footprint counts only where there are shares of it.
pub fn resolve(choices: &[SizeChoice], block: BlockSize, footprint_blocks: u64) -> Result<Vec<u64>, Problem> {
    let sizes = choices.iter().flat_map(|choice| choice.sizes());
    let mut blocks = sizes.map(|size| size.blocks(block, footprint_blocks)).collect::<Result<Vec<_>, _>>()?;
    blocks.sort_unstable();
    blocks.dedup();
    Ok(blocks)
}

/// Decimal units, in which SSDs are sold.
const DECIMAL: [(&str, u64); 3] = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000)];

/// A size in bytes as it was asked for, where one of these is that size and has a decimal unit: `240 GB`, not `223.5 GiB`.
pub fn decimal(choices: &[SizeChoice], block: BlockSize, bytes: u64) -> Option<String> {
    let block = u64::from(block.bytes());
    choices.iter().flat_map(|choice| choice.sizes()).find_map(|size| match size {
        Size::Bytes(asked) if asked / block * block == bytes && !asked.is_multiple_of(1 << 20) => {
            let (name, unit) =
                DECIMAL.iter().find(|(_, unit)| asked >= *unit && asked.is_multiple_of(unit / 1000))?;
            Some(format!("{} {name}", asked as f64 / *unit as f64))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(texts: &[&str], footprint: u64) -> Vec<u64> {
        let choices: Vec<_> = texts.iter().map(|text| text.parse().expect(text)).collect();
        resolve(&choices, BlockSize::DEFAULT, footprint).expect("sizes")
    }

    #[test]
    fn sizes_become_blocks() {
        assert_eq!(blocks(&["10MiB", "4096", "8191", "5%"], 1000), [1, 50, 2560]);
        assert_eq!(blocks(&["0.01%", "33.3%", "100%"], 1000), [1, 333, 1000]);
        assert_eq!(blocks(&["1%..100%:3"], 1000), [10, 100, 1000]);
        assert_eq!(blocks(&["4KiB..1MiB:5"], 0), [1, 4, 16, 64, 256]);
        assert_eq!(blocks(&["50%..1%:2"], 1000), [10, 500]);
    }

    #[test]
    fn sizes_in_decimal_units_keep_them() {
        let choices = ["500GB", "1.92TB", "1GiB", "1000MB", "10%"].map(|text| text.parse().expect(text));
        let names = [500_000_000_000, 1_920_000_000_000, 1 << 30, 1_000_000_000, 7 << 30]
            .map(|bytes| decimal(&choices, BlockSize::DEFAULT, bytes / 4096 * 4096));
        assert_eq!(
            names.each_ref().map(Option::as_deref),
            [Some("500 GB"), Some("1.92 TB"), None, Some("1 GB"), None]
        );
    }

    #[test]
    fn a_cache_without_a_block_is_refused() {
        let choices = ["100".parse().expect("a size")];
        let problem = resolve(&choices, BlockSize::DEFAULT, 0).expect_err("too small").to_string();
        assert!(
            problem.starts_with("error: a cache of 100 bytes holds no block of 4KiB\nhelp: "),
            "{problem}"
        );
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "x",
            "0%",
            "101%",
            "-1%",
            "nan%",
            "1%..",
            "1%..2%",
            "1%..2%:1",
            "1%..1GiB:3",
            "1%..2%:1001",
            "0..1GiB:3",
        ] {
            assert!(text.parse::<SizeChoice>().is_err(), "{text}");
        }
    }
}
