#!/usr/bin/env python3
"""Replacement policies beside libCacheSim's, as ratios: accesses per second over one Zipf(1.0) sequence, and memory; and how fast MSR CSV is read.

One thread on both sides, on the same core, in turn within each round, so that a change in the machine's speed meets both alike. The sequence lies in memory: ours
as numbers read before the clock starts, theirs as a file on tmpfs, which it maps. Time is the processor's, so that what else runs does not count.
The clock runs while the cache is made and all accesses pass it. When a block is used next, which Belady must know, is in the file for theirs, and found before the
clock starts for ours; what that takes is told. Memory is what is held beyond the sequence at most: for theirs, at the end.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

MIB = 1 << 20
HERE = os.path.dirname(os.path.abspath(__file__))

# Our policy; libCacheSim's class and its parameters where our default differs, by cache size; how many times as fast ours is to be.
POLICIES = [
    ("fifo", "FIFO", lambda size: [], 3),
    ("lru", "LRU", lambda size: [], 3),
    ("clock:4", "Clock", lambda size: ["n_bit_counter=4"], 3),
    ("sieve", "Sieve", lambda size: [], 3),
    ("arc", "ARC", lambda size: [], 3),
    ("s3-fifo", "S3FIFO", lambda size: [], 3),
    ("lfu", "LFU", lambda size: [], 2),
    ("2q", "TwoQ", lambda size: [], 2),
    ("lirs", "LIRS", lambda size: [], 2),
    ("mq", "MQ", lambda size: [f"lifetime={4 * size}"], 2),
    ("w-tinylfu", "WTinyLFU", lambda size: [], 2),
    ("random", "Random", lambda size: [], 2),
    ("belady", "Belady", lambda size: [], 2),
]

# Miss ratios further apart than this are those of different policies: libCacheSim's W-TinyLFU is one, and Random draws other lots.
MISS_RATIO_DIFFERENCE_MAX = 0.005
MAY_DIFFER = {"w-tinylfu", "random"}

# A cache of so many blocks takes less memory than this.
MEMORY_BLOCKS = 150_000
MEMORY_GOAL = 20 * MIB

MSR_GOAL = 300e6


class Bench:
    """The programs of both sides, and the sequence that both read, in a folder of its own."""

    def __init__(self, options, folder):
        self.options = options
        self.replay = f"{options.programs}/replay"
        self.msr_speed = f"{options.programs}/msr_speed"
        self.peers_python = subprocess.check_output([f"{HERE}/../scripts/peers.sh"], text=True).strip()
        self.keys, self.oracle, self.csv = f"{folder}/keys", f"{folder}/trace.oracleGeneral", f"{folder}/msr.csv"
        self.core = max(os.sched_getaffinity(0))

    def run(self, *argv):
        """Run a program on the one core; what it prints is JSON."""
        pin = lambda: os.sched_setaffinity(0, {self.core})
        return json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, preexec_fn=pin).stdout)

    def ours(self, policy, size):
        result = self.run(self.replay, "run", policy, str(size), self.keys)
        result["miss_ratio"] = 1 - result["hits"] / result["accesses"]
        return result

    def theirs(self, policy, size, parameters):
        return self.run(self.peers_python, f"{HERE}/sim_peer.py", self.oracle, policy, str(size), *parameters)

    def both(self, row, size):
        ours, theirs, parameters, _ = row
        return self.ours(ours, size), self.theirs(theirs, size, parameters(size))

    def generate(self):
        options = self.options
        sequence = [str(options.accesses), str(options.objects), str(options.seed)]
        subprocess.run([self.replay, "zipf", *sequence, self.keys, self.oracle], check=True)
        subprocess.run([self.msr_speed, "generate", str(options.requests), self.csv], check=True)

    def msr_bytes_per_second(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        read = self.run(self.msr_speed, "read", self.csv)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return read["bytes"] / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def speed(result):
    return result["accesses"] / result["seconds"]


def measure(bench, options):
    """Pairs of results for each policy: one per round, and in the end one for memory."""
    rows = [row for row in POLICIES if row[0] in options.policies]
    rounds = {row[0]: [] for row in rows}
    for number in range(options.rounds):
        for row in rows:
            tell(f"round {number + 1} of {options.rounds}: {row[0]}")
            rounds[row[0]].append(bench.both(row, options.blocks))
    memory = {}
    for row in rows if options.memory else []:
        tell(f"memory: {row[0]}")
        memory[row[0]] = bench.both(row, MEMORY_BLOCKS)
    tell("")
    return [summary(row, rounds[row[0]], memory.get(row[0])) for row in rows]


def tell(text):
    """Where the run is, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:<40}\r", end="", file=sys.stderr, flush=True)


