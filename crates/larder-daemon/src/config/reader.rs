//! Reading a TOML document key by key, keeping for every value the place where it stands.
//!
//! Values are read from the parsed tree and not through serde, because a complaint then knows its table, its key and the
//! keys that would have been understood.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Complaint;
use crate::units::{self, UnitError};

/// A text and the name of the file that it came from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub file: &'a Path,
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// A complaint about a place in the text.
    pub fn complain(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Complaint {
        Complaint::new(self.file, self.text, span, message.into(), help.into())
    }

    /// Parse the text into a tree.
    pub fn parse(&self) -> Result<Spanned<DeTable<'a>>, Complaint> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            self.complain(
                at,
                format!("not valid TOML: {}", error.message()),
                "see https://toml.io for the syntax",
            )
        })
    }

    /// The line number, from 1, of a byte of the text.
    pub fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// A table of the document.
pub(super) struct Table<'a> {
    source: Source<'a>,
    /// How the table is written in the file: `[cache]`; empty for the document itself.
    header: &'static str,
    span: Range<usize>,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// The document itself.
    pub fn root(source: Source<'a>, root: &'a Spanned<DeTable<'a>>) -> Self {
        Self { source, header: "", span: root.span(), entries: root.get_ref() }
    }

    /// Where its keys stand, for messages.
    fn place(&self) -> String {
        if self.header.is_empty() { "at the top level".into() } else { format!("in {}", self.header) }
    }

    /// A complaint about the table as a whole.
    pub fn complain(&self, message: impl Into<String>, help: impl Into<String>) -> Complaint {
        self.source.complain(self.span.clone(), message, help)
    }

    /// Refuse every key but these.
    pub fn allow_only(&self, known: &[&str]) -> Result<(), Complaint> {
        let Some((key, _)) = self
            .entries
            .iter()
            .filter(|(key, _)| !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|(key, _)| key.span().start)
        else {
            return Ok(());
        };
        let message = format!(
            "unknown key \"{}\" {}; known keys are {}",
            key.get_ref(),
            self.place(),
            known.join(", ")
        );
        Err(self.source.complain(key.span(), message, "correct the key or remove the line"))
    }

    /// A table inside this one; `None` where it is absent.
    pub fn table(&self, key: &str, header: &'static str) -> Result<Option<Table<'a>>, Complaint> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        self.as_table(value, header).map(Some)
    }

    /// The tables of an array of tables; none where it is absent.
    pub fn tables(&self, key: &str, header: &'static str) -> Result<Vec<Table<'a>>, Complaint> {
        let Some(value) = self.entries.get(key) else { return Ok(Vec::new()) };
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| self.as_table(item, header)).collect(),
            _ => Err(self.source.complain(
                value.span(),
                format!("\"{key}\" must be written as {header}"),
                format!("write {header} on a line of its own, with its keys below"),
            )),
        }
    }

    fn as_table(
        &self,
        value: &'a Spanned<DeValue<'a>>,
        header: &'static str,
    ) -> Result<Table<'a>, Complaint> {
        match value.get_ref() {
            DeValue::Table(entries) => Ok(Table { source: self.source, header, span: value.span(), entries }),
            other => Err(self.source.complain(
                value.span(),
                format!("{header} must be a table, not {}", article(other)),
                format!("write {header} on a line of its own, with its keys below"),
            )),
        }
    }

    /// A key's value, whatever it is; `None` where it is absent.
    fn value(&self, key: &'static str) -> Option<Field<'a, &'a DeValue<'a>>> {
        let value = self.entries.get(key)?;
        Some(Field { source: self.source, key, span: value.span(), value: value.get_ref() })
    }

    /// A string.
    pub fn string(&self, key: &'static str) -> Result<Option<Field<'a, &'a str>>, Complaint> {
        self.value(key)
            .map(|field| match field.value {
                DeValue::String(text) => Ok(field.with(text.as_ref())),
                other => Err(field.complain(
                    format!("\"{key}\" must be a string, not {}", article(other)),
                    "put it in quotes",
                )),
            })
            .transpose()
    }

    /// A string that must be there.
    pub fn required(&self, key: &'static str, example: &str) -> Result<Field<'a, &'a str>, Complaint> {
        self.string(key)?.ok_or_else(|| self.missing(key, example))
    }

    /// A complaint that a key is absent.
    pub fn missing(&self, key: &str, example: &str) -> Complaint {
        self.complain(
            format!("\"{key}\" is missing {}", self.place()),
            format!("add a line such as: {key} = {example}"),
        )
    }

    /// A size in bytes: a string with a unit, or an integer.
    pub fn size(&self, key: &'static str) -> Result<Option<Field<'a, u64>>, Complaint> {
        self.unit(key, "a size", units::parse_size)
    }

    /// A duration: a string with a unit.
    pub fn duration(&self, key: &'static str) -> Result<Option<Field<'a, Duration>>, Complaint> {
        self.unit(key, "a duration", units::parse_duration)
    }

    /// A string or an integer that `parse` understands.
    fn unit<U>(
        &self,
        key: &'static str,
        what: &str,
        parse: fn(&str) -> Result<U, UnitError>,
    ) -> Result<Option<Field<'a, U>>, Complaint> {
        let Some(field) = self.value(key) else { return Ok(None) };
        let outcome = match field.value {
            DeValue::String(text) => parse(text),
            DeValue::Integer(_) => parse(&field.raw()),
            other => {
                let message = format!("\"{key}\" must be {what}, not {}", article(other));
                return Err(field.complain(message, "write a string with a unit"));
            }
        };
        let complain = |error: UnitError| {
            field.complain(format!("\"{key}\": {}", error.problem), format!("write {}", error.form))
        };
        outcome.map(|value| Some(field.with(value))).map_err(complain)
    }

    /// An integer from `min` to `max`.
    pub fn integer(
        &self,
        key: &'static str,
        min: u32,
        max: u32,
    ) -> Result<Option<Field<'a, u32>>, Complaint> {
        self.value(key)
            .map(|field| {
                let parsed = match field.value {
                    DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
                    _ => None,
                };
                let known = parsed.filter(|number| (min..=max).contains(number));
                known.map(|number| field.with(number)).ok_or_else(|| {
                    field.complain(
                        format!("\"{key}\" must be a whole number from {min} to {max}"),
                        format!("write a number such as {}", min.max(1)),
                    )
                })
            })
            .transpose()
    }

    /// Yes or no.
    pub fn boolean(&self, key: &'static str) -> Result<Option<bool>, Complaint> {
        self.value(key)
            .map(|field| match field.value {
                DeValue::Boolean(value) => Ok(*value),
                other => Err(field.complain(
                    format!("\"{key}\" must be true or false, not {}", article(other)),
                    "write true or false, without quotes",
                )),
            })
            .transpose()
    }

    /// A number above zero.
    pub fn above_zero(&self, key: &'static str) -> Result<Option<Field<'a, f64>>, Complaint> {
        self.value(key)
            .map(|field| {
                let parsed = number(field.value).filter(|number| *number > 0.0 && number.is_finite());
                parsed.map(|number| field.with(number)).ok_or_else(|| {
                    field.complain(
                        format!("\"{key}\" must be a number above 0"),
                        "write a number such as 1 or 2.5",
                    )
                })
            })
            .transpose()
    }

    /// A ratio from 0 to 1.
    pub fn ratio(&self, key: &'static str) -> Result<Option<f64>, Complaint> {
        self.value(key)
            .map(|field| {
                number(field.value).filter(|ratio| (0.0..=1.0).contains(ratio)).ok_or_else(|| {
                    field.complain(
                        format!("\"{key}\" must be a ratio from 0.0 to 1.0"),
                        "write a number such as 0.5",
                    )
                })
            })
            .transpose()
    }
}

/// A number, written with a point or without.
fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

/// A value with its place.
pub(super) struct Field<'a, T> {
    source: Source<'a>,
    key: &'static str,
    span: Range<usize>,
    pub value: T,
}

