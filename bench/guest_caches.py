#!/usr/bin/env python3
"""Larder, dm-cache and bcache inside one guest: the same kernel, the same two virtual disks, the same requests in the same order.

The guest runs by emulation, so that times mean nothing: none is taken. What is counted is what reaches the two disks (/proc/diskstats of the
guest, the same instrument for all), and each cache's own hit ratio, which each counts in units of its own. At the end of each run all that is dirty
is written back; what that takes is counted apart.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GUEST = f"{ROOT}/scripts/guest.sh"
# The guest's limit, by emulation on a busy machine.
SECONDS_MAX = 900
# Name: file in the folder of traces; what is generated without it; MiB of the cache, for data.
WORKLOADS = {
    "web_1": ("msr_web_1.csv.gz", "gen:zipf:theta=1.0,blocks=36000,requests=1000000,read=0.15,seed=1", 48),
    "P3": ("arc_P3.lis.zst", "gen:zipf:theta=0.8,blocks=36000,requests=1000000,read=1,seed=2", 48),
}
# Of dm-cache, on the same disk as its data.
METADATA_MIB = 4

SHELL = r"""
set -e
export DM_DISABLE_UDEV=1
# Reads, bytes read, writes, bytes written of both disks.
count() { awk -v when=$1 '$3 == "vda" || $3 == "vdb" { print "COUNT", when, $3, $4, $6 * 512, $8, $10 * 512 }' /proc/diskstats; }
# Ask a thing again and again until it says so.
until_says() { n=0; until [ "$(eval "$2")" = "$1" ]; do n=$((n + 1)); [ $n -lt 3000 ] || { echo "TOO LONG: $2"; exit 1; }; sleep 0.1; done; }
sectors() { cat /sys/block/$1/size; }
replay() { # device
    sed "s|DISK|$1|" /sbin/requests.iolog > /tmp/requests.iolog
    count begin
    fio --name=replay --read_iolog=/tmp/requests.iolog --replay_no_stall=1 --ioengine=psync --direct=1 --eta=never --output=/tmp/fio.log || { cat /tmp/fio.log; exit 1; }
    grep -q 'err= 0' /tmp/fio.log
    sync
    count end
}
"""

DM_CACHE = r"""
modprobe dm-cache-smq
meta=$((METADATA * 2048)) all=$(sectors vdb) slow=$(sectors vda)
# A file system or a daemon begins with the whole disk for itself; here the metadata's first sectors have to be empty.
dd if=/dev/zero of=/dev/vdb bs=1M count=METADATA 2>/dev/null
dmsetup create meta --table "0 $meta linear /dev/vdb 0"
dmsetup create data --table "0 $((all - meta)) linear /dev/vdb $meta"
table() { echo "0 $slow cache /dev/mapper/meta /dev/mapper/data /dev/vda BLOCK 1 $1 $2 0"; }
dmsetup create cached --table "$(table MODE smq)"
dmsetup mknodes
replay /dev/mapper/cached
# Of a line: read hits, read misses, write hits, write misses, demotions, promotions, dirty.
dmsetup status cached | awk '{ print "HITS", $8, $9, $10, $11; print "NOTE promotions", $13, "dirty", $14 }'
dmsetup suspend cached
dmsetup reload cached --table "$(table writethrough cleaner)"
dmsetup resume cached
until_says 0 "dmsetup status cached | awk '{ print \$14 }'"
sync
count flushed
dmsetup remove cached
"""

BCACHE = r"""
modprobe bcache
make-bcache --block 512 --bucket 64k -C /dev/vdb >/tmp/make.log 2>&1 || { cat /tmp/make.log; exit 1; }
make-bcache --block 512 -B /dev/vda >/tmp/make.log 2>&1 || { cat /tmp/make.log; exit 1; }
for disk in vdb vda; do echo /dev/$disk > /sys/fs/bcache/register; done
until_says yes "[ -b /dev/bcache0 ] && echo yes"
set=$(basename $(ls -d /sys/fs/bcache/*-*))
echo $set > /sys/block/bcache0/bcache/attach
cd /sys/block/bcache0/bcache
until_says yes "[ -e cache/internal ] && echo yes"
echo MODE > cache_mode
# Emulation is slow, and bcache passes by a cache that is: not here.
echo 0 > cache/congested_read_threshold_us
echo 0 > cache/congested_write_threshold_us
[ -z "CUTOFF" ] || echo CUTOFF > sequential_cutoff
echo "NOTE $(tr '\n' ' ' < cache_mode) cutoff $(cat sequential_cutoff)"
replay /dev/bcache0
# It sums up its counters only so often.
sleep 30
echo "HITS $(cat stats_total/cache_hits) $(cat stats_total/cache_misses) 0 0"
echo "NOTE bypassed $(cat stats_total/cache_bypass_hits) $(cat stats_total/cache_bypass_misses) dirty $(cat dirty_data)"
echo 1 > detach
until_says "no cache" "cat state"
sync
count flushed
cd /
"""

LARDER = r"""
modprobe nbd
mkdir -p /run/larder
cat > /larder.toml <<'T'
[cache]
path = "/dev/vdb"
size = "SIZE"
[control]
socket = "/run/larder/control"
allocator = "static"
[[tenant]]
name = "t"
write_policy = "MODE"
[[tenant.volume]]
name = "v"
backing = "/dev/vda"
nbd = "unix:/run/larder/v.sock"
T
larder serve --config /larder.toml > /tmp/larder.log 2>&1 & daemon=$!
until_says yes "grep -q ' ready' /tmp/larder.log && echo yes || { kill -0 $daemon || cat /tmp/larder.log >&2; }"
nbd-client -unix /run/larder/v.sock /dev/nbd0 -N v -b 512 > /tmp/nbd.log 2>&1 || { cat /tmp/nbd.log; exit 1; }
replay /dev/nbd0
larder status --json --socket /run/larder/control | tr -d '\n' | sed 's/^/STATUS /'
echo
larder flush t --socket /run/larder/control > /tmp/flush.log 2>&1
sync
count flushed
nbd-client -d /dev/nbd0 > /tmp/nbd.log
kill $daemon
wait $daemon
"""


def caches(cache_mib):
    """Every cache under test: its name, and the guest's script."""
    for mode in ("writethrough", "writeback"):
        # 64 sectors: the smallest block that it has.
        yield "dm-cache smq, blocks of 32 KiB", mode, DM_CACHE.replace("METADATA", str(METADATA_MIB)).replace("BLOCK", "64").replace("MODE", mode)
    for name, cutoff in (("bcache", ""), ("bcache, sequential_cutoff 0", "0")):
        for mode in ("writethrough", "writeback"):
            yield name, mode, BCACHE.replace("MODE", mode).replace("CUTOFF", cutoff)
    for short, mode in (("wt", "writethrough"), ("wb", "writeback")):
        # Its metadata is beside what it calls the size.
        yield "Larder", mode, LARDER.replace("MODE", short).replace("SIZE", f"{cache_mib - 2}MiB")


def requests(arguments, workload, folder):
    """The guest's requests as fio's iolog, what they ask in all, and what to call them."""
    name, spec, _ = WORKLOADS[workload]
    path = f"{arguments.traces}/{name}" if arguments.traces else None
    real = path is not None and os.path.exists(path)
    trace = f"{folder}/{workload}.csv"
    part = f"0..{arguments.requests}"
    subprocess.run([arguments.larder, "trace", "cut", path if real else spec, "--out", trace, "--out-format", "msr", "--requests", part], check=True, stderr=subprocess.DEVNULL)
    asked = {"Read": [0, 0], "Write": [0, 0]}
    blocks, end = set(), 0
    with open(trace) as lines, open(f"{folder}/requests.iolog", "w") as out:
        print("fio version 2 iolog\nDISK add\nDISK open", file=out)
        for line in lines:
            kind, offset, length = line.split(",")[3:6]
            kind = kind.capitalize()
            if kind not in asked:
                continue
            first = int(offset) // 512 * 512
            length = -(-(int(offset) + int(length)) // 512) * 512 - first
            asked[kind][0] += 1
            asked[kind][1] += length
            blocks.update(range(first // 4096, (first + length - 1) // 4096 + 1))
            end = max(end, first + length)
            print("DISK", kind.lower(), first, length, file=out)
        print("DISK close", file=out)
    label = f"{name}, requests {part}" if real else f"generated, `{spec}`, requests {part}"
    os.chmod(f"{folder}/requests.iolog", 0o755)
    return f"{folder}/requests.iolog", asked, label, len(blocks) * 4096, end


def run(arguments, folder, script, log, disk_bytes, cache_mib):
    """What the guest says on its console."""
    parts = arguments.guest
    job, initrd = f"{folder}/job.sh", f"{folder}/initrd"
    with open(job, "w") as file:
        file.write(SHELL + script)
    # The requests go where the programs go, and have nothing to be stripped.
    subprocess.run(["sh", GUEST, "initrd", parts, job, initrd, log, arguments.larder], check=True, stderr=subprocess.DEVNULL)
    argv = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max", "-m", "1536", "-smp", "2", "-nodefaults", "-display", "none",
            "-serial", "stdio", "-kernel", f"{parts}/vmlinux", "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1"]
    for name, size in (("slow", disk_bytes), ("fast", cache_mib << 20)):
        with open(f"{folder}/{name}.img", "wb") as file:
            file.truncate(size)
        argv += ["-drive", f"file={folder}/{name}.img,format=raw,if=virtio,cache=unsafe,discard=unmap"]
    console = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS_MAX).stdout
    if "JOB-DONE 0" not in console:
        sys.exit(f"error: the guest failed:\n{console}")
    return console


def figures(console):
    """Counts of both disks, from the first request to the last and from there until nothing is dirty; and the own count of hits."""
    counts, hits = {}, None
    for line in console.splitlines():
        words = line.strip().split(" ")
        if words[0] == "COUNT":
            counts[words[1], words[2]] = [int(word) for word in words[3:7]]
        elif words[0] == "HITS":
            read_hits, read_misses, _, _ = (int(word) for word in words[1:5])
            hits = (read_hits, read_hits + read_misses)
        elif words[0] == "STATUS":
            tenant = json.loads(line.strip()[len("STATUS "):])["tenants"][0]
            hits = (tenant["read_hits"], tenant["read_hits"] + tenant["read_misses"]) if "read_hits" in tenant else tenant
    difference = lambda disk, first, last: [b - a for a, b in zip(counts[first, disk], counts[last, disk])]
    return {(disk, part): difference(disk, first, last) for disk in ("vda", "vdb") for part, first, last in
            (("run", "begin", "end"), ("flush", "end", "flushed"))}, hits


def mib(count):
    return f"{count / (1 << 20):,.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--larder", default=f"{ROOT}/target/release/larder")
    parser.add_argument("--traces", help="a folder with the traces; without them the workloads are generated")
    parser.add_argument("--guest", default=f"{ROOT}/target/guest-caches", help="where the guest is built")
    parser.add_argument("--workload", choices=WORKLOADS, action="append")
    parser.add_argument("--requests", type=int, default=20_000, help="how many of each workload")
    parser.add_argument("--only", default="", help="only caches whose name has this")
    parser.add_argument("--verbose", action="store_true", help="show the consoles")
    arguments = parser.parse_args()
    arguments.larder = os.path.abspath(arguments.larder)
    subprocess.run(["sh", GUEST, "build-caches", arguments.guest], check=True)
    for workload in arguments.workload or WORKLOADS:
        with tempfile.TemporaryDirectory(prefix="larder-bench-") as folder:
            log, asked, label, footprint, end = requests(arguments, workload, folder)
            cache_mib = WORKLOADS[workload][2] + METADATA_MIB
            (reads, read_bytes), (writes, write_bytes) = asked["Read"], asked["Write"]
            print(f"\n{label}: {reads:,} reads of {mib(read_bytes)} MiB, {writes:,} writes of {mib(write_bytes)} MiB, "
                  f"on {mib(footprint)} MiB; SSD of {cache_mib} MiB\n")
            print("| cache | mode | read hits, own count | backing reads | MiB | backing writes, with the flush | MiB | SSD writes | MiB, with the flush | dirty at the end, MiB |")
            print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
            for name, mode, script in caches(cache_mib):
                if arguments.only not in name:
                    continue
                console = run(arguments, folder, script, log, max(end, 1 << 30) + (64 << 20), cache_mib)
                if arguments.verbose:
                    print(console, file=sys.stderr)
                counts, hits = figures(console)
                slow, fast, flush, metadata = counts["vda", "run"], counts["vdb", "run"], counts["vda", "flush"], counts["vdb", "flush"]
                own = f"{hits[0] / hits[1]:.1%}" if isinstance(hits, tuple) and hits[1] else str(hits)[:3000]
                print(f"| {name} | {mode} | {own} | {slow[0]:,} | {mib(slow[1])} | {slow[2] + flush[2]:,} | {mib(slow[3] + flush[3])} "
                      f"| {fast[2] + metadata[2]:,} | {mib(fast[3] + metadata[3])} | {mib(flush[3])} |", flush=True)


if __name__ == "__main__":
    main()
