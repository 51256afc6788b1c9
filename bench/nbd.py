#!/usr/bin/env python3
"""4 KiB random reads over NBD on a unix socket: Larder's cache hits beside its peers, interleaved in one run, as ratios.

Every server runs for the whole time; in each round each is measured in turn with fio, so that a change in the machine's speed meets all alike.
Two scenes: on the disk with O_DIRECT (qemu-nbd on the same file), and with all files on tmpfs, where software is the limit (nbdkit, and
qemu-storage-daemon's null device). Larder's misses are counted during the measurement, and must be none.

The client has one processor, the servers have the others. A reader is woken on the processor of who writes to its socket, and a virtual machine's
scheduler leaves it there although another is idle (a halted virtual processor counts as taken away): a server and its client would take turns on one
processor in some runs and not in others, for half the IOPS.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SIZE_MIB = 512


def on_processors(chosen, argv):
    """The command on these processors alone; as it is where there is only one."""
    cpus = sorted(os.sched_getaffinity(0))
    return ["taskset", "--cpu-list", ",".join(map(str, chosen(cpus))), *argv] if len(cpus) > 1 else argv


def for_client(argv):
    return on_processors(lambda cpus: cpus[-1:], argv)


def for_server(argv):
    return on_processors(lambda cpus: cpus[:-1], argv)


class Server:
    """A running NBD server: its name, the URI that fio is given, and its process."""

    def __init__(self, name, uri, argv, log):
        self.name, self.uri = name, uri
        self.log = open(log, "w")
        self.process = subprocess.Popen(self.placed(argv), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    placed = staticmethod(for_server)

    def answers(self):
        return subprocess.run(["nbdinfo", "--size", self.uri], capture_output=True).returncode == 0

    def wait_ready(self):
        for _ in range(200):
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended at start: see {self.log.name}")
            if self.answers():
                return
            time.sleep(0.05)
        sys.exit(f"{self.name} does not answer on {self.uri}: see {self.log.name}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def socket_uri(path, export=""):
    return f"nbd+unix:///{export}?socket={path}"


def write_iolog(path, name, blocks, writes, every, sync="sync"):
    """A log for fio to replay: random 4 KiB writes to `name`, with one flush after each `every`. (fio's own `--fsync` at a depth above one repeats
    the flush for as long as no further write was handed out: up to thirty times.)"""
    with open(path, "w") as file:
        file.write(f"fio version 2 iolog\n{name} add\n{name} open\n")
        for number in range(1, writes + 1):
            file.write(f"{name} write {random.randrange(blocks) * 4096} 4096\n")
            if every and number % every == 0:
                file.write(f"{name} {sync} 0 0\n")
        file.write(f"{name} close\n")


def make_file(path):
    with open(path, "wb") as file:
        for _ in range(SIZE_MIB):
            file.write(os.urandom(1 << 20))


class Larder(Server):
    """Larder with one tenant whose whole volume fits its cache."""

    def __init__(self, binary, folder, backing):
        self.binary, self.config = binary, f"{folder}/larder.toml"
        uri = socket_uri(f"{folder}/larder.nbd", "vol")
        with open(self.config, "w") as file:
            file.write(f"""
