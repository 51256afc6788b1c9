#!/usr/bin/python3
"""Two tenants on slow disks, first without a cache, then behind Larder: what it brings, shown and verified.

The disks are nbdkit servers that answer one request at a time, 6 ms each: a hard disk's 150 IOPS. Two recorded block traces are replayed
through libnbd, a real NBD client, straight to the disks and then through Larder, which sizes the two partitions every 10 seconds. Every byte read is verified.
"""

import argparse
import json
import multiprocessing
import queue as queues
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import replay
import trace

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GIB = 1 << 30


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)


def wait_for(path, process, log):
    for _ in range(600):
        if process.poll() is not None:
            sys.exit(f"error: a server ended at start\nhelp: see {log}")
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(path) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"error: nobody answers at {path} after 30 s\nhelp: see {log}")


def start_disk(folder, name):
    """nbdkit over the tenant's file: one request at a time, 6 ms each."""
    path, log = f"{folder}/{name}-disk.sock", f"{folder}/{name}-disk.log"
    if os.path.exists(path):
        os.remove(path)
    argv = ["nbdkit", "--foreground", "--unix", path, "--filter=noparallel", "--filter=delay",
            "file", f"{folder}/{name}.img", "serialize=requests", "rdelay=6ms", "wdelay=6ms"]
    with open(log, "w") as out:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    wait_for(path, process, log)
    return process, f"nbd+unix:///?socket={path}"


def write_config(folder, disks, options):
    tenants = "".join(f"""
[[tenant]]
name = "{name}"

[[tenant.volume]]
name = "{name}-disk"
backing = "{uri}"
nbd = "unix:{folder}/{name}.sock"
""" for name, uri in disks.items())
    with open(f"{folder}/larder.toml", "w") as file:
        file.write(f"""[cache]
path = "{folder}/cache.img"
size = "{options.cache}MiB"

[control]
socket = "{folder}/larder.sock"
allocator = "eci"
epoch = "{options.epoch}s"
min_blocks = 250                     # of a tiny cache; the default is 1000
{tenants}""")


def start_larder(folder, disks, options):
    write_config(folder, disks, options)
    log = f"{folder}/larder.log"
    with open(log, "w") as out:
        process = subprocess.Popen([options.larder, "serve", "--config", f"{folder}/larder.toml"], stdout=out, stderr=out)
    wait_for(f"{folder}/larder.sock", process, log)
    return process, {name: f"nbd+unix:///{name}-disk?socket={folder}/{name}.sock" for name in disks}


def status(folder, options):
    argv = [options.larder, "status", "--json", "--config", f"{folder}/larder.toml"]
    return json.loads(subprocess.check_output(argv))


def replay_in_child(queue, name, uri, volume, requests, counted_from):
    try:
        progress = lambda summary: queue.put((name, "progress", summary))
        result = replay.Replay(uri, volume, requests, progress, counted_from).run()
        queue.put((name, "done", result))
    except Exception as error:  # told to the parent, which ends the demo with it
        queue.put((name, "failed", f"{type(error).__name__}: {error}"))


class Watch:
    """Collects progress and, where Larder runs, the partition sizes of every epoch."""

    def __init__(self, title, get_status):
        self.title, self.get_status = title, get_status
        self.latest, self.results, self.epochs = {}, {}, {}
        self.told = 0.0

    def check_alive(self, children):
        for name, child in children.items():
            if name not in self.results and not child.is_alive():
                sys.exit(f"error: the replay of {name} ended with exit code {child.exitcode}")

    def run(self, queue, children):
        names = list(children)
        while len(self.results) < len(names):
            try:
                name, kind, value = queue.get(timeout=0.5)
            except queues.Empty:
                self.check_alive(children)
                continue
            if kind == "failed":
                sys.exit(f"error: the replay of {name} failed: {value}")
            self.latest[name] = value
            if kind == "done":
                self.results[name] = value
            self.note_epoch()
            self.show(names)
        return self.results

    def note_epoch(self):
        if self.get_status:
            for tenant in self.get_status()["tenants"]:
                decision = tenant["decision"]
                if decision:
                    self.epochs.setdefault(decision["epoch"], {})[tenant["name"]] = decision

    def show(self, names):
        if time.monotonic() - self.told < 5 and len(self.results) < len(names):
            return
        self.told = time.monotonic()
        tenants = {t["name"]: t for t in self.get_status()["tenants"]} if self.get_status else {}
        for name in names:
            if name in self.latest:
                print(progress_line(self.title, name, self.latest[name], tenants.get(name)), flush=True)


def progress_line(title, name, summary, tenant):
    line = f"  [{title}] {name:<8} {summary['done']:>6}/{summary['total']} requests   read {summary['read']['mean']:7.2f} ms mean"
    if tenant:
        reads = tenant["read_hits"] + tenant["read_misses"]
        ratio = tenant["read_hits"] / reads if reads else 0
        line += f"   block-read hits {ratio:5.1%}   {tenant['occupied_blocks']:>6}/{tenant['quota_blocks']} blocks   {tenant['write_policy']}"
    return line


def run_all(title, uris, loads, get_status, counted_from=0):
    queue = multiprocessing.Queue()
    children = {name: multiprocessing.Process(target=replay_in_child, args=(queue, name, uris[name], volume, requests, counted_from), daemon=True)
                for volume, (name, requests) in enumerate(loads.items())}
    for child in children.values():
        child.start()
    watch = Watch(title, get_status)
    results = watch.run(queue, children)
    for child in children.values():
        child.join()
    return results, watch.epochs


