//! `larder flush` and `larder drain`: have dirty blocks written back, and tell how far that is.
//!
//! The daemon does the work; this looks at its status now and then. Who interrupts it interrupts the telling, not the work.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use larder_daemon::control::{Draining, Request};
use larder_daemon::control_socket;
use larder_daemon::status::{Status, TenantStatus, VolumeState, VolumeStatus};
use larder_daemon::units::{HumanDuration, HumanSize};
use larder_daemon::volumes::lost_help;
use larder_io::DrainCommand;

use crate::cli;
use crate::number::counted;
use crate::output::tell;
use crate::problem::Problem;
use crate::status;

/// How often the daemon is looked at.
const EVERY: Duration = Duration::from_millis(250);
/// How often a line tells of it where there is no terminal.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// The rate is that of so many looks.
const RATE_LOOKS: usize = 40;
/// How long a backing may fail before the telling ends: the daemon goes on trying.
const PATIENCE_SECONDS: f64 = 10.0;

/// `larder flush NAME`.
pub fn flush(options: &cli::Flush) -> Result<ExitCode, Problem> {
    let socket = status::socket(&options.daemon)?;
    let volumes = ask(&socket, &options.name, DrainCommand::Once)?;
    let left = watch(&socket, &volumes)?;
    done(&format_args!("{}: all that was dirty is on the backings ({left})", options.name))
}

/// `larder drain NAME`.
pub fn drain(options: &cli::Drain) -> Result<ExitCode, Problem> {
    let socket = status::socket(&options.daemon)?;
    let name = &options.name;
    if options.off {
        ask(&socket, name, DrainCommand::Off)?;
        return done(&format_args!("{name}: blocks may become dirty again"));
    }
    let volumes = ask(&socket, name, DrainCommand::On)?;
    let left = watch(&socket, &volumes)?;
    done(&format_args!(
        "{name}: drained ({left}); nothing becomes dirty until `larder drain --off {name}`, or the daemon's next start"
    ))
}

fn done(line: &dyn std::fmt::Display) -> Result<ExitCode, Problem> {
    tell(line)?;
    Ok(ExitCode::SUCCESS)
}

/// The volumes that it is about.
fn ask(socket: &Path, name: &str, how: DrainCommand) -> Result<Vec<String>, Problem> {
    let answer = control_socket::ask(socket, &Request::drain_line(name, how))?;
    let refused = |what: &str| Problem::new(what, "`larder status` lists the tenants and volumes");
    let draining: Draining = status::understood(&answer, socket, refused)?;
    Ok(draining.volumes)
}

/// What is left to do.
struct Left {
    blocks: u64,
    bytes: u64,
    /// Some are not done yet, whatever their dirty blocks.
    open: bool,
    /// The volumes with blocks that cannot be written back.
    lost: Vec<Lost>,
}

struct Lost {
    volume: String,
    blocks: u32,
    bytes: u64,
}

/// Ask it of the volume of this name, whatever tenants are called.
pub fn ask_volume(socket: &Path, status: &Status, name: &str, how: DrainCommand) -> Result<(), Problem> {
    let has = |tenant: &&TenantStatus| tenant.volumes.iter().any(|volume| volume.name == name);
    match status.tenants.iter().find(has) {
        Some(tenant) => ask(socket, &format!("{}/{name}", tenant.name), how).map(drop),
        // The daemon says so when it is asked for more.
        None => Ok(()),
    }
}

/// Look on until it is done. What was there at first, in words.
pub fn watch(socket: &Path, names: &[String]) -> Result<String, Problem> {
    let mut telling = Telling::new();
    loop {
        let status = status::asked(socket)?;
        let left = left(&status, names)?;
        telling.tell(&left);
        if !left.open {
            let told = telling.end();
            return if left.lost.is_empty() { Ok(told) } else { Err(cannot_end(&left.lost)) };
        }
        sleep(EVERY);
    }
}

