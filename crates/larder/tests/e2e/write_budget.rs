//! The budget of SSD writes under guests that would write far more: it is kept, everybody is served, every byte is right, and the operator is told.

use serde_json::Value;

use crate::common::daemon::{Larder, count, larder, tenant};
use crate::common::nbd::Client;
use crate::common::pattern::random;
use crate::common::process::run;
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::wait_for;

/// Of each period.
const BUDGET: u64 = 6 * MIB;

const PERIOD_SECONDS: f64 = 6.0;

/// What of a period may be written at once.
const BURST: u64 = BUDGET / 20;

/// Blocks of each volume that are used: more than the cache has.
const BLOCKS: u64 = 2048;

fn setup(allocator: &str, budget: &str) -> Setup {
    let keys = format!(
        "allocator = \"{allocator}\"\nepoch = \"1s\"\nmin_blocks = 16\nwrite_back = true\nwrite_budget = \"{budget}\"\nloss_file = \"cache.img.loss.json\""
    );
    Setup::in_memory("6MiB")
        .control(&keys)
        .tenant("a", "write_policy = \"wb\"")
        .volume("a0", 16 * MIB)
        .tenant("b", "write_policy = \"wt\"")
        .volume("b0", 16 * MIB)
}

fn guests(larder: &Larder) -> [Traffic; 2] {
    ["a0", "b0"].map(|volume| Traffic::verified(&larder.socket(volume), volume, BLOCKS))
}

fn told(larder_: &Larder, arguments: &[&str]) -> String {
    run(larder().args(arguments).arg("--socket").arg(larder_.control_socket()), larder_.folder())
}

fn sum(status: &Value, key: &str) -> u64 {
    ["a", "b"].iter().map(|name| count(&tenant(status, name), key)).sum()
}

/// Blocks that were kept from the SSD for the budget, in one way or another.
fn held_back(status: &Value) -> u64 {
    ["refused", "diverted", "turned_away"]
        .map(|how| sum(status, &format!("budget_{how}_blocks")))
        .iter()
        .sum()
}

/// All causes together, the cache's own records among them.
fn written(status: &Value) -> u64 {
    count(&status["cache"]["ssd_write_bytes"], "total")
}

/// Tenants have limits, whatever they ask for.
#[test]
fn guests_that_write_more_than_the_budget_are_served_within_it() {
    let status = within_the_budget("static");
    assert!(sum(&status, "budget_refused_blocks") > 0 && sum(&status, "budget_diverted_blocks") > 0);
    assert_eq!(sum(&status, "budget_turned_away_blocks"), 0);
}

/// What gains most for a write is written.
#[test]
fn guests_whose_writes_have_a_price_are_served_within_the_budget() {
    let status = within_the_budget("larder");
    assert!(sum(&status, "budget_turned_away_blocks") > 0, "{status:#}");
}

/// What such guests do, and the status while they do.
fn within_the_budget(allocator: &str) -> Value {
    let larder = setup(allocator, "6MiB/6s").start();
    let guests = guests(&larder);
    let mut whole_period = 0;
    let status = wait_for("guests want far more than the budget, which is used", || {
        let status = larder.status();
        let budget = &status["cache"]["write_budget"];
        assert_eq!((count(budget, "bytes"), budget["configured"].as_str()), (BUDGET, Some("6MiB/6s")));
        whole_period = whole_period.max(count(budget, "written_bytes"));
        let wanted = sum(&status, "write_hits") + sum(&status, "write_misses") + sum(&status, "read_misses");
        let uptime = status["uptime_seconds"].as_f64().expect("a number");
        let done = uptime > 1.5 * PERIOD_SECONDS
            && wanted * BLOCK > 3 * written(&status)
            && whole_period > BUDGET * 9 / 10;
        if done { Ok(status) } else { Err(format!("{whole_period} bytes in a period; {status:#}")) }
    });
    guests.iter().for_each(Traffic::goes_on);
    guests.into_iter().for_each(Traffic::finish);
    let last = larder.status();
    // The loop began before the daemon was ready, by far less than this.
    let uptime = last["uptime_seconds"].as_f64().expect("a number") + 1.0;
    let periods = (uptime / PERIOD_SECONDS).floor() as u64 + 1;
    let limit = periods * BUDGET * 102 / 100 + BURST;
    assert!(written(&last) <= limit, "{} of {limit} bytes: {last:#}", written(&last));
    assert_eq!(sum(&last, "cache_errors") + sum(&last, "backing_errors"), 0, "{last:#}");

    let text = told(&larder, &["status"]);
    assert!(text.contains("SSD write budget 6MiB/6s: "), "{text}");
    // Of all that are kept: the last one may have come after the guests had ended.
    let decisions = told(&larder, &["decisions", "a", "--json"]);
    assert!(decisions.contains("the budget of SSD writes kept "), "{decisions}");
    larder.stop();
    status
}

