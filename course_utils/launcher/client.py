"""The notebook's end of an agent process."""

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
from typing import Any

from course_utils import paths
from course_utils.errors import LaunchError
from course_utils.launcher.folder import session_folder

START_TIMEOUT = 120  # seconds; a slow disk may take long to import torch
PACKAGE = paths.ROOT / "course_utils"


class Agent:
    """An agent process; `run` and then `wait` until it replies.

    Args:
        warm: start its forkserver now, and not at the first warm run.
    """

    def __init__(self, warm: bool):
        self.made_from = what_it_read()
        self._log = open(session_folder() / "agent.log", "ab")  # noqa: SIM115
        self._process = subprocess.Popen(
            # -P and -c: nothing of the notebook's folder or of __main__ reaches the ranks
            [
                sys.executable,
                "-P",
                "-c",
                f"from course_utils.launcher import agent; agent.serve({warm})",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | {"PYTHONPATH": python_path()},
            start_new_session=True,  # Ctrl-C is for this process only: it ends the ranks
        )
        self._unread = b""
        self._ready = False

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait until the agent has imported torch: that takes seconds, once.

        Raises:
            LaunchError: the agent died, or is not ready after `START_TIMEOUT`.
        """
        if not self._ready:
            reply = self.wait(START_TIMEOUT)
            self._ready = reply is not None and "ready" in reply
            if not self._ready:
                late = f"its helper process was not ready after {START_TIMEOUT} s"
                why = reply["error"] if reply else late
                raise LaunchError(f"torchrun cannot start: {why}. Log: {self._log.name}")

    def send(self, request: dict[str, Any] | None) -> None:
        """Send a request; None ends the current run, as Ctrl-C would. `wait` returns the reply."""
        with contextlib.suppress(BrokenPipeError):  # the agent died: `wait` says so
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def wait(self, seconds: float) -> dict[str, Any] | None:
        """The next reply, or None if none begins within `seconds`.

        An agent that died replies `{"error": ...}`.
        """
        while b"\n" not in self._unread:
            if not select.select([self._process.stdout], [], [], seconds)[0]:
                return None
            received = os.read(self._process.stdout.fileno(), 65536)
            if not received:
                died = f"its helper process died (exit code {self._process.wait()})"
                return {"error": f"{died}; the next run starts a new one"}
            self._unread += received
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def kill(self) -> None:
        """End the process at once; its ranks end with it."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process: it exits when its stdin ends."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process.stdout.close()
        self._log.close()


_kept: Agent | None = None


def kept_agent(warm: bool = True) -> Agent:
    """The agent this process keeps; started now if there is none, or if it is out of date.

    Args:
        warm: if it is started now, start its forkserver too.
    """
    global _kept
    if _kept is not None and (not _kept.alive or _kept.made_from != what_it_read()):
        close_kept_agent()
    if _kept is None:
        _kept = Agent(warm)
    return _kept


def close_kept_agent() -> None:
    """End the kept agent, if there is one."""
    global _kept
    if _kept is not None:
        _kept.close()
        _kept = None


atexit.register(close_kept_agent)


def python_path() -> str:
    """PYTHONPATH for an agent and its ranks: the notebook's, and this package's checkout."""
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(paths.ROOT)]))


def what_it_read() -> tuple:
    """Identify what an agent reads only at its start: when this changes, a new agent is needed."""
    sources = [*PACKAGE.glob("worker/*.py"), *PACKAGE.glob("launcher/*.py"), PACKAGE / "meter.py"]
    times = tuple(path.lstat().st_mtime_ns for path in sources)
    return os.getpid(), os.environ.get("PYTHONPATH"), times
