#!/usr/bin/env python3
"""Reuse distances beside libCacheSim's, as ratios; and what sampling, the daemon's analysis and the other write policies' curves take.

The peers are the programs that libCacheSim's source on PyPI builds: distUtil (exact distances by a splay tree) and mrcProfiler (SHARDS; exact at
rate 1). All analyze one Zipf(1.0) sequence of block numbers in memory: ours as keys read before the clock starts, theirs as a file on tmpfs, which they
map. One thread on the same core, in turn within each round, so that a change in the machine's speed meets all alike. Time is the processor's. distUtil
stops once it has the distances and writes none; ours counts them by kind, by block and by request, and write-backs too. The parts run on all cores, and
their time is the wall's. The error of a sample is the mean over 100 sizes, and over the rounds, each with another sample.

What is found is checked: the distances are distUtil's to the last access (but for one: distUtil takes the second access to its very first block for a first),
the miss ratios mrcProfiler's. Only a failure or a difference ends with an error; a goal missed is told.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20

# Cache sizes at which miss ratios are compared: so many hundredths of the blocks.
SHARES = range(1, 101)

SHARDS_RATE = 0.01

# Blocks that the daemon samples of a tenant: larder-daemon's epoch.rs.
DAEMON_BLOCKS = 1 << 15

# From six decimals of the peer.
MISS_RATIO_ROUNDING = 1e-6
# A sample further off than this, over the root of how many blocks it has, is not one of these blocks.
SAMPLE_ERROR_MAX = 2

GOALS = {
    "exact": 6e6, "exact_ratio": 6, "shards": 100e6, "shards_error": 0.002, "observe_ns": 20, "prn_1_seconds": 2,
}
LANES = ["ro", "wt-noalloc", "batched"]


class Bench:
    """The programs of both sides, and the sequence that both read, in a folder of its own."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.speed = f"{options.programs}/locality_speed"
        tools = subprocess.check_output([f"{HERE}/../scripts/peers.sh", "--tools"], text=True).strip()
        self.dist_util, self.mrc_profiler = f"{tools}/distUtil", f"{tools}/mrcProfiler"
        self.keys, self.oracle = f"{folder}/keys", f"{folder}/trace.oracleGeneral"
        self.core = max(os.sched_getaffinity(0))

    def pinned(self, *argv):
        """Run a program on the one core; what it prints."""
        pin = lambda: os.sched_setaffinity(0, {self.core})
        return subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=pin).stdout

    def generate(self):
        options = self.options
        sequence = [str(options.accesses), str(options.objects), str(options.seed)]
        subprocess.run([f"{options.programs}/replay", "zipf", *sequence, self.keys, self.oracle], check=True)

    def ours(self, *arguments):
        return json.loads(self.pinned(self.speed, *arguments))

    def parts(self, *threads):
        """Parts on all cores, or one pass on one of them, over a sequence like ours."""
        sequence = [str(self.options.accesses), str(self.options.objects), "1.0"]
        return json.loads(subprocess.check_output([f"{self.options.programs}/exact_speed", *sequence, *threads], text=True))

    def theirs(self, *argv):
        """A peer's time, and what it printed."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = self.pinned(*argv)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"requests": self.options.accesses, "seconds": seconds, "printed": printed}

    def distances(self, output="none"):
        """distUtil; it takes any other name of an output than its own for none."""
        return self.theirs(self.dist_util, self.oracle, "oracleGeneral", "stack_dist", output, f"{self.folder}/peer")

    def profile(self, rate):
        sizes = ",".join(f"{self.options.objects * share // 100}B" for share in SHARES)
        result = self.theirs(self.mrc_profiler, self.oracle, "oracleGeneral", "--algo=LRU", "--profiler=SHARDS",
                             f"--profiler-params=FIX_RATE,{rate},42", f"--size={sizes}", "--ignore-obj-size")
        rows = [line.split("\t") for line in result.pop("printed").splitlines()]
        result["miss_ratios"] = [float(row[1]) for row in rows if len(row) == 3 and row[0][:1].isdigit()]
        return result


def tell(text):
    """Where the run is, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:<50}\r", end="", file=sys.stderr, flush=True)


