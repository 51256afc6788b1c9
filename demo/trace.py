"""Block requests for the demo: sampled from recorded traces, or generated where there are none.

A recorded trace holds hundreds of thousands of requests, and a hard disk serves 150 a second. So a trace is sampled by address: of the
disk's 64 KiB extents a pseudo-random few are kept, with every request to them. That keeps the order, the mix of reads and writes and the
reuse of each extent over the whole recording, at a scale that fits the time. Time stamps are then scaled to the length of the run.
"""

import os
import random
import subprocess
from dataclasses import dataclass

EXTENT = 64 << 10
SECTOR = 512
REQUEST_MAX = 128 << 10


@dataclass(frozen=True)
class Request:
    """One request: seconds from the start, bytes."""

    at: float
    is_read: bool
    offset: int
    length: int


def load(path, wanted, seconds, seed):
    """About `wanted` requests of an MSR Cambridge CSV (zstd), spread over `seconds`."""
    lines = subprocess.run(["zstd", "-dc", path], capture_output=True, text=True, check=True).stdout.splitlines()
    parsed = [parse(line) for line in lines]
    chosen = sample(parsed, wanted, seed)
    return scale(chosen, seconds)


def parse(line):
    stamp, _host, _disk, kind, offset, length, _response = line.split(",")
    return int(stamp), kind == "Read", int(offset), int(length)


def sample(requests, wanted, seed):
    """Every request to a pseudo-random choice of extents, so many that about `wanted` requests remain."""
    extents = sorted({offset // EXTENT for _, _, offset, _ in requests})
    random.Random(seed).shuffle(extents)
    counts = dict.fromkeys(extents, 0)
    for _, _, offset, _ in requests:
        counts[offset // EXTENT] += 1
    # The few extents that hold a journal or a log would be most of what is left: they stay out.
    hot = sorted(counts.values())[-max(1, len(counts) // 200)]
    kept, total = set(), 0
    for extent in extents:
        if counts[extent] <= hot and total < wanted:
            kept.add(extent)
            total += counts[extent]
    return [r for r in requests if r[2] // EXTENT in kept]


def scale(requests, seconds):
    """Time stamps from 0 to `seconds`; lengths cut at the extent's end, so that nothing beyond the sample is touched."""
    first, last = requests[0][0], requests[-1][0]
    factor = seconds / max(1, last - first)
    scaled = []
    for stamp, is_read, offset, length in requests:
        start = offset // SECTOR * SECTOR
        end = min(-(-(offset + length) // SECTOR) * SECTOR, (start // EXTENT + 1) * EXTENT)
        scaled.append(Request((stamp - first) * factor, is_read, start, end - start))
    return scaled


def generate(reads, blocks, wanted, seconds, seed):
    """Zipf-like requests of 4 KiB over so many blocks, with this share of reads."""
    rng = random.Random(seed)
    order = list(range(blocks))
    rng.shuffle(order)
    weights = [1 / (rank + 1) ** 0.9 for rank in range(blocks)]
    picks = rng.choices(order, weights, k=wanted)
    return [Request(i * seconds / wanted, rng.random() < reads, block * 4096, 4096) for i, block in enumerate(picks)]


def tenants(folder, wanted, seconds):
    """The demo's two tenants: name -> requests, and where they come from."""
    recorded = {name: os.path.join(folder, "recorded", f"{name}.csv.zst") for name in ("web", "pgbench")}
    if all(os.path.exists(path) for path in recorded.values()):
        source = "recorded: nginx serving static files, PostgreSQL under pgbench"
        return {name: load(path, wanted, seconds, 7) for name, path in recorded.items()}, source
    source = f"generated (no recorded traces in {folder}): a reader and a writer, Zipf-like"
    made = {"web": generate(0.9, 3_000, wanted, seconds, 1), "pgbench": generate(0.35, 2_500, wanted, seconds, 2)}
    return made, source