/// All is done but what cannot be.
fn cannot_end(lost: &[Lost]) -> Problem {
    let of = |Lost { volume, blocks, bytes }: &Lost| {
        format!("{} of volume {volume} ({})", counted(u64::from(*blocks), "dirty block"), HumanSize(*bytes))
    };
    let of: Vec<String> = lost.iter().map(of).collect();
    let what = format!(
        "{} cannot be written back: the data is damaged on the cache device; all else is on the backings",
        of.join(" and ")
    );
    let help: Vec<String> = lost.iter().map(|lost| lost_help(&lost.volume)).collect();
    Problem::new(what, help.join("; "))
}

/// What is left of these volumes, unless there is no use in waiting.
fn left(status: &Status, names: &[String]) -> Result<Left, Problem> {
    let volumes = status.tenants.iter().flat_map(|tenant| &tenant.volumes);
    let mut left = Left { blocks: 0, bytes: 0, open: false, lost: Vec::new() };
    for volume in volumes.filter(|volume| names.contains(&volume.name)) {
        check(volume)?;
        let lost = volume.damaged_blocks;
        left.blocks += u64::from(volume.dirty_blocks.saturating_sub(lost));
        left.bytes += volume.dirty_bytes.saturating_sub(volume.lost_bytes);
        let is_stuck = lost > 0 && volume.dirty_blocks <= lost && volume.draining == "on";
        left.open |= matches!(volume.draining.as_str(), "once" | "on") && !is_stuck;
        if lost > 0 {
            left.lost.push(Lost { volume: volume.name.clone(), blocks: lost, bytes: volume.lost_bytes });
        }
    }
    Ok(left)
}

fn check(volume: &VolumeStatus) -> Result<(), Problem> {
    let VolumeStatus { name, backing, .. } = volume;
    if volume.state == VolumeState::Failed {
        let what = format!("volume {name} has failed: the cache device with {} is gone", waiting(volume));
        return Err(Problem::new(
            what,
            format!("bring the device back; `larder status --lost {name}` tells what is on it"),
        ));
    }
    match volume.backing_failing_seconds {
        // One that has failed for long may work again: it is tried at once.
        Some(seconds) if seconds >= PATIENCE_SECONDS && volume.backing_failed_since_asked => {
            let waiting = match volume.dirty_blocks {
                0 => "it cannot be flushed".into(),
                1 => format!("{} waits", waiting(volume)),
                _ => format!("{} wait", waiting(volume)),
            };
            let what =
                format!("the backing of volume {name} fails: {backing}: {waiting}, for {seconds:.0} s now");
            Err(Problem::new(
                what,
                "mend the backing: the daemon keeps the blocks, and tries again by itself",
            ))
        }
        _ => Ok(()),
    }
}

fn waiting(volume: &VolumeStatus) -> String {
    format!("{} ({})", counted(u64::from(volume.dirty_blocks), "dirty block"), HumanSize(volume.dirty_bytes))
}

/// A bar on a terminal, else lines.
struct Telling {
    bar: Option<ProgressBar>,
    first: Option<(u64, u64)>,
    looks: VecDeque<(Instant, u64)>,
    told: Option<Instant>,
}

