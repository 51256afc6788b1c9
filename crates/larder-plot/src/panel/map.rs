//! Maps: cells in shades, and the scale that tells what the shades stand for.

use super::Placed;
use crate::axis::Axis;
use crate::furniture::{self, HEADING, PLOT_WIDTH, SMALL, label};
use crate::heat::{Cell, Heat};
use crate::scene::{Anchor, Colour, Group, Item, Mosaic};
use crate::style::ramp;
use crate::text::{self, Weight};
use crate::ticks::Ruler;

/// What the scale takes above the plot area, over the heading's line.
pub(super) const SCALE_HEIGHT: f64 = 20.0;
/// The scale stands at the right: heading and scale share a line.
pub(super) const HEADING_WIDTH: f64 = PLOT_WIDTH - SCALE.0 - 60.0;

/// The scale's strip of shades.
const SCALE: (f64, f64) = (220.0, 9.0);
/// Different shades. More are not told apart, and make the picture larger.
const SHADES: usize = 28;

/// The shade of an amount between the smallest and the largest.
fn shade(amount: f64, (lo, hi): (f64, f64)) -> Colour {
    let share = if hi > lo { (amount / lo).ln() / (hi / lo).ln() } else { 0.5 };
    nth_shade(((share * SHADES as f64) as usize).min(SHADES - 1))
}

fn nth_shade(at: usize) -> Colour {
    ramp::shade(at as f64 / (SHADES - 1) as f64)
}

/// The axis along the scale, and its ruler.
fn scale(heat: &Heat) -> (Axis, Ruler) {
    let axis = Axis::new(heat.label.clone(), heat.unit.clone()).log();
    let ruler = Ruler::tight(&axis, heat.extent(), |ruler| furniture::x_labels_fit(ruler, SCALE.0));
    (axis, ruler)
}

/// How far the labels of the scale hang over the right end of the panel.
pub(super) fn overhang(heat: &Heat) -> f64 {
    furniture::overhang(&scale(heat).1, SCALE.0).1
}

impl Placed<'_> {
    /// The map and its scale, if there is one.
    pub(super) fn map(&self) -> Vec<Item> {
        let Some(heat) = self.panel.map() else { return Vec::new() };
        let Some(extent) = heat.extent() else { return Vec::new() };
        let ((left, bottom), (right, top)) =
            (self.place((heat.x.0, heat.y.0)), self.place((heat.x.1, heat.y.1)));
        let mut rows = vec![vec![None; heat.columns()]; heat.rows.len()];
        for Cell { column, row, amount } in heat.cells() {
            rows[heat.rows.len() - 1 - row][column] = Some(shade(amount, extent));
        }
        let (at, size) = ((left, top), (right - left, bottom - top));
        let map = Item::Mosaic(Mosaic { class: "cells", at, size, rows });
        let mut items =
            vec![Item::Group(Group { class: "map", tip: self.panel.caption(), items: vec![map] })];
        items.extend(self.scale(heat, extent));
        items
    }

    /// The shades with amounts below them, and what is counted left of them.
    fn scale(&self, heat: &Heat, (lo, hi): (f64, f64)) -> Vec<Item> {
        let (width, height) = SCALE;
        let (axis, ruler) = scale(heat);
        let (left, top) = (self.right() - width, self.top - 34.0);
        let shades = if hi > lo { (0..SHADES).map(nth_shade).collect() } else { vec![shade(lo, (lo, hi))] };
        let rows = vec![shades.into_iter().map(Some).collect()];
        let mut items =
            vec![Item::Mosaic(Mosaic { class: "scale", at: (left, top), size: (width, height), rows })];
        items.extend(ruler.ticks.iter().map(|tick| {
            let at = (left + ruler.place(tick.value) * width, self.top - 10.0);
            label("tick", at, Anchor::Middle, SMALL, tick.label.clone())
        }));
        let title = text::fit(&axis.title(), PLOT_WIDTH - width - 20.0, HEADING, Weight::Regular);
        items.push(label("scale-title", (left - 10.0, top + height), Anchor::End, HEADING, title));
        items
    }
}