[cache]
path = "{folder}/cache.img"
size = "{SIZE_MIB + 64}MiB"
[control]
socket = "{folder}/larder.sock"
allocator = "static"
[[tenant]]
name = "bench"
write_policy = "wt"
[[tenant.volume]]
name = "vol"
backing = "{backing}"
nbd = "unix:{folder}/larder.nbd"
""")
        super().__init__("larder", uri, [binary, "serve", "--config", self.config], f"{folder}/larder.log")

    def misses(self):
        out = subprocess.check_output([self.binary, "status", "--json", "--config", self.config])
        return json.loads(out)["tenants"][0]["read_misses"]

    def warm(self):
        subprocess.run(["nbdcopy", self.uri, "null:"], check=True)


def qemu_nbd(folder, image, aio):
    path = f"{folder}/qemu-{aio}.sock"
    argv = ["qemu-nbd", "--persistent", "--shared=8", "--cache=none", f"--aio={aio}", "--format=raw", f"--socket={path}", image]
    return Server(f"qemu-nbd {aio}", socket_uri(path), argv, f"{folder}/qemu-{aio}.log")


def nbdkit(folder, name, *arguments):
    path = f"{folder}/nbdkit-{name}.sock"
    argv = ["nbdkit", "--foreground", "--unix", path, *arguments]
    return Server(f"nbdkit {name}", socket_uri(path), argv, f"{folder}/nbdkit-{name}.log")


def null_co(folder):
    path = f"{folder}/null.sock"
    argv = ["qemu-storage-daemon", "--blockdev", f"driver=null-co,node-name=n,size={SIZE_MIB << 20}",
            "--nbd-server", f"addr.type=unix,addr.path={path}", "--export", "type=nbd,id=e,node-name=n,name=,writable=off"]
    return Server("qsd null-co", socket_uri(path), argv, f"{folder}/null.log")


def fio_iops(server, depth, seconds):
    argv = ["fio", "--name=x", "--ioengine=nbd", f"--uri={server.uri}", "--rw=randread", "--bs=4k", f"--iodepth={depth}",
            "--time_based", f"--runtime={seconds}", f"--size={SIZE_MIB}M", "--randrepeat=0", "--norandommap", "--output-format=json"]
    out = subprocess.run(for_client(argv), capture_output=True, text=True, check=True).stdout
    return json.loads(out[out.index("{"):])["jobs"][0]["read"]["iops"]


def measure(servers, depth, options):
    """IOPS per server and round."""
    results = {server.name: [] for server in servers}
    for _ in range(options.rounds):
        for server in servers:
            results[server.name].append(fio_iops(server, depth, options.seconds))
    return results


def report(title, results, goals):
    """One line per server; the ratio is Larder's IOPS over the peer's, round by round, its median shown."""
    print(f"\n{title}")
    print(f"  {'server':<20}{'IOPS (median)':>14}{'min':>9}{'max':>9}   larder / it")
    for name, iops in sorted(results.items(), key=lambda item: -statistics.median(item[1])):
        ratio = statistics.median(a / b for a, b in zip(results["larder"], iops))
        told = "" if name == "larder" else f"{ratio:.2f}" + (f"   goal {goals[name]:.1f}" if name in goals else "")
        print(f"  {name:<20}{statistics.median(iops):>14,.0f}{min(iops):>9,.0f}{max(iops):>9,.0f}   {told}")


def scene(title, options, folder, make_peers, goals):
    """Start Larder and the peers on one backing file, warm the cache, measure both depths."""
    backing = f"{folder}/backing.img"
    make_file(backing)
    larder = Larder(options.larder, folder, backing)
    servers = [larder, *make_peers(folder, backing)]
    try:
        for server in servers:
            server.wait_ready()
        larder.warm()
        before = larder.misses()
        for depth in options.depths:
            report(f"{title}, queue depth {depth}", measure(servers, depth, options), goals)
        missed = larder.misses() - before
        print(f"  larder's misses during the measurement: {missed}")
        return missed == 0
    finally:
        for server in servers:
            server.stop()


def disk_peers(folder, backing):
    return [qemu_nbd(folder, backing, "io_uring"), qemu_nbd(folder, backing, "native")]


def memory_peers(folder, backing):
    return [nbdkit(folder, "file", "file", backing), nbdkit(folder, "memory", "memory", f"{SIZE_MIB}M"), null_co(folder)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--scenes", nargs="+", choices=["disk", "tmpfs"], default=["disk", "tmpfs"])
    parser.add_argument("--disk", default="target", help="a folder on the disk to measure")
    options = parser.parse_args()
    os.makedirs(options.disk, exist_ok=True)
    all_hits = True
    for name in options.scenes:
        folder = tempfile.mkdtemp(prefix="larder-bench-", dir=options.disk if name == "disk" else "/dev/shm")
        try:
            if name == "disk":
                goals = {"qemu-nbd io_uring": 1.0, "qemu-nbd native": 1.0}
                all_hits &= scene("disk, O_DIRECT", options, os.path.abspath(folder), disk_peers, goals)
            else:
                goals = {"nbdkit file": 1.0, "nbdkit memory": 1.0, "qsd null-co": 0.6}
                all_hits &= scene("tmpfs", options, folder, memory_peers, goals)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if not all_hits:
        sys.exit("larder missed its cache during the measurement: the figures are not those of hits")


if __name__ == "__main__":
    main()
