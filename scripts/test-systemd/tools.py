"""What the steps share: commands, waiting, the state of units, what is in the journal, clients."""

import json
import pathlib
import re
import subprocess
import time

LEDGERS = pathlib.Path("/run/larder-test")
# Emulated machines are slow, and others may use the processors.
LIMIT = 300


def say(text):
    print(f"TEST {text}", flush=True)


def run(*command, user=None, check=True, text=None):
    """Run a command and return what it printed, both ways; an error where it fails, unless told otherwise."""
    if user:
        command = ("runuser", "-u", user, "--", *command)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, input=text, text=True, timeout=LIMIT)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}: {done.stdout}")
    return done.stdout


def fails(*command, user=None):
    """Run a command that has to fail, and return what it printed."""
    if user:
        command = ("runuser", "-u", user, "--", *command)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    if done.returncode == 0:
        raise AssertionError(f"{' '.join(command)} succeeds: {done.stdout}")
    return done.stdout


def holds(what, question):
    """An error where something is not so."""
    if not question:
        raise AssertionError(f"not so: {what}")


def until(what, question):
    """Wait until something holds; its answer."""
    began = time.monotonic()
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() - began > LIMIT:
            raise AssertionError(f"not after {LIMIT} s: {what}")
        time.sleep(0.1)


def property_of(unit, name):
    return run("systemctl", "show", "--property", name, "--value", unit).strip()


def is_active(unit="larder"):
    return property_of(unit, "ActiveState") == "active"


def main_pid():
    return int(property_of("larder", "MainPID"))


def restarts():
    return int(property_of("larder", "NRestarts"))


def status():
    return json.loads(run("larder", "status", "--json"))


def warm_blocks():
    return sum(tenant["warm_blocks"] for tenant in status()["tenants"])


def journal(*options):
    return run("journalctl", "--no-pager", "--output=short-monotonic", *options)


def show_journal():
    print(journal("-b", "-n", "60"), flush=True)


class Since:
    """The journal from now on."""

    def __init__(self):
        self.cursor = re.search(r"-- cursor: (.*)", run("journalctl", "-n", "1", "--show-cursor")).group(1)

    def __str__(self):
        run("journalctl", "--sync")
        return journal(f"--after-cursor={self.cursor}")


class Worker:
    """A client that reads, writes and verifies all the time, as a member of the group."""

    def __init__(self, volume, blocks=256):
        self.volume = volume
        self.ledger = LEDGERS / volume
        self.ledger.unlink(missing_ok=True)
        command = ["python3", "/test/client.py", uri(volume), str(blocks), str(self.ledger)]
        self.process = subprocess.Popen(["setpriv", "--reuid=member", "--regid=member", "--init-groups", *command])
        self.goes_on()

    def told(self):
        try:
            return json.loads(self.ledger.read_text())
        except FileNotFoundError:
            return {"requests": 0, "error": None}

    def goes_on(self, requests=300):
        """Wait until so many more requests are answered."""
        before = self.told()["requests"]

        def further():
            told = self.told()
            if told["error"] or self.process.poll() is not None:
                raise AssertionError(f"the client of {self.volume} ends: {told['error']}")
            return told["requests"] >= before + requests

        until("requests are answered", further)

    def ends(self):
        """Wait for the error that a crash is to a client."""
        self.process.wait(LIMIT)
        holds("the client is told of the crash", self.told()["error"])

    def stop(self):
        """End it; the longest that a request took, in seconds."""
        self.process.terminate()
        code = self.process.wait(LIMIT)
        told = self.told()
        holds(f"no error for the client of {self.volume}: {told['error']}", code == 0)
        return told["longest"]

    def verify(self):
        """What is on the disk is what it has written."""
        run("python3", "/test/client.py", "--verify", uri(self.volume), str(self.ledger), user="member")


def uri(volume):
    return f"nbd+unix:///{volume}?socket=/run/larder/{volume}.sock"
