//! Volumes as block devices: under a guest's kernel that has ublk, where Larder itself runs in the guest; and on a host that has none.

use std::path::Path;

use tempfile::TempDir;

use crate::common::daemon::{Larder, count, tenant};
use crate::common::guest::Guest;
use crate::common::process::{program, run};
use crate::common::setup::{MIB, Setup};

/// Functions for the script below.
const FUNCTIONS: &str = r#"
config() {
    cat > larder.toml <<T
[cache]
path = "/tmp/cache.img"
size = "32MiB"
[control]
socket = "/tmp/larder.sock"
[[tenant]]
name = "t"
write_policy = "$1"
[[tenant.volume]]
name = "root"
backing = "/tmp/disk.img"
nbd = "unix:/tmp/root.sock"
ublk = true
[[tenant.volume]]
name = "other"
backing = "/tmp/other.img"
ublk = true
T
}

fail() { echo "FAILED: $*"; cat larder.log; dmesg | tail -n 20; echo "JOB-DONE 1"; poweroff -n -f; sleep 60; }

# Start the daemon, and wait until it is ready.
start() {
    : > larder.log
    larder serve --config larder.toml > larder.log 2>&1 &
    pid=$!
    until grep -q ' ready' larder.log; do
        kill -0 $pid || fail "larder ended at its start"
        usleep 100000
    done
}

served_again() { grep -q "serving /dev/larder/$1 again" larder.log || fail "$1 is not gone on with"; }

# End the daemon in order.
stop() { kill $pid; wait $pid || fail "larder does not end well"; }

gone() { [ ! -e /dev/larder/root ] && [ ! -e /dev/larder/other ] && ! ls /dev/ublkb* 2> /dev/null || fail "a device is left"; }
"#;

/// Everything that an operator does with a device, under one write policy.
const LIFE: &str = r#"
truncate -s 96M disk.img
truncate -s 16M other.img
config $policy
start
larder status --json --socket larder.sock | tr -d ' ' | grep -q '"ublk":"/dev/larder/root"' || fail "the status does not tell"
mkfs.ext4 -q /dev/larder/root || fail mkfs
# As it is to be pasted.
mkdir -p /mnt/root
larder volume show --config larder.toml root | grep -o '/dev/larder/root .*' > /etc/fstab
/sbin/mount /mnt/root || fail mount

# Write and verify while the daemon is killed; nobody may notice more than pauses.
fio --name=data --directory=/mnt/root --size=16M --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --fsync=16 \
    --verify=crc32c --verify_backlog=64 --loops=$loops > fio.log 2>&1 &
fio=$!
kills=0
while [ $kills -lt 4 ] && usleep 300000 && kill -0 $fio 2> /dev/null; do
    kill -9 $pid
    start
    served_again root
    served_again other
    kills=$((kills + 1))
done
wait $fio || { cat fio.log; fail fio; }
[ $kills -ge 2 ] || fail "fio was done after $kills kills"
echo "KILLS $policy $kills"

# What was written stays, over an orderly stop while it is mounted, and over the cache's loss of a page cache.
dd if=/dev/urandom of=/mnt/root/file bs=64k count=32 2> /dev/null
sync
sum=$(md5sum < /mnt/root/file)
stop
grep -q 'stays for the next start' larder.log || fail "a device in use does not stay"
[ ! -e /dev/larder/other ] || fail "a device that nobody uses stays"
# Nobody serves it: a read waits for the next daemon.
echo 3 > /proc/sys/vm/drop_caches
md5sum < /mnt/root/file > sum &
reader=$!
usleep 500000
kill -0 $reader || fail "a read does not wait"
start
served_again root
wait $reader
[ "$sum" = "$(cat sum)" ] || fail "the file is another"

# Another disk in the place of its backing gets none of its requests. (With dirty blocks there is no start at all.)
if [ $policy = wt ]; then
kill -9 $pid
mv disk.img aside.img
truncate -s 96M disk.img
start
grep -q 'no block device: /dev/ublkb[01] is in use since the volume had another backing' larder.log || fail "another backing is taken"
larder status --json --socket larder.sock | tr -d ' ' | grep -q '"ublk":null' || fail "the status tells of a device"
stop
mv aside.img disk.img
# Its own one may have grown meanwhile.
truncate -s 112M disk.img
start
served_again root
grep -q 'keeps its size' larder.log || fail "nothing is told of the size"
[ "$sum" = "$(md5sum < /mnt/root/file)" ] || fail "the file is another"
fi

umount /mnt/root || fail umount
e2fsck -fn /dev/larder/root || fail e2fsck
stop
gone
# The backing alone has it all, once what is dirty is saved.
larder cache writeback cache.img || fail writeback
e2fsck -fn disk.img || fail "e2fsck of the backing"

# Discards and zeroes arrive, and a device that nobody served is replaced when its volume has another size.
start
kill -9 $pid
truncate -s 48M other.img
start
served_again root
[ "$(cat /sys/block/$(basename $(readlink /dev/larder/other))/size)" = 98304 ] || fail "the size is not the new one"
dd if=/dev/urandom of=/dev/larder/other bs=1M count=8 oflag=direct 2> /dev/null
/sbin/blkdiscard -o 1M -l 2M /dev/larder/other || fail blkdiscard
/sbin/blkdiscard -z -o 4M -l 1M /dev/larder/other || fail "blkdiscard -z"
zeroes() { [ "$(dd if=/dev/larder/other bs=1M skip=$1 count=$2 iflag=direct 2> /dev/null | tr -d '\0' | wc -c)" = 0 ]; }
zeroes 1 2 && zeroes 4 1 || fail "there is data where it was discarded"
zeroes 0 1 && fail "what was not discarded is gone"
zeroes 3 1 && fail "what was not discarded is gone"

