//! Drawing: a head, the tenants as a table, the keys; and the same table as text.

use std::time::Duration;

use larder_daemon::status::CacheState;
use larder_daemon::units::{ExactDuration, HumanDuration, HumanSize};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row as Cells, Table};

use super::rows::{Row, SortKey, View};
use crate::budget;
use crate::number::{compact, percent, time};

const KEYS: &str = "sort: n s o h i l w d   scroll: ↑ ↓   p pause   q end";

/// The columns: heading, what they are sorted by, width; the last one takes the rest.
const COLUMNS: [(&str, Option<SortKey>, u16); 10] = [
    ("tenant", Some(SortKey::Name), 16),
    ("quota", Some(SortKey::Quota), 10),
    ("occupied", Some(SortKey::Occupied), 10),
    ("hit ratio", Some(SortKey::Hit), 10),
    ("IOPS", Some(SortKey::Iops), 9),
    ("latency", Some(SortKey::Latency), 9),
    ("SSD write/s", Some(SortKey::Writes), 11),
    ("dirty", Some(SortKey::Dirty), 10),
    ("policy", None, 10),
    ("last decision", None, 20),
];

/// Draw everything.
pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let head = head(view);
    let head_lines = u16::try_from(head.lines.len()).unwrap_or(u16::MAX);
    let areas = Layout::vertical([Constraint::Length(head_lines), Constraint::Min(2), Constraint::Length(1)]);
    let [top, table, foot] = areas.areas(frame.area());
    frame.render_widget(Paragraph::new(head), top);
    draw_table(frame, view, table);
    let foot_line = match (&view.trouble, view.paused) {
        (Some(trouble), _) => Line::styled(trouble.clone(), Style::new().fg(Color::Red)),
        (None, true) => Line::styled("paused: p goes on", Style::new().add_modifier(Modifier::REVERSED)),
        (None, false) => Line::raw(KEYS),
    };
    frame.render_widget(foot_line, foot);
}

fn head(view: &View) -> Text<'static> {
    let status = &view.now.status;
    let cache = &status.cache;
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let blocks = |blocks: u32| HumanSize(u64::from(blocks) * u64::from(cache.block_bytes));
    let daemon = format!(
        "larder {}, up {}; {} tenants; allocator {}, epoch {} (every {})",
        status.version,
        HumanDuration(duration(status.uptime_seconds)),
        status.tenants.len(),
        status.allocator,
        status.epoch,
        ExactDuration(duration(status.epoch_seconds)),
    );
    let state = match cache.state {
        CacheState::Ok => Style::new(),
        CacheState::Degraded | CacheState::Failed => Style::new().fg(Color::Red),
    };
    let cache_line = format!(
        "cache {}: {}, {} of {} free",
        cache.path,
        cache.state.as_str(),
        blocks(cache.free_blocks),
        HumanSize(cache.size_bytes)
    );
    let budget = cache.write_budget.as_ref().map(|budget| Line::raw(budget::line(budget, &status.tenants)));
    let lines = [Line::raw(daemon), Line::styled(cache_line, state)];
    Text::from_iter(lines.into_iter().chain(budget).chain([Line::raw("")]))
}

fn draw_table(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let heading = |(title, key, _): &(&str, Option<SortKey>, u16)| {
        let sorted = *key == Some(view.sort);
        let arrow = match (sorted, view.reversed) {
            (false, _) => "",
            (true, false) => "↓",
            (true, true) => "↑",
        };
        let style = if sorted { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        aligned(&format!("{title}{arrow}"), title).style(style)
    };
    let headings =
        Cells::new(COLUMNS.iter().map(heading)).style(Style::new().add_modifier(Modifier::REVERSED));
    let cells = |row: &Row| {
        Cells::new(texts(row).iter().zip(COLUMNS).map(|(text, (title, ..))| aligned(text, title)))
    };
    let widths = COLUMNS.iter().enumerate().map(|(at, (_, _, width))| match at + 1 == COLUMNS.len() {
        true => Constraint::Min(*width),
        false => Constraint::Length(*width),
    });
    let table = Table::new(view.rows.iter().skip(view.first).map(cells), widths).header(headings);
    frame.render_widget(table, area);
}

/// Words begin at the left, numbers end at the right.
fn aligned(text: &str, title: &str) -> Cell<'static> {
    let words = matches!(title, "tenant" | "policy" | "last decision");
    let alignment = if words { Alignment::Left } else { Alignment::Right };
    Cell::new(Text::from(text.to_owned()).alignment(alignment))
}

