"""The checks inside the guest, as root: the package's life under systemd, step by step. What they find goes to the console, a line of which begins with TEST.

A boot goes on with the step after the last one; the guest powers off after all of them.
"""

import json
import pathlib
import subprocess
import sys
import traceback

sys.path.insert(0, "/test")
from steps import STEPS  # noqa: E402
from tools import LEDGERS, say, show_journal  # noqa: E402

STATE = pathlib.Path("/var/lib/larder-test.json")


def main():
    # Whatever is on the console's line so far.
    print(flush=True)
    LEDGERS.mkdir(exist_ok=True)
    LEDGERS.chmod(0o777)
    state = json.loads(STATE.read_text()) if STATE.exists() else {"done": 0, "failed": []}
    wanted = pathlib.Path("/test/steps").read_text().split()
    steps = [step for step in STEPS if not wanted or step.__name__ in wanted]
    for step in steps[state["done"] :]:
        say(f"-- {step.__name__}: {step.__doc__}")
        state["done"] += 1
        # A step may be a reboot.
        STATE.write_text(json.dumps(state))
        try:
            step()
        except BaseException as failure:  # noqa: BLE001 - the next steps may tell more
            if isinstance(failure, SystemExit):
                raise
            say(f"FAILED: {step.__name__}: {failure}")
            traceback.print_exc()
            show_journal()
            state["failed"].append(step.__name__)
            STATE.write_text(json.dumps(state))
    say("DONE" if not state["failed"] else f"FAILED: {' '.join(state['failed'])}")
    subprocess.run(["systemctl", "--no-block", "poweroff"], check=True)


main()
