//! Virtual machines with Larder's volumes as their disks, over vhost-user: two at a time, each with a tenant of its own.

use std::thread::sleep;
use std::time::Duration;

use crate::common::daemon::{Larder, larder};
use crate::common::guest::Guest;
use crate::common::kills::{a_while, seed, times};
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
const GREETING: Duration = Duration::from_millis(500);

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
    clean_without_larder(&larder.stop());
}

/// With all that is dirty saved, the backings alone are what the guests left.
fn clean_without_larder(setup: &Setup) {
    run(larder().args(["cache", "writeback"]).arg(setup.cache()), setup.folder());
    for name in ["t", "b"] {
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
    clean_without_larder(&larder.stop());
}
