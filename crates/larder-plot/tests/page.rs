//! Pages are sound, need nothing else, and say what they were given.

use std::collections::BTreeSet;

use larder_plot::{Axis, Bars, Chart, Page, Panel, Section, Series, Table, Unit};
use proptest::prelude::*;
use roxmltree::{Document, Node};

const SVG: &str = "http://www.w3.org/2000/svg";
const NASTY: &str = "</section><script src=\"http://x/\">&amp;'\u{0}";

fn chart(name: &str) -> Chart {
    let panel = Panel::new(Axis::new("Cache size", Unit::Bytes), Axis::new("Hit ratio", Unit::Ratio))
        .series(Series::new(name, [(4096.0, 0.25), (8192.0, 0.5)]).steps().filled());
    Chart::new("Hit ratio")
        .panel(panel)
        .bars(Bars::new("Region", Axis::new("Reads", Unit::count(""))).bar(name, 7.0))
}

fn section(text: &str) -> Section {
    Section::new(text)
        .paragraph(text)
        .list([text])
        .table(Table::new(text, ["Size", text]).row([text, "1 GiB"]))
        .chart(&chart(text))
}

fn page(text: &str) -> Page {
    let nested = section(text).section(section(text).section(section(text).section(section(text))));
    Page::new(text)
        .paragraph(text)
        .list([text])
        .table(Table::new("", [text]))
        .section(nested)
        .section(section(text))
}

/// What stands between `<main>` and `</main>`: it is XML too.
fn content(html: &str) -> String {
    let body = html.split_once("<main>").expect("a body").1.split_once("</main>").expect("its end").0;
    format!("<main>{body}</main>")
}

fn words<'a>(document: &'a Document<'a>, tag: &str) -> Vec<&'a str> {
    let nodes = document.descendants().filter(|node| node.has_tag_name(tag));
    nodes.map(|node| node.text().unwrap_or_default()).collect()
}

#[test]
fn a_page_says_all_it_was_given() {
    let html = page("LRU").html();
    let content = content(&html);
    let document = Document::parse(&content).expect("well-formed");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("<title>LRU</title>"));
    for (tag, count) in [("h1", 1), ("h2", 2), ("h3", 1), ("h4", 2), ("p", 6), ("figure", 5), ("details", 5)]
    {
        assert_eq!(words(&document, tag).len(), count, "{tag}");
    }
    assert_eq!(words(&document, "table").len(), 6 + 2 * 5, "those given, and two for each chart");
    assert!(words(&document, "td").contains(&"50.00 %") && words(&document, "td").contains(&"7"));
}

#[test]
fn every_link_leads_to_one_place() {
    let content = content(&page("LRU").html());
    let document = Document::parse(&content).expect("well-formed");
    let ids: Vec<_> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let different: BTreeSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (5, 5), "{ids:?}");
    let links = document.descendants().filter(|node| node.has_tag_name("a"));
    let targets: Vec<_> = links.map(|link| link.attribute("href").expect("a target")).collect();
    assert_eq!(targets, ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>());
    let labels = document.descendants().filter(|node| node.has_tag_name("section"));
    assert!(labels.map(|section| section.attribute("aria-labelledby")).eq(ids.iter().map(|&id| Some(id))));
}

#[test]
fn one_section_needs_no_contents() {
    assert!(!Page::new("t").section(section("LRU")).html().contains("<nav"));
    assert!(page("LRU").html().contains("<nav"));
}

#[test]
fn every_picture_is_told_in_words() {
    let content = content(&page("LRU").html());
    let document = Document::parse(&content).expect("well-formed");
    let pictures: Vec<Node> = document.descendants().filter(|node| node.has_tag_name((SVG, "svg"))).collect();
    assert_eq!(pictures.len(), 5);
    for picture in pictures {
        assert_eq!(picture.attribute("role"), Some("img"));
        assert!(picture.attribute("aria-label").is_some_and(|label| label.starts_with("Hit ratio. ")));
    }
}

#[test]
fn a_page_refers_to_nothing_outside() {
    let html = page(NASTY).html();
    assert!(!html.contains("<script") && !html.contains('\0'));
    let harmless = html.replace("&lt;script src=&quot;", "").replace("href=\"#", "");
    for reference in ["href", "url(", "@import", "<link", "<img", "<iframe", " src="] {
        assert!(!harmless.contains(reference), "{reference}");
    }
}

#[test]
fn a_page_is_saved_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    page("LRU").save(&path).expect("a good place");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), page("LRU").html());
    let error = page("LRU").save(folder.path().join("missing").join("a.html")).expect_err("no such folder");
    assert!(matches!(error, larder_plot::Error::Write { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever stands in a text, the page is well-formed and shows it.
    #[test]
    fn no_text_breaks_the_page(text in "(\\PC|[<>&\"']){1,40}") {
        let content = content(&page(&text).html());
        let document = Document::parse(&content).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(words(&document, "p").iter().all(|&shown| shown == text));
        prop_assert_eq!(words(&document, "h1"), [&*text]);
    }
}
