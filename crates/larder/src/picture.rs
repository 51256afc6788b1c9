//! Names of picture files, and what is wrong with them.

use std::path::Path;

use crate::problem::Problem;

/// Before a long computation: can a picture be drawn to such a file?
pub fn check(path: &Path) -> Result<(), Problem> {
    larder_plot::Format::of(path).map(drop).map_err(|error| problem(&error))
}

/// Why a picture cannot be drawn, and what to do.
pub fn problem(error: &larder_plot::Error) -> Problem {
    let because = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
    Problem::new(
        format_args!("{error}{because}"),
        "name a file that can be written, ending in .svg, .png or .html",
    )
}
