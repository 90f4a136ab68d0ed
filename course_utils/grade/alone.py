"""Checks one answer in processes of its own, and ends all of them."""

import contextlib
import ctypes
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from course_utils.grade.report import Grade
from course_utils.grade.submissions import Answer
from course_utils.launcher.client import python_path

PR_SET_CHILD_SUBREAPER = 36
POLL = 0.3  # seconds between two looks at the processes
MOST_PROCESSES = 100  # a check on 4 ranks has about 10
MOST_BYTES = 1_000_000  # of what a check says; all that an answer prints goes elsewhere


def check(answer: Answer, timeout: float) -> Grade:
    """Check one answer in a new folder and a new process, which end with it.

    Args:
        answer: what was handed in.
        timeout: seconds that it may take.
    """
    if not answer.text:
        return Grade.of(answer, "to do", ["nothing was handed in for it"])
    _adopt_orphans()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as folder:
        try:
            state, lines = _ask(answer, Path(folder), started + timeout)
        finally:
            _end_all()
    return Grade.of(answer, state, lines, time.monotonic() - started)


def _ask(answer: Answer, folder: Path, deadline: float) -> tuple[str, list[str]]:
    """Start the process of a check, and wait for what it says."""
    ours, its = os.pipe()
    code = f"from course_utils.grade import child; child.main({its})"
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=(log := open(folder / "stderr.log", "wb")),  # noqa: SIM115
        pass_fds=[its],
        cwd=folder,
        env=os.environ
        | {
            "COURSE_HOME": str(folder),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PYTHONPATH": python_path(os.environ.get("PYTHONPATH")),
        },
        start_new_session=True,
    )
    os.close(its)
    log.close()
    # Only the check knows this word, and not what else may write to the pipe.
    word = secrets.token_hex()
    asked = {"word": word, "number": answer.exercise.number}
    asked |= {"text": answer.text, "function": answer.function}
    with contextlib.suppress(BrokenPipeError), child.stdin as stdin:
        stdin.write(json.dumps(asked).encode())
    try:
        return _listen(ours, child, word, deadline)
    finally:
        os.close(ours)


def _listen(
    pipe: int, child: subprocess.Popen, word: str, deadline: float
) -> tuple[str, list[str]]:
    """What a check says before its deadline, or why it says nothing."""
    limit, said = deadline - time.monotonic(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            gone = child.poll() is not None  # asked before the last look at the pipe
            while selector.select(0 if gone else POLL) and (part := os.read(pipe, 65536)):
                said += part
                if found := _understood(said, word):
                    return found
                if len(said) > MOST_BYTES:
                    return "not yet", ["your code wrote to what belongs to the check"]
            if gone:
                return _died(child)
            if len(_below()) > MOST_PROCESSES:
                return "not yet", [f"your code started more than {MOST_PROCESSES} processes"]
    return "not yet", [f"the check was not done after {limit:.0f} s", "Which loop never ends?"]


def _understood(said: bytes, word: str) -> tuple[str, list[str]] | None:
    """The state and the lines of a whole message; None if there is none yet."""
    for line in said.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError, LookupError, TypeError):
            message = json.loads(line)
            if message["word"] == word:
                return message["state"], message["lines"]
    return None


def _died(child: subprocess.Popen) -> tuple[str, list[str]]:
    code = child.returncode
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    return "not yet", [
        f"the process of the check {how} before the check was done",
        "Does your code end it, or use too much memory?",
    ]


def _adopt_orphans() -> None:
    """Let the processes that an answer leaves behind become ours, so that we can find them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _below() -> list[psutil.Process]:
    """The living processes that this one and its children have started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _end_all() -> None:
    """Kill all of them; they are stopped first, so that none starts another meanwhile."""
    while below := _below():
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in below:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(number)
        time.sleep(0.01)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
