//! What a trace may be read from: files, pipes, compressed data whole and cut, and what is none of these.

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::thread;

use flate2::{Compression, write::GzEncoder};
use larder_trace::{Format, Request, Trace, TraceError, open};

const LINE: &str = "128166372003061629,hm,0,Read,383496192,32768,413\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory is not full");
    encoder.finish().expect("memory is not full")
}

/// The requests of a trace without mistakes.
fn count(trace: Trace) -> usize {
    let requests: Result<Vec<Request>, _> = trace.collect();
    requests.expect("every line is good").len()
}

#[test]
fn a_folder_and_a_missing_file_cannot_be_opened() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for path in [folder.path().to_owned(), folder.path().join("missing")] {
        for format in [None, Some(Format::Msr), Some(Format::Parquet)] {
            let error = match Trace::open(&path, format) {
                Err(error) => error,
                Ok(mut trace) => trace.find_map(Result::err).expect("a folder is no trace"),
            };
            assert!(matches!(error, TraceError::Open { .. }), "{error}");
            assert!(
                error.to_string().starts_with(&format!("{}: cannot be opened: ", path.display())),
                "{error}"
            );
        }
    }
}

#[test]
fn a_pipe_is_read_as_a_file_is() {
    for content in [LINE.repeat(20_000).into_bytes(), gzip(&LINE.repeat(20_000))] {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let writing = thread::spawn(move || writer.write_all(&content));
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let trace = open(path).expect("the pipe is recognised");
        // The other end sees that nobody reads any more.
        drop(reader);
        assert_eq!(trace.format(), Format::Msr);
        assert_eq!(count(trace), 20_000);
        writing.join().expect("no panic").expect("all is read");
    }
}

#[test]
fn members_one_after_the_other_are_one_trace() {
    // The second begins within a line.
    let (first, second) = LINE.split_at(10);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), [gzip(&LINE.repeat(3)), gzip(first), gzip(second), gzip("")].concat())
        .expect("the disk is not full");
    let trace = open(file.path()).expect("it is recognised");
    assert_eq!(count(trace), 4);
}

/// Every line before the cut comes; then the error tells the last of them, and it comes once.
#[test]
fn a_cut_off_file_is_told_with_the_line_before_the_cut() {
    let whole = gzip(&LINE.repeat(50_000));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), &whole[..whole.len() / 2]).expect("the disk is not full");
    for format in [None, Some(Format::Msr)] {
        let mut trace = Trace::open(file.path(), format).expect("the beginning is good");
        let good = trace.by_ref().take_while(Result::is_ok).count();
        assert!((10_000..40_000).contains(&good), "{good}");
        assert!(trace.next().is_none());
        let mut again = Trace::open(file.path(), format).expect("the beginning is good");
        let error = again.find_map(Result::err).expect("it is cut off").to_string();
        let expected = format!("{}: cannot be read after line {good}: ", file.path().display());
        assert!(error.starts_with(&expected), "{error} instead of {expected}");
    }
}

#[test]
fn a_file_of_nothing_or_one_line_or_without_a_line_end() {
    for (content, requests) in [("", 0), (LINE, 1), (LINE.trim_end(), 1), ("\u{feff}\r\n", 0)] {
        for bytes in [content.as_bytes().to_vec(), gzip(content)] {
            let trace = Trace::new("t", io::Cursor::new(bytes), None).expect("it can be opened");
            assert_eq!(count(trace), requests, "{content:?}");
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_quoted_so_that_a_terminal_can_show_them() {
    let text = format!("{LINE}128166372003061629,h\0m\x1b[2J,0,Re\0ad,1,1,1\n");
    let mut trace = Trace::new("t", io::Cursor::new(text), None).expect("the first line tells the format");
    let error = trace.find_map(Result::err).expect("the second is wrong").to_string();
    assert_eq!(error, r#"t: line 2: Type is "Re\0ad", expected Read or Write (format msr)"#);
}
