//! The pictures of an analysis.

mod accesses;
mod curves;

use larder_plot::{Axis, Chart, Unit};

use super::choice::{Picture, PlotChoice};
use super::found::Found;
use crate::picture;
use crate::problem::Problem;

/// Draw what is asked for to its files. `name` tells the trace from others.
pub fn save(choice: &PlotChoice, name: Option<&str>, found: &Found) -> Result<(), Problem> {
    choice
        .files(name)
        .into_iter()
        .try_for_each(|(what, file)| chart(what, found).save(file).map_err(|error| picture::problem(&error)))
}

/// Draw a picture.
pub fn chart(what: Picture, found: &Found) -> Chart {
    let chart = match what {
        Picture::Misses => curves::misses(found),
        Picture::Policies => curves::policies(found),
        Picture::Writes => curves::writes(found),
        Picture::Backing => curves::backing(found),
        Picture::Classes => accesses::classes(found),
        Picture::Distances => accesses::distances(found),
        Picture::Map => accesses::map(found),
        Picture::Hot => accesses::hot(found),
    };
    let note = found.sampling_note().map_or_else(String::new, |note| format!(". {note}"));
    chart.subtitle(format!("{}{note}", found.head().subtitle()))
}

/// The axis of cache sizes.
fn cache_size() -> Axis {
    Axis::new("Cache size", Unit::Bytes).log()
}

/// The axis along the trace: time where it has times, else requests.
fn along(found: &Found) -> Axis {
    match found.has_times() {
        true => Axis::new("Time", Unit::Seconds),
        false => Axis::new("Requests", Unit::count("")),
    }
}