def table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for at, row in enumerate(rows):
        print("  " + "  ".join(f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(row, widths))))
        if at == 0:
            print("  " + "  ".join("-" * w for w in widths))


def print_latency(without, cached):
    print("\nLatency in ms, from the moment a request was due to its completion")
    rows = [("tenant", "op", "count", "mean without", "mean with", "p50 without", "p50 with", "p99 without", "p99 with")]
    for name in without:
        for op in ("read", "write"):
            a, b = without[name][op], cached[name][op]
            numbers = [f"{x[key]:.2f}" for key in ("mean", "p50", "p99") for x in (a, b)]
            rows.append((name, op, a["count"], *numbers))
    table(rows)


def print_cache(final):
    print("\nThe cache, in 4 KiB blocks")
    rows = [("tenant", "read hits", "read misses", "read hit ratio", "write hits", "write misses", "evictions", "SSD: fill", "guest write", "total", "policy")]
    for t in final["tenants"]:
        reads = t["read_hits"] + t["read_misses"]
        ssd = t["ssd_writes"]
        rows.append((t["name"], t["read_hits"], t["read_misses"], f"{t['read_hits'] / max(1, reads):.1%}", t["write_hits"],
                     t["write_misses"], t["evictions"], ssd["fill"], ssd["guest_write"], ssd["total"], t["write_policy"]))
    table(rows)


def print_epochs(epochs, names, final):
    print(f"\nPartition sizes per epoch, in blocks of {final['cache']['blocks']} (with the write policy)")
    rows = [("epoch", *names)]
    for epoch in sorted(epochs):
        decisions = [epochs[epoch].get(name) for name in names]
        rows.append((epoch, *(f"{d['quota_blocks']} {d['write_policy']}" if d else "-" for d in decisions)))
    table(rows)
    for tenant in final["tenants"]:
        if tenant["decision"]:
            print(f"  last decision for {tenant['name']}: {tenant['decision']['reason']}")


def prepare(folder, options):
    loads, source = trace.tenants(options.traces, options.requests, options.seconds)
    print(f"traces {source}")
    for volume, (name, requests) in enumerate(loads.items()):
        touched = len({b for r in requests for b in range(r.offset // 4096, -(-(r.offset + r.length) // 4096))})
        reads = sum(r.is_read for r in requests) / len(requests)
        print(f"  {name}: {len(requests)} requests, {reads:.0%} reads, {touched} blocks of 4 KiB touched")
        size = max(r.offset + r.length for r in requests)
        replay.write_initial(f"{folder}/{name}.img", volume, requests, -(-size // GIB) * GIB)
    return loads


def pass_on_disks(folder, loads, options, through_larder):
    """One replay on fresh disks; with Larder in between or not."""
    disks = {name: start_disk(folder, name) for name in loads}
    uris = {name: uri for name, (_, uri) in disks.items()}
    larder, get_status = None, None
    try:
        if through_larder:
            larder, uris = start_larder(folder, uris, options)
            get_status = lambda: status(folder, options)
        results, epochs = run_all("with cache" if larder else "no cache  ", uris, loads, get_status)
        return results, epochs, get_status() if larder else None
    finally:
        if larder:
            stop(larder)
        for process, _ in disks.values():
            stop(process)


def empty_folder(folder):
    """Make the folder, or empty it if an earlier demo made it; anything else is left alone."""
    marker = f"{folder}/made-by-larder-demo"
    if os.path.exists(folder):
        if not os.path.exists(marker):
            sys.exit(f"error: {folder} exists, and no demo made it\nhelp: name another with --folder")
        shutil.rmtree(folder)
    os.makedirs(folder)
    open(marker, "w").close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default=os.path.join(ROOT, "target", "release", "larder"))
    parser.add_argument("--traces", default=os.path.join(ROOT, "..", "shared", "traces"))
    parser.add_argument("--folder", default=os.path.join(ROOT, "demo-out"))
    parser.add_argument("--requests", type=int, default=6000, help="per tenant, about")
    parser.add_argument("--seconds", type=int, default=75, help="each of the two replays")
    parser.add_argument("--cache", type=int, default=16, help="MiB")
    parser.add_argument("--epoch", type=int, default=10, help="seconds")
    options = parser.parse_args()
    if not os.path.exists(options.larder):
        sys.exit(f"error: there is no {options.larder}\nhelp: `make demo` builds it, or name one with --larder")
    folder = os.path.abspath(options.folder)
    empty_folder(folder)

    loads = prepare(folder, options)
    print(f"\n1. Straight to the disks: {options.seconds} s")
    without, _, _ = pass_on_disks(folder, loads, options, through_larder=False)
    for volume, (name, requests) in enumerate(loads.items()):
        replay.write_initial(f"{folder}/{name}.img", volume, requests, os.path.getsize(f"{folder}/{name}.img"))
    print(f"\n2. The same through Larder, cache {options.cache} MiB, epoch {options.epoch} s: {options.seconds} s")
    cached, epochs, final = pass_on_disks(folder, loads, options, through_larder=True)

    print_latency(without, cached)
    print_cache(final)
    print_epochs(epochs, list(loads), final)
    verified = sum(r["verified_bytes"] for run in (without, cached) for r in run.values())
    print(f"\nEvery byte read was verified: {verified / (1 << 20):,.0f} MiB. Files and logs: {folder}")


if __name__ == "__main__":
    main()
