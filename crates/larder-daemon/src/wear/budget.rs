//! What may be written to the SSD, as the key `control.write_budget` says it: `unlimited`, `endurance`, `0.5DWPD`, `300TBW/5y`, `200GiB/day`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use larder_alloc::control::WriteBudget;

use super::endurance::Endurance;
use crate::units::{ExactDuration, ExactSize, parse_duration, parse_size};

const DAY: Duration = Duration::from_secs(86_400);

/// What may be written.
const FORM: &str = "\"unlimited\"; \"endurance\" for what [cache] endurance allows; as there, \"0.5DWPD\" (of the cache's size) or \"300TBW/5y\"; \
    or so much in a time, \"200GiB/day\" or \"8GiB/1h\"";

/// What may be written to the SSD.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum BudgetChoice {
    /// As much as is wanted.
    #[default]
    Unlimited,
    /// What `cache.endurance` allows each day.
    Endurance,
    /// What this would allow.
    Rated(Endurance),
    /// So many bytes in each period.
    Bytes {
        /// Bytes, above 0.
        bytes: u64,
        /// A second at least.
        period: Duration,
    },
}

impl BudgetChoice {
    /// The budget of a cache of this size; none without a limit, or where no endurance is configured.
    pub fn budget(&self, endurance: Option<&Endurance>, cache_bytes: u64) -> Option<WriteBudget> {
        match self {
            Self::Unlimited => None,
            Self::Endurance => endurance.map(|endurance| endurance.budget(cache_bytes)),
            Self::Rated(rated) => Some(rated.budget(cache_bytes)),
            Self::Bytes { bytes, period } => {
                Some(WriteBudget { bytes: *bytes as f64, period_seconds: period.as_secs_f64() })
            }
        }
    }
}

impl fmt::Display for BudgetChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Endurance => f.write_str("endurance"),
            Self::Rated(rated) => write!(f, "{rated}"),
            Self::Bytes { bytes, period: DAY } => write!(f, "{}/day", ExactSize(*bytes)),
            Self::Bytes { bytes, period } => write!(f, "{}/{}", ExactSize(*bytes), ExactDuration(*period)),
        }
    }
}

impl FromStr for BudgetChoice {
    /// What would have been understood.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        match text {
            "unlimited" => return Ok(Self::Unlimited),
            "endurance" => return Ok(Self::Endurance),
            _ => {}
        }
        match text
            .split_once('/')
            .filter(|(_, period)| !period.trim().ends_with('y') || period.trim() == "day")
        {
            None => text.parse().map(Self::Rated).map_err(|_| FORM),
            Some((size, period)) => {
                let bytes = parse_size(size).ok().filter(|&bytes| bytes > 0).ok_or(FORM)?;
                let period = match period.trim() {
                    "day" => DAY,
                    period => parse_duration(period).map_err(|_| FORM)?,
                };
                let long_enough = period >= Duration::from_secs(1);
                long_enough.then_some(Self::Bytes { bytes, period }).ok_or(FORM)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_as_operators_have_them() {
        let bytes = |bytes, seconds| BudgetChoice::Bytes { bytes, period: Duration::from_secs(seconds) };
        let rated = |text: &str| BudgetChoice::Rated(text.parse().expect("an endurance"));
        for (text, choice, written) in [
            ("unlimited", BudgetChoice::Unlimited, "unlimited"),
            ("endurance", BudgetChoice::Endurance, "endurance"),
            ("0.5DWPD", rated("0.5DWPD"), "0.5DWPD/5y"),
            ("300TBW/3y", rated("300TBW/3y"), "300TBW/3y"),
            ("200GiB/day", bytes(200 << 30, 86_400), "200GiB/day"),
            ("1TB / 24h", bytes(1_000_000_000_000, 86_400), "976562500KiB/day"),
            ("64MiB/90s", bytes(64 << 20, 90), "64MiB/90s"),
        ] {
            assert_eq!(text.parse(), Ok(choice), "{text}");
            assert_eq!((choice.to_string().as_str(), written.parse()), (written, Ok(choice)));
        }
        for text in ["", "none", "200GiB", "0/day", "1GiB/0s", "1GiB/500ms", "1GiB/week", "/day", "-1DWPD"] {
            assert_eq!(text.parse::<BudgetChoice>(), Err(FORM), "{text}");
        }
    }

    #[test]
    fn budgets_in_bytes() {
        let endurance: Endurance = "2DWPD".parse().expect("one");
        let budget = |text: &str, endurance| {
            let choice: BudgetChoice = text.parse().expect("one");
            choice.budget(endurance, 1000).map(|it| (it.bytes, it.period_seconds))
        };
        assert_eq!(budget("endurance", Some(&endurance)), Some((2000.0, 86_400.0)));
        assert_eq!((budget("endurance", None), budget("unlimited", Some(&endurance))), (None, None));
        assert_eq!(budget("0.5DWPD", Some(&endurance)), Some((500.0, 86_400.0)));
        assert_eq!(budget("77/5s", None), Some((77.0, 5.0)));
    }
}
