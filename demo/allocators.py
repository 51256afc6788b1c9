#!/usr/bin/python3
"""Every allocator of the daemon on the same tenants, live: the demo's two, then eight, over NBD on emulated hard disks.

Each allocator gets fresh disks, an empty cache and the same requests at the same times. Told are mean latencies of all requests from when the cache has filled, each from the moment it was due,
and for allocators that predict, by how much the share of requests that hit differed from what was predicted. Every byte read is verified.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import demo
import replay
import trace

ALLOCATORS = ["larder", "centaur", "eci", "scave", "wss", "unified", "combined", "static"]

# Share of reads, blocks touched, requests per second.
EIGHT = [(1.0, 1500, 90), (0.9, 12000, 90), (0.7, 4000, 80), (0.5, 800, 80), (0.2, 8000, 60), (1.0, 20000, 60), (0.8, 600, 40), (0.6, 3000, 20)]


def eight(seconds):
    loads = {}
    for at, (reads, blocks, rate) in enumerate(EIGHT):
        loads[f"t{at}"] = trace.generate(reads, blocks, int(rate * seconds), seconds, at + 1)
    return loads


def write_disks(folder, loads):
    for volume, (name, requests) in enumerate(loads.items()):
        size = max(r.offset + r.length for r in requests)
        replay.write_initial(f"{folder}/{name}.img", volume, requests, -(-size // demo.GIB) * demo.GIB)


def decisions(folder, options, name):
    argv = [options.larder, "decisions", name, "--json", "--socket", f"{folder}/larder.sock"]
    return json.loads(subprocess.check_output(argv))["decisions"]


def counted(records, since):
    """Decisions that were measured, from when the cache had filled."""
    return [record for record in records if record["unix_seconds"] >= since and record["achieved"]]


def configure(folder, allocator):
    """The demo's configuration under another allocator; every method may write back, as its paper has it."""
    path = f"{folder}/larder.toml"
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace('allocator = "eci"', f'allocator = "{allocator}"\nwrite_back = true'))


def run(folder, loads, options, allocator):
    write_disks(folder, loads)
    cache = f"{folder}/cache.img"
    # The disks are new: what the last cache had for them, dirty blocks too, is given up, and with it the note that asks for it.
    for last in (cache, f"{cache}.last.json"):
        if os.path.exists(last):
            os.remove(last)
    written = demo.write_config

    def write_config(*arguments):
        written(*arguments)
        configure(folder, allocator)

    demo.write_config = write_config
    disks = {name: demo.start_disk(folder, name) for name in loads}
    larder = None
    try:
        larder, uris = demo.start_larder(folder, {name: uri for name, (_, uri) in disks.items()}, options)
        filled = time.time() + options.ramp
        results, _ = demo.run_all(allocator, uris, loads, None, options.ramp)
        told = {name: counted(decisions(folder, options, name), filled) for name in loads}
        return results, demo.status(folder, options), told
    finally:
        demo.write_config = written
        for process in ([larder] if larder else []) + [process for process, _ in disks.values()]:
            demo.stop(process)


def mean(results):
    ops = [result[op] for result in results for op in ("read", "write")]
    return sum(op["mean"] * op["count"] for op in ops) / max(1, sum(op["count"] for op in ops))


def errors(told, options):
    """By how much the share of requests that hit differed from what was predicted, in points, for each tenant: differences, and requests, of decisions that stood for at least half an epoch and were about 50 requests or more."""
    found = {}
    for name, records in told.items():
        for record in records:
            came = record["achieved"]
            if record["hit_ratio_error"] is None or came["requests"] < 50:
                continue
            if came["until_unix_seconds"] - record["unix_seconds"] >= options.epoch / 2:
                found.setdefault(name, []).append((100 * record["hit_ratio_error"], came["requests"]))
    return found


def off_by(found):
    """The median and the most of single epochs, in each of which some hundred requests came, and the most of a tenant over all of its epochs."""
    if not found:
        return "-"
    single = sorted(abs(error) for tenant in found.values() for error, _ in tenant)
    whole = (sum(error * count for error, count in tenant) / sum(count for _, count in tenant) for tenant in found.values())
    return f"{single[len(single) // 2]:.1f}, {single[-1]:.1f}; {max(map(abs, whole)):.1f}"


def hit_ratio(told):
    came = [record["achieved"] for records in told.values() for record in records if record["achieved"]["requests"]]
    return sum(one["request_hit_ratio"] * one["requests"] for one in came) / max(1, sum(one["requests"] for one in came))


def compare(folder, loads, options):
    rows = [("allocator", "decisions", "mean, ms", *loads, "requests that hit", "prediction off by, points (epochs: median, most; a tenant: most)")]
    for allocator in options.allocators:
        results, status, told = run(folder, loads, options, allocator)
        rows.append((allocator, status["epoch"], f"{mean(results.values()):.2f}", *(f"{mean([result]):.2f}" for result in results.values()),
                     f"{100 * hit_ratio(told):.0f} %", off_by(errors(told, options))))
    demo.table(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default=os.path.join(demo.ROOT, "target", "release", "larder"))
    parser.add_argument("--traces", default=os.path.join(demo.ROOT, "..", "shared", "traces"))
    parser.add_argument("--folder", default=os.path.join(demo.ROOT, "demo-out"))
    parser.add_argument("--seconds", type=int, default=66, help="each run")
    parser.add_argument("--ramp", type=int, default=24, help="seconds at the begin of each run, while the cache fills, that are not counted")
    parser.add_argument("--epoch", type=int, default=6, help="seconds")
    parser.add_argument("--cache", type=int, default=8, help="MiB for two tenants; twice that for eight")
    parser.add_argument("--allocators", nargs="+", default=ALLOCATORS)
    options = parser.parse_args()
    if not os.path.exists(options.larder):
        sys.exit(f"error: there is no {options.larder}\nhelp: `make demo-allocators` builds it, or name one with --larder")
    folder = os.path.abspath(options.folder)
    demo.empty_folder(folder)
    loads, source = trace.tenants(options.traces, 80 * options.seconds, options.seconds)
    print(f"traces {source}\n\nTwo tenants, cache {options.cache} MiB, epochs of {options.epoch} s: {options.seconds} s for each allocator, counted from {options.ramp} s on", flush=True)
    compare(folder, loads, options)
    options.cache *= 2
    print(f"\nEight tenants, cache {options.cache} MiB", flush=True)
    compare(folder, eight(options.seconds), options)
    print(f"\nEvery byte read was verified. Files and logs of the last run: {folder}")


if __name__ == "__main__":
    main()
