#!/usr/bin/env python3
"""What the SSD gets under write-back besides the guest's data, counted by the device: 4 KiB random overwrites over NBD, in the steady state.

The cache device is a loop device over `nbdfuse` over `nbdkit` with its log filter, whose log has every write's place and length. The cache's
superblock says what lies where: so journal, slot table and the rest are told apart by nothing of Larder's own counting, which is shown beside it.
The backing is in nbdkit's memory. Takes root, for the loop device.
"""

import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from nbd import Server, socket_uri, write_iolog

CACHE_MIB = 64
WRITE = re.compile(r" Write id=\d+ offset=0x([0-9a-f]+) count=0x([0-9a-f]+) ")

# Name: what it is; megabytes of the volume; writers, each with one write at a time, or 0 for one with 32; writes between two flushes; goal in per
# cent.
SCENES = {
    "flush-32": ("a flush after every 32", 32, 0, 32, 2),
    "flush-1-together": ("a flush after each, 32 writers at once", 32, 32, 1, 10),
    "flush-1-few": ("a flush after each, four writers at once", 32, 4, 1, 10),
    "flush-1-alone": ("a flush after each, one writer alone", 32, 1, 1, None),
    "cleaned-32": ("a flush after every 32, a volume of four times the cache", 4 * CACHE_MIB, 0, 32, 2),
}
# More than any scene gets to.
WRITES = 500_000


class Device:
    """The loop device, and the layers below it."""

    def __init__(self, folder):
        self.folder, self.image, self.undo = folder, f"{folder}/cache.img", []
        # Metadata lies before the data.
        with open(self.image, "wb") as file:
            file.truncate((CACHE_MIB + 4) << 20)
        self.log = f"{folder}/requests.log"
        uri = socket_uri(f"{folder}/device.sock")
        argv = ["nbdkit", "--foreground", "--unix", f"{folder}/device.sock", "--filter=log", "file", self.image, f"logfile={self.log}"]
        self.nbdkit = Server("nbdkit", uri, argv, f"{folder}/device.log")
        self.nbdkit.wait_ready()
        os.mkdir(f"{folder}/fuse")
        subprocess.Popen(["nbdfuse", f"{folder}/fuse/disk", uri], stdin=subprocess.DEVNULL)
        while not os.path.exists(f"{folder}/fuse/disk"):
            time.sleep(0.05)
        self.undo.append(["fusermount3", "-u", f"{folder}/fuse"])
        losetup = ["losetup", "--direct-io=on", "--find", "--show", f"{folder}/fuse/disk"]
        self.path = subprocess.check_output(losetup, text=True).strip()
        self.undo.append(["losetup", "-d", self.path])

    def regions(self):
        """Offsets of volume tables, slot tables, journal and data, from the newer superblock."""
        with open(self.image, "rb") as file:
            pages = [file.read(4096), file.read(4096)]
        newer = max(pages, key=lambda page: struct.unpack_from("<Q", page, 40)[0])
        return struct.unpack_from("<4Q", newer, 64)

    def written(self):
        """Bytes that the device got so far, by region."""
        volumes, slots, journal, data = self.regions()
        counts = {"superblock": 0, "volumes": 0, "slot table": 0, "journal": 0, "data": 0}
        bounds = [(data, "data"), (journal, "journal"), (slots, "slot table"), (volumes, "volumes"), (0, "superblock")]
        with open(self.log) as file:
            for match in WRITE.finditer(file.read()):
                offset, count = (int(group, 16) for group in match.groups())
                counts[next(name for start, name in bounds if offset >= start)] += count
        return counts

    def close(self):
        for argv in reversed(self.undo):
            while subprocess.run(argv, capture_output=True).returncode != 0:
                time.sleep(0.1)
        self.nbdkit.stop()


