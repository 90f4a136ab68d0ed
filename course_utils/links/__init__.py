"""Hosts of one's own: N of them on this machine, a link each, and torchrun on all of them.

A host is a process in a network namespace of its own. A pair of virtual network cards joins it to
a bridge, and a token bucket (`tc ... tbf`) limits each direction. Nothing of this has a name that
could stay behind: a namespace lasts as long as the processes in it, all of them live in one PID
namespace, and the kernel ends that with its first process, which ends as soon as its caller does.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_utils.diagnosis.verdict import Verdict
from course_utils.errors import InputError, LaunchError
from course_utils.launcher.client import python_path
from course_utils.launcher.folder import RunFolder
from course_utils.notebook.files import script_path
from course_utils.runs import Rank, Run

MAX_HOSTS = 16  # more would measure this machine's cores
GRACE = 10.0  # seconds that the hosts have to end when nobody wants them any more
POLL = 0.1  # seconds between two looks at what rank 0 reports
SWITCH = """
ip link add name bridge type bridge && ip link set bridge up &&
ip link add name port type veth peer name card && ip link set port master bridge up &&
tc qdisc add dev port root tbf rate 100mbit burst 64kb latency 100ms
"""


def why_not() -> str:
    """Why no hosts can be made on this machine, in one sentence; '' where they can."""
    if sys.platform != "linux":
        return "network namespaces need Linux"
    missing = [name for name in ("unshare", "ip", "tc") if not shutil.which(name)]
    if missing:
        return f"{' and '.join(missing)} not found: install iproute2 and util-linux"
    trial = subprocess.run([*namespaces(), "sh", "-c", SWITCH], capture_output=True, text=True)
    if trial.returncode == 0:
        return ""
    said = trial.stderr.strip().splitlines() or ["no reason given"]
    return f"this machine does not permit network namespaces ({said[-1]})"


def bandwidth(mbit: float) -> float:
    """Bytes of data a second that a link of `mbit` Mbit/s carries: 1448 of 1514 are not headers."""
    return mbit * 1e6 / 8 * 1448 / 1514


def namespaces() -> list[str]:
    """The command that puts what follows into namespaces of its own, as pid 1 of them."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--net", "--pid", "--fork", "--kill-child"]


def run(script: str, *arguments: Any, **options: Any) -> Run:
    """Run a worker file under torchrun on hosts of its own, one rank each.

    Args:
        script: a file of `workers/`; one that is not there is written from the notebooks.
        *arguments: passed to the script.
        **options: of `run_path`.
    """
    return run_path(script_path(script), *arguments, **options)


def run_path(
    path: Path,
    *arguments: Any,
    hosts: int = 4,
    mbit: float = 100,
    timeout: float = 120,
    told: Callable[[dict[str, Any]], object] | None = None,
) -> Run:
    """Run a script that may lie elsewhere; it can import the files of `workers/`.

    Args:
        path: the script.
        *arguments: passed to it.
        hosts: number of hosts, and so of ranks.
        mbit: what each link carries in each direction, in Mbit/s.
        timeout: seconds after which the run is stopped.
        told: called with each report of rank 0 as soon as it comes.

    Raises:
        InputError: a number that cannot be, or a machine that permits no namespaces.
        LaunchError: a rank failed, or the time was over.
    """
    check(hosts, mbit)
    folder = RunFolder(f"links-{path.stem}")
    words = [f"torchrun --nnodes {hosts} --nproc-per-node 1 workers/{path.name}", *arguments]
    command = " ".join(map(str, words))
    done = Run("links", command, folder, [Rank(index, folder) for index in range(hosts)])
    log = folder.path / "hosts.log"
    orders = [str(path), str(folder.path), str(hosts), str(mbit), *map(str, arguments)]
    start = time.monotonic()
    with log.open("w") as output, building(orders, output) as process:
        if not ended(process, timeout, done.ranks[0], told or (lambda report: None)):
            done.verdict = Verdict("hung", f"the hosts were stopped after {timeout:g} s")
    done.seconds = time.monotonic() - start
    if done.verdict is None and process.returncode:
        done.verdict = Verdict("raised", why_it_failed(done, log))
    if not done.ok:
        folder.keep()
        raise LaunchError(str(done.verdict), done)
    return done


def check(hosts: int = 1, mbit: float = 1) -> None:
    """Say before anything starts what cannot be.

    Raises:
        InputError: the first of it.
    """
    if not (isinstance(hosts, int) and 1 <= hosts <= MAX_HOSTS):
        raise InputError(f"the number of hosts must be from 1 to {MAX_HOSTS}, not {hosts!r}")
    if not mbit > 0:
        raise InputError(f"a link's rate must be above 0 Mbit/s, not {mbit!r}")
    if reason := why_not():
        raise InputError(f"no hosts can be made here: {reason}")


@contextlib.contextmanager
def building(words: list[str], output: Any) -> Any:
    """The process that holds all hosts; they are gone when the block is left.

    It waits on a pipe that nobody else has: should this process be killed, the pipe is closed.
    """
    process = subprocess.Popen(
        [*namespaces(), sys.executable, "-P", "-m", "course_utils.links.inside", *words],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environ(),
        start_new_session=True,  # an interrupt in a terminal is for this process alone
    )
    try:
        yield process
    finally:
        process.stdin.close()  # the first process inside ends; the kernel ends all others before
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def environ() -> dict[str, str]:
    """This process's environment, without what torchrun told it if it is a rank itself."""
    strange = ("TORCHELASTIC_", "COURSE_RUN_DIR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    return kept | {"PYTHONPATH": python_path()}


def ended(
    process: subprocess.Popen, timeout: float, rank: Rank, told: Callable[[dict], object]
) -> bool:
    """Wait for the hosts and pass on what `rank` reports; False if they are not done in time."""
    deadline, seen = time.monotonic() + timeout, 0
    while True:
        over = process.poll() is not None
        reports = rank.reports
        for report in reports[seen:]:
            told(report)
        seen = len(reports)
        if over or time.monotonic() > deadline:
            return over
        time.sleep(POLL)


def why_it_failed(done: Run, log: Path) -> str:
    """The last line of the rank that failed first, or of the hosts' own log."""
    ends = [(rank.last("end") or {"how": "killed", "at": sys.maxsize}, rank) for rank in done.ranks]
    failed = [(end["at"], rank.number, rank) for end, rank in ends if end["how"] == "raised"]
    if failed:
        _, number, rank = min(failed)
        return f"rank {number}: {rank.stderr.strip().splitlines()[-1]}"
    said = log.read_text(errors="replace").strip().splitlines() or ["nothing was said"]
    return f"the hosts ended too early: {said[-1]}"
