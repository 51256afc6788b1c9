#!/usr/bin/env python3
"""Reservations and shares set while the daemon runs: what was promised, and what came, epoch by epoch.

Tenants read in closed loops (fio over NBD, a fixed number of requests outstanding) from emulated disks that take a fixed time for each request, so that a tenant's latency says how much
cache it has. Under each allocator, after some epochs without promises, the first tenant is promised a latency halfway between what it has and what nine tenths of the cache would bring
it (`larder what-if`); then the second one IOPS, likewise; then both get shares 1 and 2. Told is by how much each epoch missed its promise: a promise counts as met if that is
within 10 % in the mean of the epochs from the third on (shares: within 5 %). One epoch of few seconds has few misses, and is off by that chance alone: 400 misses are, by 5 %.
IOPS are those that the client sees: on a busy machine it is late with its requests, and has fewer outstanding than it is told to.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TENANTS = ["a", "b", "c"]
SKEW = {"a": 0.7, "b": 0.8, "c": 0.6}
VOLUME_MIB = 12
MET, SHARED = 0.10, 0.05


class Host:
    """Disks, a daemon over them, and a client for each tenant, until `stop`."""

    def __init__(self, options, folder, allocator):
        self.options, self.folder, self.processes = options, folder, []
        tenants = ""
        for name in TENANTS:
            disk = f"{folder}/{name}-disk.sock"
            self.start(f"{name}-disk", ["nbdkit", "--foreground", "--unix", disk, "--threads=32", "--filter=delay", "memory", f"{VOLUME_MIB}M",
                                        f"rdelay={options.delay}ms", f"wdelay={options.delay}ms"])
            wait_for_socket(disk)
            tenants += f'[[tenant]]\nname = "{name}"\n[[tenant.volume]]\nname = "{name}0"\nbacking = "nbd+unix:///?socket={disk}"\nnbd = "unix:{folder}/{name}.sock"\n'
        with open(f"{folder}/larder.toml", "w") as file:
            file.write(f'[cache]\npath = "{folder}/cache.img"\nsize = "{options.cache}MiB"\nkeep = true\n[control]\nsocket = "{folder}/larder.sock"\n'
                       f'allocator = "{allocator}"\nepoch = "{options.epoch}s"\nmin_blocks = 32\n{tenants}')
        self.start("larder", [options.larder, "serve", "--config", f"{folder}/larder.toml"])
        for name in TENANTS:
            wait_for_socket(f"{folder}/{name}.sock")
            self.start(f"{name}-fio", ["fio", "--ioengine=nbd", f"--name={name}", f"--uri=nbd+unix:///{name}0?socket={folder}/{name}.sock", "--rw=randread", "--bs=4k",
                                       f"--iodepth={options.depth}", f"--size={VOLUME_MIB}M", f"--random_distribution=zipf:{SKEW[name]}", "--randrepeat=1", "--norandommap",
                                       "--time_based", "--runtime=1d", "--output-format=terse"])

    def start(self, name, argv):
        with open(f"{self.folder}/{name}.log", "w") as log:
            self.processes.append((name, subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)))

    def stop(self):
        for _, process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ask(self, *arguments):
        for name, process in self.processes:
            if process.poll() is not None:
                sys.exit(f"error: {name} has ended\nhelp: see {self.folder}/{name}.log")
        return subprocess.check_output([self.options.larder, *arguments, "--socket", f"{self.folder}/larder.sock"], text=True)

    def status(self):
        return json.loads(self.ask("status", "--json"))

    def set(self, tenant, *pairs):
        self.ask("set", "--tenant", tenant, *pairs)

    def whole_epochs(self, tenant):
        """What was decided about a tenant and what came, where that was an epoch long: the epoch's number, seconds, latency, IOPS, quota, reason."""
        told = []
        for one in json.loads(self.ask("decisions", tenant, "--json"))["decisions"]:
            came = one["achieved"]
            seconds = came["until_unix_seconds"] - one["unix_seconds"] if came else 0
            if seconds >= 0.8 * self.options.epoch and came["latency_seconds"]:
                told.append((one["epoch"], came["latency_seconds"], came["requests"] / seconds, one["quota_blocks"], one["reason"]))
        return told

    def wait_epochs(self, epochs):
        until = self.status()["epoch"] + epochs
        while self.status()["epoch"] < until:
            time.sleep(0.2)
        return until