/// The cells of a row.
fn texts(row: &Row) -> [String; COLUMNS.len()] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    [
        row.name.clone(),
        HumanSize(row.quota_bytes).to_string(),
        HumanSize(row.occupied_bytes).to_string(),
        percent(row.read_hit_ratio),
        or_none(row.iops.map(|iops| compact(iops.round() as u64))),
        or_none(row.latency_seconds.map(time)),
        or_none(row.ssd_bytes_per_second.map(|bytes| HumanSize(bytes.round() as u64).to_string())),
        HumanSize(row.dirty_bytes).to_string(),
        row.policy.clone(),
        row.decision.clone(),
    ]
}

/// The table as text, whole.
pub fn text(view: &View) -> String {
    let rows: Vec<_> = view.rows.iter().map(texts).collect();
    let titles = COLUMNS.map(|(title, ..)| title.to_owned());
    let width =
        |at: usize| [&titles].into_iter().chain(&rows).map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut text = String::new();
    for row in [&titles].into_iter().chain(&rows) {
        let cells = row.iter().zip(&widths).zip(COLUMNS).map(|((cell, &width), (title, ..))| {
            match matches!(title, "tenant" | "policy" | "last decision") {
                true => format!("{cell:width$}"),
                false => format!("{cell:>width$}"),
            }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::sample;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// What a terminal of this size shows.
    fn shown(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view)).expect("drawn");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn view() -> View {
        let mut view = View::new(sample(10.0, &[("db", 0), ("web", 0), ("idle", 0)]), SortKey::Iops);
        view.take(sample(12.0, &[("db", 500), ("web", 2000), ("idle", 0)]));
        view
    }

    #[test]
    fn tenants_are_rows_with_rates_the_busiest_first() {
        let lines = shown(&view(), 140, 8);
        assert!(lines[0].starts_with("larder 0.1.0, up 12"), "{lines:#?}");
        assert!(lines[1].starts_with("cache /c: ok, "), "{lines:#?}");
        assert!(lines[3].starts_with("tenant ") && lines[3].contains("IOPS↓"), "{lines:#?}");
        let names: Vec<_> = lines[4..7].iter().map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, [Some("web"), Some("db"), Some("idle")]);
        for word in ["1,000", "50.00 %", "2.000 ms", "epoch 3: it pays"] {
            assert!(lines[4].contains(word), "{word}: {lines:#?}");
        }
        assert!(lines[6].contains(" - "), "{lines:#?}");
        assert_eq!(lines[7], KEYS);
    }

    #[test]
    fn keys_sort_pause_and_scroll() {
        let mut view = view();
        let names = |view: &View| -> Vec<String> {
            shown(view, 140, 8)[4..7]
                .iter()
                .map(|line| line.chars().take(4).collect::<String>().trim().into())
                .collect()
        };
        view.sort_by(SortKey::Name);
        assert_eq!(names(&view), ["db", "idle", "web"]);
        view.sort_by(SortKey::Name);
        assert_eq!(names(&view), ["web", "idle", "db"]);
        view.scroll(1);
        assert_eq!(names(&view)[..2], ["idle", "db"]);
        view.scroll(100);
        assert_eq!(names(&view), ["db", "", ""]);
        view.scroll(isize::MIN);
        view.pause();
        view.take(sample(13.0, &[("db", 9000)]));
        assert_eq!(names(&view), ["web", "idle", "db"]);
        assert!(shown(&view, 140, 8)[7].starts_with("paused"));
        view.pause();
        view.take(sample(14.0, &[("db", 9000)]));
        assert_eq!(names(&view), ["db", "", ""]);
    }

    #[test]
    fn small_terminals_and_a_daemon_that_is_gone() {
        let mut view = view();
        for (width, height) in [(1, 1), (20, 3), (80, 24), (300, 2)] {
            assert_eq!(shown(&view, width, height).len(), usize::from(height));
        }
        view.fail(&crate::problem::Problem::new("no daemon answers", "start it"));
        assert_eq!(shown(&view, 140, 8)[7], "error: no daemon answers");
        let lines = text(&view);
        assert_eq!(lines.lines().count(), 4, "{lines}");
    }
}
