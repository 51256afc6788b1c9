"""The life of the package on a host that systemd runs, step by step; each step goes on with what the one before has left."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import time

from tools import (
    Since, Worker, fails, holds, is_active, journal, main_pid, property_of, restarts, run, say, status, until, uri, warm_blocks,
)

CONFIG = pathlib.Path("/etc/larder/larder.toml")
DROP_IN = pathlib.Path("/etc/systemd/system/larder.service.d/test.conf")
SSD = "/dev/nvme0n1"
# Over a reboot.
LEDGER = pathlib.Path("/var/lib/db-root.ledger")

# As README and docs/service.md have it: a file as the cache; a file and a block device as backings, one of them under write-back.
ON_A_FILE = """
[cache]
path = "/var/lib/larder/cache.img"
size = "32MiB"

[control]
socket_group = "larder"

[[tenant]]
name = "db"
write_policy = "wb"

[[tenant.volume]]
name = "db-root"
backing = "/srv/db.img"
nbd = "unix:/run/larder/db-root.sock"
vhost_user = "/run/larder/db-root.vhost"

[[tenant]]
name = "web"

[[tenant.volume]]
name = "web-root"
backing = "/dev/vdb"
nbd = "unix:/run/larder/web-root.sock"
"""
ONE_MORE = """
[[tenant]]
name = "mail"

