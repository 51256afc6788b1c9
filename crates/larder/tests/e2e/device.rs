//! The cache device fails under the running daemon, and is there again: gone, read-only, or full. What is clean is served on; what the device alone has is
//! refused, named, and back with the device, over a restart, too.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::common::daemon::{Larder, count, larder};
use crate::common::disk::is_root;
use crate::common::nbd::{Client, Failure};
use crate::common::pattern::{first_difference, stamp};
use crate::common::process::{Background, Outcome, program, run, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::{LIMIT, wait_for};

const EIO: u32 = 5;

/// Nothing is written back by itself, however long it rests.
const LAZY: &str = "write_policy = \"wb\"\ndirty_rest = 70\ndirty_max = 90\ndirty_age = \"1h\"";

/// What has to be undone, last first, however the test ends.
#[derive(Default)]
struct Undo(Vec<Command>);

impl Undo {
    fn later(&mut self, name: &str, arguments: &[&str]) {
        let mut command = program(name);
        command.args(arguments);
        self.0.push(command);
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        while let Some(mut command) = self.0.pop() {
            // A process that another test has just started may have it open for a moment.
            for _ in 0..100 {
                if command.output().is_ok_and(|output| output.status.success()) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
    }
}

/// A block device that fails as long as a file is there: a loop device over `nbdfuse` over nbdkit's error filter. `/dev/loopN` is behind the name of the
/// cache file, and can go away from there.
struct Device {
    _undo: Undo,
    _nbdfuse: Background,
    _nbdkit: Background,
    trigger: PathBuf,
    link: PathBuf,
    device: PathBuf,
}

impl Device {
    /// What fails is `what` of nbdkit's filter: `error`, or `error-pwrite` for writes alone.
    fn behind(setup: &Setup, what: &str) -> Self {
        let (socket, trigger) = (setup.path("nbdkit.sock"), setup.path("trigger"));
        let mut nbdkit = program("nbdkit");
        nbdkit.args(["-f", "-U"]).arg(&socket).args(["--filter=error", "memory", "40M", "error=EIO"]);
        nbdkit.args([format!("{what}-rate=100%"), format!("{what}-file={}", trigger.display())]);
        let nbdkit = Background::start(&mut nbdkit, &setup.path("nbdkit.log"));
        wait_for("nbdkit", || socket.exists().then_some(()).ok_or_else(|| nbdkit.log()));

        let (folder, file) = (setup.path("fuse"), setup.path("fuse/disk"));
        fs::create_dir(&folder).expect("a mount point");
        let mut nbdfuse = program("nbdfuse");
        nbdfuse.arg(&file).arg(format!("nbd+unix:///?socket={}", socket.display()));
        let nbdfuse = Background::start(&mut nbdfuse, &setup.path("nbdfuse.log"));
        wait_for("nbdfuse", || file.exists().then_some(()).ok_or_else(|| nbdfuse.log()));
        let mut undo = Undo::default();
        undo.later("fusermount3", &["-u", &folder.display().to_string()]);

        let mut losetup = program("losetup");
        losetup.args(["--direct-io=on", "--find", "--show"]).arg(&file);
        let device = run(&mut losetup, setup.folder()).trim().to_owned();
        undo.later("losetup", &["-d", &device]);
        let device = Self {
            _undo: undo,
            _nbdfuse: nbdfuse,
            _nbdkit: nbdkit,
            trigger,
            link: setup.cache(),
            device: device.into(),
        };
        device.connect();
        device
    }

    fn fail(&self) {
        File::create(&self.trigger).expect("the trigger");
    }

    fn heal(&self) {
        fs::remove_file(&self.trigger).expect("the trigger");
    }

    fn connect(&self) {
        symlink(&self.device, &self.link).expect("the cache's name");
    }

    fn disconnect(&self) {
        fs::remove_file(&self.link).expect("the cache's name");
    }
}

fn volume(larder: &Larder, of: &str) -> Value {
    larder.tenant(of)["volumes"][0].clone()
}

fn write(client: &mut Client, generation: u64, blocks: std::ops::Range<u64>) {
    for block in blocks {
        client.write(block * BLOCK, &stamp(3, generation, block * BLOCK, BLOCK)).expect("a write");
    }
    client.flush().expect("a flush");
}

fn verify(client: &mut Client, generation: u64, blocks: std::ops::Range<u64>) {
    for block in blocks {
        let found = client.read(block * BLOCK, BLOCK as u32).expect("a read");
        let expected = stamp(3, generation, block * BLOCK, BLOCK);
        assert_eq!(first_difference(&found, &expected), None, "block {block}");
    }
}

fn refused(result: Result<impl Sized, Failure>) -> bool {
    matches!(result, Err(Failure::Refused(EIO)))
}

fn ask(setup: &Setup, words: &[&str]) -> Outcome {
    let mut command = larder();
    command.args(words).arg("--socket").arg(setup.control_socket());
    run_within(LIMIT, &mut command, setup.folder())
}

fn wait_for_state(larder: &Larder, of: &str, state: &str) {
    wait_for(&format!("{of} is {state}"), || {
        let volume = volume(larder, of);
        (volume["state"] == state).then_some(()).ok_or_else(|| format!("{volume:#}"))
    });
}

/// Tenant `a` under `wb`, with data that the cache alone has; `b` under `wt`; `c` under `wb`, with nothing dirty.
struct World {
    larder: Larder,
    a: Client,
    b: Client,
    c: Client,
}

impl World {
    fn start(setup: Setup) -> Self {
        let setup = setup.tenant("a", LAZY).volume("a0", 4 * MIB);
        let setup = setup.tenant("b", "write_policy = \"wt\"").volume("b0", 8 * MIB);
        Self::of(setup.tenant("c", LAZY).volume("c0", 4 * MIB))
    }

    fn of(setup: Setup) -> Self {
        let larder = setup.start();
        let client = |name| Client::connect(&larder.socket(name), name);
        let (a, b, c) = (client("a0"), client("b0"), client("c0"));
        Self { larder, a, b, c }
    }

    /// Blocks 10 to 29 and 100 of `a` are dirty, and 50 blocks of each other volume are cached.
    fn fill(&mut self) {
        write(&mut self.a, 1, 10..30);
        write(&mut self.a, 1, 100..101);
        write(&mut self.b, 1, 1000..1050);
        write(&mut self.c, 1, 0..50);
        let drained = ask(&self.larder, &["drain", "c"]);
        assert!(drained.status.success(), "{drained:?}");
        assert!(ask(&self.larder, &["drain", "--off", "c"]).status.success());
        verify(&mut self.b, 1, 1000..1050);
        verify(&mut self.c, 1, 0..50);
    }

    /// The device has failed: who notices, and what is told. Guests of `b` go on all the time (`traffic`), and nothing fails for them.
    fn loses_its_device(&mut self, traffic: &Traffic) {
        let Self { larder, a, b, c } = self;
        traffic.goes_on();
        wait_for_state(larder, "a", "failed");
        wait_for("what is lost is written down", || {
            let cache = larder.status()["cache"].clone();
            cache["loss_file"].is_string().then_some(()).ok_or_else(|| format!("{cache:#}"))
        });
        traffic.goes_on();
        assert!(refused(a.read(10 * BLOCK, 4096)) && refused(a.read(0, 512)) && refused(a.flush()));
        assert!(refused(a.write(3 * MIB, &[7; 4096])));
        verify(c, 1, 0..50);
        write(c, 2, 0..10);
        write(b, 2, 1000..1010);
        verify(b, 2, 1000..1010);

        let status = larder.status();
        assert_eq!(status["cache"]["state"], "failed");
        let a0 = volume(larder, "a");
        assert_eq!((count(&a0, "lost_bytes"), count(&a0, "lost_ranges")), (21 * BLOCK, 2), "{a0:#}");
        assert_eq!(
            [volume(larder, "b")["state"].clone(), volume(larder, "c")["state"].clone()],
            ["ok", "ok"]
        );
        let listed = ask(larder, &["status", "--lost", "a0"]);
        assert_eq!(listed.stdout, format!("{} {}\n{} {}\n", 10 * BLOCK, 20 * BLOCK, 100 * BLOCK, BLOCK));
        assert_eq!(ask(larder, &["status", "--lost", "b0"]).stdout, "");
        let table = ask(larder, &["status"]).stdout;
        for words in ["failed: requests are refused; 84 KiB in 2 ranges", "cache.img.loss.json"] {
            assert!(table.contains(words), "no {words:?} in {table}");
        }
        let file = PathBuf::from(status["cache"]["loss_file"].as_str().expect("a file"));
        let kept: Value = serde_json::from_slice(&fs::read(file).expect("the file")).expect("JSON");
        assert_eq!(kept["volumes"][0]["volume"], "a0");
        assert_eq!(kept["volumes"][0]["ranges"][1]["offset"], 100 * BLOCK);
        let flush = ask(larder, &["flush", "a"]);
        assert!(flush.status.code() == Some(1) && flush.stderr.contains("volume a0 has failed"), "{flush:?}");
        for name in ["b", "c"] {
            let flush = ask(larder, &["flush", name]);
            assert!(flush.status.success() && flush.stdout.contains("nothing was dirty"), "{flush:?}");
        }
    }

    /// It is there again, and in use.
    fn has_its_device_again(&mut self) {
        let Self { larder, a, b, c } = self;
        wait_for("the list is not needed any more", || {
            if larder.path("cache.img.loss.json").exists() { Err("it is there".into()) } else { Ok(()) }
        });
        verify(a, 1, 10..30);
        verify(a, 1, 100..101);
        // What was written past the cache is not overtaken by what is on it.
        verify(b, 2, 1000..1010);
        verify(b, 1, 1010..1050);
        verify(c, 2, 0..10);
        verify(c, 1, 10..50);
        let hits = count(&larder.tenant("b"), "read_hits");
        verify(b, 2, 1000..1010);
        // Others may hit as well.
        assert!(count(&larder.tenant("b"), "read_hits") >= hits + 10, "it is used as a cache");
        write(a, 3, 20..25);
        // While nobody asked for anything the others may have been written back.
        assert!(count(&volume(larder, "a"), "dirty_blocks") >= 5, "write-back goes on");
    }

    /// The data of a volume that has been back for a while, after a death.
    fn survives_a_kill(self) {
        let mut world = Self::of(self.larder.kill());
        verify(&mut world.a, 1, 10..20);
        verify(&mut world.a, 3, 20..25);
        verify(&mut world.b, 2, 1000..1010);
        let flushed = ask(&world.larder, &["flush", "a"]);
        assert!(flushed.status.success(), "{flushed:?}");
        let setup = world.larder.stop();
        let backing = fs::read(setup.backing("a0")).expect("the backing");
        let at = (22 * BLOCK) as usize;
        assert!(backing[at..at + 4096] == stamp(3, 3, 22 * BLOCK, BLOCK));
    }
}

fn setup() -> Setup {
    Setup::new("32MiB").control("allocator = \"static\"")
}

#[test]
fn a_device_that_is_gone_costs_its_own_data_until_it_is_back() {
    let setup = setup();
    if !is_root(setup.folder()) {
        return;
    }
    let device = Device::behind(&setup, "error");
    let mut world = World::start(setup);
    world.fill();
    let in_use = ask(&world.larder, &["cache", "attach"]);
    assert!(in_use.status.code() == Some(2) && in_use.stderr.contains("is in use"), "{in_use:?}");
    let traffic = Traffic::verified(&world.larder.socket("b0"), "b0", 200);
    device.fail();
    world.loses_its_device(&traffic);
    let attach = ask(&world.larder, &["cache", "attach"]);
    assert!(attach.status.code() == Some(2) && attach.stderr.starts_with("error: "), "{attach:?}");
    device.heal();
    wait_for_state(&world.larder, "a", "ok");
    traffic.goes_on();
    world.has_its_device_again();
    traffic.finish();
    world.survives_a_kill();
}

#[test]
fn a_device_that_can_only_be_read_is_as_one_that_is_gone() {
    let setup = setup();
    if !is_root(setup.folder()) {
        return;
    }
    let device = Device::behind(&setup, "error-pwrite");
    let mut world = World::start(setup);
    world.fill();
    let traffic = Traffic::verified(&world.larder.socket("b0"), "b0", 200);
    device.fail();
    world.loses_its_device(&traffic);
    device.heal();
    wait_for_state(&world.larder, "a", "ok");
    world.has_its_device_again();
    traffic.finish();
    world.survives_a_kill();
}

/// The daemon dies while the device is away, with the volume failed. It does not start without it, nor trust what it holds when it is back.
#[test]
fn a_restart_without_the_device_is_refused_and_one_with_it_has_everything() {
    let setup = setup();
    if !is_root(setup.folder()) {
        return;
    }
    let device = Device::behind(&setup, "error");
    let mut world = World::start(setup);
    world.fill();
    let traffic = Traffic::verified(&world.larder.socket("b0"), "b0", 200);
    device.fail();
    world.loses_its_device(&traffic);
    traffic.finish();
    let World { larder: running, .. } = world;
    let setup = running.kill();
    device.disconnect();
    let mut start = larder();
    start.args(["serve", "--config"]).arg(setup.write_config());
    let without = run_within(LIMIT, &mut start, setup.folder());
    assert_eq!(without.status.code(), Some(1), "{without:?}");
    for words in
        ["it failed with data that no backing has: a0 (84 KiB)", "help: bring back ", "cache.img.loss.json"]
    {
        assert!(without.stderr.contains(words), "no {words:?} in {without:?}");
    }
    assert!(!setup.cache().exists(), "no other cache is made in its place");

    // An empty one is not taken for it.
    fs::write(setup.cache(), "").expect("an empty file");
    let other = run_within(LIMIT, &mut start, setup.folder());
    assert!(other.stderr.contains("is not the cache that was in use"), "{other:?}");
    fs::remove_file(setup.cache()).expect("the empty file");

    device.connect();
    device.heal();
    let mut world = World::of(setup);
    assert_eq!(count(&world.larder.status()["cache"], "warm_blocks"), 21, "nothing clean is trusted");
    world.has_its_device_again();
    world.survives_a_kill();
}

/// A cache file with holes on a file system that is full: writes fail with ENOSPC, and work again when there is room.
#[test]
fn a_cache_file_without_space_is_as_a_device_that_is_gone() {
    let setup = setup();
    if !is_root(setup.folder()) {
        return;
    }
    let mount = setup.path("small");
    fs::create_dir(&mount).expect("a mount point");
    let mount_text = mount.display().to_string();
    run(program("mount").args(["-t", "tmpfs", "-o", "size=40m", "none", &mount_text]), setup.folder());
    let mut undo = Undo::default();
    undo.later("umount", &[&mount_text]);
    let file = File::create(mount.join("cache.img")).expect("a cache file");
    file.set_len(32 * MIB).expect("a file of the size");
    symlink(mount.join("cache.img"), setup.cache()).expect("the cache's name");

    let mut world = World::start(setup);
    world.fill();
    let traffic = Traffic::verified(&world.larder.socket("b0"), "b0", 200);
    // All slots that nobody has used yet are given back.
    let punch = |offset: u64, len: u64| {
        let mut fallocate = program("fallocate");
        fallocate
            .args(["-p", "-o", &offset.to_string(), "-l", &len.to_string()])
            .arg(mount.join("cache.img"));
        run(&mut fallocate, world.larder.folder());
    };
    punch(3 * MIB, 29 * MIB);
    let ballast = mount.join("ballast");
    let mut dd = program("dd");
    dd.args(["if=/dev/zero", "bs=64k"]).arg(format!("of={}", ballast.display()));
    let full = run_within(LIMIT, &mut dd, world.larder.folder());
    assert!(full.stderr.contains("No space left"), "{full:?}");
    // Blocks that are new to the cache need new slots.
    let mut reader = Client::connect(&world.larder.socket("b0"), "b0");
    wait_for("the cache file is given up", || {
        (1100..2048).for_each(|block| _ = reader.read(block * BLOCK, 4096).expect("a read without space"));
        let state = world.larder.status()["cache"]["state"].clone();
        (state == "failed").then_some(()).ok_or_else(|| state.to_string())
    });
    world.loses_its_device(&traffic);
    fs::remove_file(&ballast).expect("the ballast");
    wait_for_state(&world.larder, "a", "ok");
    world.has_its_device_again();
    traffic.finish();
    world.survives_a_kill();
}
