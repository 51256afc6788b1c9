//! Simulation and daemon agree: what is recorded of a daemon, simulated with its configuration and what it measured, gives its decisions again, and its hits.
//!
//! By one reactor, from a cold start; docs/live.md says what differs otherwise.
//!
//! A test binary of its own: what a daemon does depends on when requests come and end, and so these tests want the machine for themselves.

#[path = "../common/mod.rs"]
mod common;

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use common::daemon::{Larder, count, larder, tenant};
use common::nbd::Client;
use common::nbdkit::nbdkit;
use common::pattern::{random, stamp};
use common::process::{Background, run};
use common::setup::{BLOCK, MIB, Setup};
use common::{LIMIT, wait_for};

/// Who decides, how often, and how many requests each tenant sends meanwhile.
#[derive(Clone, Copy)]
struct Case {
    allocator: &'static str,
    epoch_seconds: u64,
    requests: u64,
    /// Between two requests.
    apart: Duration,
    /// The cache is kept over restarts.
    kept: bool,
    /// Blocks of 4 KiB in the unit of all requests, places and sizes.
    unit: u64,
    /// What may be written to the SSD.
    write_budget: &'static str,
    /// Disks take a millisecond for each request, and not as long as the cache in memory.
    slow_disks: bool,
}

impl Case {
    /// One that decides at the ends of epochs, with a cache that is kept.
    const fn of(allocator: &'static str) -> Self {
        Self {
            allocator,
            epoch_seconds: 3,
            requests: 400,
            apart: APART,
            kept: true,
            unit: 1,
            write_budget: "unlimited",
            slow_disks: false,
        }
    }

    /// `larder` decides a sixteenth of an epoch after it began, or a rate has changed, and again after twice that time. What enters depends on what a hit saves: with disks as fast as the cache that
    /// would be chance.
    const fn larder() -> Self {
        Self { slow_disks: true, epoch_seconds: 24, requests: 150, ..Self::of("larder") }
    }

    /// The movers of `centaur` come five times in an epoch: requests have ended before the first.
    const fn centaur() -> Self {
        Self { epoch_seconds: 6, requests: 250, ..Self::of("centaur") }
    }

    /// The windows of `scave` are of a second, whatever the epoch.
    const fn scave() -> Self {
        Self { requests: 150, ..Self::of("scave") }
    }

    /// The same with everything so much larger that what caches would do is found out by samples.
    const fn large(self) -> Self {
        Self { unit: 8, ..self }
    }

    /// The same with so much that may be written to the SSD.
    const fn within(self, write_budget: &'static str) -> Self {
        Self { write_budget, ..self }
    }

    /// The same with epochs twice as long, or four times, for a machine that is too busy.
    const fn slower(self, doublings: u32) -> Self {
        Self { epoch_seconds: self.epoch_seconds << doublings, ..self }
    }

    /// The same with one that keeps nothing.
    const fn cold(self) -> Self {
        Self { kept: false, ..self }
    }
}

/// What is read is in the cache a moment later, and whoever asks meanwhile may get another's place: requests come apart, as those of guests on disks do. Where they take long, fills do too:
/// then they come as far apart as they took.
const APART: Duration = Duration::from_millis(1);

/// Whole epochs in which requests come.
const EPOCHS: u64 = 4;

/// They ask in turn, one at a time, soon after an epoch has ended: none comes while it is decided, and might count on either side.
const TENANTS: [&str; 3] = ["reader", "looper", "writer"];

/// What differs by more is not the same.
const POINTS: f64 = 1.0;

