//! Volumes change while they are served: they grow, and are quiet while a snapshot is taken of their backings.

use std::fs::{self, File};
use std::time::Duration;

use crate::common::LIMIT;
use crate::common::daemon::{Larder, count, larder};
use crate::common::guest::Guest;
use crate::common::nbd::Client;
use crate::common::pattern::stamp;
use crate::common::process::{Outcome, program, run, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;

fn volume(of: &Larder, words: &[&str]) -> Outcome {
    let mut command = larder();
    command.arg("volume").args(words).arg("--socket").arg(of.control_socket());
    run_within(LIMIT, &mut command, of.folder())
}

fn done(of: &Larder, words: &[&str]) -> String {
    let outcome = volume(of, words);
    assert!(outcome.status.success(), "{words:?}: {}", outcome.stderr);
    outcome.stdout
}

fn refused(of: &Larder, words: &[&str]) -> String {
    let outcome = volume(of, words);
    assert!(!outcome.status.success(), "{words:?}: {}", outcome.stdout);
    outcome.stderr
}

fn grow_backing(of: &Larder, name: &str, bytes: u64) {
    let backing = File::options().write(true).open(of.backing(name)).expect("the backing");
    backing.set_len(bytes).expect("a longer file");
}

#[test]
fn a_volume_grows_and_is_still_warm_after_a_kill() {
    let larder = Setup::new("16MiB").tenant("t", "write_policy = \"wb\"").volume("v", 8 * MIB).start();
    let mut client = Client::connect(&larder.socket("v"), "v");
    for block in 0..100 {
        client.write(block * BLOCK, &stamp(1, 1, block * BLOCK, BLOCK)).expect("a write");
    }
    client.flush().expect("a flush");
    let same = refused(&larder, &["resize", "v"]);
    assert!(same.contains("its backing 8388608") && same.contains("truncate -s"), "{same}");
    grow_backing(&larder, "v", 24 * MIB);
    assert!(done(&larder, &["resize", "v"]).contains("from 8 MiB to 24 MiB"));
    let size = run(program("nbdinfo").arg("--size").arg(larder.uri("v")), larder.folder());
    assert_eq!(size.trim(), (24 * MIB).to_string());
    let mut client = Client::connect(&larder.socket("v"), "v");
    let far = 20 * MIB;
    client.write(far, &stamp(1, 2, far, BLOCK)).expect("a write beyond the old end");
    client.flush().expect("a flush");
    let larder = larder.kill().start();
    assert_eq!(count(&larder.tenant("t"), "warm_blocks"), 101);
    let mut client = Client::connect(&larder.socket("v"), "v");
    assert_eq!(client.read(far, BLOCK as u32).expect("a read"), stamp(1, 2, far, BLOCK));
    assert_eq!(client.read(0, BLOCK as u32).expect("a read"), stamp(1, 1, 0, BLOCK));
    grow_backing(&larder, "v", 16 * MIB);
    let smaller = refused(&larder, &["resize", "v"]);
    assert!(smaller.contains("never shrinks"), "{smaller}");
    assert!(refused(&larder, &["resize", "w"]).contains("there is no volume \"w\""));
}

#[test]
fn a_backing_that_has_grown_while_nobody_served_it_is_the_same() {
    let larder = Setup::new("16MiB").tenant("t", "write_policy = \"wb\"").volume("v", 8 * MIB).start();
    let mut client = Client::connect(&larder.socket("v"), "v");
    client.write(0, &stamp(1, 1, 0, BLOCK)).expect("a write");
    client.flush().expect("a flush");
    let setup = larder.kill();
    let backing = File::options().write(true).open(setup.backing("v")).expect("the backing");
    backing.set_len(9 * MIB).expect("a longer file");
    let larder = setup.start();
    assert_eq!(count(&larder.tenant("t"), "warm_blocks"), 1);
    let mut client = Client::connect(&larder.socket("v"), "v");
    assert_eq!(client.read(0, BLOCK as u32).expect("a read"), stamp(1, 1, 0, BLOCK));
}

#[test]
fn a_quiet_volumes_backing_is_whole_and_does_not_change() {
    let larder = Setup::new("16MiB").tenant("t", "write_policy = \"wb\"").volume("v", 4 * MIB).start();
    let traffic = Traffic::verified(&larder.socket("v"), "v", 256);
    traffic.goes_on();
    assert!(done(&larder, &["quiesce", "v"]).contains("quiet for 60 s at most"));
    let before = fs::read(larder.backing("v")).expect("the backing");
    std::thread::sleep(Duration::from_millis(300));
    assert!(fs::read(larder.backing("v")).expect("the backing") == before, "nothing changes it");
    let status = larder.tenant("t");
    let of = &status["volumes"][0];
    assert_eq!((of["quiet"].as_bool(), count(of, "clients"), count(of, "dirty_blocks")), (Some(true), 1, 0));
    assert!(refused(&larder, &["quiesce", "v"]).contains("larder volume thaw v"));
    assert!(done(&larder, &["thaw", "v"]).contains("it was quiet until now"));
    traffic.goes_on();
    let late = refused(&larder, &["thaw", "v"]);
    assert!(late.contains("may be torn"), "{late}");
    done(&larder, &["quiesce", "v", "--hold", "1"]);
    traffic.goes_on();
    traffic.finish();
}

/// Wait for the disk to grow, then use what is new.
const GROWS: &str = "
set -e
[ $(cat /sys/block/vda/size) = 131072 ]
echo READY
while [ $(cat /sys/block/vda/size) = 131072 ]; do sleep 0.2; done
[ $(cat /sys/block/vda/size) = 196608 ]
fio --name=new --filename=/dev/vda --offset=64M --size=8M --rw=randwrite --bs=4k --iodepth=8 --ioengine=libaio --direct=1 --verify=crc32c
";

#[test]
fn a_guest_sees_its_disk_grow() {
    let larder = Setup::new("16MiB").tenant("t", "").disk("d", 64 * MIB).start();
    let mut guest = Guest::start(larder.folder(), "d", &larder.vhost_socket("d"), GROWS);
    guest.says("READY");
    grow_backing(&larder, "d", 96 * MIB);
    done(&larder, &["resize", "d"]);
    guest.succeeds();
    larder.stop();
}
