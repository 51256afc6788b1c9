#!/usr/bin/env python3
"""A host with many tenants, most of them idle: what the loop of an epoch costs, what an idle tenant costs in memory, and how soon the status is told.

Three runs of the daemon under the same load of the busy tenants (fio, each at a fixed rate): the busy ones alone; all tenants with epochs of ten minutes; all tenants with epochs of
a second. A tenant's memory is the difference in RSS between the first two, by idle tenant. In the end the idle tenants work for a moment each, and are idle again: what they keep
then is told too. All times are told beside their limits; nothing is judged but by these.
"""

import argparse
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
VOLUME_MIB = 64
CACHE_MIB = 1024
LOOP_LIMIT, IDLE_LIMIT, STATUS_LIMIT = 0.05, 64 << 10, 0.1


def config(folder, tenants, epoch):
    parts = [f"""
[cache]
path = "{folder}/cache.img"
size = "{CACHE_MIB}MiB"
[control]
socket = "{folder}/larder.sock"
epoch = "{epoch}"
min_blocks = 64
[api]
socket = "{folder}/api.sock"
"""]
    for number in range(tenants):
        parts.append(f"""
[[tenant]]
name = "t{number}"
[[tenant.volume]]
name = "v{number}"
backing = "{folder}/v{number}.img"
nbd = "unix:{folder}/v{number}.nbd"
""")
    return "".join(parts)


class Daemon:
    """A daemon with so many tenants, whose cache is new."""

    def __init__(self, options, folder, tenants, epoch):
        self.larder, self.folder, self.tenants = options.larder, folder, tenants
        for number in range(tenants):
            with open(f"{folder}/v{number}.img", "wb") as file:
                file.truncate(VOLUME_MIB * MIB)
        for name in ("cache.img", "cache.img.lock"):
            if os.path.exists(f"{folder}/{name}"):
                os.remove(f"{folder}/{name}")
        self.file = f"{folder}/larder.toml"
        with open(self.file, "w") as file:
            file.write(config(folder, tenants, epoch))
        self.log = f"{folder}/larder-{tenants}-{epoch}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([self.larder, "serve", "--config", self.file], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while " ready" not in open(self.log).read():
            if self.process.poll() is not None:
                sys.exit(f"the daemon ended at its start: see {self.log}")
            time.sleep(0.1)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def status(self):
        return json.loads(subprocess.check_output([self.larder, "status", "--json", "--config", self.file]))

    def rss(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))

    def processor_seconds(self):
        """By the names of threads, and how many threads there are."""
        seconds, tasks = {}, f"/proc/{self.process.pid}/task"
        threads = os.listdir(tasks)
        for thread in threads:
            try:
                name = open(f"{tasks}/{thread}/comm").read().strip()
                fields = open(f"{tasks}/{thread}/stat").read().rsplit(")", 1)[1].split()
            except FileNotFoundError:
                continue
            ticks = int(fields[11]) + int(fields[12])
            seconds[name] = seconds.get(name, 0.0) + ticks / os.sysconf("SC_CLK_TCK")
        return seconds, len(threads)

    def uri(self, number):
        return f"nbd+unix:///v{number}?socket={self.folder}/v{number}.nbd"


def load(daemon, options, seconds):
    """Each busy tenant at its rate: reads and writes, most of them to few blocks."""
    argv = ["fio", "--ioengine=nbd", "--thread", "--rw=randrw", "--rwmixread=70", "--bs=4k", "--iodepth=4", f"--size={VOLUME_MIB}M", "--random_distribution=zipf:1.1",
            "--norandommap", "--time_based", f"--runtime={seconds}", f"--rate_iops={options.iops}", "--rate_process=poisson", "--output-format=terse"]
    for number in range(options.busy):
        argv += [f"--name=t{number}", f"--uri={daemon.uri(number)}"]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def requests(status):
    return sum(tenant[key] for tenant in status["tenants"] for key in ("read_hits", "read_misses", "write_hits", "write_misses"))


def median_seconds(what, times=20):
    taken = []
    for _ in range(times):
        began = time.monotonic()
        what()
        taken.append(time.monotonic() - began)
    return statistics.median(taken)


