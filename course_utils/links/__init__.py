"""Several hosts on this machine, a link for each, and torchrun on all of them.

A host is a process in its own network namespace. A pair of virtual network cards joins it to a
bridge, and a token bucket (`tc ... tbf`) limits each direction. Nothing can stay behind: a network
namespace lasts as long as its processes, and all of them live in one PID namespace. The kernel ends
that with its first process, which ends as soon as its caller does.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_utils.files import script_path
from nbtorchrun.diagnosis.verdict import Verdict
from nbtorchrun.errors import InputError, LaunchError
from nbtorchrun.launcher.client import python_path
from nbtorchrun.launcher.folder import RunFolder
from nbtorchrun.launcher.options import Options
from nbtorchrun.runs import Rank, Run

MAX_HOSTS = 16  # more would measure this machine's cores
TUN = "/dev/net/tun"  # what makes virtual cards
PACKET = 1514  # bytes on the cable, of which 1448 are data
POLL = 0.1  # seconds between two looks at what rank 0 reports
GRACE = 10.0  # seconds that the hosts have to end when their run is over
BRIDGE = "ip link add name bridge type bridge && ip link set bridge up"


def link(port: str, mbit: float | str, end: str = "card") -> str:
    """The shell command that joins a host to the bridge; `end` is the name of its end."""
    pair = f"ip link add name {port} type veth peer name {end}"
    return f"{pair} && ip link set {port} master bridge up && {limit(port, mbit)}"


def limit(card: str, mbit: float | str) -> str:
    """The shell command that lets a card send at most `mbit` Mbit/s."""
    return f"tc qdisc add dev {card} root tbf rate {mbit}mbit burst {burst(mbit)} latency 100ms"


def burst(mbit: float | str) -> int:
    """The bytes that an idle link lets through at once: four packets, more on fast links.

    What is shorter than a burst passes for free, so it must be short. But a bucket that is full
    takes in nothing more, and the kernel's timer comes late. Up to 100 Mbit/s four packets cover
    that. Beyond, cards hand over 64 kB at a time, and only some 2 ms of the rate cover it.
    """
    return 4 * PACKET + int(0.002 / 8 * 1e6 * max(0.0, float(mbit) - 100))


def address(host: int) -> str:
    """Where a host is on the network."""
    return f"10.0.0.{host + 10}"  # two digits: torchrun ranks hosts by address, sorted as text


def meeting(hosts: int, nproc: int, restarts: int = 0) -> list[str]:
    """The words after `torchrun`, the same on each host."""
    again = ["--max-restarts", str(restarts)] if restarts else []
    words = f"--nnodes {hosts} --nproc-per-node {nproc} --rdzv-backend c10d --rdzv-endpoint"
    return [*words.split(), f"{address(0)}:29500", *again]


def why_not(delay: bool = False) -> str:
    """Why no hosts can be made on this machine, in one sentence; '' if they can.

    Args:
        delay: hosts whose links have a delay, for which they need virtual cards.
    """
    if sys.platform != "linux":
        return "network namespaces need Linux"
    missing = [name for name in ("unshare", "nsenter", "ip", "tc") if not shutil.which(name)]
    if missing:
        return f"{' and '.join(missing)} not found: install iproute2 and util-linux"
    said = _refusal(f"{BRIDGE} && {link('port', 100)}")
    if said:
        return f"this machine does not allow network namespaces ({said})"
    said = _refusal(f"exec 3<>{TUN}") if delay else ""
    return f"a link with a delay needs {TUN}, which cannot be opened ({said})" if said else ""


def _refusal(commands: str) -> str:
    """The last line of what shell commands say if they fail in a namespace; '' if they do not."""
    words = [*namespaces(), "sh", "-c", commands]
    trial = subprocess.run(words, capture_output=True, text=True)
    said = trial.stderr.strip().splitlines() or ["no reason given"]
    return said[-1] if trial.returncode else ""


def bandwidth(mbit: float) -> float:
    """Bytes of data per second on a link of `mbit` Mbit/s, without the packets' headers."""
    return mbit * 1e6 / 8 * 1448 / PACKET


