"""A terminal of ASCII shows a run all the same."""

import os
import subprocess
import sys

from course_utils import paths

SCRIPT = "from course_utils import launch\nlaunch({!r}, nproc=1)\n"


def test_a_terminal_without_utf_8_shows_the_run(worker):
    script = worker("says.py", "print('said')\nfrom nbtorchrun.worker import init\ninit()\n")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(script)],
        env=os.environ | {"PYTHONPATH": str(paths.ROOT), "PYTHONIOENCODING": "ascii:strict"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "\nsaid\n" in done.stdout, done.stderr
    assert "1 rank ? gloo ? cpu ? ok" in done.stdout
    assert "cannot be shown" not in done.stderr
