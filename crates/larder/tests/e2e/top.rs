//! `larder top` on a terminal of its own (by `script`), under load; and without one.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::common::daemon::{Larder, larder};
use crate::common::process::{program, run};
use crate::common::setup::{MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::wait_for;

fn two_tenants() -> Larder {
    let setup = Setup::in_memory("4MiB").tenant("busy-one", "").volume("v0", 8 * MIB);
    setup.tenant("idle-one", "").volume("v1", 8 * MIB).start()
}

#[test]
fn a_terminal_shows_the_tenants_and_hears_keys() {
    let daemon = two_tenants();
    let traffic = Traffic::verified(&daemon.socket("v0"), "v0", 512);
    traffic.goes_on();
    let screen = daemon.path("screen");
    let top = format!(
        "{} top -i 200ms --socket {}",
        env!("CARGO_BIN_EXE_larder"),
        daemon.control_socket().display()
    );
    let mut script = program("script");
    script.args(["-qefc", &format!("stty rows 20 cols 150; {top}")]).arg(&screen);
    script.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut script = script.spawn().expect("script starts");
    let mut keys = script.stdin.take().expect("piped");
    let shown = || String::from_utf8_lossy(&fs::read(&screen).unwrap_or_default()).into_owned();
    let shows = |words: &[&str]| {
        wait_for("the screen", || {
            let shown = shown();
            words.iter().all(|word| shown.contains(word)).then_some(()).ok_or(shown)
        });
    };
    // The alternate screen, then the first table; a hit ratio, once there are rates. (Blanks are not written, but skipped.)
    shows(&["\u{1b}[?1049h", "busy-one", "idle-one", "decision", "allocator", "%"]);
    keys.write_all(b"p").expect("a key");
    shows(&["paused"]);
    keys.write_all(b"pn").expect("keys");
    shows(&["tenant↓"]);
    keys.write_all(b"q").expect("a key");
    let ended = wait_for("top ends", || script.try_wait().expect("a child").ok_or_else(shown));
    assert!(ended.success(), "{ended}: {}", shown());
    assert!(shown().contains("\u{1b}[?1049l"), "the screen is given back: {}", shown());
    drop(traffic);
    daemon.stop();
}

#[test]
fn without_a_terminal_it_is_one_table() {
    let daemon = two_tenants();
    let traffic = Traffic::verified(&daemon.socket("v0"), "v0", 512);
    traffic.goes_on();
    let mut command = larder();
    command.args(["top", "--sort", "hit", "--socket"]).arg(daemon.control_socket());
    let text = run(&mut command, daemon.folder());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("tenant ") && lines[0].ends_with("last decision"), "{text}");
    assert!(lines[1].starts_with("busy-one ") && lines[1].contains(" %"), "{text}");
    assert!(lines[2].starts_with("idle-one ") && lines[2].contains(" - "), "{text}");
    drop(traffic);
    daemon.stop();
}
