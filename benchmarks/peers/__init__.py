"""Ways to run a function or a script on two ranks, each in a process of its own: a session.

A session stands for a notebook's kernel. It reads a task a line from its stdin, and answers each
with a line of JSON: `{"seconds": ..., "error": ...}`, where `error` is what the user would read.
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import uuid
from importlib.util import find_spec
from pathlib import Path

import psutil

from course_utils import paths

HERE = Path(__file__).resolve().parent
# The session's file, the package it needs, and what it stands for.
PEERS = {
    "torchrun": ("torchrun", "torch", "plain torchrun"),
    "cold": ("course", "torch", "launch, cold"),
    "warm": ("course", "torch", "launch, warm"),
    "accelerate": ("accelerate_launcher", "accelerate", "accelerate notebook_launcher"),
    "ipyparallel": ("ipyparallel_engines", "ipyparallel", "ipyparallel, running engines"),
    "torchrunx": ("torchrunx_launcher", "torchrunx", "torchrunx"),
}


def installed() -> dict[str, str]:
    """The peers that are here, with what they stand for; the others come with `.[bench]`."""
    return {name: about for name, (_, package, about) in PEERS.items() if find_spec(package)}


class Session:
    """A running session of a peer."""

    def __init__(self, peer: str):
        self.mark = uuid.uuid4().hex  # found again in every process it starts
        environ = os.environ | {
            "COURSE_BENCH": self.mark,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(paths.ROOT),
        }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / f"{PEERS[peer][0]}.py"), peer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
            cwd=tempfile.gettempdir(),  # where a peer may write its logs
            start_new_session=True,
        )

    def do(self, task: str, timeout: float) -> dict | None:
        """What the session answers to a task; None if it does not within `timeout` seconds."""
        self._process.stdin.write(f"{task}\n".encode())
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            return None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"seconds": 0.0, "error": "the session itself died"}

    def kill(self) -> None:
        """End it as the system would, without a chance to tidy up."""
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def left(self) -> list[psutil.Process]:
        """The processes that it started and that still live."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("COURSE_BENCH") == self.mark:
                    found.append(process)
            except psutil.Error:
                continue
        return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]

    def tidy_up(self) -> None:
        """End what it left."""
        for process in self.left():
            process.send_signal(signal.SIGKILL)
