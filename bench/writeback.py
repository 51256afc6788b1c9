#!/usr/bin/env python3
"""4 KiB random writes at queue depth 32 with a flush every so many: Larder's write-back over NBD on a unix socket, beside fio writing to the cache
file directly (O_DIRECT, io_uring, same flushes), and beside qemu-nbd serving that file. In turn in one run, as ratios.

All have the very same file, one after the other: on disks of virtual machines one file is up to half as fast again as the next, for as long as both lie where they lie. So Larder makes its cache anew
in each round, and fills it before it is measured. Its writes are checksummed, go to a slot of their own each time, and have their mappings in the journal when a flush ends. All
files were written once before, so that no file system has to allocate meanwhile. In the first scene the cache may be all dirty, so what is measured is the way
to the SSD; in the second the cleaner has its usual limits and writes back to the same disk meanwhile; in the third the backing takes the writes
in the order of the flushes (`ordered = true`), so each flush costs one of the backing, too, and blocks are written back once for each flush.

The last scene is another one: a volume of four times the cache on a slow backing (nbdkit's delay filter, one request at a time), written to at random without flushes for
so long that as much is dirty as may be. From then on guests have the backing's pace: the rate before and after that, as ratios to the same fio on the backing by itself, the
longest time in which no write ended, and the latency that one write in a thousand exceeds.

A goal that is missed makes the exit status 1, unless `--no-goals` is given. In the third scene the disk gets everything twice, and two flushes for one: where it is what limits fio, the goal is beyond
reach with many flushes.

fio has one processor, the servers have the others, as in `nbd.py`, which says why.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from nbd import Server, for_client, qemu_nbd, report, socket_uri, write_iolog

VOLUME_MIB = 256
CACHE_MIB = 384
GOAL = 0.7

# Of the scene with the slow backing: its cache, and what the rate has to be in the end, of the backing's own.
SMALL_CACHE_MIB = 64
FULL_GOAL = 0.8

# What each is called, keys of the tenant, keys of the volume.
SCENES = {
    "dirty": ("all may be dirty", 'dirty_rest = 100\ndirty_max = 100\ndirty_age = "1h"', ""),
    "cleaned": ("the usual limits of what is dirty", "", ""),
    "ordered": ("ordered, the usual limits", "", "ordered = true"),
}


def written_file(path, mebibytes):
    """Zeroes that were written, so that all extents are there."""
    with open(path, "wb") as file:
        for _ in range(mebibytes):
            file.write(bytes(1 << 20))
        os.fsync(file.fileno())


def forget(cache):
    """Larder makes a cache anew of a file that begins with zeroes."""
    with open(cache, "r+b") as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())


class Larder(Server):
    """Larder with one tenant under `wb`, on a cache file that was written before, and on a backing: a file that was, too, where none is given."""

    def __init__(self, binary, folder, name, limits, volume, cache_mib=CACHE_MIB, backing=None):
        self.binary, self.config = binary, f"{folder}/{name}.toml"
        forget(f"{folder}/{name}.cache")
        with open(self.config, "w") as file:
            file.write(f"""
