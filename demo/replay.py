"""Replays requests against an NBD export through libnbd, at their time stamps, and verifies every byte read.

Each sector holds a stamp: volume, sector number, and how often the sector was written. A model in memory knows each sector's present generation, so a read
proves that it got this sector, of this volume, in its latest version. Requests that overlap one in flight wait for it, since either order would be right.
"""

import struct
import time

import nbd

SECTOR = 512
OUTSTANDING_MAX = 16


class Mismatch(Exception):
    """A sector did not hold what was written to it last."""


def stamp(volume, sector, generation):
    """The 512 bytes of a sector in its n-th version."""
    return struct.pack("<QQQQ", 0x4C41524445520000 + volume, sector, generation, sector * 31 + generation) * 16


def content(volume, generations, offset, length):
    first = offset // SECTOR
    return b"".join(stamp(volume, s, generations.get(s, 0)) for s in range(first, first + length // SECTOR))


def write_initial(path, volume, requests, size):
    """A sparse file of `size` bytes, in which every sector that the requests touch carries its stamp."""
    with open(path, "wb") as file:
        file.truncate(size)
        for first, count in sorted({(r.offset // SECTOR, r.length // SECTOR) for r in requests}):
            file.seek(first * SECTOR)
            file.write(content(volume, {}, first * SECTOR, count * SECTOR))


class Replay:
    """One tenant's requests on one connection."""

    def __init__(self, uri, volume, requests, progress, counted_from=0):
        self.handle = nbd.NBD()
        self.handle.connect_uri(uri)
        self.volume, self.requests, self.progress = volume, requests, progress
        # Latencies of requests due before are not told: the cache is still filling.
        self.counted_from = counted_from
        self.generations = {}
        self.in_flight = {}
        self.latencies = {True: [], False: []}
        self.verified = 0

    def run(self):
        start = time.monotonic()
        upcoming = 0
        told = start
        while upcoming < len(self.requests) or self.in_flight:
            now = time.monotonic()
            while upcoming < len(self.requests) and self.may_start(self.requests[upcoming], now - start):
                self.start(self.requests[upcoming], start)
                upcoming += 1
            self.wait(upcoming, start)
            self.collect()
            if now - told > 0.5:
                told = now
                self.progress(self.summary(upcoming))
        self.handle.shutdown()
        return self.summary(upcoming)

    def wait(self, upcoming, start):
        """Until something completes, or the next request is due; polling knows whole milliseconds only."""
        due = self.requests[upcoming].at - (time.monotonic() - start) if upcoming < len(self.requests) else 1
        if 0 < due < 0.001:
            time.sleep(due)
            self.handle.poll(0)
        else:
            self.handle.poll(min(5, int(1000 * due)) if due > 0 else 5)

    def may_start(self, request, elapsed):
        if request.at > elapsed or len(self.in_flight) >= OUTSTANDING_MAX:
            return False
        end = request.offset + request.length
        return not any(r.offset < end and request.offset < r.offset + r.length and not (r.is_read and request.is_read)
                       for r, _, _ in self.in_flight.values())

    def start(self, request, start):
        due = start + request.at
        if request.is_read:
            buffer = nbd.Buffer(request.length)
            cookie = self.handle.aio_pread(buffer, request.offset)
        else:
            first = request.offset // SECTOR
            for sector in range(first, first + request.length // SECTOR):
                self.generations[sector] = self.generations.get(sector, 0) + 1
            data = content(self.volume, self.generations, request.offset, request.length)
            buffer = nbd.Buffer.from_bytearray(bytearray(data))
            cookie = self.handle.aio_pwrite(buffer, request.offset)
        self.in_flight[cookie] = (request, buffer, due)

    def collect(self):
        for cookie in [c for c in self.in_flight if self.handle.aio_command_completed(c)]:
            request, buffer, due = self.in_flight.pop(cookie)
            if request.at >= self.counted_from:
                self.latencies[request.is_read].append(time.monotonic() - due)
            if request.is_read:
                self.verify(request, bytes(buffer.to_bytearray()))

    def verify(self, request, data):
        if data != content(self.volume, self.generations, request.offset, request.length):
            raise Mismatch(f"volume {self.volume}: {request.length} bytes at {request.offset} are not what was written")
        self.verified += len(data)

    def summary(self, done):
        return {"done": done, "total": len(self.requests), "verified_bytes": self.verified,
                "read": statistics(self.latencies[True]), "write": statistics(self.latencies[False])}


def statistics(latencies):
    """Count, and mean, median, 99th percentile in milliseconds."""
    if not latencies:
        return {"count": 0, "mean": 0.0, "p50": 0.0, "p99": 0.0}
    ordered = sorted(latencies)
    at = lambda share: 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return {"count": len(ordered), "mean": 1000 * sum(ordered) / len(ordered), "p50": at(0.5), "p99": at(0.99)}
