//! `larder-simtest`: play histories, and name the seed of one that goes wrong.

use clap::Parser;
use larder_engine::Planted;
use larder_simtest::{Counts, Fault, Faults, Options, Violation, soak, told};
use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The whole engine on simulated devices that crash, lose and rot; each history follows from its seed.
#[derive(Parser, Debug)]
#[command(name = "larder-simtest", version)]
struct Args {
    /// Play the histories of the seeds A..B (B is not among them); a number alone is 0..B.
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Range<u64>,
    /// Threads; each history runs on one.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Plant a bug (needs a build with `--features planted`).
    #[arg(long, value_name = "BUG", value_parser = bug)]
    planted: Option<Planted>,
    /// These faults in each history, instead of some of all: names with commas between them.
    #[arg(long, value_name = "LIST", value_parser = faults)]
    faults: Option<Faults>,
    /// Print the whole history, line by line; for one seed.
    #[arg(long)]
    trace: bool,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let (first, end) = text.split_once("..").unwrap_or(("0", text));
    let parsed = first.trim().parse().ok().zip(end.trim().parse().ok());
    let wanted = "a range like 5000..6000 is wanted, or a number like 1000 for 0..1000";
    parsed
        .map(|(first, end)| first..end)
        .filter(|seeds: &Range<u64>| !seeds.is_empty())
        .ok_or_else(|| wanted.into())
}

fn bug(name: &str) -> Result<Planted, String> {
    if !cfg!(feature = "planted") {
        return Err("this build has no bugs to plant: build it with --features planted".into());
    }
    Planted::named(name)
        .ok_or_else(|| format!("known are {}", Planted::NAMES.map(|(name, _)| name).join(", ")))
}

fn faults(list: &str) -> Result<Faults, String> {
    Faults::named(list).map_err(|name| format!("{name} is unknown; known are {}", Faults::all()))
}

fn main() -> ExitCode {
    let args = Args::parse();
    let options = Options { faults: args.faults, planted: args.planted };
    if args.trace {
        let (lines, end) = told(args.seeds.start, options);
        let last = match &end {
            Ok(outcome) => format!("digest {:016x}", outcome.digest),
            Err(what) => format!("VIOLATION: {what}"),
        };
        return done(&format!("{}\n{last}\n", lines.join("\n")), end.is_ok());
    }
    let began = Instant::now();
    let soaked = soak(args.seeds.clone(), args.threads.max(1), options);
    let mut text = format!("{}\n", summary(&soaked.counts, began.elapsed()));
    text.extend(soaked.violation.iter().map(|violation| report(violation, &args)));
    done(&text, soaked.violation.is_none())
}

/// The last words. Who has stopped listening need not hear them.
fn done(text: &str, well: bool) -> ExitCode {
    let told = std::io::stdout().write_all(text.as_bytes());
    if well && told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn summary(counts: &Counts, time: Duration) -> String {
    let faults = Fault::NAMES.map(|(name, fault)| format!("{name} {}", counts.faults[fault as usize]));
    let Counts { histories, crashes, requests, given_up, failed, returned, returned_at_start, back, .. } =
        counts;
    let (seconds, faults) = (time.as_secs_f64(), faults.join(", "));
    format!(
        "{histories} histories, {crashes} crashes, {requests} requests in {seconds:.1} s; the cache device was given up {given_up} times, \
         {failed} volumes failed, it was there again {returned} times under guests and {returned_at_start} times at a start, with {back} dirty blocks; \
         faults: {faults}"
    )
}

/// What was broken, what had happened, and how to see it again.
fn report(violation: &Violation, args: &Args) -> String {
    let Violation { seed, what, lines } = violation;
    let bug = args.planted.and_then(|bug| Planted::NAMES.iter().find(|(_, known)| *known == bug));
    let planted = bug.map(|(name, _)| format!(" --planted {name}")).unwrap_or_default();
    let features = if bug.is_some() { " --features planted" } else { "" };
    let faults = args.faults.map(|faults| format!(" --faults {faults}")).unwrap_or_default();
    format!(
        "\n{}\n\nVIOLATION in seed {seed}: {what}\n\nreplay it with\n  cargo run --release -p larder-simtest{features} -- --seeds {seed}..{} --trace{planted}{faults}\n",
        lines.join("\n"),
        seed + 1,
    )
}
