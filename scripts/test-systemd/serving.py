"""Steps: the package installed, configured and started; clients through restarts, crashes, reloads and mistakes. Each goes on with what the one before has left."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import time

from setting import CONFIG, ONE_MORE, ON_A_FILE, size_of
from tools import Since, Worker, fails, holds, is_active, main_pid, property_of, restarts, run, say, status, until, warm_blocks


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
