//! What a daemon tells its service manager, in which order, and how often.

use std::fs;
use std::time::Duration;

use crate::common::daemon::larder;
use crate::common::manager::ServiceManager;
use crate::common::process::run;
use crate::common::setup::{MIB, Setup};
use crate::common::wait_for;

fn setup() -> Setup {
    Setup::new("4MiB").tenant("a", "").volume("a0", MIB)
}

/// The messages from this one on, each by its first line.
fn first_lines(told: &[String]) -> Vec<&str> {
    told.iter().filter_map(|text| text.lines().next()).filter(|line| *line != "WATCHDOG=1").collect()
}

#[test]
fn start_reload_and_end_are_told() {
    let manager = ServiceManager::new().without_store();
    let running = manager.start(setup());
    assert_eq!(first_lines(&manager.told()), ["READY=1"]);
    assert_eq!(manager.count("STATUS=serving 1 volumes of 1 tenants"), 1);

    run(larder().args(["reload", "--socket"]).arg(running.control_socket()), running.folder());
    assert_eq!(first_lines(&manager.told()), ["READY=1", "RELOADING=1", "READY=1"]);

    let again =
        std::process::Command::new("sh").args(["-c", &format!("kill -HUP {}", running.id())]).status();
    assert!(again.is_ok_and(|status| status.success()));
    wait_for("the end of a reload by signal", || match manager.count("READY=1") == 3 {
        true => Ok(()),
        false => Err(format!("{:?}", manager.told())),
    });
    let times: Vec<u64> = manager
        .told()
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.strip_prefix("MONOTONIC_USEC=").and_then(|time| time.parse().ok()))
        .collect();
    let up: f64 = fs::read_to_string("/proc/uptime")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .expect("the time since the start of the machine");
    assert!(
        times.len() == 2 && times[0] < times[1] && (times[1] as f64) < (up + 1.0) * 1e6,
        "{times:?}, {up}"
    );

    // One that cannot be served is over too.
    fs::write(running.path("larder.toml"), "nonsense").expect("another configuration");
    let outcome =
        larder().args(["reload", "--socket"]).arg(running.control_socket()).output().expect("larder reload");
    assert!(!outcome.status.success());
    assert_eq!(first_lines(&manager.told())[4..], ["READY=1", "RELOADING=1", "READY=1"]);

    running.stop();
    assert_eq!(first_lines(&manager.told()).last(), Some(&"STOPPING=1"));
}

#[test]
fn the_watchdog_hears_that_the_daemon_lives() {
    let manager = ServiceManager::new().with_watchdog(Duration::from_millis(100));
    let running = manager.start(setup());
    wait_for("five signs of life", || match manager.count("WATCHDOG=1") >= 5 {
        true => Ok(()),
        false => Err(format!("{:?}", manager.told())),
    });
    running.stop();
}

#[test]
fn nobody_is_told_of_a_life_who_did_not_ask() {
    let manager = ServiceManager::new();
    manager.start(setup()).stop();
    assert_eq!(manager.count("WATCHDOG=1"), 0);
    assert_eq!(manager.count("READY=1"), 1);
}
