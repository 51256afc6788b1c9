"""The life of the package on a host that systemd runs, step by step; here its end, and the list of all steps."""

import pathlib
import subprocess
import time

from serving import (
    access, hypervisor, install, killed, mistakes, reload, restart, start, start_as_installed, start_without_permission, the_log_tells_refused_calls, units,
    watchdog, whoever_comes_meanwhile,
)
from setting import CONFIG, LEDGER
from sockets_and_disks import (
    activated_clients, activation, block_device, block_devices, upgrade, upgrade_with_the_socket, wear,
)
from tools import Since, Worker, holds, is_active, journal, property_of, run, say, until, uri, warm_blocks


def reboot():
    """the host goes down and comes up"""
    worker = Worker("db-root")
    worker.stop()
    LEDGER.write_bytes(worker.ledger.read_bytes())
    subprocess.run(["systemctl", "reboot"], check=True)
    raise SystemExit(0)


def after_the_reboot():
    """it runs by itself, with a warm cache and all data"""
    until("it runs", is_active)
    holds("the end was a clean one", "after a clean stop" in journal("-b", "-u", "larder"))
    say(f"warm blocks: {warm_blocks()}")
    holds("the cache is warm", warm_blocks() > 0)
    run("python3", "/test/client.py", "--verify", uri("db-root"), str(LEDGER), user="member")


def stop():
    """systemctl stop: a clean end, quickly, and nothing kept by systemd"""
    since, began = Since(), time.monotonic()
    run("systemctl", "stop", "larder")
    say(f"systemctl stop took {time.monotonic() - began:.2f} s")
    holds("it did not fail", property_of("larder", "Result") == "success")
    holds(f"systemd keeps nothing: {since}", property_of("larder", "NFileDescriptorStore") == "0")
    run("systemctl", "start", "larder")


def purge():
    """dpkg -P: stopped, gone, and the cache kept"""
    cache = pathlib.Path("/var/lib/larder/cache.img")
    size = cache.stat().st_size
    run("systemctl", "enable", "larder.socket")
    said = run("dpkg", "-P", "larder")
    holds("it does not run", not is_active() and not pathlib.Path("/usr/bin/larder").exists())
    holds("configuration and sockets are gone", not CONFIG.exists() and not pathlib.Path("/run/larder").exists())
    holds(f"what is kept is told: {said}", "is kept" in said and cache.stat().st_size == size)
    found = run("systemctl", "list-unit-files", "--no-legend", "larder*", check=False).strip()
    holds(f"no units are left: {found}", not found)
    left = run("find", "/etc", "/usr", "/run", "/var/lib/systemd", "-xdev", "-name", "*larder*", "-not", "-path", "/run/larder-test*").split()
    holds(f"nothing else is left: {left}", not left)


# What systemd says of what the steps do: starts that fail, processes that are killed.
OF_THE_STEPS = ["Failed with result", "Failed to start larder.service", "Main process exited", "Watchdog timeout", "Reload failed"]


def nothing_was_refused():
    """no system call was refused, and systemd had nothing to say of the units"""
    log = journal("--merge", "-g", "SECCOMP|type=1326")
    # clone3, whose arguments no filter can see: the C library goes on with clone.
    refused = [line for line in log.splitlines() if 'exe="/usr/bin/larder' in line and "syscall=435 " not in line]
    holds(f"no call was refused: {refused}", not refused)
    warned = journal("--merge", "_PID=1", "--priority=warning").splitlines()
    warned = [line for line in warned if "larder" in line and not any(known in line for known in OF_THE_STEPS)]
    holds(f"no warnings: {warned}", not warned)


STEPS = [
    the_log_tells_refused_calls, install, units, start_as_installed, start_without_permission, start, access, restart, whoever_comes_meanwhile, killed, watchdog,
    reload, mistakes, hypervisor, activation, activated_clients, upgrade, upgrade_with_the_socket, block_device, wear, block_devices, reboot, after_the_reboot,
    stop, purge, nothing_was_refused,
]
