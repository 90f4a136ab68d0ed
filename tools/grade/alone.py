"""Checks one answer in processes of its own, and ends all of them."""

import contextlib
import ctypes
import itertools
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from course_utils.paths import ROOT
from nbtorchrun.formats import signal_name
from tools.grade import texts
from tools.grade.checker import Checker
from tools.grade.report import STATES, Grade
from tools.grade.submissions import Answer

PR_SET_CHILD_SUBREAPER = 36
POLL = 0.3  # seconds between two looks at the processes and their files
MOST_PROCESSES = 100  # a check on 4 ranks has about 10
MOST_BYTES = 1_000_000  # of what a check says; all that an answer prints goes elsewhere
MOST_WRITTEN = 200_000_000  # bytes of all files together; a check itself writes under 1 MB
BLOCK = 512  # bytes, of what `stat` counts
MOST_FILES = 5000  # a check itself makes under 100
# The variables that an answer gets. All others stay with the grader: one may hold a password.
HANDED_ON = re.compile(
    r"PATH|LANG|LANGUAGE|LC_\w+|TZ|LD_LIBRARY_PATH|DYLD_\w+|COURSE_DEVICE|CUDA_VISIBLE_DEVICES|"
    r"(OMP|MKL|OPENBLAS)_NUM_THREADS|(GLOO|NCCL)_SOCKET_IFNAME"
)


@dataclass(frozen=True)
class Folder:
    """What one answer gets: a home to write in, and a copy of the course to read."""

    path: Path

    @property
    def home(self) -> Path:
        """Where it works: home folder, worker files, runs and temporary files."""
        return self.path / "home"

    @property
    def course(self) -> Path:
        """The course that checks it."""
        return self.path / "course"

    def too_much(self) -> str:
        """What is wrong with the files that were written; '' if nothing is."""
        written, count, folders = 0, 0, [str(self.home)]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in itertools.islice(entries, MOST_FILES + 1):
                        count += 1
                        written += entry.stat(follow_symlinks=False).st_blocks * BLOCK
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
            except FileNotFoundError:  # removed at this moment
                continue
            except OSError as error:  # too deep to have a path, or closed to its owner
                return f"your code made a folder that cannot be read ({error.strerror})"
            if count > MOST_FILES:
                return f"your code made more than {MOST_FILES} files and folders"
            if written > MOST_WRITTEN:
                return f"your code wrote more than {MOST_WRITTEN // 1_000_000} MB to files"
        return ""


@contextlib.contextmanager
def _new_folder() -> Iterator[Folder]:
    """A folder that is removed afterwards, whatever was done to what is in it."""
    path = tempfile.mkdtemp(prefix="grade-")
    try:
        yield Folder(Path(path))
    finally:
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):  # they know no limit of depth
            subprocess.run([*command, path], stderr=subprocess.DEVNULL)


def check(answer: Answer, timeout: float, checker: Checker) -> Grade:
    """Check one answer in a new folder and a new process, which end with it.

    Args:
        answer: what was handed in.
        timeout: seconds that it may take.
        checker: the course, as it was before any answer ran.
    """
    if not answer.text.strip():
        return Grade.of(answer, "to do", ["nothing was handed in for it"])
    if not texts.is_writable(answer.text):
        half = "it holds half of a character (a surrogate such as \\ud800): no file can hold that"
        return Grade.of(answer, "not yet", [half])
    _adopt_orphans()
    started = time.monotonic()
    with _new_folder() as folder:
        try:
            checker.unpack(folder.course)
            folder.home.mkdir()
            state, lines = _ask(answer, folder, time.monotonic() + timeout)
        finally:
            _end_all()
    return Grade.of(answer, state, lines, time.monotonic() - started)


def environment(folder: Folder, ours: Mapping[str, str]) -> dict[str, str]:
    """The variables of the processes in which an answer runs."""
    kept = {name: value for name, value in ours.items() if HANDED_ON.fullmatch(name)}
    theirs = [each for each in ours.get("PYTHONPATH", "").split(os.pathsep) if each]
    elsewhere = [path for path in map(os.path.realpath, theirs) if path != str(ROOT)]
    own = {"COURSE_HOME": folder.home, "HOME": folder.home, "TMPDIR": folder.home}
    own["PYTHONPATH"] = os.pathsep.join([str(folder.course), *elsewhere])
    return kept | {name: str(value) for name, value in own.items()}


def _ask(answer: Answer, folder: Folder, deadline: float) -> tuple[str, list[str]]:
    """Start the process of a check, and wait for what it says."""
    ours, its = os.pipe()
    code = f"from tools.grade import child; child.main({its})"
    with open(folder.home / "stderr.log", "wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=[its],
            cwd=folder.home,
            env=environment(folder, os.environ),
            start_new_session=True,
        )
    os.close(its)
    asked = {"number": answer.exercise.number, "text": answer.text}
    asked |= {"grader": os.getpid()}
    with contextlib.suppress(BrokenPipeError), child.stdin as stdin:
        stdin.write(json.dumps(asked).encode())
    try:
        return _listen(ours, child, folder, deadline)
    finally:
        os.close(ours)


def _listen(
    pipe: int, child: subprocess.Popen, folder: Folder, deadline: float
) -> tuple[str, list[str]]:
    """What a check says before its deadline, or why it says nothing."""
    limit, said = deadline - time.monotonic(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            gone = child.poll() is not None  # asked before the last look at the pipe
            if selector.select(0 if gone else POLL):
                part = os.read(pipe, MOST_BYTES)
                said += part
                if not part and not gone:  # nobody has the pipe any more
                    time.sleep(POLL)
            if len(said) > MOST_BYTES:
                return "not yet", ["your code wrote to what belongs to the check"]
            # Before what was found is believed: the answer may have written it all and ended.
            if too_much := folder.too_much():
                return "not yet", [too_much]
            if found := _understood(said):
                return found
            if gone:
                return _died(child)
            if len(_below()) > MOST_PROCESSES:
                return "not yet", [f"your code started more than {MOST_PROCESSES} processes"]
    return "not yet", [f"the check was not done after {limit:.0f} s", "Which loop never ends?"]


def _understood(said: bytes) -> tuple[str, list[str]] | None:
    """The state and the lines of a whole message; None if there is none yet."""
    for line in said.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
            message = json.loads(line)
            if message["state"] in STATES:
                return message["state"], [str(each) for each in message["lines"]]
    return None


def _died(child: subprocess.Popen) -> tuple[str, list[str]]:
    code = child.returncode
    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with status {code}"
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
