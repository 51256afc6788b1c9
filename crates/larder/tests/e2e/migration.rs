//! A guest moves from one daemon to another while it writes, over a backing that both reach; and back.

use crate::common::LIMIT;
use crate::common::daemon::{Larder, count, larder};
use crate::common::guest::Guest;
use crate::common::monitor::Monitor;
use crate::common::nbdkit::nbdkit;
use crate::common::process::{Outcome, program, run, run_within};
use crate::common::setup::{MIB, Setup};
use crate::common::wait_for;

/// Write and verify for far longer than two moves take, also where the machine is fast. Beside that, files go from the disk to memory that nothing else writes,
/// and are compared a moment later: a page that the daemon wrote, and that did not move, is found.
const MOVES: &str = "
set -e
mkfs.ext4 -q /dev/vda
mount -t ext4 /dev/vda /mnt
for n in 1 2 3 4 5 6; do dd if=/dev/urandom of=/mnt/file$n bs=1M count=3 2>/dev/null; done
md5sum /mnt/file? > /tmp/sums
sync
fio --name=data --directory=/mnt --size=12M --rw=randrw --bs=4k --iodepth=8 --ioengine=libaio --direct=1 --fsync=32 --verify=crc32c --verify_backlog=64 --loops=36 > /tmp/fio &
fio=$!
echo WRITING
while kill -0 $fio 2>/dev/null; do
    echo 1 > /proc/sys/vm/drop_caches
    for n in 1 2 3 4 5 6; do cat /mnt/file$n > /dev/null; sleep 0.3; done
    md5sum -c -s /tmp/sums || { echo 'a file is not what it was'; exit 7; }
done
wait $fio || { cat /tmp/fio; exit 6; }
echo WRITTEN
sync
if dmesg | grep -i 'error\\|hung'; then exit 5; fi
umount /mnt
e2fsck -fn /dev/vda
";

fn migrate(of: &Larder, step: &str) -> Outcome {
    let mut command = larder();
    command.args(["volume", "migrate", step, "d", "--socket"]).arg(of.control_socket());
    run_within(LIMIT, &mut command, of.folder())
}

fn done(of: &Larder, step: &str) {
    let outcome = migrate(of, step);
    assert!(outcome.status.success(), "{step}: {}", outcome.stderr);
}

fn refused(of: &Larder, step: &str) -> String {
    let outcome = migrate(of, step);
    assert!(!outcome.status.success(), "{step}: {}", outcome.stdout);
    outcome.stderr
}

/// A daemon on the backing that both hosts reach.
fn host(backing: &str) -> Larder {
    Setup::new("32MiB").tenant("t", "write_policy = \"wb\"").remote_disk("d", backing).start()
}

/// A guest there that can be told to leave, and one that is to come.
fn guest(at: &Larder, name: &str, more: &[&str]) -> (Guest, Monitor) {
    let socket = at.path(&format!("{name}.monitor"));
    let monitor = format!("unix:{},server=on,wait=off", socket.display());
    let arguments = [&["-monitor", &monitor], more].concat();
    let guest = Guest::start_to_migrate(at.folder(), name, &at.vhost_socket("d"), MOVES, &arguments);
    let monitor = Monitor::connect(&socket);
    (guest, monitor)
}

/// Move a guest, live.
fn moves(from: &Larder, mut leaving: Monitor, to: &Larder, name: &str) -> (Guest, Monitor) {
    let channel = format!("unix:{}", to.path(&format!("{name}.channel")).display());
    let coming = guest(to, name, &["-incoming", &channel]);
    done(from, "prepare");
    assert!(refused(from, "complete").contains("still in use here"));
    // Slow enough for much to be read meanwhile.
    leaving.ask("migrate_set_parameter max-bandwidth 32M");
    leaving.ask(&format!("migrate -d {channel}"));
    wait_for("the migration", || {
        let state = leaving.ask("info migrate");
        assert!(!state.contains("failed"), "{state}");
        if state.contains("Migration status: completed") { Ok(()) } else { Err(state) }
    });
    leaving.quit();
    wait_for("the guest has left", || match migrate(from, "complete") {
        outcome if outcome.status.success() => Ok(()),
        outcome => Err(outcome.stderr),
    });
    assert_eq!(count(&from.tenant("t"), "occupied_blocks"), 0, "nothing is cached of it any more");
    coming
}

#[test]
fn a_guest_moves_to_another_host_and_back_while_it_writes() {
    let shared = Setup::new("1MiB");
    let image = shared.sparse_file("shared", 96 * MIB);
    let (_server, backing) = nbdkit(&shared, "shared", &["file", &image, "cache=none"]);
    let (one, other) = (host(&backing), host(&backing));
    let (mut at_one, monitor) = guest(&one, "first", &[]);
    at_one.says("WRITING");
    assert!(refused(&one, "complete").contains("is not being migrated"));
    let (at_other, monitor) = moves(&one, monitor, &other, "second");
    assert!(!at_one.console().contains("WRITTEN"), "it left in the middle");
    let (back, _monitor) = moves(&other, monitor, &one, "third");
    assert!(!at_other.console().contains("WRITTEN"), "it left again in the middle");
    let console = back.succeeds();
    assert!(console.contains("WRITTEN"), "{console}");
    drop(other.stop());
    let setup = one.stop();
    run(larder().args(["cache", "writeback"]).arg(setup.cache()), setup.folder());
    run(program("e2fsck").arg("-fn").arg(&image), setup.folder());
}

#[test]
fn a_daemon_that_dies_while_a_guest_leaves_trusts_nothing_that_it_has_cached() {
    let larder = Setup::new("16MiB").tenant("t", "").volume("d", 8 * MIB).start();
    let read = |larder: &Larder| {
        let mut client = crate::common::nbd::Client::connect(&larder.socket("d"), "d");
        client.read(0, 4096).expect("a read")
    };
    assert_eq!(read(&larder), [0; 4096]);
    wait_for("the block is cached", || match count(&larder.tenant("t"), "occupied_blocks") {
        0 => Err("no".into()),
        _ => Ok(()),
    });
    done(&larder, "prepare");
    let setup = larder.kill();
    // The guest is on the other host, and writes.
    std::fs::write(setup.backing("d"), vec![7; 8 * MIB as usize]).expect("written");
    let larder = setup.start();
    assert_eq!(read(&larder), [7; 4096]);
    let off = run_within(
        LIMIT,
        crate::common::daemon::larder()
            .args(["drain", "--off", "d", "--socket"])
            .arg(larder.control_socket()),
        larder.folder(),
    );
    assert!(!off.status.success() && off.stderr.contains("is being migrated"), "{}", off.stderr);
    assert_eq!(larder.tenant("t")["volumes"][0]["migrating"], true);
    done(&larder, "abort");
    assert_eq!(larder.tenant("t")["volumes"][0]["migrating"], false);
}
