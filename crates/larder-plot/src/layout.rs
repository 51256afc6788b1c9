//! Layout: a chart becomes a scene.
//!
//! From top to bottom: title, subtitle, the panels; right of the panels or above them the legend, which all of them share. The
//! widths are those of the text as measured, so nothing overlaps whatever the names are.

use std::collections::BTreeMap;

use crate::bars;
use crate::chart::{self, Chart, Key, Part};
use crate::furniture::PLOT_WIDTH;
use crate::legend::Legend;
use crate::numbers;
use crate::panel;
use crate::scene::{Anchor, Item, Place, Scene, Shape, Text};
use crate::style::{self, FAINT_INK, INK, PAPER, Style};
use crate::text::{self, Weight};

/// Around everything.
const MARGIN: f64 = 24.0;
/// Between the panels and the legend, at least: half of a tick label hangs over into it.
const LEGEND_GAP: f64 = 44.0;
/// Between the panels and a legend above them.
const BELOW_LEGEND: f64 = 12.0;
const PANEL_GAP: f64 = 26.0;

/// Places everything that a chart shows.
pub(crate) fn scene(chart: &Chart) -> Scene {
    let keys = chart.keys();
    let styles = style::styles(chart);
    let fitted: Vec<Fitted> = chart.parts.iter().map(Fitted::new).collect();
    let sides = fitted.iter().map(Fitted::sides);
    let (gutter, overhang) = sides.fold((0.0, 0.0), |a: (f64, f64), b| (a.0.max(b.0), a.1.max(b.1)));
    let (left, legend_gap) = (MARGIN + gutter, LEGEND_GAP.max(overhang + 8.0));

    let (mut items, body_top) = header(chart, gutter + PLOT_WIDTH);
    let gaps = PANEL_GAP * fitted.len().saturating_sub(1) as f64;
    let body_height = fitted.iter().map(Fitted::height).sum::<f64>() + gaps;
    let legend = Legend::new(&keys, (PLOT_WIDTH, body_height));
    let legend_left = if legend.above { left } else { left + PLOT_WIDTH + legend_gap };
    items.push(legend.draw((legend_left, body_top), &styles));

    let panels_top = if legend.above { body_top + legend.height() + BELOW_LEGEND } else { body_top };
    let mut top = panels_top;
    for part in &fitted {
        items.push(part.draw((left, top), &styles));
        top += part.height() + PANEL_GAP;
    }
    let bottom = panels_top + body_height;

    let right =
        if legend.above { left + PLOT_WIDTH + legend_gap } else { legend_left + legend.width() + MARGIN };
    let (width, height) = (right.ceil(), (bottom.max(body_top + legend.height()) + MARGIN).ceil());
    let paper = Shape::rect("paper", (0.0, 0.0), (width, height), PAPER);
    items.insert(0, Item::Shape(paper));
    Scene { width, height, summary: summary(chart), items }
}

/// A part of a chart, made to measure.
enum Fitted<'a> {
    Panel(panel::Fitted<'a>),
    Bars(bars::Fitted<'a>),
}

impl<'a> Fitted<'a> {
    fn new(part: &'a Part) -> Self {
        match part {
            Part::Panel(panel) => Fitted::Panel(panel::Fitted::new(panel)),
            Part::Bars(bars) => Fitted::Bars(bars::Fitted::new(bars)),
        }
    }

    /// The room it needs left and right of the plot area.
    fn sides(&self) -> (f64, f64) {
        match self {
            Fitted::Panel(panel) => panel.sides(),
            Fitted::Bars(bars) => bars.sides(),
        }
    }

    fn height(&self) -> f64 {
        match self {
            Fitted::Panel(panel) => panel.height(),
            Fitted::Bars(bars) => bars.height(),
        }
    }

    fn draw(&self, at: Place, styles: &BTreeMap<Key<'_>, Style>) -> Item {
        match self {
            Fitted::Panel(panel) => panel.draw(at, styles),
            Fitted::Bars(bars) => bars.draw(at),
        }
    }
}

/// Title and subtitle, and where they end.
fn header(chart: &Chart, width: f64) -> (Vec<Item>, f64) {
    let mut items = Vec::new();
    let mut bottom = MARGIN;
    let mut add = |class, content: &str, size: f64, weight, colour, lines| {
        for text in text::wrap(content, width, size, weight, lines) {
            bottom += size * 1.35;
            let at = (MARGIN, bottom - 0.35 * size);
            items.push(Item::Text(Text { class, at, anchor: Anchor::Start, size, weight, colour, text }));
        }
    };
    add("title", &chart.title, 20.0, Weight::Bold, INK, 2);
    add("subtitle", &chart.subtitle, 13.0, Weight::Regular, FAINT_INK, 3);
    if chart.parts.is_empty() {
        add("note", "No points to draw", 13.0, Weight::Regular, FAINT_INK, 1);
    }
    (items, bottom + 16.0)
}

/// The chart in words, for those who cannot see it.
fn summary(chart: &Chart) -> String {
    let captions: Vec<String> = chart.parts.iter().map(Part::caption).collect();
    let names: Vec<String> = chart.keys().into_iter().map(chart::label).collect();
    let of = if names.is_empty() { String::new() } else { format!(" for {}", names.join("; ")) };
    let kind = if chart.panels().any(|panel| !panel.series.is_empty()) { "Curves of " } else { "" };
    let maps: String = chart.panels().filter_map(numbers::fullest).map(|told| format!(" {told}")).collect();
    format!("{}. {kind}{}{of}.{maps}", chart.title, captions.join("; "))
}

#[cfg(test)]
mod tests;
