//! Layout: a chart becomes a scene.
//!
//! From top to bottom: title, subtitle, the panels; right of the panels the legend, which all of them share. The widths are those of
//! the text as measured, so nothing overlaps whatever the names are.

use crate::chart::{self, Chart, Panel};
use crate::legend::Legend;
use crate::panel::{Fitted, PLOT_WIDTH};
use crate::scene::{Anchor, Item, Scene, Shape, Text};
use crate::style::{self, FAINT_INK, INK, PAPER};
use crate::text::{self, Weight};

/// Around everything.
const MARGIN: f64 = 24.0;
/// Between the panels and the legend: half of a tick label hangs over into it.
const LEGEND_GAP: f64 = 44.0;
const PANEL_GAP: f64 = 26.0;

/// Places everything that a chart shows.
pub(crate) fn scene(chart: &Chart) -> Scene {
    let keys = chart.keys();
    let styles = style::styles(&keys);
    let fitted: Vec<Fitted> = chart.panels.iter().map(Fitted::new).collect();
    let gutter = fitted.iter().map(Fitted::gutter).fold(0.0, f64::max);
    let left = MARGIN + gutter;

    let (mut items, body_top) = header(chart, gutter + PLOT_WIDTH);
    let mut bottom = body_top;
    for panel in &fitted {
        let top = if bottom > body_top { bottom + PANEL_GAP } else { bottom };
        let (item, lower_edge) = panel.draw((left, top), &styles);
        items.push(item);
        bottom = lower_edge;
    }

    let legend = Legend::new(&keys, bottom - body_top);
    let legend_left = left + PLOT_WIDTH + LEGEND_GAP;
    items.push(legend.draw((legend_left, body_top), &styles));

    let width = (legend_left + legend.width() + MARGIN).ceil();
    let height = (bottom.max(body_top + legend.height()) + MARGIN).ceil();
    let paper = Shape::rect("paper", (0.0, 0.0), (width, height), PAPER);
    items.insert(0, Item::Shape(paper));
    Scene { width, height, summary: summary(chart), items }
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
    if chart.panels.is_empty() {
        add("note", "No points to draw", 13.0, Weight::Regular, FAINT_INK, 1);
    }
    (items, bottom + 16.0)
}

/// The chart in words, for those who cannot see it.
fn summary(chart: &Chart) -> String {
    let panels: Vec<String> = chart.panels.iter().map(Panel::caption).collect();
    let names: Vec<String> = chart.keys().into_iter().map(chart::label).collect();
    format!("{}. Curves of {} for {}.", chart.title, panels.join("; "), names.join("; "))
}

#[cfg(test)]
mod tests;