/// The daemon, and the servers of its disks.
fn daemon(case: &Case) -> (Larder, Vec<Background>) {
    let setup = Setup::in_memory(&format!("{}MiB", 4 * case.unit));
    let setup = if case.kept { setup.kept() } else { setup.cold() };
    let mut setup = setup
        .control(&format!("allocator = \"{}\"\nepoch = \"{}s\"", case.allocator, case.epoch_seconds))
        .control(&format!("min_blocks = 16\nreactors = 1\nwrite_budget = \"{}\"", case.write_budget));
    let (bytes, mut servers) = (16 * MIB * case.unit, Vec::new());
    for name in TENANTS {
        setup = setup.tenant(name, "");
        if case.slow_disks {
            let size = bytes.to_string();
            let disk = ["--filter=delay", "memory", &size, "rdelay=1ms", "wdelay=1ms"];
            let (server, uri) = nbdkit(&setup, &format!("{name}-disk"), &disk);
            setup = setup.volume_on(name, &uri);
            servers.push(server);
        } else {
            setup = setup.volume(name, bytes);
        }
    }
    (setup.start(), servers)
}

fn recording(daemon: &Larder) -> Background {
    let mut command = larder();
    command.args(["record", "--out", "all.parquet", "--account", "all.json"]);
    command.arg("--socket").arg(daemon.control_socket()).current_dir(daemon.folder());
    let recorder = Background::start(&mut command, &daemon.path("record.log"));
    wait_for("the recording has begun", || {
        let log = daemon.log();
        log.contains("recording requests").then_some(()).ok_or(log)
    });
    recorder
}

/// What tenants ask for: one reads what is near the start most often, one reads round and round, one writes again what it wrote and reads some of it.
struct Load {
    clients: Vec<Client>,
    state: u64,
    round: u64,
    apart: Duration,
    /// In bytes.
    unit: u64,
}

impl Load {
    fn new(daemon: &Larder, case: &Case) -> Self {
        let clients = TENANTS.iter().map(|name| Client::connect(&daemon.socket(name), name)).collect();
        Self { clients, state: 7, round: 0, apart: case.apart, unit: case.unit * BLOCK }
    }

    fn read(&mut self, tenant: usize, place: u64, blocks: u64) {
        let start = Instant::now();
        self.clients[tenant].read(place * self.unit, (blocks * self.unit) as u32).expect("a read");
        sleep(self.apart.max(start.elapsed()));
    }

    fn write(&mut self, tenant: usize, place: u64) {
        let start = Instant::now();
        let data = stamp(3, self.round, place * self.unit, self.unit);
        self.clients[tenant].write(place * self.unit, &data).expect("a write");
        sleep(self.apart.max(start.elapsed()));
    }

    /// One request of each tenant, one after the other.
    fn turn(&mut self) {
        let near = |state: &mut u64, of: u64| random(state, of).min(random(state, of));
        let blocks = 1 + random(&mut self.state, 3);
        let place = near(&mut self.state, 1500);
        self.read(0, place, blocks);
        self.read(1, self.round * 2 % 500, 2);
        let place = near(&mut self.state, 300);
        match random(&mut self.state, 3) {
            0 => self.read(2, place, 1),
            _ => self.write(2, place),
        }
        self.round += 1;
    }
}

fn epoch(daemon: &Larder) -> u64 {
    count(&tenant(&daemon.status(), TENANTS[0])["decision"], "epoch")
}

/// When it was decided last.
fn decided(daemon: &Larder) -> Option<f64> {
    let mut command = larder();
    command.args(["decisions", TENANTS[0], "--json", "--socket"]).arg(daemon.control_socket());
    let told: Value = serde_json::from_str(&run(&mut command, daemon.folder())).expect("JSON");
    told["decisions"].as_array().expect("decisions").last()?["unix_seconds"].as_f64()
}

fn wait_beyond(daemon: &Larder, before: u64, case: &Case) -> u64 {
    let start = Instant::now();
    loop {
        let now = epoch(daemon);
        if now > before {
            return now;
        }
        assert!(start.elapsed() < LIMIT + Duration::from_secs(2 * case.epoch_seconds), "still epoch {now}");
        sleep(Duration::from_millis(10));
    }
}

/// Times that the load is run, each with more time than the one before, on a machine that is too busy for it.
const ATTEMPTS: u32 = 5;