def measure(bench, options):
    """The results of every program, by name, one for each round."""
    keys, cores = bench.keys, str(len(os.sched_getaffinity(0)))
    seeds = random.Random(options.seed)
    programs = {
        "exact": lambda: bench.ours("exact", "wb", keys),
        "distUtil": bench.distances,
        "mrcProfiler": lambda: bench.profile(1),
        "shards": lambda: bench.ours("sampled", str(SHARDS_RATE), str(seeds.getrandbits(63)), keys),
        "mrcProfiler shards": lambda: bench.profile(SHARDS_RATE),
        "observe": lambda: bench.ours("observe", str(DAEMON_BLOCKS), keys),
        "prn_1": lambda: bench.ours("prn_1"),
        "one part": bench.parts,
        "parts": lambda: bench.parts(cores),
        **{name: lambda name=name: bench.ours("exact", name, keys) for name in LANES},
    }
    rounds = {name: [] for name in programs}
    for number in range(options.rounds):
        for name, program in programs.items():
            tell(f"round {number + 1} of {options.rounds}: {name}")
            rounds[name].append(program())
    tell("")
    return rounds


def histogram(path, separator, entry):
    """Counts by distance; without accesses that have none."""
    with open(path) as file:
        entries = (text.split(entry) for text in file.read().split(separator) if text.strip())
        counts = {int(distance): int(count) for distance, count in entries}
    return {distance: count for distance, count in counts.items() if distance < 1 << 62}


def check_distances(bench):
    """Every distance, as often as distUtil finds it."""
    tell("comparing the distances")
    bench.ours("exact", "wb", bench.keys, f"{bench.folder}/ours")
    bench.distances("cntTxt")
    ours, theirs = histogram(f"{bench.folder}/ours", "\n", " "), histogram(f"{bench.folder}/peer.STACK_DIST.cnt", ",", ":")
    apart = sum(abs(ours.get(distance, 0) - theirs.get(distance, 0)) for distance in ours.keys() | theirs.keys())
    tell("")
    return [] if apart <= 1 and ours else [f"{apart} accesses have distances that distUtil does not find"]


def miss_ratios(result):
    return [1 - hits / result["requests"] for hits in result["hits"]]


def error(found, exact):
    """The mean absolute difference."""
    return statistics.fmean(abs(ours - theirs) for ours, theirs in zip(found, exact, strict=True))


def check_ratios(rounds, sample, options):
    exact = miss_ratios(rounds["exact"][0])
    wrong = []
    if max(abs(ours - theirs) for ours, theirs in zip(exact, rounds["mrcProfiler"][0]["miss_ratios"], strict=True)) > MISS_RATIO_ROUNDING:
        wrong.append("miss ratios are not mrcProfiler's")
    counts = lambda name: [rounds[name][0][count] for count in ("read_hits", "write_hits", "written_back")]
    if counts("parts") != counts("one part"):
        wrong.append("the parts together do not find what one pass does")
    if max(sample["error"], sample["their_error"]) > SAMPLE_ERROR_MAX / (options.objects * SHARDS_RATE) ** 0.5:
        wrong.append(f"a sample of {SHARDS_RATE} is off by {sample['error']:.4f}, mrcProfiler's by {sample['their_error']:.4f}")
    return wrong


def summary(rounds):
    """Medians; a ratio is the median of the rounds' ratios."""
    speeds = lambda name: [result["requests"] / result["seconds"] for result in rounds[name]]
    ratio = lambda ours, theirs: statistics.median(a / b for a, b in zip(speeds(ours), speeds(theirs)))
    exact = miss_ratios(rounds["exact"][0])
    walls = zip(rounds["one part"], rounds["parts"])
    return {
        "per_second": {name: statistics.median(speeds(name)) for name in rounds},
        "exact_ratio": {peer: ratio("exact", peer) for peer in ("distUtil", "mrcProfiler")},
        "exact_bytes": rounds["exact"][0]["peak_bytes"],
        "shards": {
            "ratio": ratio("shards", "mrcProfiler shards"),
            "error": statistics.fmean(error(miss_ratios(result), exact) for result in rounds["shards"]),
            "their_error": error(rounds["mrcProfiler shards"][0]["miss_ratios"], exact),
        },
        "observe_ns": 1e9 / statistics.median(speeds("observe")),
        "prn_1_seconds": statistics.median(result["seconds"] for result in rounds["prn_1"]),
        "parts": {
            "cores": len(os.sched_getaffinity(0)),
            "ratio": statistics.median(one["wall_seconds"] / all_["wall_seconds"] for one, all_ in walls),
        },
    }


