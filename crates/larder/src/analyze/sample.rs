//! What `--sample` takes: a share of the blocks (`1%`, `0.01`), or a number of them (`8192`).

use std::str::FromStr;

use larder_locality::Sampling;

use crate::amount::share;

/// Fewer blocks say nothing.
const BLOCKS_MIN: u32 = 64;

const FORM: &str = "a share of the blocks (\"1%\", \"0.01\") or a number of them (\"8192\", at least 64)";

/// A sample as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample(
    /// Never [`Sampling::Exact`].
    pub Sampling,
);

impl FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("{text} is no sample: write {FORM}");
        let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_whole {
            let blocks = text.parse().ok().filter(|&blocks| blocks >= BLOCKS_MIN);
            return blocks.map(|blocks| Self(Sampling::Blocks(blocks))).ok_or_else(wrong);
        }
        let rate = match text.strip_suffix('%') {
            Some(number) => share(number),
            None => text.parse().ok(),
        };
        let rate = rate.filter(|&rate| 0.0 < rate && rate <= 1.0).ok_or_else(wrong)?;
        Ok(Self(Sampling::Rate(rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_share_or_a_number() {
        for (text, sampling) in [
            ("1%", Sampling::Rate(0.01)),
            ("0.01", Sampling::Rate(0.01)),
            ("0.1 %", Sampling::Rate(0.001)),
            ("1e-3", Sampling::Rate(0.001)),
            ("100%", Sampling::Rate(1.0)),
            ("1.0", Sampling::Rate(1.0)),
            ("64", Sampling::Blocks(64)),
            ("8192", Sampling::Blocks(8192)),
        ] {
            assert_eq!(text.parse(), Ok(Sample(sampling)), "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in
            ["", "x", "0", "1", "63", "0%", "0.0", "-0.1", "1.5", "101%", "nan", "inf", "nan%", "4294967296"]
        {
            let error = text.parse::<Sample>().expect_err(text);
            assert!(error.contains("\"1%\", \"0.01\""), "{error}");
        }
    }
}
