//! What the tests of the readers have in common: a text read in a given format.

use std::io::Cursor;

use crate::{Format, Request, RequestKind, Trace};

pub(crate) fn trace(format: Format, text: impl Into<Vec<u8>>) -> Trace {
    Trace::new("t", Cursor::new(text.into()), Some(format)).expect("the beginning can be read")
}

/// All requests of a good text.
pub(crate) fn requests(format: Format, text: impl Into<Vec<u8>>) -> Vec<Request> {
    trace(format, text).collect::<Result<_, _>>().expect("the text is good")
}

/// The one request of a good text: volume as it is called, kind, time in ns, offset and length.
pub(crate) fn request(format: Format, text: &str) -> (String, RequestKind, u64, u64, u32) {
    let mut trace = trace(format, text);
    let Request { time_ns, volume, kind, offset, len } =
        trace.next().expect("a request").expect("a good one");
    assert!(trace.next().is_none(), "more than one request");
    (trace.volumes()[volume as usize].to_string(), kind, time_ns, offset, len)
}

/// The error of a text, without the name of the file: `line 2: offset is "x", expected ...`. Reading ends
/// there.
pub(crate) fn error(format: Format, text: impl Into<Vec<u8>>) -> String {
    let mut trace = trace(format, text);
    let error = trace.find_map(Result::err).expect("an error").to_string();
    assert!(trace.next().is_none(), "reading goes on after an error");
    error.strip_prefix("t: ").expect("the name of the file").to_owned()
}

/// `good` is one good line of a format. Each of `cases`, put in its place, is an error that begins as told.
pub(crate) fn check_errors(format: Format, good: &str, cases: &[(&str, &str)]) {
    assert_eq!(requests(format, format!("{good}\n{good}\r\n\r\n{good}")).len(), 3, "{good:?}");
    for (line, expected) in cases {
        let found = error(format, format!("{good}\n{line}\n{good}\n"));
        let expected = format!("line 2: {expected}");
        assert!(found.starts_with(&expected), "{line:?}: {found:?} does not begin with {expected:?}");
    }
}
