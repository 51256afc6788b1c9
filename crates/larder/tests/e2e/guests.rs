//! Virtual machines with Larder's volumes as their disks, over vhost-user: two at a time, each with a tenant of its own.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::daemon::{Larder, larder};
use crate::common::guest::Guest;
use crate::common::hostile::{self, Hostile};
use crate::common::kills::{a_while, seed, times};
use crate::common::nbd::Client;
use crate::common::pattern::{first_difference, stamp};
use crate::common::process::{program, run};
use crate::common::setup::{MIB, Setup};
use crate::common::wait_for;

/// Write a file system full of what fio can verify, boot once more, and find all of it.
const TWO_BOOTS: &str = "
fio='fio --name=data --directory=/mnt --size=12M --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --verify=crc32c'
set -e
if mount -t ext4 /dev/vda /mnt; then
    echo SECOND-BOOT
    $fio --verify_only
    umount /mnt
    e2fsck -fn /dev/vda
else
    mkfs.ext4 -q /dev/vda
    mount -t ext4 /dev/vda /mnt
    $fio --do_verify=1
    umount /mnt
    sync
    echo FIRST-BOOT-DONE
    reboot -f
    sleep 60
fi
";

/// Write and verify while the daemon is killed; the guest may notice no more than pauses.
const UNDER_KILLS: &str = "
set -e
mkfs.ext4 -q /dev/vda
mount -t ext4 /dev/vda /mnt
echo WRITING
fio --name=data --directory=/mnt --size=16M --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --fsync=16 --verify=crc32c --verify_backlog=64 --loops=3
sync
if dmesg | grep -i 'error\\|hung'; then exit 5; fi
umount /mnt
e2fsck -fn /dev/vda
";

/// Write and verify, for as long as that takes beside a hostile neighbour.
const UNDISTURBED: &str = "
set -e
mkfs.ext4 -q /dev/vda
mount -t ext4 /dev/vda /mnt
fio --name=data --directory=/mnt --size=24M --rw=randrw --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --fsync=32 --verify=crc32c --verify_backlog=64
umount /mnt
e2fsck -fn /dev/vda
mount -t ext4 /dev/vda /mnt
fio --name=data --directory=/mnt --size=24M --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --verify=crc32c --do_verify=1
umount /mnt
e2fsck -fn /dev/vda
if dmesg | grep -i 'error\\|hung'; then exit 5; fi
echo ALL-VERIFIED
";

/// Wait until every guest that runs has its disk again. False where none runs any more.
///
/// QEMU 7.2 never comes back to a daemon whose predecessor died while it was being greeted: it takes itself for connected.
fn all_are_back(larder: &Larder, guests: &mut [Guest]) -> bool {
    wait_for("the guests are back", || {
        let running = guests.iter_mut().filter_map(|guest| guest.runs().then_some(())).count();
        let back = larder.log().matches("a hypervisor has connected").count();
        if back >= running { Ok(()) } else { Err(format!("{back} of {running}")) }
    });
    sleep(GREETING);
    guests.iter_mut().any(Guest::runs)
}

/// Far more than QEMU's greeting takes.
const GREETING: Duration = Duration::from_millis(2000);

/// Two tenants, one writing through and one writing back, each with a disk for a guest.
fn two_disks() -> Setup {
    Setup::new("32MiB")
        .tenant("through", "write_policy = \"wt\"")
        .disk("t", 96 * MIB)
        .tenant("back", "write_policy = \"wb\"")
        .disk("b", 96 * MIB)
}

#[test]
fn two_guests_reboot_and_find_their_data() {
    let larder = two_disks().start();
    let guests =
        ["t", "b"].map(|name| Guest::start(larder.folder(), name, &larder.vhost_socket(name), TWO_BOOTS));
    for guest in guests {
        let console = guest.succeeds();
        assert!(console.contains("FIRST-BOOT-DONE") && console.contains("SECOND-BOOT"), "{console}");
    }
    clean_without_larder(&larder.stop(), &["t", "b"]);
}