[[tenant.volume]]
name = "mail-root"
backing = "/srv/mail.img"
nbd = "unix:/run/larder/mail-root.sock"
"""


def the_log_tells_refused_calls():
    """what a unit's filter refuses is in the kernel's log, so that nothing there means something"""
    since = Since()
    run("systemd-run", "--wait", "--pipe", "-p", "SystemCallErrorNumber=EPERM", "-p", "SystemCallFilter=~sync", "sync", check=False)
    until("a refused call is logged", lambda: "comm=\"sync\"" in str(since) and "SECCOMP" in str(since))


def install():
    """dpkg -i: the user, the folders, nothing started"""
    run("dpkg", "-i", "/test/now.deb")
    say(run("larder", "--version").strip())
    holds("the service is not enabled", run("systemctl", "is-enabled", "larder", check=False).strip() == "disabled")
    holds("the socket is not enabled", run("systemctl", "is-enabled", "larder.socket", check=False).strip() == "disabled")
    holds("the service does not run", not is_active())
    for folder in ("/run/larder", "/var/lib/larder"):
        found = os.stat(folder)
        owner = run("stat", "-c", "%U:%G %a", folder).strip()
        holds(f"{folder} is larder's: {owner}", owner == "larder:larder 750" and stat.S_ISDIR(found.st_mode))


def units():
    """systemd-analyze verify, and security"""
    said = run("systemd-analyze", "verify", "--man=no", "larder.service", "larder.socket")
    holds(f"nothing is said of the units: {said}", "larder" not in said)
    say(run("systemd-analyze", "security", "larder.service", "--no-pager").strip().splitlines()[-1])


def start_as_installed():
    """a start with the sample configuration fails, says what to do, and is tried again until somebody stops it"""
    since = Since()
    fails("systemctl", "start", "larder")
    until("the log tells why", lambda: "larder.toml" in str(since))
    say([line.split(": ", 1)[1] for line in str(since).splitlines() if "larder.toml" in line][0])
    until("it is tried again", lambda: restarts() >= 2)
    run("systemctl", "stop", "larder")
    holds("it is stopped", property_of("larder", "ActiveState") in ("inactive", "failed"))


def start_without_permission():
    """a backing that belongs to root: the log says so, and the service comes by itself when that is mended"""
    CONFIG.write_text(ON_A_FILE)
    run("truncate", "-s", "64M", "/srv/db.img", "/srv/mail.img")
    since = Since()
    fails("systemctl", "start", "larder")
    said = until("the log tells why", lambda: [line for line in str(since).splitlines() if "error: " in line])[0]
    say(said.split(": ", 1)[1])
    say([line for line in str(since).splitlines() if "help: " in line][0].split(": ", 1)[1])
    holds("it names the backing", "/srv/db.img" in said)
    time.sleep(10)
    run("chown", "larder:", "/srv/db.img", "/srv/mail.img")
    until("it serves", is_active)
    say(f"after {restarts()} restarts")
    run("systemctl", "stop", "larder")


def start():
    """configure it as told, systemctl enable --now larder"""
    run("larder", "serve", "--check")
    run("systemctl", "enable", "--now", "larder")
    holds("systemctl is-active", run("systemctl", "is-active", "larder").strip() == "active")
    say(f"status for systemd: {property_of('larder', 'StatusText')}")
    holds("nobody was dropped", property_of("larder", "NRestarts") == "0")


def access():
    """root and members of the group may ask and connect, others may not"""
    run("useradd", "-m", "-G", "larder", "member")
    run("useradd", "-m", "stranger")
    for user in (None, "member"):
        holds("the status names the tenants", "db" in run("larder", "status", user=user))
        holds("the NBD client is served", "67108864" in run("python3", "-c", size_of("db-root"), user=user))
    say(fails("larder", "status", user="stranger").strip().splitlines()[-1])
    fails("python3", "-c", size_of("db-root"), user="stranger")
    run("larder", "doctor")


def size_of(volume):
    return f"import nbd; h = nbd.NBD(); h.connect_uri({uri(volume)!r}); print(h.get_size())"


def restart():
    """systemctl restart under clients: they stay connected, and see one longer answer"""
    workers = [Worker("db-root"), Worker("web-root")]
    for _ in range(3):
        since, pid = Since(), main_pid()
        began = time.monotonic()
        run("systemctl", "restart", "larder")
        say(f"systemctl restart took {time.monotonic() - began:.2f} s")
        holds("another process serves", main_pid() != pid)
        until("connections go on", lambda: "2 of 2 connections of the daemon before go on" in str(since))
        for worker in workers:
            worker.goes_on()
    holds("the cache is warm", warm_blocks() > 0)
    for worker in workers:
        say(f"longest answer for the client of {worker.volume}: {worker.stop():.2f} s")
        worker.verify()


def whoever_comes_meanwhile():
    """nobody who connects while the daemon restarts is refused"""
    # Nothing tells from outside when the daemon is away; a client that connects again and again meets every moment.
    ended = pathlib.Path("/run/larder-test/ended")
    ended.unlink(missing_ok=True)
    command = ["python3", "/test/client.py", "--connect", "/run/larder/db-root.sock", str(ended)]
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for _ in range(3):
        run("systemctl", "restart", "larder")
    ended.touch()
    told = [client.communicate(timeout=300)[0].strip() for client in clients]
    holds(f"nobody was refused: {told}", [client.returncode for client in clients] == [0, 0])
    say("; ".join(told))


def killed():
    """kill -9: systemd starts it again, with a warm cache and all that was flushed"""
    workers = [Worker("db-root"), Worker("web-root")]
    before = restarts()
    os.kill(main_pid(), signal.SIGKILL)
    for worker in workers:
        worker.ends()
    until("it runs again", lambda: restarts() == before + 1 and is_active())
    say(f"warm blocks: {warm_blocks()}")
    holds("the cache is warm", warm_blocks() > 0)
    for worker in workers:
        worker.verify()


def watchdog():
    """a daemon that hangs (SIGSTOP) is killed and started again"""
    worker = Worker("db-root")
    since, before, began = Since(), restarts(), time.monotonic()
    os.kill(main_pid(), signal.SIGSTOP)
    worker.ends()
    until("it runs again", lambda: restarts() == before + 1 and is_active())
    say(f"it serves again {time.monotonic() - began:.0f} s after it hung")
    holds("by the watchdog", "Watchdog timeout" in str(since))
    holds("the cache is warm", warm_blocks() > 0)
    worker.verify()


def reload():
    """systemctl reload: a new tenant is served, and others go on; a configuration that does not work fails, and changes nothing"""
    worker, pid = Worker("db-root"), main_pid()
    CONFIG.write_text(ON_A_FILE + ONE_MORE)
    run("systemctl", "reload", "larder")
    holds("the new tenant is served", "67108864" in run("python3", "-c", size_of("mail-root"), user="member"))
    CONFIG.write_text(ON_A_FILE + "[[tenant]]\nnom = 1\n")
    fails("systemctl", "reload", "larder")
    holds("it serves", is_active() and main_pid() == pid and len(status()["tenants"]) == 3)
    fails("larder", "doctor")
    CONFIG.write_text(ON_A_FILE)
    run("larder", "doctor")
    run("systemctl", "reload", "larder")
    until("the tenant has left", lambda: len(status()["tenants"]) == 2)
    holds("the same process serves", main_pid() == pid)
    worker.stop()
    worker.verify()


def mistakes():
    """a restart with a configuration that does not work, and with a backing that is away: clients wait until that is mended"""
    workers = [Worker("db-root"), Worker("web-root")]
    for what, break_it, mend_it in [
        ("the configuration", lambda: CONFIG.write_text("[cash]\n"), lambda: CONFIG.write_text(ON_A_FILE)),
        ("a backing", lambda: os.rename("/srv/db.img", "/srv/away"), lambda: os.rename("/srv/away", "/srv/db.img")),
    ]:
        since, before = Since(), restarts()
        break_it()
        fails("systemctl", "restart", "larder")
        until("it is tried again", lambda: restarts() >= before + 3)
        holds(f"nobody is let go, {what} being wrong", all(worker.process.poll() is None for worker in workers))
        mend_it()
        until("it serves", is_active)
        until("connections go on", lambda: "2 of 2 connections of the daemon before go on" in str(since))
        for worker in workers:
            worker.goes_on()
    for worker in workers:
        worker.stop()
        worker.verify()


def hypervisor():
    """a client over vhost-user, whose memory the service maps"""
    told = json.loads(run("/test/vhost_load", "/run/larder/db-root.vhost", "read", "4", "3", str(64 << 20), user="member"))
    holds(f"it is served: {told}", told["requests"] > 0 and told["errors"] == 0)


def activation():
    """larder.socket: enabled under a daemon that runs, it has the control socket after a restart, and starts the daemon"""
    worker = Worker("db-root")
    run("systemctl", "enable", "larder.socket")
    run("systemctl", "restart", "larder")
    holds("the socket listens", is_active("larder.socket"))
    status()
    worker.goes_on()
    worker.stop()
    run("systemctl", "stop", "larder")
    holds("the socket stays", is_active("larder.socket") and not is_active())
    holds("the status starts the daemon", "db" in run("larder", "status", user="member"))
    holds("by systemd", is_active())
    worker.verify()
    # Who asks while it restarts waits; one that is asked in the midst of its end may say so.
    ask = "for i in 1 2 3 4 5 6 7 8; do larder status 2>&1 || larder status || exit 1; done"
    asked = subprocess.Popen(["sh", "-c", ask], stdout=subprocess.PIPE, text=True)
    run("systemctl", "restart", "larder")
    told = asked.communicate(timeout=300)[0]
    holds(f"nobody was refused: {told}", asked.returncode == 0 and "no daemon answers" not in told)
    holds("the socket is systemd's", is_active("larder.socket") and "db" in run("larder", "status"))


def activated_clients():
    """larder.socket with the address of a volume, too: systemd takes it over at a restart, and an NBD client starts the daemon"""
    drop_in = pathlib.Path("/etc/systemd/system/larder.socket.d/test.conf")
    run("systemctl", "start", "larder")
    since, workers = Since(), [Worker("db-root"), Worker("web-root")]
    run("systemctl", "stop", "larder.socket")
    drop_in.parent.mkdir()
    drop_in.write_text("[Socket]\nListenStream=/run/larder/web-root.sock\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "enable", "larder.socket")
    run("systemctl", "restart", "larder")
    holds("the socket listens", is_active("larder.socket"))
    for worker in workers:
        worker.goes_on()
    holds("the client is served", "268435456" in run("python3", "-c", size_of("web-root"), user="member"))
    holds("every listener is used", "nobody is served there" not in str(since))
    run("systemctl", "restart", "larder")
    for worker in workers:
        worker.goes_on()
        worker.stop()
    run("systemctl", "stop", "larder")
    holds("the daemon does not run", not is_active())
    holds("the client is served", "268435456" in run("python3", "-c", size_of("web-root"), user="member"))
    holds("it runs now", is_active())
    for worker in workers:
        worker.verify()
    run("systemctl", "disable", "--now", "larder.socket")
    drop_in.unlink()
    drop_in.parent.rmdir()
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "larder")
    holds("the daemon has its own sockets again", "db" in run("larder", "status", user="member"))


def upgrade():
    """dpkg -i of a later version under a client"""
    worker, pid = Worker("db-root"), main_pid()
    said = run("dpkg", "-i", "/test/later.deb")
    holds(f"another process serves: {said}", is_active() and main_pid() != pid)
    holds("the configuration stays", CONFIG.read_text() == ON_A_FILE)
    worker.goes_on()
    say(f"longest answer through an upgrade: {worker.stop():.2f} s")
    worker.verify()


def upgrade_with_the_socket():
    """the same where systemd has the control socket, and back to the earlier version"""
    run("systemctl", "enable", "larder.socket")
    run("systemctl", "restart", "larder")
    for package in ("/test/now.deb", "/test/later.deb"):
        worker, pid = Worker("db-root"), main_pid()
        run("dpkg", "-i", package)
        holds("another process serves", is_active() and main_pid() != pid)
        holds("the socket listens", is_active("larder.socket"))
        holds("the status is there", "db" in run("larder", "status", user="member"))
        worker.goes_on()
        worker.stop()
        worker.verify()


def block_device():
    """a block device as the cache: the same, on the SSD itself"""
    run("systemctl", "disable", "--now", "larder.socket")
    run("systemctl", "stop", "larder")
    CONFIG.write_text(ON_A_FILE.replace('/var/lib/larder/cache.img"\nsize = "32MiB"', f'{SSD}"\nsize = "240MiB"'))
    run("larder", "serve", "--check")
    run("systemctl", "start", "larder")
    cache = status()["cache"]
    holds(f"the cache is on {SSD}: {cache}", cache["path"] == SSD and cache["size_bytes"] > 200 << 20)
    worker = Worker("db-root")
    run("systemctl", "restart", "larder")
    worker.goes_on()
    worker.stop()
    worker.verify()


def wear():
    """the SSD's wear: refused without capabilities, told with the example's"""
    told = until("it was asked", lambda: status()["cache"]["wear"]["problem"])
    holds(f"the kernel refuses: {told}", "Permission denied" in told)
    say(told)
    DROP_IN.parent.mkdir(exist_ok=True)
    DROP_IN.write_bytes(pathlib.Path("/usr/share/doc/larder/examples/wear.conf").read_bytes())
    run("systemctl", "daemon-reload")
    worker = Worker("db-root")
    run("systemctl", "restart", "larder")
    told = until("the disk tells its wear", lambda: status()["cache"]["wear"]["disks"])
    say(json.dumps(told))
    holds("as it was not used yet", told[0]["used_ratio"] == 0 and told[0]["path"] == SSD)
    worker.goes_on()
    worker.stop()
    DROP_IN.unlink()
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "larder")


def block_devices():
    """volumes over ublk, with the example for it: a file system goes on through a restart, a kill, and the end of the daemon"""
    if not pathlib.Path("/dev/ublk-control").exists():
        say("left out: this kernel has no ublk (LARDER_KERNEL=ublk has)")
        return
    CONFIG.write_text(CONFIG.read_text().replace('nbd = "unix:/run/larder/db-root.sock"', 'nbd = "unix:/run/larder/db-root.sock"\nublk = true'))
    DROP_IN.parent.mkdir(exist_ok=True)
    DROP_IN.write_bytes(pathlib.Path("/usr/share/doc/larder/examples/ublk.conf").read_bytes())
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "larder")
    holds("it is a block device", stat.S_ISBLK(os.stat("/dev/larder/db-root").st_mode))
    run("mkfs.ext4", "-q", "/dev/larder/db-root")
    run("mount", "/dev/larder/db-root", "/mnt")
    for end in ("restart", "kill"):
        write = subprocess.Popen(["sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do seq 20000 > /mnt/{end}$i && sync /mnt/{end}$i || exit 1; done"])
        if end == "restart":
            run("systemctl", "restart", "larder")
        else:
            before = restarts()
            os.kill(main_pid(), signal.SIGKILL)
            until("it runs again", lambda before=before: restarts() == before + 1 and is_active())
        holds("no write fails", write.wait(300) == 0)
    run("umount", "/mnt")
    run("fsck.ext4", "-fn", "/dev/larder/db-root")
    # Members of the group may still use what else there is.
    holds("the status is there", "db" in run("larder", "status", user="member"))
    run("systemctl", "stop", "larder")
    holds("the device is gone", not pathlib.Path("/dev/larder/db-root").exists())
    DROP_IN.unlink()
    CONFIG.write_text(CONFIG.read_text().replace("\nublk = true", ""))
    run("systemctl", "daemon-reload")
    run("systemctl", "start", "larder")


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
    the_log_tells_refused_calls, install, units, start_as_installed, start_without_permission, start, access, restart, whoever_comes_meanwhile, killed, watchdog, reload, mistakes, hypervisor,
    activation, activated_clients, upgrade, upgrade_with_the_socket, block_device, wear, block_devices, reboot, after_the_reboot, stop, purge, nothing_was_refused,
]