def summary(row, pairs, memory):
    """Medians; the ratio is the median of the rounds' ratios."""
    median = lambda figure: statistics.median(figure(ours, theirs) for ours, theirs in pairs)
    result = {
        "policy": row[0], "peer": row[1], "goal": row[3],
        "ours_per_second": median(lambda ours, _: speed(ours)),
        "theirs_per_second": median(lambda _, theirs: speed(theirs)),
        "ratio": median(lambda ours, theirs: speed(ours) / speed(theirs)),
        "our_miss_ratio": pairs[0][0]["miss_ratio"], "their_miss_ratio": pairs[0][1]["miss_ratio"],
        "prepared_seconds": median(lambda ours, _: ours["prepared_seconds"]),
    }
    if memory:
        result["our_bytes"], result["their_bytes"] = (side["peak_bytes"] for side in memory)
    return result


def show(results, msr, options):
    print(f"Zipf(1.0), {options.accesses:,} accesses to {options.objects:,} blocks, cache of {options.blocks:,}; million accesses a second, medians of "
          f"{options.rounds} rounds; MiB beyond the sequence, with a cache of {MEMORY_BLOCKS:,}")
    print(f"  {'policy':<11}{'ours':>7}{'libCacheSim':>13}{'ratio':>8}{'goal':>6}{'MiB ours':>12}{'theirs':>9}{'misses ours':>14}{'theirs':>9}")
    for result in results:
        memory = [f"{result[side] / MIB:.1f}" if side in result else "-" for side in ("our_bytes", "their_bytes")]
        print(f"  {result['policy']:<11}{result['ours_per_second'] / 1e6:>7.2f}{result['theirs_per_second'] / 1e6:>13.2f}{result['ratio']:>8.2f}{result['goal']:>6}"
              f"{memory[0]:>12}{memory[1]:>9}{result['our_miss_ratio']:>14.4f}{result['their_miss_ratio']:>9.4f}")
    for result in results:
        if result["prepared_seconds"]:
            print(f"  {result['policy']}: the next uses took {result['prepared_seconds']:.2f} s before the clock started (theirs are in the file)")
    print(f"  MSR CSV is read at {msr / 1e6:.0f} MB/s (goal {MSR_GOAL / 1e6:.0f})")


def missed_goals(results, msr):
    """What is slower or larger than it is to be. Belady's memory grows with the sequence: it has no goal."""
    slow = [f"{result['policy']} is {result['ratio']:.2f} times as fast" for result in results if result["ratio"] < result["goal"]]
    large = [f"{result['policy']} takes {result['our_bytes'] / MIB:.1f} MiB" for result in results
             if result.get("our_bytes", 0) >= MEMORY_GOAL and result["policy"] != "belady"]
    return slow + large + ([f"MSR CSV at {msr / 1e6:.0f} MB/s"] if msr < MSR_GOAL else [])


def different(results):
    """Policies that are not what their name says, on one of the sides: their speeds tell nothing."""
    apart = lambda result: abs(result["our_miss_ratio"] - result["their_miss_ratio"])
    return [result["policy"] for result in results if apart(result) >= MISS_RATIO_DIFFERENCE_MAX and result["policy"] not in MAY_DIFFER]


def parsed_options():
    names = [row[0] for row in POLICIES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=f"{os.environ.get('CARGO_TARGET_DIR', 'target')}/release/examples", help="the folder of replay and msr_speed")
    parser.add_argument("--folder", default="/dev/shm", help="where in memory the sequence is to lie")
    parser.add_argument("--policies", nargs="+", choices=names, default=names, metavar="POLICY", help=", ".join(names))
    parser.add_argument("--accesses", type=int, default=20_000_000)
    parser.add_argument("--objects", type=int, default=2_000_000)
    parser.add_argument("--requests", type=int, default=5_000_000, help="requests in the MSR trace")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a tenth of it, once, and no memory")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.accesses, options.objects, options.requests, options.rounds = options.accesses // 10, options.objects // 10, options.requests // 10, 1
    options.blocks = options.objects // 10
    options.memory = not options.quick
    return options


def check_room(options):
    needed = options.accesses * 32 + options.requests * 60
    if shutil.disk_usage(options.folder).free < needed:
        sys.exit(f"error: {options.folder} has less than {needed >> 20} MiB free. Give another one: --folder FOLDER, or less work: --quick")


def main():
    options = parsed_options()
    check_room(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    folder = tempfile.mkdtemp(prefix="larder-bench-", dir=options.folder)
    try:
        bench = Bench(options, folder)
        bench.generate()
        results = measure(bench, options)
        msr = statistics.median(bench.msr_bytes_per_second() for _ in range(options.rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    missed = missed_goals(results, msr)
    if options.json:
        print(json.dumps({"policies": results, "msr_bytes_per_second": msr, "missed_goals": missed}))
    else:
        show(results, msr, options)
        note = " (they are for the full size)" if options.quick else ""
        print(f"  goals missed{note}: " + ("; ".join(missed) if missed else "none"))
    if different(results):
        sys.exit(f"error: misses that are not the peer's: {', '.join(different(results))}")


if __name__ == "__main__":
    main()
