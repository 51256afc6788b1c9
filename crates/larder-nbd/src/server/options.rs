//! The data of options, parsed.

use super::{INFO_REQUESTS_MAX, META_QUERIES_MAX};
use crate::consts::{STRING_BYTES_MAX, info, rep};
use crate::wire::Reader;

/// Why an option is refused: an error reply and its message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// An error of [`rep`].
    pub reply: u32,
    /// For humans.
    pub message: String,
}

impl Refusal {
    pub fn new(reply: u32, message: impl Into<String>) -> Self {
        Self { reply, message: message.into() }
    }

    pub fn invalid(message: &str) -> Self {
        Self::new(rep::ERR_INVALID, message)
    }
}

/// The data of `INFO` and `GO`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InfoRequest<'a> {
    pub export: &'a str,
    pub name: bool,
    pub description: bool,
}

impl<'a> InfoRequest<'a> {
    pub fn parse(data: &'a [u8]) -> Result<Self, Refusal> {
        let mut reader = Reader::new(data);
        let export = string(&mut reader)?;
        let count = reader.u16().ok_or_else(too_short)?;
        if count > INFO_REQUESTS_MAX {
            return Err(Refusal::new(rep::ERR_TOO_BIG, "too many information requests"));
        }
        let mut request = Self { export, name: false, description: false };
        for _ in 0..count {
            match reader.u16().ok_or_else(too_short)? {
                info::NAME => request.name = true,
                info::DESCRIPTION => request.description = true,
                // The rest is sent in any case, or is unknown and to be ignored.
                _ => {}
            }
        }
        finished(&reader).map(|()| request)
    }
}

/// The data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MetaRequest<'a> {
    pub export: &'a str,
    pub queries: Vec<&'a [u8]>,
}

impl<'a> MetaRequest<'a> {
    pub fn parse(data: &'a [u8]) -> Result<Self, Refusal> {
        let mut reader = Reader::new(data);
        let export = string(&mut reader)?;
        let count = reader.u32().ok_or_else(too_short)?;
        if count > META_QUERIES_MAX {
            return Err(Refusal::new(rep::ERR_TOO_BIG, "too many metadata context queries"));
        }
        let queries = (0..count).map(|_| bytes(&mut reader)).collect::<Result<_, _>>()?;
        finished(&reader).map(|()| Self { export, queries })
    }
}

/// A name as text.
pub(super) fn text(name: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(name).map_err(|_| Refusal::invalid("the name is not UTF-8"))
}

fn string<'a>(reader: &mut Reader<'a>) -> Result<&'a str, Refusal> {
    bytes(reader).and_then(text)
}

/// Bytes behind their 32-bit length.
fn bytes<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Refusal> {
    let length = reader.u32().and_then(|length| usize::try_from(length).ok()).ok_or_else(too_short)?;
    if length > STRING_BYTES_MAX {
        return Err(Refusal::new(rep::ERR_TOO_BIG, "a string is longer than 4096 bytes"));
    }
    reader.bytes(length).ok_or_else(too_short)
}

fn finished(reader: &Reader<'_>) -> Result<(), Refusal> {
    match reader.remaining() {
        0 => Ok(()),
        _ => Err(Refusal::invalid("the option's data is longer than its fields")),
    }
}

fn too_short() -> Refusal {
    Refusal::invalid("the option's data is shorter than its fields")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_data_byte_for_byte() {
        let data = [0, 0, 0, 1, b'v', 0, 2, 0, 3, 0, 1];
        let request = InfoRequest::parse(&data).unwrap();
        assert_eq!(request, InfoRequest { export: "v", name: true, description: false });
    }

    #[test]
    fn every_shortening_and_lengthening_is_refused() {
        let data = [0, 0, 0, 1, b'v', 0, 2, 0, 3, 0, 1];
        for end in 0..data.len() {
            assert_eq!(InfoRequest::parse(&data[..end]).unwrap_err().reply, rep::ERR_INVALID);
        }
        let longer = [&data[..], &[0]].concat();
        assert_eq!(InfoRequest::parse(&longer).unwrap_err().reply, rep::ERR_INVALID);
    }

    #[test]
    fn lengths_are_not_believed() {
        let huge = [0xff; 16];
        assert_eq!(InfoRequest::parse(&huge).unwrap_err().reply, rep::ERR_TOO_BIG);
        assert_eq!(MetaRequest::parse(&huge).unwrap_err().reply, rep::ERR_TOO_BIG);
        let many = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(MetaRequest::parse(&many).unwrap_err().reply, rep::ERR_TOO_BIG);
    }

    #[test]
    fn meta_data_byte_for_byte() {
        let data = [0, 0, 0, 1, b'v', 0, 0, 0, 1, 0, 0, 0, 2, b'b', b':'];
        let request = MetaRequest::parse(&data).unwrap();
        assert_eq!(request, MetaRequest { export: "v", queries: vec![b"b:"] });
    }

    #[test]
    fn a_name_that_is_no_text_is_refused() {
        assert_eq!(InfoRequest::parse(&[0, 0, 0, 1, 0xff, 0, 0]).unwrap_err().reply, rep::ERR_INVALID);
    }
}
