//! Curves: lines and steps with their markers.

use super::Placed;
use crate::scene::{Group, Item, Place, Shape};
use crate::series::Series;
use crate::style::Style;

/// Curves of more points get markers on some of them only.
const MARKERS_MAX: usize = 24;

impl Placed<'_> {
    pub(super) fn curve(&self, series: &Series, style: &Style) -> Item {
        let points: Vec<_> = self.panel.shown(series).collect();
        let name = series.label();
        let mut items = Vec::new();
        let places = self.course(series);
        if places.len() > 1 {
            items.push(Item::Shape(style.line(&places)));
        }
        let every = points.len().div_ceil(MARKERS_MAX).max(1);
        items.extend(points.iter().step_by(every).map(|&(x, y)| {
            let tip = format!("{name}: {}, {}", self.panel.x.unit.cell(x), self.panel.y.unit.cell(y));
            let marker: Shape = style.marker(self.place((x, y)));
            Item::Group(Group { class: "point", tip, items: vec![Item::Shape(marker)] })
        }));
        Item::Group(Group { class: "series", tip: name, items })
    }

    /// The places that the curve runs through.
    pub(super) fn course(&self, series: &Series) -> Vec<Place> {
        let points: Vec<Place> = self.panel.shown(series).map(|point| self.place(point)).collect();
        if series.stepped { stepped(&points, self.end(series)) } else { points }
    }

    /// Where the last step of a series ends, if that is beyond its last point.
    fn end(&self, series: &Series) -> Option<f64> {
        let until = series.until.filter(|&x| self.panel.x.takes(x))?;
        let last = self.panel.shown(series).last()?;
        (until > last.0).then(|| self.place((until, last.1)).0)
    }
}

/// A line that keeps the y of a place until the x of the next one, and of the last one until `end`.
pub(super) fn stepped(points: &[Place], end: Option<f64>) -> Vec<Place> {
    let Some(&first) = points.first() else { return Vec::new() };
    let mut places = vec![first];
    for pair in points.windows(2) {
        places.push((pair[1].0, pair[0].1));
        places.push(pair[1]);
    }
    let last = points[points.len() - 1];
    places.extend(end.map(|x| (x, last.1)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_keep_their_height() {
        let places = stepped(&[(0.0, 5.0), (2.0, 3.0), (4.0, 1.0)], Some(9.0));
        assert_eq!(places, [(0.0, 5.0), (2.0, 5.0), (2.0, 3.0), (4.0, 3.0), (4.0, 1.0), (9.0, 1.0)]);
        assert_eq!(stepped(&[(0.0, 5.0)], None), [(0.0, 5.0)]);
        assert_eq!(stepped(&[], Some(1.0)), []);
    }
}