/// Run tenants under an allocator, record them, and simulate the recording: the daemon's last status, and the run. Nothing where requests lasted into a decision.
fn both(case: &Case) -> Option<(Value, Value)> {
    let (daemon, _servers) = daemon(case);
    let mut recorder = recording(&daemon);
    let mut load = Load::new(&daemon, case);
    let mut at = epoch(&daemon);
    for _ in 0..EPOCHS {
        let before = decided(&daemon);
        (0..case.requests).for_each(|_| load.turn());
        if decided(&daemon) != before {
            return None;
        }
        at = wait_beyond(&daemon, at, case);
    }
    let status = daemon.status();
    recorder.terminate();
    assert_eq!(recorder.wait(LIMIT).code(), Some(0), "{}", recorder.log());
    let folder = daemon.folder().to_owned();
    let simulate = ["simulate", "--like", "all.json", "--json"];
    let text = run(larder().args(simulate).current_dir(&folder), &folder);
    daemon.stop();
    let run: Value = serde_json::from_str(&text).expect("JSON");
    Some((status, run["runs"][0].clone()))
}

/// Times that both are compared: on a busy machine a block may be filled later than the next request comes, now here, now there. What is different each time is a difference of the two.
const COMPARISONS: u32 = 3;

/// The hits of each tenant are those of the daemon, within a point, and so are its decisions.
fn agree(case: &Case) {
    let mut slower = 0;
    let differences: Vec<String> = (0..COMPARISONS)
        .map_while(|_| compare(case, &mut slower).inspect_err(|why| eprintln!("{why}")).err())
        .collect();
    assert!(differences.len() < COMPARISONS as usize, "{}: {differences:#?}", case.allocator);
}

/// A comparison, so many times slower than the case says that requests end within their epoch.
fn compare(case: &Case, slower: &mut u32) -> Result<(), String> {
    let found = (0..ATTEMPTS).find_map(|_| {
        let both = both(&case.slower(*slower));
        *slower += u32::from(both.is_none());
        both
    });
    let (status, run) = found.expect("requests of an epoch that end within it");
    for (at, name) in TENANTS.iter().enumerate() {
        let (live, simulated) = (tenant(&status, name), &run["tenants"][at]);
        let (hits, misses) = (count(&live, "read_hits"), count(&live, "read_misses"));
        let ratio = hits as f64 / (hits + misses) as f64;
        let found = simulated["read_hit_ratio"].as_f64().expect("a ratio");
        assert_eq!(hits + misses, count(simulated, "block_reads"), "{name}");
        if (ratio - found).abs() > POINTS / 100.0 {
            return Err(format!("{name}: {ratio} live, {found} simulated"));
        }
        let beside = &run["beside_daemon"][at];
        let (decisions, same) = (count(beside, "decisions"), count(beside, "same_decisions"));
        assert!(decisions >= EPOCHS, "{name}: {beside:#}");
        if same != decisions {
            return Err(format!("{name}: {beside:#}"));
        }
    }
    Ok(())
}

#[test]
fn under_static() {
    agree(&Case::of("static"));
}

#[test]
fn under_eci() {
    agree(&Case::of("eci"));
}

#[test]
fn under_centaur() {
    agree(&Case::centaur());
}

#[test]
fn under_wss() {
    agree(&Case::of("wss"));
}

#[test]
fn under_unified() {
    agree(&Case::of("unified"));
}

#[test]
fn under_combined() {
    agree(&Case::of("combined"));
}

#[test]
fn under_scave() {
    agree(&Case::scave());
}

#[test]
fn under_larder() {
    agree(&Case::larder());
}

#[test]
fn within_a_budget_of_ssd_writes() {
    agree(&Case::larder().within("64MiB/1h"));
}

#[test]
fn with_a_cache_that_is_not_kept() {
    for case in [Case::of("eci"), Case::of("unified"), Case::scave(), Case::larder()] {
        agree(&case.cold());
    }
}

#[test]
fn with_a_cache_so_large_that_blocks_are_sampled() {
    agree(&Case::larder().large());
}
