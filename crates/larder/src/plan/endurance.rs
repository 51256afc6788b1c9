//! How much an SSD may be written before it is worn out: `1` or `1DWPD` drive write per day, or `600TBW` terabytes (`600TBW/5y`: with the years of its warranty, which say nothing of how long it is to live).

use std::fmt;
use std::str::FromStr;

use larder_alloc::control::WriteBudget;

use crate::amount::positive;

const DAYS: f64 = 365.25;

/// Drive writes per day, or terabytes, beyond which nobody means what is written.
const MOST: f64 = 1e9;

/// The same for small ones.
const LEAST: f64 = 1e-9;

/// Years that are more than any SSD is asked to live.
const YEARS_MOST: f64 = 1000.0;

const FORM: &str = "write drive writes per day (\"1\", \"0.3DWPD\") or terabytes (\"600TB\", \"600TBW\", also with the years of a warranty: \"600TB/5\", \"600TBW/5y\")";

/// An endurance class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Endurance {
    /// Drive writes per day over the warranty.
    Dwpd(f64),
    /// Terabytes written, whatever the size.
    Tbw {
        /// The terabytes.
        terabytes: f64,
        /// The years of its warranty, if they are told. The terabytes last as long as they do.
        years: Option<f64>,
    },
}

impl Endurance {
    /// What may be written a day, for it to live so many years.
    pub fn budget(self, capacity_bytes: u64, to_live_years: f64) -> WriteBudget {
        match self {
            Self::Dwpd(drive_writes) => WriteBudget::dwpd(drive_writes, capacity_bytes),
            Self::Tbw { terabytes, .. } => WriteBudget::tbw(terabytes, to_live_years),
        }
    }

    /// Bytes that may be written until it is worn out. Drive writes per day are those of so many years.
    pub fn rated_bytes(self, capacity_bytes: u64, to_live_years: f64) -> f64 {
        match self {
            Self::Dwpd(drive_writes) => drive_writes * capacity_bytes as f64 * DAYS * to_live_years,
            Self::Tbw { terabytes, .. } => terabytes * 1e12,
        }
    }

    /// Years until it is worn out by so many bytes a day, where it is to live so many; none where nothing is written.
    pub fn years(self, capacity_bytes: u64, to_live_years: f64, bytes_per_day: f64) -> Option<f64> {
        (bytes_per_day > 0.0)
            .then(|| self.rated_bytes(capacity_bytes, to_live_years) / (bytes_per_day * DAYS))
    }
}

impl fmt::Display for Endurance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dwpd(drive_writes) => write!(f, "{drive_writes} DWPD"),
            Self::Tbw { terabytes, years: Some(years) } => write!(f, "{terabytes} TB/{years} y"),
            Self::Tbw { terabytes, years: None } => write!(f, "{terabytes} TB"),
        }
    }
}

impl FromStr for Endurance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("{text} is no endurance; {FORM}");
        let number = |number: &str| amount(number).map_err(wrong);
        let (rating, over) = match text.split_once('/') {
            None => (text.trim(), None),
            Some((rating, over)) => (rating.trim(), Some(over.trim())),
        };
        if let Some(terabytes) = rating.strip_suffix("TBW").or(rating.strip_suffix("TB")) {
            let of = |over: &str| years(over.strip_suffix('y').unwrap_or(over)).map_err(wrong);
            return Ok(Self::Tbw { terabytes: number(terabytes)?, years: over.map(of).transpose()? });
        }
        match over {
            None => number(rating.strip_suffix("DWPD").unwrap_or(rating)).map(Self::Dwpd),
            Some(_) => Err(wrong(String::new())),
        }
    }
}

/// Drive writes or terabytes that somebody may mean.
fn amount(text: &str) -> Result<f64, String> {
    let number = positive(text)?;
    if (LEAST..=MOST).contains(&number) { Ok(number) } else { Err(format!("{text} cannot be meant")) }
}

/// Years that an SSD is to live: above 0, up to 1000.
pub fn years(text: &str) -> Result<f64, String> {
    let years = positive(text)?;
    if (LEAST..=YEARS_MOST).contains(&years) {
        Ok(years)
    } else {
        Err(format!("{text} years cannot be meant; write a number above 0, up to {YEARS_MOST}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endurances_that_people_write() {
        for (text, drive_writes) in [("0.3", 0.3), ("1DWPD", 1.0), ("0.3 DWPD", 0.3)] {
            assert_eq!(text.parse(), Ok(Endurance::Dwpd(drive_writes)), "{text}");
        }
        for (text, years) in [
            ("600TB/5", Some(5.0)),
            ("600TBW/5y", Some(5.0)),
            ("600 TB/5 y", Some(5.0)),
            ("600TB", None),
            ("600TBW", None),
        ] {
            let read: Endurance = text.parse().expect(text);
            assert_eq!(read, Endurance::Tbw { terabytes: 600.0, years }, "{text}");
            assert_eq!(read.to_string().parse(), Ok(read), "{text}: what is printed is read");
        }
        for text in [
            "",
            "0",
            "-1",
            "x",
            "600/5",
            "600TB/",
            "600TB/0",
            "TB/5",
            "1e300",
            "1e-300",
            "1e300TB",
            "5TB/1e300",
            "1DWPD/5y",
            "DWPD",
            "1GB",
        ] {
            assert!(text.parse::<Endurance>().expect_err(text).contains("600TB/5"), "{text}");
        }
        assert_eq!(years("1000"), Ok(1000.0));
        assert!(years("1e300").expect_err("too many").contains("up to 1000"));
    }

    #[test]
    fn a_drive_lives_as_long_as_its_rated_writes_last() {
        let gib = 1u64 << 30;
        let one = Endurance::Dwpd(1.0);
        assert_eq!(one.years(gib, 5.0, gib as f64), Some(5.0));
        assert_eq!(one.years(gib, 5.0, gib as f64 / 2.0), Some(10.0));
        assert_eq!(one.years(gib, 5.0, 0.0), None);
        let rated = Endurance::Tbw { terabytes: 365.25, years: Some(2.0) };
        assert_eq!(rated.years(gib, 5.0, 1e12), Some(1.0));
        // As much a day as lets it live for as long as it is to, whatever its warranty.
        assert_eq!([1.0, 2.0, 5.0].map(|years| rated.budget(gib, years).bytes), [1e12, 0.5e12, 0.2e12]);
        let rated = Endurance::Tbw { terabytes: 365.25, years: None };
        assert_eq!((rated.years(gib, 5.0, 1e12), rated.budget(gib, 5.0).bytes), (Some(1.0), 0.2e12));
    }
}