/// With all that is dirty saved, the backings alone are what the guests left.
fn clean_without_larder(setup: &Setup, names: &[&str]) {
    run(larder().args(["cache", "writeback"]).arg(setup.cache()), setup.folder());
    for name in names {
        run(program("e2fsck").arg("-fn").arg(setup.backing(name)), setup.folder());
    }
}

#[test]
fn guests_notice_nothing_of_a_killed_daemon() {
    let mut state = seed();
    let mut larder = two_disks().start();
    let mut guests =
        ["t", "b"].map(|name| Guest::start(larder.folder(), name, &larder.vhost_socket(name), UNDER_KILLS));
    guests.iter_mut().for_each(|guest| guest.says("WRITING"));
    for kill in 0..times(4) {
        if !all_are_back(&larder, &mut guests) {
            break;
        }
        a_while(&mut state, Duration::from_millis(2500));
        eprintln!("kill {kill}");
        larder = larder.kill().start();
    }
    for guest in guests {
        guest.succeeds();
    }
    clean_without_larder(&larder.stop(), &["t", "b"]);
}

/// Bytes of the volume that the hostile tenant has besides the one that it breaks.
const KEPT: u64 = 8 * MIB;
/// Messages about one guest in a second, and the one that counts those left out.
const MESSAGES_PER_SECOND: u64 = 9;

/// All of the hostile tenant's other volume, as its client reads it.
fn kept_is_whole(larder: &Larder) {
    let mut client = Client::connect(&larder.socket("kept"), "kept");
    let read = client.read(0, KEPT as u32).expect("a read of the other volume");
    assert_eq!(first_difference(&read, &stamp(3, 0, 0, KEPT)), None);
}

#[test]
fn a_guest_notices_nothing_of_a_hostile_one() {
    let setup = Setup::new("32MiB").tenant("good", "write_policy = \"wb\"").disk("g", 96 * MIB);
    let setup = setup.tenant("hostile", "write_policy = \"wt\"").disk("h", hostile::DISK_BYTES);
    let larder = setup.stamped_volume("kept", KEPT, 3).start();
    kept_is_whole(&larder);
    let began = Instant::now();
    let hostile = Hostile::start(&larder.vhost_socket("h"));
    let good = Guest::start(larder.folder(), "g", &larder.vhost_socket("g"), UNDISTURBED);
    let console = good.succeeds();
    let done = hostile.finish();
    let seconds = began.elapsed().as_secs() + 1;
    assert!(console.contains("ALL-VERIFIED"), "{console}");
    eprintln!("{seconds} s: {done:?}");
    done.was_hostile();

    hostile::is_served_again(&larder.vhost_socket("h"));
    kept_is_whole(&larder);
    let log = larder.log();
    let about = |volume: &str| {
        let of_it = format!("volume=\"{volume}\"");
        log.lines().filter(|line| line.contains(&of_it) && !line.contains(" serving ")).count()
    };
    assert!(log.contains("a guest misbehaves, and is disconnected"), "{log}");
    assert!(log.contains("more messages about its guest were left out"), "{log}");
    // A second at each end is cut in two.
    let most = (seconds + 2) * MESSAGES_PER_SECOND;
    let (all, of_h) = (log.lines().count(), about("h"));
    assert!(of_h as u64 <= most && all <= of_h + 20, "{of_h} of {all} messages in {seconds} s: {log}");
    assert!(log.lines().all(|line| line.len() < 400), "{log}");
    assert_eq!(about("g"), 2, "the good guest came and went: {log}");
    assert!(!log.contains("panicked") && !log.contains("BUG"), "{log}");

    let setup = larder.stop();
    clean_without_larder(&setup, &["g"]);
    let kept = fs::read(setup.backing("kept")).expect("the other volume's backing");
    assert_eq!(first_difference(&kept, &stamp(3, 0, 0, KEPT)), None);
}
