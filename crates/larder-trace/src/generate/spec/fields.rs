//! The fields of a phase, `key=value` each, and what values may be.

use super::SpecProblem;
use crate::Distances;

/// The fields of one phase, taken one by one by their keys.
pub(super) struct Fields<'a> {
    fields: Vec<(&'a str, &'a str)>,
    /// Keys that were asked for: all that the pattern knows.
    known: Vec<&'static str>,
}

/// What a value is to be, and how it is read; `None` if it is something else.
type Parse<T> = (&'static str, fn(&str) -> Option<T>);

pub(super) const NUMBER: Parse<f64> = ("a number", |text| text.parse().ok());
pub(super) const COUNT: Parse<u64> = ("a whole number", |text| text.replace('_', "").parse().ok());
pub(super) const BYTES: Parse<u32> = ("a size such as 4096 or 64KiB, below 4 GiB", bytes);
pub(super) const TIME: Parse<u64> = ("a time such as 500us or 1ms (ns, us, ms, s)", time);
pub(super) const DISTANCES: Parse<Distances> = (
    "fixed(distance), uniform(low,high), exponential(mean), lognormal(median,sigma) or \
     histogram(distance:weight,...)",
    distances,
);

impl<'a> Fields<'a> {
    /// The fields in `text`, separated by commas.
    pub(super) fn new(text: &'a str) -> Result<Self, SpecProblem> {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for field in split(text, ',').map(str::trim).filter(|field| !field.is_empty()) {
            let Some((key, value)) = field.split_once('=') else {
                return Err(SpecProblem::Field { found: field.to_owned() });
            };
            let (key, value) = (key.trim(), value.trim());
            if fields.iter().any(|&(before, _)| before == key) {
                return Err(SpecProblem::Twice { key: key.to_owned() });
            }
            fields.push((key, value));
        }
        Ok(Self { fields, known: Vec::new() })
    }

    /// The value of a key, if it is there.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        (expected, parse): Parse<T>,
    ) -> Result<Option<T>, SpecProblem> {
        self.known.push(key);
        let Some(at) = self.fields.iter().position(|&(present, _)| present == key) else { return Ok(None) };
        let (_, found) = self.fields.remove(at);
        match parse(found) {
            Some(value) => Ok(Some(value)),
            None => Err(SpecProblem::Value { key, found: found.to_owned(), expected }),
        }
    }

    /// The value of a key that has to be there.
    pub(super) fn required<T>(&mut self, key: &'static str, parse: Parse<T>) -> Result<T, SpecProblem> {
        self.optional(key, parse)?.ok_or(SpecProblem::Missing { key })
    }

    /// All fields have been taken.
    pub(super) fn finish(self) -> Result<(), SpecProblem> {
        match self.fields.first() {
            None => Ok(()),
            Some((key, _)) => {
                Err(SpecProblem::Key { found: (*key).to_owned(), known: self.known.join(", ") })
            }
        }
    }
}

/// The parts of `text` between separators that stand outside of parentheses.
pub(super) fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        c == separator && depth == 0
    })
}

/// A number with the factor of its unit; none stands for `1`.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let factor = match units.iter().find(|(name, _)| *name == unit) {
        Some(&(_, factor)) => factor,
        None if unit.is_empty() => 1,
        None => return None,
    };
    number.replace('_', "").parse::<u64>().ok()?.checked_mul(factor)
}

fn bytes(text: &str) -> Option<u32> {
    with_unit(text, &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)])?.try_into().ok()
}

fn time(text: &str) -> Option<u64> {
    with_unit(text, &[("ns", 1), ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)])
}