#[test]
fn a_budget_comes_and_goes_while_guests_work() {
    let larder = setup("larder", "unlimited").start();
    assert_eq!(larder.status()["cache"]["write_budget"], Value::Null);
    let guests = guests(&larder);
    let beyond = |bytes: u64| {
        let before = written(&larder.status());
        wait_for("guests write", || {
            let now = written(&larder.status());
            if now > before + bytes { Ok(()) } else { Err(format!("{now} bytes, {before} before")) }
        });
    };
    beyond(4 * BUDGET);
    // A twentieth of it at once, and then next to nothing.
    told(&larder, &["set", "write_budget=8MiB/24h"]);
    let limited = wait_for("the budget is there", || {
        let status = larder.status();
        let room = status["cache"]["write_budget"]["room_bytes"].as_u64();
        match room.filter(|_| held_back(&status) > 0) {
            Some(_) => Ok(status),
            None => Err(format!("{status:#}")),
        }
    });
    let after = wait_for("far more is held back", || {
        let status = larder.status();
        let bytes = (held_back(&status) - held_back(&limited)) * BLOCK;
        if bytes > 4 * BUDGET { Ok(status) } else { Err(format!("{bytes} bytes were held back")) }
    });
    let more = written(&after) - written(&limited);
    assert!(more <= 2 * 8 * MIB / 20, "{more} bytes written: {after:#}");
    told(&larder, &["set", "write_budget=default"]);
    wait_for("the budget is gone", || {
        let budget = larder.status()["cache"]["write_budget"].clone();
        if budget == Value::Null { Ok(()) } else { Err(budget.to_string()) }
    });
    beyond(4 * BUDGET);
    guests.into_iter().for_each(Traffic::finish);
    larder.stop();
}

#[test]
fn a_restart_is_no_new_budget() {
    let refused = |larder: &Larder| {
        let guests = ["a0", "b0"].map(|volume| {
            let (mut client, mut state) = (Client::connect(&larder.socket(volume), volume), 1);
            Traffic::start(move || {
                client.read(random(&mut state, BLOCKS) * BLOCK, BLOCK as u32).expect("a read");
            })
        });
        let status = wait_for("the budget holds guests back", || {
            let status = larder.status();
            if held_back(&status) > 1000 { Ok(status) } else { Err(format!("{status:#}")) }
        });
        guests.into_iter().for_each(Traffic::finish);
        status
    };
    let data = |status: &Value| written(status) - count(&status["cache"]["ssd_write_bytes"], "metadata");
    // A twentieth of it at once, and then next to nothing; where writes have a price a load that has just begun may have most of it.
    let burst = 8 * MIB / 20;
    for (allocator, most) in [("eci", burst + burst / 20), ("larder", 8 * MIB)] {
        let larder = setup(allocator, "8MiB/24h").start();
        let first = refused(&larder);
        assert!(data(&first) > burst / 2, "{first:#}");
        let stopped = larder.stop();
        let (began, partial) = rhythm(&stopped);
        // Where nothing prices what is offered nothing was learned of the period, however much of it there was.
        let unpriced = allocator == "eci";
        assert_eq!(partial, unpriced, "{allocator}: all of the period was seen");
        let larder = stopped.start();
        let second = refused(&larder);
        let both = data(&first) + data(&second);
        assert!(both <= most, "{allocator}: {second:#}");
        let said = count(&second["cache"]["write_budget"], "written_bytes");
        assert!(said >= data(&first), "{allocator}: {second:#}");
        // Nor is forgotten what came before it: all of the same period is known.
        let (again, partial) = rhythm(&larder.stop());
        assert!(
            partial == unpriced && (again - began).abs() < 1.0,
            "{allocator}: {began}, {again}, {partial}"
        );
    }
}

/// When the period began, in seconds since 1970, and whether only a part of it was seen: as was written down when the daemon ended.
fn rhythm(stopped: &Setup) -> (f64, bool) {
    let text = std::fs::read_to_string(stopped.path("cache.img.rhythm.json")).expect("it was written down");
    let kept: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(kept["period_seconds"], 86_400.0);
    (kept["began_unix_seconds"].as_f64().expect("seconds"), kept["partial"].as_bool().expect("yes or no"))
}