# A volume grows while it is served: this kernel's device keeps its size, which is told.
truncate -s 64M other.img
larder volume resize other --socket larder.sock 2> told || fail resize
grep -q 'its block device keeps its size: the kernel cannot' told || fail "nothing is told of the device"
larder status --json --socket larder.sock | tr -d ' ' | grep -q '"size_bytes":67108864' || fail "the volume has not grown"
[ "$(cat /sys/block/$(basename $(readlink /dev/larder/other))/size)" = 98304 ] || fail "the device has another size"

# A device stays for a program that has it open, and for a loop device on it.
sleep 1000 < /dev/larder/other &
holder=$!
stop
[ -e /dev/larder/other ] || fail "a device that a program has open is gone"
start
served_again other
kill $holder
losetup /dev/loop0 /dev/larder/other || fail losetup
stop
[ -e /dev/larder/other ] || fail "a device with a loop device on it is gone"
start
served_again other
losetup -d /dev/loop0
stop
gone
rm -f disk.img other.img cache.img
"#;

#[test]
fn a_block_device_outlives_killed_daemons() {
    let folder = TempDir::new().expect("a temporary folder");
    let policy = |policy: &str, loops: u32| format!("policy={policy} loops={loops}\n{LIFE}");
    let job = [
        "modprobe ublk_drv\nmodprobe loop\ncd /tmp\n",
        FUNCTIONS,
        &policy("wt", 1),
        &policy("wb", 1),
        "if dmesg | grep -i 'i/o error\\|hung\\|ext4-fs error'; then exit 5; fi\n",
    ];
    let larder = Path::new(env!("CARGO_BIN_EXE_larder"));
    let console = Guest::start_with_ublk(folder.path(), "ublk", &[larder], &job.concat()).succeeds();
    assert!(console.contains("KILLS wt") && console.contains("KILLS wb"), "{console}");
}

/// A volume that grows under a file system at work, where the kernel can change the size of a device (from Linux 6.16 on).
const GROWTH: &str = r#"
size() { cat /sys/block/$(basename $(readlink /dev/larder/$1))/size; }
truncate -s 96M disk.img
truncate -s 16M other.img
config wb
start
mkfs.ext4 -q /dev/larder/root || fail mkfs
mkdir -p /mnt/root
/sbin/mount /dev/larder/root /mnt/root || fail mount
fio --name=data --directory=/mnt/root --size=16M --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --fsync=16 \
    --verify=crc32c --verify_backlog=64 > fio.log 2>&1 &
fio=$!
truncate -s 128M disk.img
larder volume resize root --socket larder.sock 2> told || fail resize
grep -q 'keeps its size' told && fail "the device is said to keep its size"
[ "$(size root)" = 262144 ] || fail "the device has $(size root) sectors"
kill -0 $fio || fail "fio was done before the device grew"
wait $fio || { cat fio.log; fail fio; }
resize2fs /dev/larder/root || fail resize2fs
# More than the disk had.
dd if=/dev/urandom of=/mnt/root/file bs=1M count=85 2> /dev/null || fail dd
sync
sum=$(md5sum < /mnt/root/file)

kill -9 $pid
start
served_again root
[ "$(size root)" = 262144 ] || fail "the next daemon's device has $(size root) sectors"
# Also while nobody serves it.
kill -9 $pid
truncate -s 160M disk.img
start
served_again root
[ "$(size root)" = 327680 ] || fail "the device has $(size root) sectors"
grep -q 'keeps its size' larder.log && fail "the device is said to keep its size"
echo 3 > /proc/sys/vm/drop_caches
[ "$sum" = "$(md5sum < /mnt/root/file)" ] || fail "the file is another"
umount /mnt/root || fail umount
e2fsck -fn /dev/larder/root || fail e2fsck
stop
gone
if dmesg | grep -i 'i/o error\|hung\|ext4-fs error'; then exit 5; fi
"#;

#[test]
fn a_block_device_grows_with_its_volume() {
    let folder = TempDir::new().expect("a temporary folder");
    let job = ["modprobe ublk_drv\ncd /tmp\n", FUNCTIONS, GROWTH].concat();
    let (larder, resize) = (Path::new(env!("CARGO_BIN_EXE_larder")), Path::new("/usr/sbin/resize2fs"));
    Guest::start_with_new_ublk(folder.path(), "growth", &[larder, resize], &job).succeeds();
}

#[test]
fn without_ublk_all_else_goes_on() {
    if Path::new("/dev/ublk-control").exists() {
        eprintln!("this host has ublk: the guest's test is the one that counts");
        return;
    }
    let larder = Setup::new("8MiB").tenant("t", "").volume("v", MIB).block_device("d", MIB).start();
    let log = larder.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("ublk")).collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(
        told[0].contains("no block device: this host has no /dev/ublk-control: modprobe ublk_drv")
            && told[0].contains("volume=\"d\""),
        "{log}"
    );
    let volumes = larder.tenant("t")["volumes"].clone();
    assert!(volumes[1]["ublk"].is_null(), "{volumes}");
    let problem = volumes[1]["ublk_problem"].as_str().expect("the reason");
    assert!(problem.contains("modprobe ublk_drv"), "{problem}");
    assert!(volumes[0]["ublk_problem"].is_null(), "{volumes}");
    write_and_read(&larder);
    larder.stop();
}

/// Over NBD, as ever.
fn write_and_read(larder: &Larder) {
    let mut client = program("qemu-io");
    client.args(["-f", "raw", "-c", "write -P 7 0 64k", "-c", "flush", "-c", "read -P 7 0 64k"]);
    run(client.arg(larder.uri("v")), larder.folder());
    assert!(count(&tenant(&larder.status(), "t"), "write_misses") > 0);
}
