//! A page: text, tables and pictures in sections, as one HTML file.
//!
//! It loads nothing, runs nothing, and prints on A4.

mod write;

use crate::chart::Chart;

/// A report as a web page: a title, an introduction, and sections. With more than one section it begins with a table of contents.
///
/// ```
/// use larder_plot::{Axis, Chart, Page, Panel, Section, Series, Table, Unit};
///
/// let panel = Panel::new(Axis::new("Cache size", Unit::Bytes), Axis::new("Hit ratio", Unit::Ratio))
///     .series(Series::new("LRU", [(4096.0, 0.31), (8192.0, 0.52)]).steps());
/// let page = Page::new("Locality of web.csv")
///     .paragraph("12 M requests over 7 days.")
///     .section(
///         Section::new("Hit ratio")
///             .paragraph("A cache of 2 blocks would serve half of the requests.")
///             .table(Table::new("At some sizes", ["Cache size", "Hit ratio"]).row(["8 KiB", "52 %"]))
///             .chart(&Chart::new("Hit ratio over cache size").panel(panel)),
///     );
/// assert!(page.html().starts_with("<!DOCTYPE html>"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    title: String,
    lead: Vec<Block>,
    sections: Vec<Section>,
}

/// A part of a page under a heading. Sections may hold sections, whose headings are one level smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    heading: String,
    blocks: Vec<Block>,
    sections: Vec<Section>,
}

/// A table of text. Columns whose cells are numbers stand to the right.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub(crate) caption: String,
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Block {
    Paragraph(String),
    List(Vec<String>),
    Table(Table),
    Chart(Chart),
}

impl Page {
    /// A page without content yet.
    pub fn new(title: impl Into<String>) -> Self {
        Page { title: title.into(), lead: Vec::new(), sections: Vec::new() }
    }

    /// Adds a paragraph to the introduction.
    pub fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.lead.push(Block::Paragraph(text.into()));
        self
    }

    /// Adds a list to the introduction: what matters most, in a few sentences.
    pub fn list(mut self, items: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.lead.push(list(items));
        self
    }

    /// Adds a table to the introduction.
    pub fn table(mut self, table: Table) -> Self {
        self.lead.push(Block::Table(table));
        self
    }

    /// Adds a section after those there are.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
}

impl Section {
    /// A section without content yet.
    pub fn new(heading: impl Into<String>) -> Self {
        Section { heading: heading.into(), blocks: Vec::new(), sections: Vec::new() }
    }

    /// Adds a paragraph.
    pub fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Paragraph(text.into()));
        self
    }

    /// Adds a list.
    pub fn list(mut self, items: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.blocks.push(list(items));
        self
    }

    /// Adds a table.
    pub fn table(mut self, table: Table) -> Self {
        self.blocks.push(Block::Table(table));
        self
    }

    /// Adds a picture; its numbers can be unfolded below it.
    pub fn chart(mut self, chart: &Chart) -> Self {
        self.blocks.push(Block::Chart(chart.clone()));
        self
    }

    /// Adds a section below this one's own content.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
}

impl Table {
    /// A table without rows yet. The caption may be empty.
    pub fn new(caption: impl Into<String>, headings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let headings = headings.into_iter().map(Into::into).collect();
        Table { caption: caption.into(), headings, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty.
    pub fn row(mut self, cells: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }
}

fn list(items: impl IntoIterator<Item = impl Into<String>>) -> Block {
    Block::List(items.into_iter().map(Into::into).collect())
}