[cache]
path = "{folder}/{name}.cache"
size = "{cache_mib}MiB"
[control]
socket = "{folder}/{name}.control"
allocator = "static"
[[tenant]]
name = "bench"
write_policy = "wb"
{limits}
[[tenant.volume]]
name = "vol"
backing = "{backing or f'{folder}/{name}.img'}"
nbd = "unix:{folder}/{name}.nbd"
{volume}
""")
        uri = socket_uri(f"{folder}/{name}.nbd", "vol")
        super().__init__("larder", uri, [binary, "serve", "--config", self.config], f"{folder}/{name}.log")

    def tenant(self):
        out = subprocess.check_output([self.binary, "status", "--json", "--config", self.config])
        return json.loads(out)["tenants"][0]

    def settle(self):
        """Wait until the cleaner, which works when nobody asks for anything, has nothing left: it would disturb the next one."""
        for _ in range(600):
            if self.tenant()["dirty_blocks"] == 0:
                return
            time.sleep(0.1)
        sys.exit("larder still has dirty blocks after a minute of idleness")

    def fill(self):
        """Every slot is used, and every block of the volume is cached."""
        for _ in range(2):
            fio(["--ioengine=nbd", f"--uri={self.uri}", "--rw=randwrite", "--bs=64k", "--iodepth=8", "--end_fsync=1"])


class Direct:
    """A file that fio writes to by itself."""

    def __init__(self, path):
        self.name, self.path = "fio on the file", path


def fio(arguments):
    common = ["fio", "--name=x", f"--size={VOLUME_MIB}M", "--randrepeat=0", "--output-format=json"]
    out = subprocess.run(for_client(common + arguments), capture_output=True, text=True, check=True).stdout
    return json.loads(out[out.index("{"):])["jobs"][0]


def write_iops(target, every, options, folder):
    """Writes per second, with a flush (of the file: `fdatasync`) after each `every` writes, or none."""
    log, arguments = f"{folder}/writes.log", [f"--iodepth={options.depth}"]
    if isinstance(target, Direct):
        write_iolog(log, target.path, VOLUME_MIB * 256, options.writes, every, "datasync")
        return fio([*arguments, f"--read_iolog={log}", "--ioengine=io_uring", "--direct=1"])["write"]["iops"]
    write_iolog(log, "nbd", VOLUME_MIB * 256, options.writes, every)
    return fio([*arguments, f"--read_iolog={log}", "--ioengine=nbd", "--thread=1", f"--uri={target.uri}"])["write"]["iops"]


def scene(title, options, folder, name, limits, volume):
    """In each round each in turn, for each distance of flushes. True if the goals were met."""
    cache = f"{folder}/{name}.cache"
    written_file(cache, CACHE_MIB)
    written_file(f"{folder}/{name}.img", VOLUME_MIB)
    results, errors = {every: {} for every in options.flushes}, {}

    def measure(target, then=lambda: None):
        for every in options.flushes:
            results[every].setdefault(target.name, []).append(write_iops(target, every, options, folder))
            then()

    for _ in range(options.rounds):
        larder = Larder(options.larder, folder, name, limits, volume)
        try:
            larder.wait_ready()
            larder.fill()
            larder.settle()
            measure(larder, larder.settle)
            told = larder.tenant()
            errors = {key: errors.get(key, 0) + told[key] for key in told if key.endswith("errors")}
        finally:
            larder.stop()
        peer = qemu_nbd(folder, cache, "io_uring")
        try:
            peer.wait_ready()
            measure(peer)
        finally:
            peer.stop()
        measure(Direct(cache))
    met = True
    for every, of in results.items():
        met &= statistics.median(a / b for a, b in zip(of["larder"], of["fio on the file"])) >= GOAL
        flushes = f"a flush every {every}" if every else "no flush"
        report(f"{title}, queue depth {options.depth}, {flushes}", of, {"fio on the file": GOAL})
    print("  larder's errors:", ", ".join(f"{key} {count}" for key, count in errors.items()))
    return met


def slow_backing(folder, name, options):
    """A disk that serves one request at a time, each for so long."""
    path = f"{folder}/{name}.sock"
    delays = [f"rdelay={options.backing_ms}ms", f"wdelay={options.backing_ms}ms"]
    argv = ["nbdkit", "--foreground", "--unix", path, "--filter=noparallel", "--filter=delay", "memory", f"{VOLUME_MIB}M",
            "serialize=requests", *delays]
    server = Server(f"nbdkit {name}", socket_uri(path), argv, f"{folder}/{name}.log")
    server.wait_ready()
    return server


class Writer:
    """fio that writes at random for some time, and what became of each write: when it ended (ms since 1970), and how long it took (ms)."""

    def __init__(self, folder, name, uri, seconds, depth):
        self.log = f"{folder}/{name}"
        argv = ["fio", "--name=x", "--ioengine=nbd", "--thread=1", f"--uri={uri}", f"--size={VOLUME_MIB}M", "--rw=randwrite", "--bs=4k",
                f"--iodepth={depth}", "--norandommap", "--randrepeat=0", "--time_based", f"--runtime={seconds}", "--log_unix_epoch=1",
                f"--write_lat_log={self.log}", "--disable_slat=1", "--disable_clat=1"]
        self.process = subprocess.Popen(for_client(argv), stdout=subprocess.DEVNULL)

    def ended(self):
        return self.process.poll() is not None

    def writes(self):
        if self.process.wait() != 0:
            sys.exit(f"fio ended with status {self.process.returncode}")
        with open(f"{self.log}_lat.1.log") as file:
            lines = [line.split(",") for line in file]
        return sorted((int(line[0]), int(line[1]) / 1e6) for line in lines)


class Span:
    """The writes that ended between two moments."""

    def __init__(self, writes, start, end):
        chosen = [write for write in writes if start <= write[0] < end]
        if len(chosen) < 1000:
            sys.exit(f"only {len(chosen)} writes to judge by: let it take longer (--full-seconds)")
        times, latencies = zip(*chosen)
        self.rate = len(chosen) * 1000 / (end - start)
        self.gap = max(after - before for before, after in zip(times, times[1:]))
        self.slowest = sorted(latencies)[len(latencies) * 999 // 1000]
        counts = [0] * (int(end - start) // 1000)
        for time_of in times:
            if (second := int(time_of - start) // 1000) < len(counts):
                counts[second] += 1
        self.least = f"{min(counts):,}" if counts else ""

    def tell(self, what, alone=None):
        ratio = f"{self.rate / alone.rate:.2f}" if alone else ""
        print(f"  {what:<34}{self.rate:>12,.0f}{ratio:>9}{self.least:>14}{self.gap:>10,}{self.slowest:>12,.0f}")


def until_full(larder, writer):
    """Wait until as much is dirty as may be; when that was (ms since 1970)."""
    while not writer.ended():
        told = larder.tenant()
        # A per cent less: what has just been written back does not count any more.
        if told["dirty_blocks"] * 100 >= told["quota_blocks"] * 79:
            return time.time() * 1000
        time.sleep(0.05)
    sys.exit("fio ended before as much was dirty as may be: let it take longer (--full-seconds)")


def full_scene(title, options, folder, name):
    """The backing by itself, then Larder on one like it. True if the goal was met."""
    rest, seconds = 2000, options.full_seconds
    written_file(f"{folder}/{name}.cache", SMALL_CACHE_MIB)
    backing = slow_backing(folder, "alone", options)
    try:
        writes = Writer(folder, "alone", backing.uri, seconds, options.depth).writes()
    finally:
        backing.stop()
    alone = Span(writes, writes[0][0] + rest, writes[-1][0])
    backing = slow_backing(folder, "backing", options)
    try:
        larder = Larder(options.larder, folder, name, "", "", SMALL_CACHE_MIB, backing.uri)
        try:
            larder.wait_ready()
            writer = Writer(folder, "larder", larder.uri, seconds, options.depth)
            full = until_full(larder, writer)
            writes = writer.writes()
            told = larder.tenant()
        finally:
            # It would write everything back, which takes its time.
            larder.process.kill()
            larder.process.wait()
    finally:
        backing.stop()
    before, after = Span(writes, writes[0][0], full), Span(writes, full + rest, writes[-1][0])
    print(f"\n{title}, queue depth {options.depth}, no flush, {options.backing_ms} ms for each request of the backing")
    print(f"  {'':<34}{'writes / s':>12}{'/ alone':>9}{'least in 1 s':>14}{'gap, ms':>10}{'99.9 %, ms':>12}")
    alone.tell("fio on the backing")
    before.tell("larder, until all is dirty", alone)
    after.tell(f"larder, from then on (goal {FULL_GOAL})", alone)
    print(f"  larder's errors: backing_errors {told['backing_errors']}, cache_errors {told['cache_errors']}; "
          f"{told['dirty_blocks']:,} of {told['quota_blocks']:,} blocks dirty in the end", flush=True)
    return after.rate >= FULL_GOAL * alone.rate


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--writes", type=int, default=60_000, help="in one measurement")
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--flushes", type=int, nargs="+", default=[32, 256, 0], help="writes between two flushes; 0: none")
    scenes = [*SCENES, "full"]
    parser.add_argument("--scenes", nargs="+", choices=scenes, default=scenes)
    parser.add_argument("--full-seconds", type=int, default=40, help="of writing to each, in the scene `full`")
    parser.add_argument("--backing-ms", type=float, default=2, help="that its backing takes for a request")
    parser.add_argument("--no-goals", action="store_true", help="exit with 0 also where goals were missed")
    parser.add_argument("--disk", default="target", help="a folder on the disk to measure")
    options = parser.parse_args()
    os.makedirs(options.disk, exist_ok=True)
    met = []
    for name in options.scenes:
        folder = tempfile.mkdtemp(prefix="larder-bench-", dir=os.path.abspath(options.disk))
        try:
            if name == "full":
                met.append(full_scene("write-back, a volume of four times the cache", options, folder, name))
            else:
                title, limits, volume = SCENES[name]
                met.append(scene(f"write-back, {title}", options, folder, name, limits, volume))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if not all(met) and not options.no_goals:
        sys.exit("a goal was missed")


if __name__ == "__main__":
    main()
