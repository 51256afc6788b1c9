//! How much an SSD may be written before it is worn out: `1` drive write per day, or `600TB/5` terabytes over years.

use std::fmt;
use std::str::FromStr;

use larder_alloc::control::WriteBudget;

use crate::amount::positive;

const DAYS: f64 = 365.25;

const FORM: &str = "write drive writes per day (\"1\", \"0.3\") or terabytes over years (\"600TB/5\")";

/// An endurance class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Endurance {
    /// Drive writes per day over the warranty.
    Dwpd(f64),
    /// Terabytes written, whatever the size, over so many years.
    Tbw {
        /// The terabytes.
        terabytes: f64,
        /// The years.
        years: f64,
    },
}

impl Endurance {
    /// What may be written a day.
    pub fn budget(self, capacity_bytes: u64) -> WriteBudget {
        match self {
            Self::Dwpd(drive_writes) => WriteBudget::dwpd(drive_writes, capacity_bytes),
            Self::Tbw { terabytes, years } => WriteBudget::tbw(terabytes, years),
        }
    }

    /// Bytes that may be written until it is worn out, with a warranty of so many years.
    pub fn rated_bytes(self, capacity_bytes: u64, warranty_years: f64) -> f64 {
        match self {
            Self::Dwpd(drive_writes) => drive_writes * capacity_bytes as f64 * DAYS * warranty_years,
            Self::Tbw { terabytes, .. } => terabytes * 1e12,
        }
    }

    /// Years until it is worn out by so many bytes a day; none where nothing is written.
    pub fn years(self, capacity_bytes: u64, warranty_years: f64, bytes_per_day: f64) -> Option<f64> {
        (bytes_per_day > 0.0)
            .then(|| self.rated_bytes(capacity_bytes, warranty_years) / (bytes_per_day * DAYS))
    }
}

impl fmt::Display for Endurance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dwpd(drive_writes) => write!(f, "{drive_writes} DWPD"),
            Self::Tbw { terabytes, years } => write!(f, "{terabytes} TB/{years} y"),
        }
    }
}

impl FromStr for Endurance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("{text} is no endurance; {FORM}");
        match text.split_once('/') {
            None => positive(text).map(Self::Dwpd).map_err(wrong),
            Some((terabytes, years)) => {
                let number = terabytes.trim().strip_suffix("TB").ok_or_else(|| wrong(String::new()))?;
                Ok(Self::Tbw {
                    terabytes: positive(number).map_err(wrong)?,
                    years: positive(years).map_err(wrong)?,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endurances_that_people_write() {
        assert_eq!("0.3".parse(), Ok(Endurance::Dwpd(0.3)));
        assert_eq!("600TB/5".parse(), Ok(Endurance::Tbw { terabytes: 600.0, years: 5.0 }));
        for text in ["", "0", "-1", "x", "600/5", "600TB", "600TB/", "600TB/0", "TB/5"] {
            assert!(text.parse::<Endurance>().expect_err(text).contains("600TB/5"), "{text}");
        }
    }

    #[test]
    fn a_drive_lives_as_long_as_its_rated_writes_last() {
        let gib = 1u64 << 30;
        let one = Endurance::Dwpd(1.0);
        assert_eq!(one.years(gib, 5.0, gib as f64), Some(5.0));
        assert_eq!(one.years(gib, 5.0, gib as f64 / 2.0), Some(10.0));
        assert_eq!(one.years(gib, 5.0, 0.0), None);
        let rated = Endurance::Tbw { terabytes: 365.25, years: 2.0 };
        assert_eq!(rated.years(gib, 5.0, 1e12), Some(1.0));
        assert_eq!(rated.budget(gib).bytes, 0.5e12);
    }
}
