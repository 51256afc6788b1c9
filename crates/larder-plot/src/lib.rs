//! Pictures of curves, areas, maps and bars: SVG, PNG and HTML.
//!
//! A [`Chart`] is a title and one or more parts above one another. A [`Panel`] is two [`Axis`]es with named [`Series`] between them, as
//! lines, steps or areas ([`Series::steps`], [`Series::filled`], [`Panel::stacked`]), and maybe a map of shades under them ([`Heat`]);
//! [`Bars`] are amounts of named things. [`Chart::svg`], [`Chart::png`] and [`Chart::html`] give the picture; [`Chart::save`] picks one
//! of them by the name of the file. A [`Page`] is a report: several charts with text and tables in one HTML file.
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
//! them apart too. A series keeps its style in all panels of a chart. Areas and maps have shades whose lightness alone tells them
//! apart.

mod axis;
mod bars;
mod chart;
mod furniture;
mod heat;
mod html;
mod layout;
mod legend;
mod numbers;
mod page;
mod panel;
mod raster;
mod save;
mod scene;
mod series;
mod style;
mod svg;
mod text;
mod ticks;
mod unit;

pub use axis::{Axis, Scale};
pub use bars::Bars;
pub use chart::{Chart, Panel, Point};
pub use heat::Heat;
pub use page::{Page, Section, Table};
pub use save::{Error, Format};
pub use series::Series;
pub use unit::Unit;
