//! `larder top`: what the tenants of a running daemon do now, once a second, on a terminal.
//!
//! [`rows`] makes rates of two answers of the daemon, [`screen`] draws them. A thread asks, so that keys are heard while the daemon is slow.

mod rows;
mod screen;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use larder_daemon::control_socket;
use larder_daemon::units::parse_duration;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::cli;
use crate::output;
use crate::problem::Problem;
use crate::status;
use rows::{Sample, SortKey, View};

const KEYS: &str = "\
Keys: n s o h i l w d sort by name, quota (size), occupied, hit ratio, IOPS, latency, SSD writes, dirty (again: the other way round);
up, down, page up, page down, home scroll; p or space pauses; q, Esc or Ctrl-C end.";

/// Between two looks at the keyboard.
const KEYS_EVERY: Duration = Duration::from_millis(50);

/// Options of `larder top`.
#[derive(Debug, Args)]
#[command(after_help = KEYS)]
pub struct Options {
    /// Time between two looks, over which rates are means.
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// What is on top at first.
    #[arg(long, value_enum, value_name = "KEY", default_value_t = SortKey::Iops)]
    pub sort: SortKey,
    /// Print one table, of one interval, and end; likewise where stdout is no terminal.
    #[arg(long)]
    pub once: bool,
    /// The daemon.
    #[command(flatten)]
    pub daemon: cli::Daemon,
}

fn interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(time) if time < Duration::from_millis(100) => Err("at least 100ms".into()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// Show it.
pub fn run(options: &Options) -> Result<(), Problem> {
    let socket = status::socket(&options.daemon)?;
    // Where there is no daemon this says so before the screen is taken.
    let mut view = View::new(sample(&socket)?, options.sort);
    if options.once || !io::stdout().is_terminal() {
        thread::sleep(options.interval);
        view.take(sample(&socket)?);
        return output::print(&screen::text(&view));
    }
    let samples = samples(socket, options.interval)?;
    let terminal_failed = |error: io::Error| {
        Problem::new(format_args!("cannot use the terminal: {error}"), "use `larder top --once` there")
    };
    let mut terminal = ratatui::try_init().map_err(terminal_failed)?;
    let shown = watch(&mut terminal, &mut view, &samples);
    ratatui::restore();
    shown.map_err(terminal_failed)
}

/// The daemon's state now.
fn sample(socket: &Path) -> Result<Sample, Problem> {
    let answer = control_socket::ask(socket, "status")?;
    status::understood(&answer, socket, |error| {
        Problem::new(format_args!("the daemon cannot tell its status: {error}"), "look at the daemon's log")
    })
    .map(Sample::new)
}

/// A thread that asks again and again, for as long as somebody listens.
fn samples(socket: PathBuf, interval: Duration) -> Result<Receiver<Result<Sample, Problem>>, Problem> {
    let (sender, samples): (SyncSender<_>, _) = sync_channel(1);
    let ask = move || {
        loop {
            thread::sleep(interval);
            if sender.send(sample(&socket)).is_err() {
                return;
            }
        }
    };
    let started = thread::Builder::new().name("ask".into()).spawn(ask);
    started.map_err(|error| {
        Problem::new(format_args!("cannot start a thread: {error}"), "end other programs")
    })?;
    Ok(samples)
}

/// Draw whenever there is something new, until a key ends it.
fn watch(
    terminal: &mut DefaultTerminal,
    view: &mut View,
    samples: &Receiver<Result<Sample, Problem>>,
) -> io::Result<()> {
    let mut changed = true;
    loop {
        if changed {
            terminal.draw(|frame| screen::draw(frame, view))?;
        }
        changed = false;
        if event::poll(KEYS_EVERY)? {
            changed = true;
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release && !press(view, key) => return Ok(()),
                _ => {}
            }
        }
        if let Ok(sample) = samples.try_recv() {
            changed = true;
            match sample {
                Ok(sample) => view.take(sample),
                Err(problem) => view.fail(&problem),
            }
        }
    }
}

/// Do what a key says; false where that is to end.
fn press(view: &mut View, key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => return false,
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('p' | ' ') => view.pause(),
        KeyCode::Up => view.scroll(-1),
        KeyCode::Down => view.scroll(1),
        KeyCode::PageUp => view.scroll(-20),
        KeyCode::PageDown => view.scroll(20),
        KeyCode::Home => view.scroll(isize::MIN),
        KeyCode::Char(letter) => {
            if let Some(key) = SortKey::of(letter) {
                view.sort_by(key);
            }
        }
        _ => {}
    }
    true
}
