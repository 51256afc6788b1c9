//! Pictures of curves: SVG, PNG and HTML.
//!
//! A [`Chart`] is a title and one or more [`Panel`]s above one another; a panel is two [`Axis`]es and named [`Series`] of points.
//! [`Chart::svg`], [`Chart::png`] and [`Chart::html`] give the picture; [`Chart::save`] picks one of them by the name of the file.
//!
//! ```
//! use larder_plot::{Axis, Chart, Panel, Series, Unit};
//!
//! let gib = f64::from(1 << 30);
//! let panel = Panel::new(Axis::new("Cache size", Unit::Bytes).log(), Axis::new("Hit ratio", Unit::Ratio))
//!     .series(Series::new("LRU", [(1.0 * gib, 0.31), (4.0 * gib, 0.52)]))
//!     .series(Series::new("LARC", [(1.0 * gib, 0.38), (4.0 * gib, 0.55)]));
//! let chart = Chart::new("Hit ratio over cache size").panel(panel);
//! assert!(chart.svg().starts_with("<svg"));
//! ```
//!
//! # How a picture comes about
//!
//! `layout` turns a chart into a `scene`: shapes and texts at fixed places. The SVG writer and the PNG painter both draw that scene,
//! so the two look alike. Nothing of the machine enters: the font that measures and paints the text is part of the program, and the
//! same chart gives the same bytes.
//!
//! Series are told apart three times over, by colour, marker and dash, so that a colour-blind reader and a grey printer can tell
//! them apart too. A series keeps its style in all panels of a chart.

mod axis;
mod chart;
mod html;
mod layout;
mod legend;
mod panel;
mod raster;
mod save;
mod scene;
mod style;
mod svg;
mod text;
mod ticks;
mod unit;

pub use axis::{Axis, Scale};
pub use chart::{Chart, Panel, Point, Series};
pub use save::{Error, Format};
pub use unit::Unit;