impl Telling {
    fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{bar:32} {percent:>3} %, {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, first: None, looks: VecDeque::new(), told: None }
    }

    fn tell(&mut self, left: &Left) {
        let now = Instant::now();
        let first = *self.first.get_or_insert((left.blocks, left.bytes));
        self.looks.push_back((now, left.bytes));
        if self.looks.len() > RATE_LOOKS {
            self.looks.pop_front();
        }
        let line = self.line(left);
        match &self.bar {
            Some(bar) => {
                bar.set_length(first.1.max(left.bytes).max(1));
                bar.set_position(first.1.saturating_sub(left.bytes));
                bar.set_message(line);
            }
            None if left.blocks > 0 && self.told.is_none_or(|told| now - told >= TELL_EVERY) => {
                self.told = Some(now);
                eprintln!("{line}");
            }
            None => {}
        }
    }

    /// Blocks left, rate, time left.
    fn line(&self, left: &Left) -> String {
        let mut line = format!("{} left ({})", counted(left.blocks, "block"), HumanSize(left.bytes));
        if let Some(rate) = self.rate() {
            let seconds = Duration::from_secs((left.bytes as f64 / rate).ceil() as u64);
            line += &format!(", {}/s, {} left", HumanSize(rate as u64), HumanDuration(seconds));
        }
        line
    }

    /// Bytes a second of late, if there are any.
    fn rate(&self) -> Option<f64> {
        let ((began, before), (now, left)) = (self.looks.front()?, self.looks.back()?);
        let seconds = (*now - *began).as_secs_f64();
        let done = before.saturating_sub(*left) as f64;
        (seconds > 0.0 && done / seconds >= 1.0).then(|| done / seconds)
    }

    fn end(self) -> String {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        match self.first.unwrap_or((0, 0)) {
            (0, _) => "nothing was dirty".into(),
            (blocks, bytes) => format!("{}, {}, written back", counted(blocks, "block"), HumanSize(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(bytes: u64) -> Left {
        Left { blocks: bytes / 4096, bytes, open: true, lost: Vec::new() }
    }

    fn volume(state: VolumeState, failing: Option<f64>) -> VolumeStatus {
        VolumeStatus {
            name: "v".into(),
            backing: "/srv/v.img".into(),
            export: None,
            vhost_user: None,
            ublk: None,
            ublk_problem: None,
            size_bytes: 1 << 20,
            requests: Default::default(),
            backing_read_latency_seconds: None,
            backing_write_latency_seconds: None,
            state,
            dirty_blocks: 1234,
            dirty_bytes: 1234 * 4096,
            draining: "once".into(),
            quiet: false,
            migrating: false,
            clients: 0,
            slow_cache: false,
            epochs_behind: None,
            backing_failing_seconds: failing,
            backing_failed_since_asked: failing.is_some(),
            damaged_blocks: 0,
            lost_bytes: 0,
            lost_ranges: 0,
        }
    }

    #[test]
    fn a_line_has_what_is_left_and_for_how_long() {
        let mut telling = Telling { bar: None, first: None, looks: VecDeque::new(), told: None };
        assert_eq!(telling.line(&left(8 << 20)), "2,048 blocks left (8 MiB)");
        assert_eq!(telling.line(&left(4096)), "1 block left (4 KiB)");
        let now = Instant::now();
        telling.looks = [(now, 12 << 20), (now + Duration::from_secs(2), 8 << 20)].into();
        assert_eq!(telling.line(&left(8 << 20)), "2,048 blocks left (8 MiB), 2 MiB/s, 4s left");
        telling.looks = [(now, 8 << 20), (now + Duration::from_secs(2), 12 << 20)].into();
        assert_eq!(telling.line(&left(12 << 20)), "3,072 blocks left (12 MiB)", "it grows");
    }

    #[test]
    fn there_is_no_waiting_for_what_has_failed() {
        assert!(check(&volume(VolumeState::Ok, None)).is_ok());
        assert!(check(&volume(VolumeState::Ok, Some(3.0))).is_ok(), "one error is not the end");
        let failing = check(&volume(VolumeState::Ok, Some(12.0))).expect_err("for long").to_string();
        let healthy =
            VolumeStatus { backing_failed_since_asked: false, ..volume(VolumeState::Ok, Some(604.0)) };
        assert!(check(&healthy).is_ok(), "it is tried first");
        assert!(failing.contains("/srv/v.img: 1,234 dirty blocks (4.8 MiB) wait, for 12 s now"), "{failing}");
        let failed = check(&volume(VolumeState::Failed, None)).expect_err("failed").to_string();
        assert!(failed.contains("volume v has failed"), "{failed}");
    }
}