def namespaces() -> list[str]:
    """The command that starts another one in its own namespaces, as their pid 1."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]


def run(
    script: str | Path,
    *arguments: Any,
    hosts: int = 4,
    nproc: int = 1,
    mbit: float = 100,
    delay: float = 0.0,
    timeout: float = 300,
    told: Callable[[dict[str, Any]], object] = lambda report: None,
    restarts: int = 0,
    patience: float = 0,
) -> Run:
    """Run a script under torchrun on several hosts; it can import the files of `workers/`.

    Args:
        script: the name of a file of `workers/`, which is written from the notebooks if it is
            missing, or a Path anywhere.
        *arguments: passed to the script.
        hosts: number of hosts.
        nproc: number of ranks on each of them.
        mbit: the rate of each link in each direction, in Mbit/s.
        delay: seconds that what a host sends is on its way, beside the time that the rate costs:
            a message and its answer take twice as long. Needs /dev/net/tun.
        timeout: seconds after which the run is stopped.
        told: called with each report of rank 0 as soon as it comes.
        restarts: torchrun's --max-restarts.
        patience: seconds that the other hosts may go on when one has failed.

    Raises:
        InputError: a number is out of range, or this machine permits no namespaces.
        LaunchError: a rank failed, or the run took longer than `timeout`.
    """
    path = script if isinstance(script, Path) else script_path(script)
    check(hosts, nproc, mbit, delay)
    folder = RunFolder(f"links-{path.stem}")
    words = ["torchrun", *meeting(hosts, nproc, restarts), f"workers/{path.name}", *arguments]
    command = " ".join(map(str, words))
    done = Run("links", command, folder, [Rank(rank, folder) for rank in range(hosts * nproc)])
    log = folder.path / "hosts.log"
    numbers = [hosts, nproc, mbit, delay, restarts, patience]
    orders = list(map(str, [path, folder.path, *numbers, *arguments]))
    start = time.monotonic()
    with log.open("w") as output, hosts_process(orders, output) as process:
        if not ended(process, timeout, done.ranks[0], told):
            done.verdict = Verdict("hung", f"the hosts were stopped after {timeout:g} s")
    done.seconds = time.monotonic() - start
    if done.verdict is None and process.returncode:
        done.verdict = Verdict("raised", why_it_failed(done, log))
    if not done.ok:
        folder.keep()
        raise LaunchError(str(done.verdict), done)
    return done


def check(hosts: int, nproc: int, mbit: float, delay: float = 0.0) -> None:
    """Refuse numbers that are out of range, and a machine that permits no namespaces."""
    if not (isinstance(hosts, int) and 1 <= hosts <= MAX_HOSTS):
        raise InputError(f"the number of hosts must be from 1 to {MAX_HOSTS}, not {hosts!r}")
    if not mbit > 0:
        raise InputError(f"a link's rate must be above 0 Mbit/s, not {mbit!r}")
    if not 0 <= delay <= 10:
        raise InputError(f"a link's delay must be from 0 to 10 seconds, not {delay!r}")
    Options(nproc=nproc)  # checks it
    if reason := why_not(delay > 0):
        raise InputError(f"cannot make hosts here: {reason}")


@contextlib.contextmanager
def hosts_process(words: list[str], output: Any) -> Any:
    """The process that holds all hosts; they are gone when the block ends.

    It waits on a pipe that only this process holds: if this process is killed, the pipe closes.
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
        process.stdin.close()  # pid 1 of the namespace ends, and the kernel ends all others
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        process.kill()  # pid 1 has no time to read, or is stopped: --kill-child ends it
        process.wait()


def environ() -> dict[str, str]:
    """This process's environment, without torchrun's variables in case it is a rank itself."""
    of_a_rank = ("TORCHELASTIC_", "NBTORCHRUN_RUN_DIR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(of_a_rank)}
    return kept | {"PYTHONPATH": python_path(kept.get("PYTHONPATH"))}


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
    ends = [(rank.last("end") or {"how": "killed"}, rank) for rank in done.ranks]
    failed = [(end["at"], rank.number, rank) for end, rank in ends if end["how"] == "raised"]
    if failed:
        _, number, rank = min(failed)
        return f"rank {number}: {rank.stderr.strip().splitlines()[-1]}"
    said = log.read_text(errors="replace").strip().splitlines() or ["they printed nothing"]
    return f"the hosts ended too early: {said[-1]}"