def wait_for_socket(path):
    for _ in range(600):
        if os.path.exists(path):
            return
        time.sleep(0.05)
    sys.exit(f"error: {path} does not come")


def phase(host, title, off, limit):
    """Wait for some epochs; tell by how much each missed what `off` says of the tenants' epochs, and whether it is met from the third on."""
    print(f"  {title}", flush=True)
    first = host.status()["epoch"] + 1
    # What is decided at the end of this epoch heeds it.
    host.wait_epochs(host.options.epochs + 1)
    told = {name: {epoch: rest for epoch, *rest in host.whole_epochs(name)} for name in TENANTS}
    common = sorted(set.intersection(*(set(epochs) for epochs in told.values())))
    missed = []
    for number, epoch in enumerate(range(first, first + host.options.epochs), 1):
        if epoch not in common:
            continue
        now = {name: told[name][epoch] for name in TENANTS}
        part = off(now)
        late = number >= 3
        missed += [part] if late else []
        values = "   ".join(f"{name} {now[name][0] * 1e3:6.2f} ms {now[name][1]:6.0f}/s {now[name][2]:6} blocks" for name in TENANTS)
        print(f"    epoch {number}: {100 * part:+6.1f} %   {values}", flush=True)
    for name in TENANTS:
        print(f"      {name}: {told[name][common[-1]][3]}")
    mean = sum(missed) / max(1, len(missed))
    # More than was promised is no harm; a share is a proportion.
    met = bool(missed) and (abs(mean) if limit == SHARED else mean) <= limit
    print(f"    from the third on off by {100 * mean:+.1f} % in the mean, {100 * max(missed, default=0.0):+.1f} % at most: {'met' if met else 'MISSED'} ({100 * limit:.0f} %)", flush=True)
    return met


def halfway(host, tenant):
    """A latency between what the tenant has and what nine tenths of the cache would bring it."""
    size = host.options.cache * (1 << 20) * 9 // 10 - (1 << 20)
    told = json.loads(host.ask("what-if", tenant, str(size), "--json"))["tenants"][0]
    now = host.whole_epochs(tenant)[-1][1]
    # The curves alone may be off by something; what came is not.
    part = told["then"]["latency_seconds"] / told["now"]["latency_seconds"]
    return now * (1 + part) / 2


def run(options, folder, allocator):
    print(f"\n{allocator}", flush=True)
    host = Host(options, folder, allocator)
    try:
        host.wait_epochs(options.warm)
        latency = halfway(host, "a")
        host.set("a", f"latency={round(latency * 1e6)}us")
        met = [phase(host, f"a is promised {latency * 1e3:.2f} ms", lambda now: now["a"][0] / latency - 1, MET)]
        host.set("a", "latency=none")
        host.wait_epochs(3)
        iops = options.depth / halfway(host, "b")
        host.set("b", f"iops={iops:.0f}")
        met.append(phase(host, f"b is promised {iops:.0f} IOPS", lambda now: iops / now["b"][1] - 1, MET))
        host.set("b", "iops=none")
        host.set("a", "share=1")
        host.set("b", "share=2")
        met.append(phase(host, "shares: a 1, b 2 (half the latency)", lambda now: now["a"][0] / (2 * now["b"][0]) - 1, SHARED))
        return all(met)
    finally:
        host.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--allocators", nargs="+", default=["larder", "centaur"])
    parser.add_argument("--epoch", type=int, default=15, help="seconds: a partition that grows has to be filled by misses, of which there are some 400 a second")
    parser.add_argument("--epochs", type=int, default=5, help="of each promise")
    parser.add_argument("--warm", type=int, default=5, help="epochs before the first")
    parser.add_argument("--cache", type=int, default=12, help="MiB")
    parser.add_argument("--delay", type=int, default=5, help="of the disks, in milliseconds")
    parser.add_argument("--depth", type=int, default=2, help="requests outstanding for each tenant")
    parser.add_argument("--folder", help="where files and logs are made and left [default: a temporary one]")
    options = parser.parse_args()
    met = True
    for allocator in options.allocators:
        folder = os.path.join(options.folder, allocator) if options.folder else tempfile.mkdtemp()
        if options.folder:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        met = run(options, os.path.abspath(folder), allocator) and met
        if not options.folder:
            shutil.rmtree(folder)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