def get_status(folder):
    client = socket.socket(socket.AF_UNIX)
    client.connect(f"{folder}/api.sock")
    client.sendall(b"GET /v1/status HTTP/1.0\r\nHost: larder\r\n\r\n")
    answer = b""
    while chunk := client.recv(1 << 20):
        answer += chunk
    if b" 200 " not in answer.split(b"\r\n", 1)[0]:
        sys.exit(f"the API does not tell its status: {answer[:200]}")


def beside(name, value, limit, unit, scale=1.0):
    verdict = "within" if value <= limit else "OVER"
    print(f"  {name:<58} {value * scale:>9.2f} {unit}   ({verdict} {limit * scale:g} {unit})", flush=True)


def run(options, folder, tenants, epoch):
    """Under load for the time wanted: RSS then, and what the loop took of a core."""
    daemon = Daemon(options, folder, tenants, epoch)
    fio = load(daemon, options, options.seconds + 20)
    time.sleep(10)
    before, (cpu, _) = requests(daemon.status()), daemon.processor_seconds()
    began = time.monotonic()
    time.sleep(options.seconds)
    after_cpu, threads = daemon.processor_seconds()
    seconds = time.monotonic() - began
    status = daemon.status()
    rate = (requests(status) - before) / seconds
    parts = {name: (after_cpu[name] - cpu.get(name, 0.0)) / seconds for name in after_cpu}
    rss = daemon.rss()
    print(f"\n{tenants} tenants, {options.busy} busy at {rate:.0f} requests/s together; epochs of {epoch}; {threads} threads; RSS {rss / MIB:.1f} MiB, of which "
          f"the analyzer says {status['analyzer_memory_bytes'] / MIB:.1f} MiB", flush=True)
    told = ", ".join(f"{name} {part * 100:.1f} %" for name, part in sorted(parts.items(), key=lambda it: -it[1]) if part >= 0.001)
    print(f"  processor, of one core: {told}")
    beside("the loop (thread analyzer)", parts.get("analyzer", 0.0), LOOP_LIMIT, "% of a core", 100)
    fio.wait()
    return daemon, rss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--busy", type=int, default=50)
    parser.add_argument("--iops", type=int, default=100, help="of each busy tenant, reads and writes each")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--folder", help="where files are made [default: a temporary one]")
    options = parser.parse_args()
    wanted = 4 * (options.idle + options.busy) + 1024
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, 1024) if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        daemon, busy_rss = run(options, folder, options.busy, "10m")
        daemon.stop()
        everybody = options.idle + options.busy
        daemon, rss = run(options, folder, everybody, "10m")
        beside("memory of an idle tenant", (rss - busy_rss) / options.idle, IDLE_LIMIT, "KiB", 1 / 1024)
        quiet = {"stdout": subprocess.DEVNULL, "check": True}
        ask = [options.larder, "status", "--config", daemon.file]
        beside("larder status", median_seconds(lambda: subprocess.run(ask, **quiet)), STATUS_LIMIT, "ms", 1e3)
        beside("larder status --json", median_seconds(lambda: subprocess.run([*ask, "--json"], **quiet)), STATUS_LIMIT, "ms", 1e3)
        beside("GET /v1/status", median_seconds(lambda: get_status(folder)), STATUS_LIMIT, "ms", 1e3)
        daemon.stop()
        daemon, rss = run(options, folder, everybody, "1s")
        for first in range(options.busy, everybody, 50):
            names = [str(number) for number in range(first, min(first + 50, everybody))]
            argv = ["fio", "--ioengine=nbd", "--thread", "--rw=randread", "--bs=4k", "--iodepth=8", "--number_ios=4000", f"--size={VOLUME_MIB}M", "--norandommap",
                    "--output-format=terse"]
            for number in names:
                argv += [f"--name=t{number}", f"--uri={daemon.uri(int(number))}"]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        worked = daemon.rss()
        time.sleep(30)
        status, again = daemon.status(), daemon.rss()
        print(f"\nevery idle tenant has read 4000 blocks: RSS {worked / MIB:.1f} MiB; 30 epochs later {again / MIB:.1f} MiB, of which "
              f"the analyzer says {status['analyzer_memory_bytes'] / MIB:.1f} MiB, and the engine {status['cache']['memory_bytes'] / MIB:.1f} MiB for all its blocks")
        daemon.stop()


if __name__ == "__main__":
    main()
