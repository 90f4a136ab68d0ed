"""Kernels side by side: as many as a group of students starts on one machine."""

import os
import subprocess
import sys

from course_utils import paths

SCRIPT = """
import os
import time
from nbtorchrun.worker import init

init()
time.sleep(1.5)
assert os.environ["WORLD_SIZE"] == "2"
"""


def test_six_kernels_at_once(worker):
    script = worker("waits.py", SCRIPT)
    code = f"from course_utils import launch; launch({script!r}, nproc=2, show=False)"
    environ = os.environ | {"PYTHONPATH": str(paths.ROOT)}
    kernels = [subprocess.Popen([sys.executable, "-c", code], env=environ) for _ in range(6)]
    try:
        assert [kernel.wait(120) for kernel in kernels] == [0] * 6
    finally:
        for kernel in kernels:
            kernel.kill()
            kernel.wait()
