"""An NBD client that writes stamped blocks, reads them back, and flushes, until SIGTERM; it holds every read against what was written.

usage: client.py URI BLOCKS LEDGER   keeps one connection, and ends with the first error. LEDGER tells others what may be on the disk, and how far it is.
       client.py --verify URI LEDGER   reads all blocks over a new connection and holds them against the ledger.
       client.py --connect SOCKET ENDED   connects again and again until there is a file ENDED, and ends with the first connection that is refused.
"""

import json
import os
import random
import signal
import socket
import sys
import time

import nbd

BLOCK = 4096
# Requests between two flushes, and between two entries in the ledger.
FLUSH_EVERY = 64
TELL_EVERY = 8


def stamp(block, version):
    """What a block holds in a version; a block that was never written holds zeroes."""
    if version == 0:
        return bytes(BLOCK)
    return (f"{block} {version} ".encode() * BLOCK)[:BLOCK]


class Client:
    """One connection, and the versions that each block may have: those since the last flush, and the last one before it."""

    def __init__(self, uri, blocks, ledger):
        self.handle = nbd.NBD()
        self.handle.connect_uri(uri)
        self.handle.zero(blocks * BLOCK, 0)
        self.ledger = ledger
        self.may_be = {block: [0] for block in range(blocks)}
        self.requests = self.version = 0
        self.longest = 0.0
        self.ends = False

    def run(self):
        error = None
        try:
            while not self.ends:
                began = time.monotonic()
                self.request()
                self.longest = max(self.longest, time.monotonic() - began)
                self.requests += 1
                if self.requests % TELL_EVERY == 0:
                    self.tell(error)
            self.flush()
        except (nbd.Error, ValueError) as failure:
            error = str(failure)
        self.tell(error)
        return 1 if error else 0

    def request(self):
        block = random.randrange(len(self.may_be))
        if self.requests % FLUSH_EVERY == FLUSH_EVERY - 1:
            self.flush()
        elif random.random() < 0.5:
            self.version += 1
            self.may_be[block].append(self.version)
            self.handle.pwrite(stamp(block, self.version), block * BLOCK)
        elif self.handle.pread(BLOCK, block * BLOCK) != stamp(block, self.may_be[block][-1]):
            raise ValueError(f"block {block} is not what was written")

    def flush(self):
        self.handle.flush()
        self.may_be = {block: versions[-1:] for block, versions in self.may_be.items()}

    def tell(self, error):
        told = {"requests": self.requests, "longest": self.longest, "error": error, "may_be": self.may_be}
        with open(self.ledger + ".new", "w") as file:
            json.dump(told, file)
        os.rename(self.ledger + ".new", self.ledger)

    def end(self, *_):
        self.ends = True


def verify(uri, ledger):
    """Each block has one of the versions that it may have: after a crash those since the last flush, too."""
    with open(ledger) as file:
        may_be = json.load(file)["may_be"]
    handle = nbd.NBD()
    handle.connect_uri(uri)
    written = 0
    for block, versions in may_be.items():
        found = handle.pread(BLOCK, int(block) * BLOCK)
        if all(found != stamp(int(block), version) for version in versions):
            sys.exit(f"{uri}: block {block} has none of the versions {versions}: {found[:24]}")
        written += found != bytes(BLOCK)
    if not written:
        sys.exit(f"{uri}: nothing was ever written")
    print(f"{len(may_be)} blocks are what was written")


def connect(path, ended):
    served = cut = 0
    while not os.path.exists(ended):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            # In the midst of the handshake it may be closed, as docs/service.md has it.
            try:
                greeted = client.recv(18, socket.MSG_WAITALL)
            except ConnectionResetError:
                greeted = b""
        served += len(greeted) == 18
        cut += len(greeted) != 18
    print(f"{served} connections served, {cut} closed before they were")


if __name__ == "__main__":
    if sys.argv[1] == "--connect":
        connect(*sys.argv[2:])
    elif sys.argv[1] == "--verify":
        verify(*sys.argv[2:])
    else:
        client = Client(sys.argv[1], int(sys.argv[2]), sys.argv[3])
        signal.signal(signal.SIGTERM, client.end)
        sys.exit(client.run())
