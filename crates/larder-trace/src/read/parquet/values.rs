//! The values of a page, in each of the encodings that writers use for numbers and names.

use super::bits::{Delta, Hybrid};
use super::footer::Physical;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    /// None.
    Null,
    /// A number; one of 32 bits has the upper half that its sign gives it.
    Int(i64),
    Bytes(&'a [u8]),
}

/// Where a value of a known length stands.
#[derive(Clone, Copy, Debug)]
struct Span {
    at: usize,
    len: usize,
}

impl Span {
    fn of(self, data: &[u8]) -> Option<&[u8]> {
        data.get(self.at..self.at.checked_add(self.len)?)
    }
}

/// The value at byte `at` as it is (PLAIN), and the byte after it.
fn plain(physical: Physical, data: &[u8], at: usize) -> Option<(Span, usize)> {
    let (at, len) = match physical {
        Physical::Int32 => (at, 4),
        Physical::Int64 => (at, 8),
        Physical::Bytes => {
            let len = data.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)?;
            (at + 4, len as usize)
        }
        Physical::Other => return None,
    };
    let span = Span { at, len };
    span.of(data).map(|_| (span, at + len))
}

/// The cell that a span of `data` holds.
fn cell(physical: Physical, data: &[u8], span: Span) -> Option<Cell<'_>> {
    let bytes = span.of(data)?;
    Some(match physical {
        Physical::Int32 => Cell::Int(i32::from_le_bytes(*bytes.first_chunk()?).into()),
        Physical::Int64 => Cell::Int(i64::from_le_bytes(*bytes.first_chunk()?)),
        Physical::Bytes => Cell::Bytes(bytes),
        Physical::Other => return None,
    })
}

/// The dictionary of a column: the bytes of its page, and where each value stands.
#[derive(Default)]
pub(super) struct Dictionary {
    data: Vec<u8>,
    spans: Vec<Span>,
}

impl Dictionary {
    /// The `values` values in `data`.
    pub(super) fn new(physical: Physical, data: Vec<u8>, values: usize) -> Option<Self> {
        // A value takes four bytes at least: a wrong count takes no more memory than a right one.
        let mut spans = Vec::with_capacity(values.min(data.len() / 4));
        let mut at = 0;
        for _ in 0..values {
            let (span, next) = plain(physical, &data, at)?;
            spans.push(span);
            at = next;
        }
        Some(Self { data, spans })
    }
}

/// The values of a page that are still to come.
pub(super) enum Values {
    Plain {
        at: usize,
    },
    Entries(Hybrid),
    /// Differences of numbers.
    Delta(Delta),
    /// The lengths of all values, then their bytes.
    Lengths {
        lengths: Delta,
        at: usize,
    },
    /// As `Lengths`, but a value begins with that many bytes of the one before it.
    Prefixes {
        prefixes: Delta,
        lengths: Delta,
        at: usize,
        last: Vec<u8>,
    },
}

/// Longest value that is put together from the one before it: far longer than a name, and too short to fill the memory.
const JOINED_BYTES_MAX: usize = 4096;

impl Values {
    /// The values in `data` from byte `at` on. None if the encoding is unknown, does not fit the type, or begins damaged.
    pub(super) fn new(encoding: i64, physical: Physical, data: &[u8], at: usize) -> Option<Self> {
        let text = physical == Physical::Bytes;
        match encoding {
            0 => Some(Self::Plain { at }),
            2 | 8 => {
                let width = u32::from(*data.get(at)?);
                Hybrid::new(width, at + 1).map(Self::Entries)
            }
            5 if !text => Delta::new(data, at).map(Self::Delta),
            6 if text => Self::lengths(data, at),
            7 if text => {
                let prefixes = Delta::new(data, at)?;
                let at = prefixes.clone().end(data)?;
                let Self::Lengths { lengths, at } = Self::lengths(data, at)? else { return None };
                Some(Self::Prefixes { prefixes, lengths, at, last: Vec::new() })
            }
            _ => None,
        }
    }

    fn lengths(data: &[u8], at: usize) -> Option<Self> {
        let lengths = Delta::new(data, at)?;
        let at = lengths.clone().end(data)?;
        Some(Self::Lengths { lengths, at })
    }

    /// The next value; none where the page is damaged or at its end.
    pub(super) fn next<'a>(
        &'a mut self,
        physical: Physical,
        data: &'a [u8],
        dictionary: &'a Dictionary,
    ) -> Option<Cell<'a>> {
        match self {
            Self::Plain { at } => {
                let (span, next) = plain(physical, data, *at)?;
                *at = next;
                cell(physical, data, span)
            }
            Self::Entries(numbers) => {
                let number = usize::try_from(numbers.next(data)?).ok()?;
                cell(physical, &dictionary.data, *dictionary.spans.get(number)?)
            }
            Self::Delta(delta) => {
                let value = delta.next(data)?;
                // Differences of 32 bits wrap around at 32 bits.
                Some(Cell::Int(if physical == Physical::Int32 { (value as i32).into() } else { value }))
            }
            Self::Lengths { lengths, at } => next_of(lengths, at, data).map(Cell::Bytes),
            Self::Prefixes { prefixes, lengths, at, last } => {
                let shared = prefixes.next(data)?;
                join(last, shared, next_of(lengths, at, data)?)?;
                Some(Cell::Bytes(last))
            }
        }
    }
}

/// Make of `last` its first `shared` bytes and `rest`.
fn join(last: &mut Vec<u8>, shared: i64, rest: &[u8]) -> Option<()> {
    let shared = usize::try_from(shared).ok()?;
    if shared > last.len() || shared + rest.len() > JOINED_BYTES_MAX {
        return None;
    }
    last.truncate(shared);
    last.extend_from_slice(rest);
    Some(())
}

/// The bytes at `at`, as long as the next of `lengths`.
fn next_of<'a>(lengths: &mut Delta, at: &mut usize, data: &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(lengths.next(data)?).ok()?;
    let bytes = Span { at: *at, len }.of(data)?;
    *at += len;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_is_as_large_as_its_data_whatever_is_told() {
        let data = [7u8, 0, 0, 0, 9, 0, 0, 0];
        assert_eq!(Dictionary::new(Physical::Int32, data.to_vec(), 2).unwrap().spans.len(), 2);
        for (physical, values) in [(Physical::Int32, 3), (Physical::Int32, usize::MAX), (Physical::Bytes, 1)]
        {
            assert!(Dictionary::new(physical, data.to_vec(), values).is_none(), "{physical:?} {values}");
        }
    }
}
