#!/usr/bin/env python3
"""4 KiB random requests over vhost-user-blk: Larder beside qemu-storage-daemon, interleaved in one run, as ratios of IOPS, with the processor
time of each server per request.

The driver is `vhost_load` (the crate virtio-driver): no guest, so that the server is what is measured. Reads are hits of Larder's cache, and its
misses are counted; writes go through to the backing and to the cache, where the peer writes once. Two scenes: on the disk with O_DIRECT, and
with all files on tmpfs, where software is the limit, and the peer's null device is beside it.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import nbd

SIZE_MIB = 256
TICKS = os.sysconf("SC_CLK_TCK")


class Server(nbd.Server):
    """A running server: its name, its socket (in place of a URI), its process. Its client polls, so nothing wakes one on the processor of the other."""

    placed = staticmethod(list)

    def answers(self):
        return os.path.exists(self.uri)

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


class Larder(Server):
    """Larder with one tenant whose whole volume fits its cache, not kept, as the peers keep nothing."""

    def __init__(self, binary, folder, backing, poll, policy):
        self.binary, self.config = binary, f"{folder}/larder.toml"
        with open(self.config, "w") as file:
            file.write(f"""
[cache]
path = "{folder}/cache.img"
size = "{SIZE_MIB + 64}MiB"
keep = false
[control]
socket = "{folder}/larder.sock"
allocator = "static"
{f"poll = {chr(34)}{poll}{chr(34)}" if poll else ""}
[[tenant]]
name = "bench"
write_policy = "{policy}"
[[tenant.volume]]
name = "vol"
backing = "{backing}"
nbd = "unix:{folder}/larder.nbd"
vhost_user = "{folder}/larder.vhost"
""")
        super().__init__("larder", f"{folder}/larder.vhost", [binary, "serve", "--config", self.config], f"{folder}/larder.log")

    def misses(self):
        out = subprocess.check_output([self.binary, "status", "--json", "--config", self.config])
        return json.loads(out)["tenants"][0]["read_misses"]

    def warm(self):
        uri = f"nbd+unix:///vol?socket={os.path.dirname(self.uri)}/larder.nbd"
        subprocess.run(["nbdcopy", uri, "null:"], check=True)


def daemon(folder, name, blockdev):
    """qemu-storage-daemon with one export."""
    path = f"{folder}/{name}.vhost"
    export = f"type=vhost-user-blk,id=e,node-name=n,addr.type=unix,addr.path={path},writable=on"
    argv = ["qemu-storage-daemon", "--blockdev", f"{blockdev},node-name=n", "--export", export]
    return Server(f"qsd {name}", path, argv, f"{folder}/{name}.log")


def raw(folder, image, aio):
    return daemon(folder, aio, f"driver=file,filename={image},cache.direct=on,aio={aio}")


def load(server, options, kind, depth):
    """IOPS, and processor time per request in microseconds."""
    before = server.processor_seconds()
    argv = [options.load, server.uri, kind, str(depth), str(options.seconds), str(SIZE_MIB << 20)]
    found = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    if found["errors"]:
        sys.exit(f"{server.name}: {found['errors']} errors")
    spent = server.processor_seconds() - before
    return found["requests"] / found["seconds"], spent / found["requests"] * 1e6


def report(title, results):
    """One line per server; ratios round by round, their medians shown."""
    print(f"\n{title}")
    print(f"  {'server':<20}{'IOPS (median)':>14}{'CPU us/request':>16}   larder / it: IOPS, CPU")
    for name, rounds in sorted(results.items(), key=lambda item: -statistics.median(found[0] for found in item[1])):
        iops, cpu = (statistics.median(found[i] for found in rounds) for i in (0, 1))
        ratios = [statistics.median(a[i] / b[i] for a, b in zip(results["larder"], rounds)) for i in (0, 1)]
        told = "" if name == "larder" else f"{ratios[0]:.2f}, {ratios[1]:.2f}"
        print(f"  {name:<20}{iops:>14,.0f}{cpu:>16.2f}   {told}")


def scene(title, options, folder, peers):
    backing, image = f"{folder}/backing.img", f"{folder}/peer.img"
    for path in (backing, image):
        with open(path, "wb") as file:
            for _ in range(SIZE_MIB):
                file.write(os.urandom(1 << 20))
    larder = Larder(options.larder, folder, backing, options.poll, options.policy)
    servers = [larder, *peers(folder, image)]
    try:
        for server in servers:
            server.wait_ready()
        larder.warm()
        for kind in options.kinds:
            for depth in options.depths:
                before = larder.misses()
                results = {server.name: [] for server in servers}
                for _ in range(options.rounds):
                    for server in servers:
                        results[server.name].append(load(server, options, kind, depth))
                report(f"{title}, {kind}s, queue depth {depth}", results)
                if larder.misses() != before:
                    sys.exit("larder missed its cache during the measurement: the figures are not those of hits")
    finally:
        for server in servers:
            server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--load", default="target/release/examples/vhost_load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--kinds", nargs="+", choices=["read", "write"], default=["read", "write"])
    parser.add_argument("--scenes", nargs="+", choices=["disk", "tmpfs"], default=["disk", "tmpfs"])
    parser.add_argument("--poll", help="how long Larder looks for work before it sleeps, in place of its own choice")
    parser.add_argument("--policy", choices=["wt", "ro"], default="wt", help="what Larder does with writes: under ro it writes once, as its peers do")
    parser.add_argument("--disk", default="target", help="a folder on the disk to measure")
    options = parser.parse_args()
    os.makedirs(options.disk, exist_ok=True)
    for name in options.scenes:
        folder = tempfile.mkdtemp(prefix="larder-bench-", dir=options.disk if name == "disk" else "/dev/shm")
        folder = os.path.abspath(folder)
        try:
            if name == "disk":
                scene("disk, O_DIRECT", options, folder, lambda at, image: [raw(at, image, "io_uring"), raw(at, image, "native")])
            else:
                null = f"driver=null-co,size={SIZE_MIB << 20},read-zeroes=off"
                scene("tmpfs", options, folder, lambda at, image: [raw(at, image, "io_uring"), raw(at, image, "native"), daemon(at, "null-co", null)])
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
