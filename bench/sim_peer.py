"""One of libCacheSim's policies over a trace, timed; run by sim.py with a python that has it. Prints a line of JSON.

usage: sim_peer.py TRACE.oracleGeneral CLASS SIZE [PARAMETER=NUMBER]...
"""

import json
import sys
import time

import libcachesim


def anonymous_bytes():
    """Memory of this process, without files such as the trace."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon:"))


def main():
    trace, policy, size = sys.argv[1], getattr(libcachesim, sys.argv[2]), int(sys.argv[3])
    parameters = {name: int(number) for name, number in (argument.split("=") for argument in sys.argv[4:])}
    reader = libcachesim.TraceReader(trace=trace, trace_type=libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    before, begun = anonymous_bytes(), time.process_time()
    cache = policy(cache_size=size, **parameters)
    miss_ratio, _ = cache.process_trace(reader)
    seconds = time.process_time() - begun
    print(json.dumps({"accesses": reader.get_num_of_req(), "miss_ratio": miss_ratio, "seconds": seconds,
                      "peak_bytes": anonymous_bytes() - before}))


if __name__ == "__main__":
    main()
