//! A cache that may have the only copy of data, and is not there when the daemon starts: nothing is served without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::daemon::{Larder, larder};
use crate::common::nbd::Client;
use crate::common::pattern::stamp;
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::wait_for;

/// Write-back, and a cleaner that hardly ever works.
const WB: &str = "write_policy = \"wb\"\ndirty_rest = 90\ndirty_max = 95\ndirty_age = \"1h\"";

fn setup() -> Setup {
    let setup = Setup::new("8MiB").control("allocator = \"static\"");
    setup.tenant("a", WB).volume("a0", 4 * MIB).tenant("b", WB).volume("b0", 4 * MIB)
}

/// A daemon that has answered a flush of data that its cache alone has.
fn with_dirty_blocks() -> Larder {
    let larder = setup().start();
    write(&larder);
    larder
}

fn write(larder: &Larder) {
    let mut client = Client::connect(&larder.socket("b0"), "b0");
    client.write(0, &stamp(3, 0, 0, 16 * BLOCK)).expect("a write");
    client.flush().expect("a flush");
}

fn is_there(larder: &Larder) {
    let mut client = Client::connect(&larder.socket("b0"), "b0");
    assert_eq!(client.read(0, 16 * BLOCK as u32).expect("a read"), stamp(3, 0, 0, 16 * BLOCK));
}

/// Neither a check nor a start passes; both say this, and the same help.
fn is_refused(setup: &Setup, words: &[&str]) {
    let config = setup.write_config();
    for how in [&["serve", "--check"][..], &["serve"]] {
        let output = larder().args(how).arg("--config").arg(&config).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{how:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{how:?}: {word}: {said}");
        }
    }
}

fn ask(daemon: &Larder, words: &[&str]) -> Output {
    larder().args(words).arg("--socket").arg(daemon.control_socket()).output().expect("it runs")
}

/// What the file says that outlives the cache.
fn may_hold_dirty(last: &Path) -> bool {
    let text = fs::read(last).expect("it is there from the first start on");
    let told: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    told["may_hold_dirty"].as_bool().expect("a flag")
}

fn set_aside(cache: &Path) -> PathBuf {
    let aside = cache.with_extension("aside");
    fs::rename(cache, &aside).expect("a name for it");
    aside
}

#[test]
fn a_cache_that_was_killed_with_dirty_blocks_is_not_done_without() {
    let setup = with_dirty_blocks().kill();
    let (cache, last) = (setup.cache(), setup.path("cache.img.last.json"));
    assert!(may_hold_dirty(&last));
    let aside = set_aside(&cache);
    let words = ["holds nothing", "may have data that no backing has", "cache.img.last.json"];
    is_refused(&setup, &words);
    assert!(!cache.exists(), "no cache is made");
    // An empty one, as on an SSD that was exchanged.
    fs::write(&cache, []).expect("a file");
    fs::File::options().write(true).open(&cache).and_then(|file| file.set_len(16 * MIB)).expect("a length");
    is_refused(&setup, &["no cache that is kept", words[1]]);
    // Another cache.
    fs::remove_file(&cache).expect("removed");
    let made = larder().args(["cache", "format", "--size", "8MiB"]).arg(&cache).output().expect("it runs");
    assert!(made.status.success(), "{made:?}");
    is_refused(&setup, &["another cache (", words[1]]);
    // The one.
    fs::rename(&aside, &cache).expect("back");
    let larder = setup.start();
    is_there(&larder);
    // A clean stop keeps dirty blocks, too. (Without a guest the cleaner begins soon.)
    write(&larder);
    let setup = larder.stop();
    set_aside(&cache);
    is_refused(&setup, &words);
    // What is given up is given up.
    fs::remove_file(&last).expect("removed");
    let larder = setup.start();
    let mut client = Client::connect(&larder.socket("b0"), "b0");
    assert_eq!(client.read(0, BLOCK as u32).expect("a read"), vec![0; BLOCK as usize]);
    larder.stop();
}

#[test]
fn a_cache_without_dirty_blocks_may_go() {
    let larder = with_dirty_blocks();
    let flushed = ask(&larder, &["flush", "b"]);
    assert!(flushed.status.success(), "{flushed:?}");
    let setup = larder.stop();
    assert!(!may_hold_dirty(&setup.path("cache.img.last.json")));
    set_aside(&setup.cache());
    let larder = setup.start();
    is_there(&larder);
    // Under write-through there is nothing to miss, also after a kill.
    let setup = larder.stop();
    fs::remove_file(setup.cache()).expect("removed");
    let setup = Setup::new("8MiB").tenant("a", "write_policy = \"wt\"").volume("a0", 4 * MIB);
    let setup = setup.start().kill();
    assert!(!may_hold_dirty(&setup.path("cache.img.last.json")));
    fs::remove_file(setup.cache()).expect("removed");
    setup.start().stop();
}

/// Write-back that begins while the daemon runs.
#[test]
fn a_policy_that_is_set_later_counts() {
    let setup = Setup::new("8MiB").tenant("b", "write_policy = \"wt\"").volume("b0", 4 * MIB);
    let larder = setup.start();
    let last = larder.path("cache.img.last.json");
    assert!(!may_hold_dirty(&last));
    let set = ask(&larder, &["set", "--tenant", "b", "write_policy=wb"]);
    assert!(set.status.success(), "{set:?}");
    wait_for("the policy", || {
        let policy = larder.tenant("b")["write_policy"].clone();
        if policy == "wb" { Ok(()) } else { Err(policy.to_string()) }
    });
    write(&larder);
    let setup = larder.kill();
    assert!(may_hold_dirty(&last));
    let aside = set_aside(&setup.cache());
    is_refused(&setup, &["holds nothing"]);
    fs::rename(aside, setup.cache()).expect("back");
    let larder = setup.start();
    is_there(&larder);
    larder.stop();
}

