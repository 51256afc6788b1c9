"""Steps: sockets that systemd has, upgrades, disks as the cache, what the examples of drop-ins give."""

import json
import os
import pathlib
import signal
import stat
import subprocess

from setting import CONFIG, DROP_IN, ON_A_FILE, SSD, size_of
from tools import Since, Worker, holds, is_active, main_pid, restarts, run, say, status, until


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
