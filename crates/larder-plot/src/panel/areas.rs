//! Areas: filled curves, one before the other or stacked on one another.

use std::collections::BTreeMap;

use super::curves::stepped;
use super::{Placed, ground};
use crate::chart::{Key, Panel};
use crate::furniture::PLOT_WIDTH;
use crate::scene::{Group, Item, Place, Shape, Stroke, polygon};
use crate::series::Series;
use crate::style::{FAINT_INK, Style};

/// Panels of more x get tooltips on some of them only.
const COLUMNS_MAX: usize = 240;

/// Everything that the y axis must show, but for a map: points, the heights of stacks, the ground.
pub(super) fn ys(panel: &Panel) -> impl Iterator<Item = f64> {
    let grounded = panel.series.iter().any(|series| panel.is_area(series));
    let (points, heights): (Vec<f64>, Vec<f64>) = if panel.stacked {
        (Vec::new(), Stack::new(panel).bounds.into_iter().next().unwrap_or_default())
    } else {
        (panel.all_shown().map(|point| point.1).collect(), Vec::new())
    };
    points.into_iter().chain(heights).chain(grounded.then_some(0.0))
}

/// Series on one another.
struct Stack {
    xs: Vec<f64>,
    /// The upper bound of each series at each x, the first series on top; then the ground.
    bounds: Vec<Vec<f64>>,
}

impl Stack {
    fn new(panel: &Panel) -> Self {
        let xs = panel.xs();
        let mut bounds = vec![vec![0.0; xs.len()]];
        for series in panel.series.iter().rev() {
            let below = &bounds[bounds.len() - 1];
            let own = panel.ys(series, &xs);
            bounds.push(below.iter().zip(own).map(|(below, own)| below + own.unwrap_or(0.0)).collect());
        }
        bounds.reverse();
        Stack { xs, bounds }
    }
}

impl Placed<'_> {
    /// The areas, and the outlines of those that may hide one another.
    pub(super) fn areas(&self, styles: &BTreeMap<Key<'_>, Style>) -> Vec<Item> {
        if self.panel.stacked {
            return self.stack(styles);
        }
        let filled: Vec<&Series> = self.panel.series.iter().filter(|series| series.filled).collect();
        let areas = filled.iter().filter_map(|series| self.filled(series, &styles[&series.key()]));
        let outlines = filled
            .iter()
            .flat_map(|series| styles[&series.key()].outline(&self.course(series)).map(Item::Shape));
        areas.chain(outlines).collect()
    }

    fn filled(&self, series: &Series, style: &Style) -> Option<Item> {
        let mut corners = self.course(series);
        let (first, last) = (*corners.first()?, *corners.last()?);
        let ground = self.place((0.0, ground(&self.panel.y))).1;
        corners.extend([(last.0, ground), (first.0, ground)]);
        Some(area(series.label(), style.area(polygon(&corners))?))
    }

    fn stack(&self, styles: &BTreeMap<Key<'_>, Style>) -> Vec<Item> {
        let stack = Stack::new(self.panel);
        if stack.xs.is_empty() {
            return Vec::new();
        }
        let edges: Vec<Vec<Place>> = stack.bounds.iter().map(|ys| self.edge(&stack.xs, ys)).collect();
        let band = |(series, edges): (&Series, &[Vec<Place>])| {
            let corners: Vec<Place> = edges[0].iter().chain(edges[1].iter().rev()).copied().collect();
            Some(area(series.label(), styles[&series.key()].area(polygon(&corners))?))
        };
        let mut items: Vec<Item> = self.panel.series.iter().zip(edges.windows(2)).filter_map(band).collect();
        // The lightest band lies on top: a line keeps it apart from the paper.
        items.push(Item::Shape(Shape::line("line", &edges[0], Stroke::solid(FAINT_INK, 0.8))));
        items
    }

    /// One bound of a stack.
    fn edge(&self, xs: &[f64], ys: &[f64]) -> Vec<Place> {
        let places: Vec<Place> = xs.iter().zip(ys).map(|(&x, &y)| self.place((x, y))).collect();
        let is_stepped = self.panel.series.iter().any(|series| series.stepped);
        if is_stepped { stepped(&places, self.stack_end(xs)) } else { places }
    }

    /// Where the last step of a stack ends, if that is beyond its last x.
    fn stack_end(&self, xs: &[f64]) -> Option<f64> {
        let ends = self.panel.series.iter().filter_map(|series| series.until);
        let end = ends.filter(|&x| self.panel.x.takes(x)).max_by(f64::total_cmp)?;
        (end > *xs.last()?).then(|| self.place((end, 0.0)).0)
    }

    /// An unseen column at each x of the areas, whose tooltip tells all that is there.
    pub(super) fn columns(&self) -> Vec<Item> {
        if !self.panel.series.iter().any(|series| self.panel.is_area(series)) {
            return Vec::new();
        }
        let xs = self.panel.xs();
        let ys: Vec<_> = self.panel.series.iter().map(|series| self.panel.ys(series, &xs)).collect();
        let every = xs.len().div_ceil(COLUMNS_MAX).max(1);
        let column = |at: usize| {
            let left = self.place((xs[at], 0.0)).0;
            let next = xs.get(at + every).map(|&x| self.place((x, 0.0)).0);
            let right = next.or_else(|| self.stack_end(&xs)).unwrap_or(left + 1.0);
            let size = ((right - left).min(PLOT_WIDTH), self.fitted.height);
            let tip = self.told(xs[at], ys.iter().map(|ys| ys[at]));
            let hit = Shape::hit((left, self.top), size);
            Item::Group(Group { class: "column", tip, items: vec![Item::Shape(hit)] })
        };
        (0..xs.len()).step_by(every).map(column).collect()
    }

    /// All that is at an x: "1 h: CR 12.00 %; CW 3.00 %".
    fn told(&self, x: f64, ys: impl Iterator<Item = Option<f64>>) -> String {
        let named = self.panel.series.iter().zip(ys);
        let parts = named
            .filter_map(|(series, y)| Some(format!("{} {}", series.label(), self.panel.y.unit.cell(y?))));
        format!("{}: {}", self.panel.x.unit.cell(x), parts.collect::<Vec<_>>().join("; "))
    }
}

fn area(tip: String, shape: Shape) -> Item {
    Item::Group(Group { class: "series", tip, items: vec![Item::Shape(shape)] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Unit};
    use proptest::prelude::*;

    proptest! {
        /// At each x, a bound is the sum of all that lies below it.
        #[test]
        fn bounds_are_sums(series in prop::collection::vec(prop::collection::btree_map(0u8..9, 0u16..999, 0..9), 1..5)) {
            let empty = Panel::new(Axis::new("x", Unit::Bytes), Axis::new("y", Unit::Ratio)).stacked();
            let panel = series.iter().fold(empty, |panel, points| {
                panel.series(Series::new("", points.iter().map(|(&x, &y)| (f64::from(x), f64::from(y)))))
            });
            let stack = Stack::new(&panel);
            prop_assert_eq!(stack.bounds.len(), series.len() + 1);
            for (at, &x) in stack.xs.iter().enumerate() {
                for (level, bound) in stack.bounds.iter().enumerate() {
                    let below = series[level..].iter().filter_map(|points| points.get(&(x as u8)));
                    prop_assert_eq!(bound[at], below.map(|&y| f64::from(y)).sum::<f64>());
                }
            }
            let highest = stack.bounds[0].iter().copied().fold(0.0, f64::max);
            prop_assert_eq!(ys(&panel).fold(0.0, f64::max), highest, "the axis covers the stack");
        }
    }
}
