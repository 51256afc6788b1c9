//! How much may be written to a disk by its maker: `600TBW`, `1DWPD`, over so many years.

use std::fmt;
use std::str::FromStr;

use larder_alloc::control::WriteBudget;

const DAYS_PER_YEAR: f64 = 365.25;

/// The warranty of most disks for servers.
const YEARS_DEFAULT: f64 = 5.0;

/// What may be written.
const FORM: &str =
    "\"600TBW\" (terabytes) or \"1DWPD\" (drive writes per day), over 5 years, or \"600TBW/3y\"";

/// An endurance, over the years of its warranty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Endurance {
    /// How much.
    pub rating: Rating,
    /// The years of the warranty.
    pub years: f64,
}

/// How much may be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rating {
    /// Terabytes (10^12 bytes) in all.
    Terabytes(f64),
    /// The capacity so many times each day.
    DriveWrites(f64),
}

impl Endurance {
    /// Bytes that may be written until a disk of this capacity is worn out.
    pub fn rated_bytes(&self, capacity_bytes: u64) -> f64 {
        match self.rating {
            Rating::Terabytes(terabytes) => terabytes * 1e12,
            Rating::DriveWrites(each_day) => each_day * capacity_bytes as f64 * DAYS_PER_YEAR * self.years,
        }
    }

    /// What may be written in a day, such that the disk lasts through its warranty.
    pub fn budget(&self, capacity_bytes: u64) -> WriteBudget {
        match self.rating {
            Rating::Terabytes(terabytes) => WriteBudget::tbw(terabytes, self.years),
            Rating::DriveWrites(each_day) => WriteBudget::dwpd(each_day, capacity_bytes),
        }
    }
}

impl fmt::Display for Endurance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rating {
            Rating::Terabytes(terabytes) => write!(f, "{terabytes}TBW/{}y", self.years),
            Rating::DriveWrites(each_day) => write!(f, "{each_day}DWPD/{}y", self.years),
        }
    }
}

impl FromStr for Endurance {
    /// What would have been understood.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rating, years) = match text.split_once('/') {
            None => (text, YEARS_DEFAULT),
            Some((rating, years)) => (rating, number(years.trim().strip_suffix('y').ok_or(FORM)?)?),
        };
        let rating = rating.trim();
        let terabytes = rating.strip_suffix("TBW").or(rating.strip_suffix("TB"));
        let rating = match (terabytes, rating.strip_suffix("DWPD")) {
            (Some(terabytes), _) => Rating::Terabytes(number(terabytes)?),
            (None, Some(each_day)) => Rating::DriveWrites(number(each_day)?),
            (None, None) => return Err(FORM),
        };
        Ok(Self { rating, years })
    }
}

/// A number above 0.
fn number(text: &str) -> Result<f64, &'static str> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0).ok_or(FORM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endurances_as_data_sheets_have_them() {
        for (text, rating, years, written) in [
            ("600TBW", Rating::Terabytes(600.0), 5.0, "600TBW/5y"),
            ("1.5 TB / 3y", Rating::Terabytes(1.5), 3.0, "1.5TBW/3y"),
            ("0.3DWPD", Rating::DriveWrites(0.3), 5.0, "0.3DWPD/5y"),
            ("1 DWPD/4.5y", Rating::DriveWrites(1.0), 4.5, "1DWPD/4.5y"),
        ] {
            let endurance: Endurance = text.parse().expect(text);
            assert_eq!(endurance, Endurance { rating, years }, "{text}");
            assert_eq!(
                (endurance.to_string().as_str(), endurance.to_string().parse()),
                (written, Ok(endurance))
            );
        }
        for text in
            ["", "600", "0TBW", "-1DWPD", "infTBW", "xTBW", "600TBW/", "600TBW/5", "600TBW/0y", "TBW/5y"]
        {
            assert_eq!(text.parse::<Endurance>(), Err(FORM), "{text}");
        }
    }

    #[test]
    fn bytes_and_days() {
        let endurance: Endurance = "365.25TBW/2y".parse().expect("one");
        assert_eq!((endurance.rated_bytes(7), endurance.budget(7).bytes), (365.25e12, 0.5e12));
        let endurance: Endurance = "2DWPD/4y".parse().expect("one");
        assert_eq!((endurance.rated_bytes(1000), endurance.budget(1000).bytes), (2000.0 * 1461.0, 2000.0));
    }
}
