#!/usr/bin/env python3
"""What a guest's flush costs under write-back where a flush of the SSD takes its time: 4 KiB random writes over NBD on a unix socket, beside fio on such a device
by itself, interleaved in one run, as ratios.

The SSDs are emulated: memory behind nbdkit, nbdfuse and a loop device, of which each flush takes 3 ms (consumer SSDs take 1 to 10) and other requests
take no longer than the way there. Takes root.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from nbd import Server, report, socket_uri, write_iolog

VOLUME_MIB = 64
CACHE_MIB = 96

PLUGIN = """
import time
import nbdkit

API_VERSION = 2
held, delay = None, 0.0

def config(key, value):
    global held, delay
    if key == "mib":
        held = bytearray(int(value) << 20)
    else:
        delay = float(value) / 1000

def thread_model():
    return nbdkit.THREAD_MODEL_PARALLEL

def open(readonly):
    return 1

def get_size(handle):
    return len(held)

def can_flush(handle):
    return True

def pread(handle, into, offset, flags):
    into[:] = held[offset:offset + len(into)]

def pwrite(handle, data, offset, flags):
    held[offset:offset + len(data)] = data

def flush(handle, flags):
    time.sleep(delay)
"""


def wait_for(what, is_there):
    for _ in range(200):
        if is_there():
            return
        time.sleep(0.05)
    sys.exit(f"{what} does not come up")


class Ssd:
    """A block device of which each flush takes its time."""

    def __init__(self, folder, name, mib, delay):
        self.file, plugin = f"{folder}/{name}.ssd", f"{folder}/plugin.py"
        with open(plugin, "w") as file:
            file.write(PLUGIN)
        path = f"{folder}/{name}.sock"
        argv = ["nbdkit", "--foreground", "--unix", path, "--threads=32", "python", plugin, f"mib={mib}", f"delay={delay}"]
        self.server = Server(f"nbdkit {name}", socket_uri(path), argv, f"{folder}/{name}.log")
        self.server.wait_ready()
        open(self.file, "w").close()
        self.fuse = subprocess.Popen(["nbdfuse", self.file, socket_uri(path)], stderr=self.server.log)
        wait_for("nbdfuse", lambda: os.path.getsize(self.file) > 0)
        argv = ["losetup", "--direct-io=on", "--show", "--find", self.file]
        self.path = subprocess.check_output(argv, text=True).strip()

    def stop(self):
        subprocess.run(["losetup", "--detach", self.path])
        # It unmounts what it has mounted, when the loop device has let go of it.
        self.fuse.terminate()
        self.fuse.wait(timeout=20)
        self.server.stop()


class Larder(Server):
    """Larder with one tenant under `wb`, all of which may be dirty."""

    def __init__(self, binary, folder, ssd):
        config = f"{folder}/larder.toml"
        with open(f"{folder}/backing.img", "wb") as file:
            file.truncate(VOLUME_MIB << 20)
        with open(config, "w") as file:
            file.write(f"""
[cache]
path = "{ssd.path}"
size = "{CACHE_MIB - 8}MiB"
[control]
socket = "{folder}/control"
loss_file = "{folder}/loss.json"
allocator = "static"
[[tenant]]
name = "bench"
write_policy = "wb"
dirty_rest = 100
dirty_max = 100
dirty_age = "1h"
[[tenant.volume]]
name = "vol"
backing = "{folder}/backing.img"
nbd = "unix:{folder}/vol.nbd"
""")
        super().__init__("larder", socket_uri(f"{folder}/vol.nbd", "vol"), [binary, "serve", "--config", config], f"{folder}/larder.log")


def write_iops(target, depth, every, writes, folder):
    """Writes per second with a flush after each `every`."""
    log = f"{folder}/writes.log"
    if isinstance(target, Server):
        write_iolog(log, "nbd", VOLUME_MIB * 256, writes, every)
        engine = ["--ioengine=nbd", "--thread=1", f"--uri={target.uri}"]
    else:
        write_iolog(log, target.path, VOLUME_MIB * 256, writes, every, "datasync")
        engine = ["--ioengine=io_uring", "--direct=1"]
    argv = ["fio", "--name=x", f"--size={VOLUME_MIB}M", "--output-format=json", f"--iodepth={depth}", f"--read_iolog={log}", *engine]
    out = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return json.loads(out[out.index("{"):])["jobs"][0]["write"]["iops"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--delay", type=float, default=3, help="of a flush of the SSD, in milliseconds")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("loop devices take root: sudo make bench-flushes")
    folder, running = tempfile.mkdtemp(prefix="larder-flushes-"), []
    try:
        for name in ["cache", "direct"]:
            running.append(Ssd(folder, name, CACHE_MIB, options.delay))
        direct = running[1]
        direct.name = "fio on the SSD"
        larder = Larder(options.larder, folder, running[0])
        running.append(larder)
        larder.wait_ready()
        for depth, every, writes in [(1, 1, 1_000), (32, 32, 20_000)]:
            results = {target.name: [] for target in [larder, direct]}
            for _ in range(options.rounds):
                for target in [larder, direct]:
                    results[target.name].append(write_iops(target, depth, every, writes, folder))
            report(f"write-back, a flush takes {options.delay:g} ms, queue depth {depth}, a flush every {every}", results, {direct.name: 0.7})
    finally:
        for part in reversed(running):
            part.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