impl<'a, T> Field<'a, T> {
    /// A complaint about this value.
    pub fn complain(&self, message: impl Into<String>, help: impl Into<String>) -> Complaint {
        self.source.complain(self.span.clone(), message, help)
    }

    /// The same place with another value.
    pub fn with<U>(&self, value: U) -> Field<'a, U> {
        Field { source: self.source, key: self.key, span: self.span.clone(), value }
    }

    /// The value as it is written in the file.
    fn raw(&self) -> String {
        self.source.text.get(self.span.clone()).unwrap_or_default().to_owned()
    }

    /// The entry of `known` whose name this string is.
    pub fn choose<C: Copy>(&self, known: &[(&str, C)]) -> Result<C, Complaint>
    where
        T: AsRef<str>,
    {
        let named = known.iter().find(|(name, _)| *name == self.value.as_ref());
        named.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            let message = format!("unknown {} \"{}\"", self.key, self.value.as_ref());
            self.complain(message, format!("use one of {}", names.join(", ")))
        })
    }
}

/// Values that may stand in the file only once, with the byte where each was first seen: lines are counted for complaints only.
pub(super) struct Unique {
    what: &'static str,
    places: BTreeMap<String, usize>,
}

impl Unique {
    /// An empty set of things called `what` in messages.
    pub fn new(what: &'static str) -> Self {
        Self { what, places: BTreeMap::new() }
    }

    /// Add `identity` unless it is there already.
    pub fn insert<T>(&mut self, identity: String, field: &Field<'_, T>, help: &str) -> Result<(), Complaint> {
        if let Some(&first) = self.places.get(&identity) {
            let first = field.source.line(first);
            let message = format!("{} \"{identity}\" is used twice, first on line {first}", self.what);
            return Err(field.complain(message, help));
        }
        self.places.insert(identity, field.span.start);
        Ok(())
    }
}

/// The kind of a value, with its article, for messages.
fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
