#!/usr/bin/env python3
"""4 KiB random writes at queue depth 32 with a flush every so many: Larder's write-back over NBD on a unix socket, beside fio writing to the cache
file directly (O_DIRECT, io_uring, same flushes), and beside qemu-nbd serving that file. In turn in one run, as ratios.

All have the very same file, one after the other: on disks of virtual machines one file is up to half as fast again as the next, for as long as both lie where they lie. So Larder makes its cache anew
in each round, and fills it before it is measured. Its writes are checksummed, go to a slot of their own each time, and have their mappings in the journal when a flush ends. All
files were written once before, so that no file system has to allocate meanwhile. In the first scene the cache may be all dirty, so what is measured is the way
to the SSD; in the second the cleaner has its usual limits and writes back to the same disk meanwhile; in the third the backing takes the writes
in the order of the flushes (`ordered = true`), so each flush costs one of the backing, too, and blocks are written back once for each flush.

fio has one processor, the servers have the others, as in `nbd.py`, which says why.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from nbd import Server, for_client, qemu_nbd, report, socket_uri, write_iolog

VOLUME_MIB = 256
CACHE_MIB = 384
GOAL = 0.7

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
    """Larder with one tenant under `wb`, on a cache file and a backing that were written before."""

    def __init__(self, binary, folder, name, limits, volume):
        self.binary, self.config = binary, f"{folder}/{name}.toml"
        forget(f"{folder}/{name}.cache")
        with open(self.config, "w") as file:
            file.write(f"""
[cache]
path = "{folder}/{name}.cache"
size = "{CACHE_MIB}MiB"
[control]
socket = "{folder}/{name}.control"
allocator = "static"
[[tenant]]
name = "bench"
write_policy = "wb"
{limits}
[[tenant.volume]]
name = "vol"
backing = "{folder}/{name}.img"
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
    """In each round each in turn, for each distance of flushes."""
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
    for every, of in results.items():
        flushes = f"a flush every {every}" if every else "no flush"
        report(f"{title}, queue depth {options.depth}, {flushes}", of, {"fio on the file": GOAL})
    print("  larder's errors:", ", ".join(f"{key} {count}" for key, count in errors.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--writes", type=int, default=60_000, help="in one measurement")
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--flushes", type=int, nargs="+", default=[32, 256, 0], help="writes between two flushes; 0: none")
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--disk", default="target", help="a folder on the disk to measure")
    options = parser.parse_args()
    os.makedirs(options.disk, exist_ok=True)
    for name in options.scenes:
        folder = tempfile.mkdtemp(prefix="larder-bench-", dir=os.path.abspath(options.disk))
        try:
            title, limits, volume = SCENES[name]
            scene(f"write-back, {title}", options, folder, name, limits, volume)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
