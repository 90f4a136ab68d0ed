"""The notebook's end of an agent process."""

import atexit
import contextlib
import json
import os
import resource
import selectors
import site
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbtorchrun import settings
from nbtorchrun.errors import LaunchError
from nbtorchrun.launcher.folder import session_folder

START_TIMEOUT = 120  # seconds; a slow disk may take long to import torch
PACKAGE = Path(settings.__file__).parent
# Variables that a process reads when it starts, or when it imports torch.
READ_AT_START = ("PYTHON", "TORCH_", "PYTORCH_", "TORCHDYNAMO_", "TZ", "OMP_", "MKL_", "LD_")
READ_AT_START += ("KMP_", "GOMP_", "OPENBLAS_", "ATEN_", "ONEDNN_", "DNNL_", "DYLD_", "MALLOC_")
READ_AT_START += ("LC_", "LANG", "GLIBC_")
SET_ANEW = ("OMP_NUM_THREADS", "TORCH_DISTRIBUTED_DEBUG", "PYTHONUNBUFFERED")  # in each rank


class Agent:
    """An agent process; `send` it a request, and then `wait` until it replies.

    Args:
        warm: start its forkserver now, and not at the first warm run.

    Attributes:
        ready: whether it was seen to have imported torch.
    """

    def __init__(self, warm: bool):
        self.made_from = what_it_got()
        self._log = open(session_folder() / "agent.log", "ab")  # noqa: SIM115
        self._log_begins = self._log.seek(0, os.SEEK_END)
        # Not its stdout: whatever Python runs at its start, as a sitecustomize, may print there.
        self._replies, its_end = os.pipe()
        self._process = subprocess.Popen(
            # -P and -c: nothing of the notebook's folder or of __main__ reaches the ranks
            [
                sys.executable,
                "-P",
                "-c",
                "from nbtorchrun.launcher import agent; "
                f"agent.serve({warm}, {its_end}, {settings.preload})",
            ],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            pass_fds=[its_end],
            env=inherited() | {"PYTHONPATH": python_path(os.environ.get("PYTHONPATH"))},
            start_new_session=True,  # Ctrl-C is for this process only: it ends the ranks
        )
        os.close(its_end)
        self._unread = b""
        self.ready = False
        self._started = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def is_ready(self, seconds: float) -> bool:
        """Whether the agent has imported torch, within `seconds`: that takes a while, once.

        Raises:
            LaunchError: the agent died, or is not ready `START_TIMEOUT` after its start.
        """
        if not self.ready:
            reply = self.wait(seconds)
            if reply is None and time.monotonic() - self._started < START_TIMEOUT:
                return False
            if not self.ready:
                late = f"its helper process was not ready after {START_TIMEOUT} s"
                why = reply["error"] if reply else late
                raise LaunchError(f"torchrun cannot start: {why}. Log: {self._log.name}")
        return True

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
            if not self._is_readable(seconds):
                return None
            received = os.read(self._replies, 65536)
            if not received:
                code = self._process.wait()
                died = f"its helper process died (exit code {code})"
                said = self._last_words() if code >= 0 else ""  # a signal leaves it no time
                return {"error": f"{died}{said}; the next run starts a new one"}
            self._unread += received
        line, self._unread = self._unread.split(b"\n", 1)
        reply = json.loads(line)
        self.ready |= "ready" in reply  # here: whoever waits for another reply may read this one
        return reply

    def _is_readable(self, seconds: float) -> bool:
        """Whether a reply comes within `seconds`; `select.select` fails for descriptors > 1023."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._replies, selectors.EVENT_READ)
            return bool(selector.select(seconds))

    def _last_words(self) -> str:
        """The last line that the process wrote, in parentheses; '' if it wrote none."""
        with contextlib.suppress(OSError), open(self._log.name, "rb") as log:
            log.seek(self._log_begins)
            if lines := log.read().decode("utf-8", "replace").split("\n"):
                said = [line.strip() for line in lines if line.strip()]
                return f", and last said: {said[-1][:300]}" if said else ""
        return ""

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
        os.close(self._replies)
        self._log.close()


_kept: Agent | None = None


def kept_agent(warm: bool = True) -> Agent:
    """The agent this process keeps; started now if there is none, or if it is out of date.

    Args:
        warm: if it is started now, start its forkserver too.
    """
    global _kept
    if _kept is not None and (not _kept.alive or _kept.made_from != what_it_got()):
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


def python_path(given: str | None) -> str:
    """PYTHONPATH for an agent or its ranks: the one that was given, and this package's checkout.

    An installed package needs nothing: every Python of its environment finds it.
    """
    checkout = str(PACKAGE.parent)
    installed = checkout in (sysconfig.get_path("purelib"), site.getusersitepackages())
    return os.pathsep.join(filter(None, [given, "" if installed else checkout]))


def inherited() -> dict[str, str]:
    """The environment of this process, for its ranks.

    Without `PYTHONOPTIMIZE`, which would take every `assert` out of a script: a test that fails
    would pass.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}


def read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that Python, torch or the loader reads only when it starts.

    A forked rank has those of its agent. It sets the number of threads and the debug level anew.
    """
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(READ_AT_START) and name not in SET_ANEW
    }


def agent_environ() -> dict[str, str]:
    """What an agent that is started now would read at its start."""
    path = {"PYTHONPATH": python_path(os.environ.get("PYTHONPATH"))}
    return read_at_start(inherited() | path)


def what_it_got() -> tuple:
    """What an agent gets or reads only at its start: when this changes, a new agent is needed."""
    sources = [*PACKAGE.glob("worker/*.py"), *PACKAGE.glob("launcher/*.py"), PACKAGE / "meter.py"]
    times = tuple(path.lstat().st_mtime_ns for path in sources)
    return os.getpid(), agent_environ(), limits(), times


def limits() -> tuple:
    """What a process inherits beside its environment: the limits of `ulimit`, and the umask."""
    kinds = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
    umask = os.umask(0o77)  # there is no way to ask for it: for a moment files are private
    os.umask(umask)
    return umask, *map(resource.getrlimit, kinds)