def show(found, options):
    million = lambda name: f"{found['per_second'][name] / 1e6:.2f}"
    ratios, sample, parts = found["exact_ratio"], found["shards"], found["parts"]
    print(f"Zipf(1.0), {options.accesses:,} accesses to {options.objects:,} blocks; million requests a second on one core, medians of {options.rounds} rounds")
    rows = [
        ("exact TRD and URD, wb and wt", million("exact"), "above 6, goal 10"),
        ("  libCacheSim's distUtil", million("distUtil"), f"ours is {ratios['distUtil']:.1f} times as fast (goal 6)"),
        ("  libCacheSim's mrcProfiler", million("mrcProfiler"), f"ours is {ratios['mrcProfiler']:.1f} times as fast"),
        *((f"exact {name}", million(name), "") for name in LANES),
        (f"SHARDS, rate {SHARDS_RATE}", million("shards"), f"goal 100; error {sample['error']:.4f} (goal {GOALS['shards_error']})"),
        ("  libCacheSim's mrcProfiler", million("mrcProfiler shards"), f"ours is {sample['ratio']:.0f} times as fast; its error {sample['their_error']:.4f}"),
        (f"observe, {DAEMON_BLOCKS:,} blocks", million("observe"), f"{found['observe_ns']:.1f} ns a request (goal under 20)"),
        ("as many requests as prn_1", million("prn_1"), f"{found['prn_1_seconds']:.2f} s (goal under 2; ECI-Cache took 22.7)"),
    ]
    for name, speed, note in rows:
        print(f"  {name:<32}{speed:>9}  {note}".rstrip())
    print(f"  In parts on {parts['cores']} cores: {parts['ratio']:.2f} times as fast as on one. Memory of the exact analysis beyond the sequence: {found['exact_bytes'] / MIB:.0f} MiB")


def missed_goals(found):
    speeds = found["per_second"]
    goals = [
        (speeds["exact"] > GOALS["exact"], f"exact at {speeds['exact'] / 1e6:.1f} million a second"),
        (found["exact_ratio"]["distUtil"] >= GOALS["exact_ratio"], f"exact is {found['exact_ratio']['distUtil']:.1f} times as fast as distUtil"),
        (speeds["shards"] > GOALS["shards"], f"SHARDS at {speeds['shards'] / 1e6:.0f} million a second"),
        (found["shards"]["error"] <= GOALS["shards_error"], f"SHARDS is off by {found['shards']['error']:.4f}"),
        (found["observe_ns"] < GOALS["observe_ns"], f"observe takes {found['observe_ns']:.0f} ns"),
        (found["prn_1_seconds"] < GOALS["prn_1_seconds"], f"prn_1 takes {found['prn_1_seconds']:.1f} s"),
    ]
    return [text for reached, text in goals if not reached]


def parsed_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=f"{os.environ.get('CARGO_TARGET_DIR', 'target')}/release/examples", help="the folder of replay, locality_speed and exact_speed")
    parser.add_argument("--folder", default="/dev/shm", help="where in memory the sequence is to lie")
    parser.add_argument("--accesses", type=int, default=20_000_000)
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a tenth of it, once")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.accesses, options.objects, options.rounds = options.accesses // 10, options.objects // 10, 1
    if options.objects < 100 or options.accesses < 1 or options.rounds < 1:
        parser.error("at least 100 objects, one access, one round")
    return options


def check_room(options):
    needed = options.accesses * 32 + options.objects * 40
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
        rounds = measure(bench, options)
        found = summary(rounds)
        wrong = check_ratios(rounds, found["shards"], options) + check_distances(bench)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    missed = missed_goals(found)
    if options.json:
        print(json.dumps({**found, "missed_goals": missed, "wrong": wrong}))
    else:
        show(found, options)
        note = " (they are for the full size)" if options.quick else ""
        print(f"  goals missed{note}: " + ("; ".join(missed) if missed else "none"))
    if wrong:
        sys.exit("error: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
