"""The misses of libCacheSim's policies over a trace: JSON, for each policy (by our name for it) the count at each cache size.

usage: miss_counts.py TRACE.oracleGeneral SIZE...    (sizes in objects; every object counts as one unit)
"""

import json
import sys

import libcachesim

# Its hash table has 2^24 slots unless told otherwise: 128 MiB, to be cleared for each of the many small caches here.
HASH_POWER = 16


def policies(size):
    """For a cache of `size` objects: our name, libCacheSim's class, and the parameters in which our defaults differ from its own."""
    return [
        ("fifo", libcachesim.FIFO, {}),
        ("lru", libcachesim.LRU, {}),
        ("clock:1", libcachesim.Clock, {"n_bit_counter": 1}),
        ("clock:4", libcachesim.Clock, {"n_bit_counter": 4}),
        ("lfu", libcachesim.LFU, {}),
        ("arc", libcachesim.ARC, {}),
        ("2q", libcachesim.TwoQ, {}),
        ("lirs", libcachesim.LIRS, {}),
        ("mq", libcachesim.MQ, {"lifetime": 4 * size}),
        ("s3-fifo", libcachesim.S3FIFO, {}),
        ("sieve", libcachesim.Sieve, {}),
        ("belady", libcachesim.Belady, {}),
        ("w-tinylfu", libcachesim.WTinyLFU, {}),
        ("random", libcachesim.Random, {}),
    ]


def misses(trace, policy, size, parameters):
    reader = libcachesim.TraceReader(trace=trace, trace_type=libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    ratio, _ = policy(cache_size=size, hashpower=HASH_POWER, **parameters).process_trace(reader)
    return round(ratio * reader.get_num_of_req())


def main():
    trace, sizes = sys.argv[1], [int(size) for size in sys.argv[2:]]
    counts = {}
    for size in sizes:
        for name, policy, parameters in policies(size):
            counts.setdefault(name, []).append(misses(trace, policy, size, parameters))
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