class Larder(Server):
    """Larder on that device, with one volume under `wb`."""

    def __init__(self, options, folder, device, volume_mib):
        backing = f"{folder}/backing.sock"
        argv = ["nbdkit", "--foreground", "--unix", backing, "memory", f"{volume_mib}M"]
        self.backing = Server("nbdkit memory", socket_uri(backing), argv, f"{folder}/backing.log")
        self.backing.wait_ready()
        self.binary, self.config = options.larder, f"{folder}/larder.toml"
        limits = 'dirty_rest = 100\ndirty_max = 100\ndirty_age = "1h"' if volume_mib < CACHE_MIB else ""
        with open(self.config, "w") as file:
            file.write(f"""
[cache]
path = "{device.path}"
size = "{CACHE_MIB}MiB"
[control]
socket = "{folder}/larder.sock"
loss_file = "{folder}/loss.json"
allocator = "static"
[[tenant]]
name = "bench"
write_policy = "wb"
{limits}
[[tenant.volume]]
name = "vol"
backing = "{self.backing.uri}"
nbd = "unix:{folder}/larder.nbd"
""")
        uri = socket_uri(f"{folder}/larder.nbd", "vol")
        super().__init__("larder", uri, [options.larder, "serve", "--config", self.config], f"{folder}/larder.log")

    def counted(self):
        """What Larder itself counts: bytes by cause."""
        out = json.loads(subprocess.check_output([self.binary, "status", "--json", "--config", self.config]))
        return {cause: count for cause, count in out["cache"]["ssd_write_bytes"].items() if cause != "total"}

    def stop(self):
        super().stop()
        self.backing.stop()


def start_fio(folder, uri, volume_mib, writers, every):
    argv = ["fio", "--name=x", "--ioengine=nbd", "--thread=1", f"--uri={uri}", f"--size={volume_mib}M"]
    if writers == 0:
        write_iolog(f"{folder}/writes.log", "nbd", volume_mib * 256, WRITES, every)
        argv += ["--iodepth=32", f"--read_iolog={folder}/writes.log"]
    else:
        argv += ["--rw=randwrite", "--bs=4k", "--norandommap", "--randrepeat=0", "--time_based", "--runtime=3600", "--iodepth=1",
                 f"--numjobs={writers}", f"--fsync={every}"]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def until_turned(device, fio, turns):
    """Wait until the slot table has been written so many times more, which happens once while the journal's ring is gone round; what the device got by
    then."""
    _, slots, journal, _ = device.regions()
    # It has two copies.
    goal = device.written()["slot table"] + turns * (journal - slots) // 2
    while True:
        written = device.written()
        if written["slot table"] >= goal:
            return written
        if fio.poll() is not None:
            sys.exit(f"fio ended early with status {fio.returncode}")
        time.sleep(0.2)


def scene(options, folder, name):
    """Go on until the state is steady, then for as many turns as asked for; print what the device got. True if the goal was met."""
    title, volume_mib, writers, every, goal = SCENES[name]
    device = Device(folder)
    try:
        larder = Larder(options, folder, device, volume_mib)
        try:
            larder.wait_ready()
            fio = start_fio(folder, larder.uri, volume_mib, writers, every)
            try:
                before, told_before = until_turned(device, fio, 3), larder.counted()
                after, told_after = until_turned(device, fio, options.turns), larder.counted()
            finally:
                fio.terminate()
                fio.wait()
        finally:
            larder.stop()
    finally:
        device.close()
    got = {region: after[region] - before[region] for region in after}
    total = sum(got.values())
    metadata = 100 * (total - got["data"]) / total
    told = {cause: told_after[cause] - told_before[cause] for cause in told_after}
    parts = ", ".join(f"{region} {100 * count / total:.2f}" for region, count in got.items() if region != "data")
    print(f"{title}: metadata {metadata:.2f} % of {total:,} bytes" + (f" (goal {goal})" if goal else ""))
    print(f"    {parts}; Larder itself counts {100 * told['metadata'] / sum(told.values()):.2f} %", flush=True)
    return goal is None or metadata <= goal


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--turns", type=int, default=10, help="times that the slot table is written, in turn")
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("this counts on a loop device, which takes root")
    met = []
    for name in options.scenes:
        folder = tempfile.mkdtemp(prefix="larder-endurance-")
        try:
            met.append(scene(options, folder, name))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if not all(met):
        sys.exit("metadata are more than they may be")


if __name__ == "__main__":
    main()