fn distances(text: &str) -> Option<Distances> {
    let (name, rest) = text.split_once('(')?;
    let arguments: Vec<_> = rest.strip_suffix(')')?.split(',').map(str::trim).collect();
    let (count, number) = (COUNT.1, NUMBER.1);
    match (name.trim(), arguments.as_slice()) {
        ("fixed", [distance]) => Some(Distances::Fixed(count(distance)?)),
        ("uniform", [low, high]) => Some(Distances::Uniform { low: count(low)?, high: count(high)? }),
        ("exponential", [mean]) => Some(Distances::Exponential { mean: number(mean)? }),
        ("lognormal", [median, sigma]) => {
            Some(Distances::LogNormal { median: number(median)?, sigma: number(sigma)? })
        }
        ("histogram", bins) => {
            bins.iter().map(|bin| weighted(bin)).collect::<Option<_>>().map(Distances::Histogram)
        }
        _ => None,
    }
}

/// A bin of a histogram, `distance:weight`.
fn weighted(bin: &str) -> Option<(u64, f64)> {
    let (distance, weight) = bin.split_once(':')?;
    Some((COUNT.1(distance.trim())?, NUMBER.1(weight.trim())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_inside_of_parentheses_do_not_separate() {
        let parts: Vec<_> = split("a,b(c,(d),e),,f)g,h", ',').collect();
        assert_eq!(parts, ["a", "b(c,(d),e)", "", "f)g", "h"]);
    }

    #[test]
    fn sizes_and_times_take_units() {
        let sizes = [("4096", 4096), ("4KiB", 4096), ("2 MiB", 2 << 20), ("3GiB", 3 << 30), ("1_000B", 1000)];
        sizes.iter().for_each(|&(text, size)| assert_eq!(bytes(text), Some(size), "{text}"));
        for text in ["4GiB", "", "KiB", "4kb", "-1", "1.5KiB", "18446744073709551616", "99999999999999999GiB"]
        {
            assert_eq!(bytes(text), None, "{text}");
        }
        let times = [("7", 7), ("7ns", 7), ("7us", 7000), ("7ms", 7_000_000), ("2s", 2_000_000_000)];
        times.iter().for_each(|&(text, nanos)| assert_eq!(time(text), Some(nanos), "{text}"));
        assert_eq!((time("1h"), time("99999999999s")), (None, None));
    }

    #[test]
    fn distributions_of_distances() {
        let parsed = [
            ("fixed(3)", Distances::Fixed(3)),
            ("uniform(1, 1_000)", Distances::Uniform { low: 1, high: 1000 }),
            ("exponential(2.5)", Distances::Exponential { mean: 2.5 }),
            ("lognormal(500,2)", Distances::LogNormal { median: 500.0, sigma: 2.0 }),
            ("histogram(10:0.5,200:3)", Distances::Histogram(vec![(10, 0.5), (200, 3.0)])),
        ];
        parsed.into_iter().for_each(|(text, law)| assert_eq!(distances(text), Some(law), "{text}"));
        for text in
            ["", "fixed", "fixed(", "fixed(1,2)", "fixed(-1)", "uniform(1)", "histogram(1)", "zipf(1)"]
        {
            assert_eq!(distances(text), None, "{text}");
        }
    }

    #[test]
    fn fields_are_taken_once_and_none_may_be_left() {
        let mut fields = Fields::new("a=1, b = 2,c=x").unwrap();
        assert_eq!(fields.required("a", COUNT), Ok(1));
        assert_eq!(fields.required("a", COUNT), Err(SpecProblem::Missing { key: "a" }));
        assert_eq!(fields.optional("d", COUNT), Ok(None));
        assert_eq!(fields.optional("b", NUMBER), Ok(Some(2.0)));
        let value = fields.optional("c", COUNT).unwrap_err();
        assert_eq!(value.to_string(), r#"c is "x", expected a whole number"#);
        let mut left = Fields::new("e=1").unwrap();
        assert_eq!(left.optional("d", COUNT), Ok(None));
        assert_eq!(left.finish(), Err(SpecProblem::Key { found: "e".into(), known: "d".into() }));
        assert_eq!(Fields::new("a=1,a=2").err(), Some(SpecProblem::Twice { key: "a".into() }));
        assert_eq!(Fields::new("a").err(), Some(SpecProblem::Field { found: "a".into() }));
    }
}