/// A check says beforehand what a start would.
#[test]
fn a_volume_with_dirty_blocks_that_is_gone_from_the_configuration_is_missed() {
    let setup = with_dirty_blocks().kill();
    let config = setup.write_config();
    let text = fs::read_to_string(&config).expect("readable");
    let without = text.split("[[tenant]]").filter(|part| !part.contains("\"b0\"")).collect::<Vec<_>>();
    let without = without.join("[[tenant]]");
    let disk = setup.path("b0.img");
    let copy = setup.path("copy.img");
    fs::copy(&disk, &copy).expect("a copy");
    let known = format!("volume \"b0\" on {}, 4194304 bytes (dirty blocks: 16): ", disk.display());
    let is_missed = |text: &str, why: &str| {
        fs::write(&config, text).expect("writable");
        for how in [&["serve", "--check"][..], &["serve"], &["doctor"]] {
            let output = larder().args(how).arg("--config").arg(&config).output().expect("it runs");
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(!output.status.success(), "{how:?}: {said}");
            for part in [&known, why, "help: configure that volume again", "larder cache writeback"] {
                assert!(said.contains(part), "{how:?}: {part}: {said}");
            }
        }
    };
    is_missed(&without, "no volume of this name is configured");
    is_missed(&text.replace("\"b0\"", "\"other\""), "volume \"other\" has its backing");
    let elsewhere = text.replace(&*disk.display().to_string(), &copy.display().to_string());
    assert_ne!(elsewhere, text);
    is_missed(&elsewhere, &format!("with another backing, {}", copy.display()));
    let resize = |bytes| fs::File::options().write(true).open(&disk).and_then(|file| file.set_len(bytes));
    resize(MIB).expect("a smaller disk");
    is_missed(&text, "has 1048576 bytes now instead of 4194304");
    resize(4 * MIB).expect("its size again");
    let aside = set_aside(&disk);
    fs::rename(&copy, &disk).expect("another file");
    is_missed(&text, "the file was replaced by another one of its name");
    fs::rename(aside, &disk).expect("the file again");
    let larder = setup.start();
    is_there(&larder);
    larder.stop();
}

/// Clean blocks of a volume that is another one are dropped, and the log says of which, and why.
#[test]
fn what_starts_cold_is_named_in_the_log() {
    let setup = Setup::new("8MiB").control("allocator = \"static\"");
    let wt = "write_policy = \"wt\"";
    let setup = setup.tenant("a", wt).volume("a0", 4 * MIB).tenant("b", wt).volume("b0", 4 * MIB);
    let larder = setup.start();
    write(&larder);
    let setup = larder.stop();
    let (disk, copy) = (setup.path("b0.img"), setup.path("copy.img"));
    fs::copy(&disk, &copy).expect("a copy");
    fs::rename(&copy, &disk).expect("another file");
    let larder = setup.start();
    let log = larder.log();
    for part in ["0 of 16 cached blocks are used again; 16 are dropped", "starts cold: the file was replaced"]
    {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(!log.contains("the quotas have no room"), "{log}");
    larder.stop();
}

/// The SSD was not mounted for a while, and a cache was made in its place.
#[test]
fn a_cache_that_was_not_the_last_one_is_not_trusted() {
    let setup = Setup::new("8MiB").control("allocator = \"static\"");
    let larder = setup.tenant("a", "write_policy = \"wt\"").volume("b0", 4 * MIB).start();
    write(&larder);
    is_there(&larder);
    let setup = larder.stop();
    let cache = setup.cache();
    let first = set_aside(&cache);
    let larder = setup.start();
    let newer = stamp(3, 1, 0, 16 * BLOCK);
    let read = |larder: &Larder| {
        let mut client = Client::connect(&larder.socket("b0"), "b0");
        client.read(0, 16 * BLOCK as u32).expect("a read")
    };
    let mut client = Client::connect(&larder.socket("b0"), "b0");
    client.write(0, &newer).expect("a write");
    drop(client);
    let setup = larder.stop();
    let second = cache.with_extension("second");
    fs::rename(&cache, &second).expect("aside");
    fs::rename(&first, &cache).expect("mounted again");
    is_refused(&setup, &["may be older than what guests have written", "larder cache format"]);
    // The last one is trusted; a copy of it from before is not.
    fs::copy(&second, cache.with_extension("copy")).expect("a copy");
    fs::rename(&second, &cache).expect("back");
    let larder = setup.start();
    assert_eq!(read(&larder), newer);
    let setup = larder.stop().start().stop();
    fs::rename(cache.with_extension("copy"), &cache).expect("an older state");
    is_refused(&setup, &["an older state of it", "may be older than what guests have written"]);
    // One that is made anew will do.
    let made = crate::common::daemon::larder()
        .args(["cache", "format", "--force", "--size", "8MiB"])
        .arg(&cache)
        .output();
    assert!(made.expect("it runs").status.success());
    let larder = setup.start();
    assert_eq!(read(&larder), newer);
    larder.stop();
}
