//! Bars: amounts of named things, the names at the left and the bars to the right of them.

use crate::axis::Axis;
use crate::chart::inside_a_line;
use crate::furniture::{self, PLOT_WIDTH, SMALL, label};
use crate::scene::{Anchor, Group, Item, Place, Shape, Stroke};
use crate::style::{BAR, FRAME};
use crate::text::{self, Weight};
use crate::ticks::Ruler;

/// Longer names are cut; their tooltips and the tables have them in full.
const NAME_MAX: f64 = 240.0;
const ROW: f64 = 22.0;
const THICKNESS: f64 = 14.0;
/// Between a bar and the texts beside it.
const GAP: f64 = 7.0;
/// What the heading takes above the bars, and the labels of the axis below them.
const HEAD: f64 = 22.0;
const DEPTH: f64 = 26.0;

/// Amounts of named things, each a bar that begins at zero. The bars stand in the order in which they were added.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    pub(crate) things: String,
    pub(crate) amount: Axis,
    pub(crate) bars: Vec<(String, f64)>,
}

impl Bars {
    /// Bars of `things` ("Region"), as long as the axis says. The axis is linear, whatever its scale.
    pub fn new(things: impl Into<String>, amount: Axis) -> Self {
        Bars { things: things.into(), amount: amount.linear(), bars: Vec::new() }
    }

    /// Adds a bar below those there are. An amount that is not finite or below zero has no bar, but stands in the picture.
    pub fn bar(mut self, name: impl Into<String>, amount: f64) -> Self {
        self.bars.push((name.into(), amount));
        self
    }

    /// What the bars show: "Accesses by region".
    pub(crate) fn caption(&self) -> String {
        format!("{} by {}", self.amount.title(), inside_a_line(&self.things))
    }

    /// An amount as it stands in the picture.
    pub(crate) fn written(&self, amount: f64) -> String {
        if self.amount.takes(amount) { self.amount.unit.cell(amount) } else { "–".to_owned() }
    }
}

/// Bars whose axis has been made to measure, not yet in their place.
pub(crate) struct Fitted<'a> {
    bars: &'a Bars,
    names: Vec<String>,
    amounts: Vec<String>,
    ruler: Ruler,
    /// Of the axis: the rest of the plot area is for the amount beside the longest bar.
    width: f64,
}

impl<'a> Fitted<'a> {
    pub fn new(bars: &'a Bars) -> Self {
        let names =
            bars.bars.iter().map(|(name, _)| text::fit(name, NAME_MAX, SMALL, Weight::Regular)).collect();
        let amounts: Vec<String> = bars.bars.iter().map(|&(_, amount)| bars.written(amount)).collect();
        let width = PLOT_WIDTH - furniture::widest(amounts.iter().map(String::as_str)) - 2.0 * GAP;
        let extent = bars.amount.extent(bars.bars.iter().map(|bar| bar.1.max(0.0)).chain([0.0]));
        let ruler = Ruler::fit(&bars.amount, extent, |ruler| furniture::x_labels_fit(ruler, width));
        Fitted { bars, names, amounts, ruler, width }
    }

    /// The room that names and labels need left and right of the plot area.
    pub fn sides(&self) -> (f64, f64) {
        let names = furniture::widest(self.names.iter().map(String::as_str)) + GAP;
        let (left, right) = furniture::overhang(&self.ruler, self.width);
        (names.max(left), right - (PLOT_WIDTH - self.width))
    }

    /// From the upper edge of the heading to the lower edge of the labels of the axis.
    pub fn height(&self) -> f64 {
        HEAD + self.plot_height() + DEPTH
    }

    fn plot_height(&self) -> f64 {
        ROW * self.names.len().max(1) as f64
    }

    /// The bars with their upper edge at `top` and their plot area right of `left`.
    pub fn draw(&self, (left, top): Place) -> Item {
        let (top, height) = (top + HEAD, self.plot_height());
        let bottom = top + height;
        let mut items = vec![furniture::heading(&self.bars.amount, (left, top - 10.0), PLOT_WIDTH)];
        items.extend(furniture::x_ticks(&self.ruler, (left, bottom), (self.width, height)));
        let zero = left + self.ruler.place(0.0) * self.width;
        items.extend((0..self.names.len()).map(|at| self.row(at, (left, top + ROW * at as f64), zero)));
        let frame = [(zero, top), (zero, bottom)];
        items.push(Item::Shape(Shape::line("frame", &frame, Stroke::solid(FRAME, 1.0))));
        if self.names.is_empty() {
            let at = (left + self.width / 2.0, top + 0.7 * ROW);
            items.push(label("note", at, Anchor::Middle, SMALL, "No bars to draw".to_owned()));
        }
        Item::Group(Group { class: "bars", tip: self.bars.caption(), items })
    }

    /// One bar with its name and its amount.
    fn row(&self, at: usize, (left, top): Place, zero: f64) -> Item {
        let (name, amount) = &self.bars.bars[at];
        let drawn = if self.bars.amount.takes(*amount) { amount.max(0.0) } else { 0.0 };
        let end = left + self.ruler.place(drawn) * self.width;
        let margin = (ROW - THICKNESS) / 2.0;
        let bar = Shape::rect("bar", (zero, top + margin), (end - zero, THICKNESS), BAR);
        let baseline = top + ROW / 2.0 + 0.35 * SMALL;
        let text = |class, x, anchor, text: &str| label(class, (x, baseline), anchor, SMALL, text.to_owned());
        let items = vec![
            Item::Shape(bar),
            text("name", left - GAP, Anchor::End, &self.names[at]),
            text("amount", end + GAP, Anchor::Start, &self.amounts[at]),
        ];
        Item::Group(Group { class: "row", tip: format!("{name}: {}", self.amounts[at]), items })
    }
}
