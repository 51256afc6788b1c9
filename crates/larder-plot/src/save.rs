//! Saving a chart as the file name says.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::chart::Chart;

/// The kinds of file a chart can be saved as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Scalable Vector Graphics.
    Svg,
    /// An image of pixels.
    Png,
    /// A web page: the picture and its numbers as tables.
    Html,
}

/// What can go wrong in making or saving a picture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file name does not tell the kind of picture.
    #[error("{}: {}; a picture ends in .svg, .png or .html", path.display(), Found(extension.as_deref()))]
    Extension {
        /// The file name.
        path: PathBuf,
        /// The extension that stands there, without its dot.
        extension: Option<String>,
    },
    /// So many series that the picture cannot be painted.
    #[error(
        "a PNG of {width} × {height} pixels is too large; save it as .svg or .html, or draw fewer series"
    )]
    TooLarge {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The PNG encoder failed.
    #[error("cannot encode the PNG")]
    Encode(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// What stands in place of a good extension.
struct Found<'a>(Option<&'a str>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("no extension"),
            Some(extension) => write!(f, "unknown extension .{extension}"),
        }
    }
}

impl Format {
    /// The format that a file name asks for by its extension, in capitals or not. Ask before a long computation whose result is to
    /// be drawn.
    ///
    /// # Errors
    ///
    /// [`Error::Extension`] for any other extension, and for none.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
        match extension.as_deref().unwrap_or("").to_ascii_lowercase().as_str() {
            "svg" => Ok(Format::Svg),
            "png" => Ok(Format::Png),
            "html" => Ok(Format::Html),
            _ => Err(Error::Extension { path: path.to_owned(), extension }),
        }
    }
}

impl Chart {
    /// Writes the chart to a file, as SVG, PNG or HTML by its extension. An existing file is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Extension`] before anything is drawn, [`Error::Write`] when the file cannot be written, and those of
    /// [`Chart::png`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let bytes = match Format::of(path)? {
            Format::Svg => self.svg().into_bytes(),
            Format::Png => self.png()?,
            Format::Html => self.html().into_bytes(),
        };
        write(path, &bytes)
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_tells_the_format() {
        for (name, format) in [("a.svg", Format::Svg), ("b/c.PNG", Format::Png), (".x.Html", Format::Html)] {
            assert_eq!(Format::of(Path::new(name)).expect("known"), format);
        }
    }

    #[test]
    fn other_extensions_are_told_the_three() {
        for (name, message) in [
            ("out.pdf", "out.pdf: unknown extension .pdf; a picture ends in .svg, .png or .html"),
            ("out", "out: no extension; a picture ends in .svg, .png or .html"),
            (".svg", ".svg: no extension; a picture ends in .svg, .png or .html"),
        ] {
            assert_eq!(Format::of(Path::new(name)).expect_err("unknown").to_string(), message);
        }
    }

    #[test]
    fn each_format_is_saved_as_itself() {
        let chart = Chart::new("t");
        let folder = tempfile::tempdir().expect("a folder");
        for (name, bytes) in [
            ("a.svg", chart.svg().into_bytes()),
            ("a.png", chart.png().expect("a small picture")),
            ("a.html", chart.html().into_bytes()),
        ] {
            let path = folder.path().join(name);
            chart.save(&path).expect("a good name");
            assert_eq!(fs::read(&path).expect("the file"), bytes, "{name}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("missing").join("a.svg");
        let error = Chart::new("t").save(&path).expect_err("no such folder");
        assert!(matches!(&error, Error::Write { path: named, .. } if *named == path), "{error}");
    }
}
