//! The report: a page with a section for each workload.

use larder_plot::{Axis, Chart, Page, Panel, Section, Series, Table, Unit};

use super::Planned;
use super::notes;
use super::offer::Offer;
use super::rows::{HEADINGS, but_last};

/// The page as HTML.
pub fn html(all: &[Planned]) -> String {
    let page = Page::new("Which SSD to buy as a cache").list(all.iter().filter_map(|planned| {
        let advice = planned.advice.as_ref()?;
        Some(format!("{}: {}", planned.name, advice.reason))
    }));
    all.iter().fold(page, |page, planned| page.section(section(planned))).html()
}

fn section(planned: &Planned) -> Section {
    let rows = planned.rows().into_iter().map(|row| row.map(|cell| cell.replace(' ', "\u{a0}")));
    let caption = "SSDs and what they bring";
    let headings = HEADINGS.map(|heading| heading.replace('\n', " "));
    let table = if planned.is_closed {
        rows.fold(Table::new(caption, headings), Table::row)
    } else {
        rows.map(but_last).fold(Table::new(caption, but_last(headings)), Table::row)
    };
    let section = Section::new(&planned.name).paragraph(planned.head()).table(table);
    let section = match notes::unlimited(&planned.offers) {
        Some(note) => section.paragraph(note),
        None => section,
    };
    section.chart(&chart(planned))
}

fn chart(planned: &Planned) -> Chart {
    Chart::new("Latency, SSD writes and life over size")
        .subtitle(format!("Each line is an endurance; the SSD is to live for {} years", planned.years))
        .panel(panel(planned, Axis::new("Mean latency", Unit::Seconds).covering(0.0, 0.0), |offer| {
            Some(offer.latency)
        }))
        .panel(panel(planned, Axis::new("SSD writes a day", Unit::Bytes).covering(0.0, 0.0), |offer| {
            Some(offer.ssd_write_bytes_per_day)
        }))
        .panel(panel(
            planned,
            Axis::new("Life", Unit::count("years")).covering(0.0, planned.years),
            |offer| offer.years,
        ))
}

fn panel(planned: &Planned, y: Axis, value: impl Fn(&Offer) -> Option<f64>) -> Panel {
    let panel = Panel::new(Axis::new("Size", Unit::Bytes).log(), y);
    let mut classes = Vec::new();
    planned.offers.iter().for_each(|offer| {
        if !classes.contains(&offer.endurance) {
            classes.push(offer.endurance)
        }
    });
    classes.into_iter().fold(panel, |panel, class| {
        let of_class = planned.offers.iter().filter(|offer| offer.endurance == class);
        let points = of_class.filter_map(|offer| Some((offer.bytes as f64, value(offer)?)));
        panel.series(Series::new(class.to_string(), points))
    })
}
