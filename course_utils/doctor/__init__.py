"""What this machine has, what a lab needs, and how to mend what is missing.

Needs nothing but Python, so that it also runs where the environment is what is broken.
"""

import importlib.util
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils import places

OLDEST_TORCH, NEWEST_TORCH = (2, 11), (2, 15)
IMPORT_TIMEOUT = 120.0  # seconds; a cold disk needs up to a minute
SHARED_MEMORY = Path("/dev/shm")
GIB = 2**30

# torch is asked in a process of its own: what breaks its import cannot break the doctor.
ASK_TORCH = """
import json, platform
found = {}
try:
    import torch
    found["torch"] = torch.__version__
    import torch.distributed as dist
    if dist.is_available():
        ask = {"gloo": dist.is_gloo_available, "nccl": dist.is_nccl_available,
               "mpi": dist.is_mpi_available}
        found["backends"] = [name for name, has in ask.items() if has()]
    cuda = range(torch.cuda.device_count())
    found["gpus"] = [torch.cuda.get_device_name(gpu) for gpu in cuda]
    import torchvision
    found["torchvision"] = torchvision.__version__
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(found))
"""


@dataclass(frozen=True)
class Finding:
    """One line of the table.

    Attributes:
        mark: `ok`; `note`, which no lab fails over; or `problem`, which one would.
        what: the thing looked at.
        found: what was found.
        remedy: for a problem, what to do.
    """

    mark: str
    what: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{self.mark:<8} {self.what:<12} {self.found}"
        return f"{line}\n{'':<21} -> {self.remedy}" if self.remedy else line


def doctor() -> int:
    """Print a line for each thing a lab needs; return 1 if a lab would fail, else 0."""
    problems = 0
    for check in CHECKS:
        for finding in check():
            print(finding, flush=True)
            problems += finding.mark == "problem"
    print("\nready" if not problems else f"\nto mend: {problems}")
    return 1 if problems else 0


def python() -> Iterator[Finding]:
    """The version of Python, which the package needs to be 3.11 or newer."""
    yield Finding("ok", "Python", f"{platform.python_version()}, {sys.executable}")


def environment() -> Iterator[Finding]:
    """Whether what the labs import is installed beside this Python."""
    where = "a virtual environment" if sys.prefix != sys.base_prefix else "no virtual environment"
    where = "a conda environment" if (Path(sys.prefix) / "conda-meta").is_dir() else where
    if importlib.util.find_spec("torch"):
        yield Finding("ok", "environment", f"{where}, {sys.prefix}")
    else:
        yield Finding(
            "problem",
            "environment",
            f"{where}, and no torch in it",
            "./run.sh setup makes .venv with all of it; or name a Python that has torch in "
            "COURSE_PYTHON",
        )


def torch_and_what_it_sees() -> Iterator[Finding]:
    """The pair of torch and torchvision, the back ends, the GPUs."""
    if not importlib.util.find_spec("torch"):
        return
    found = ask_torch()
    if "torch" not in found:
        remedy = "install it anew: ./run.sh setup, or pip"
        yield Finding("problem", "torch", first_line(found["error"]), remedy)
        return
    yield torch_version(found["torch"])
    yield torchvision(found)
    yield backends(found.get("backends", []))
    yield gpus(found.get("gpus", []))


def ask_torch() -> dict:
    """What `ASK_TORCH` prints: `torch`, `torchvision`, `backends`, `gpus`, and `error`, if any."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", ASK_TORCH],
            capture_output=True,
            text=True,
            timeout=IMPORT_TIMEOUT,
        )
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"importing it took more than {IMPORT_TIMEOUT:.0f} s"}
    except (IndexError, ValueError):
        said = done.stderr.strip().splitlines() or [""]
        return {"error": f"importing it ended Python with status {done.returncode}: {said[-1]}"}


def torch_version(version: str) -> Finding:
    """Whether this torch is one the course is tested with."""
    major, minor = (int(part) for part in version.split(".")[:2])
    if OLDEST_TORCH <= (major, minor) <= NEWEST_TORCH:
        return Finding("ok", "torch", version)
    return Finding("note", "torch", f"{version}; the course is tested with 2.11 to 2.15")


def torchvision(found: dict) -> Finding:
    """Whether torchvision is there and was built for this torch."""
    if "error" not in found:
        return Finding("ok", "torchvision", found["torchvision"])
    error, remedy = found["error"], "install it anew, together with torch"
    if "torchvision::nms" in error:
        error = f"it does not fit torch {found['torch']}: {error}"
        remedy = (
            "install both in one command and from one place: pip install --force-reinstall "
            "torch==2.15.0 torchvision==0.29.2"
        )
    elif "No module named 'torchvision'" in error:
        error = "not installed"
        remedy = f"install the one for this torch: pip install torchvision torch=={found['torch']}"
    return Finding("problem", "torchvision", first_line(error), remedy)


def first_line(text: str) -> str:
    """The first line of a message, which says what is wrong."""
    return text.partition("\n")[0]


def backends(names: list[str]) -> Finding:
    """Which ways of communicating torch was built with; gloo is the one labs cannot do without."""
    if "gloo" in names:
        return Finding("ok", "back ends", ", ".join(names))
    return Finding(
        "problem",
        "back ends",
        ", ".join(names) or "none",
        "this torch lacks gloo, over which ranks meet on the CPU: install the one from PyPI",
    )


def gpus(names: list[str]) -> Finding:
    """How many GPUs torch sees, and what the course then does."""
    if not names:
        return Finding("ok", "GPUs", "none: every rank computes on the CPU, over gloo")
    does = "runs of 2 ranks use the CPU, over gloo"
    if len(names) > 1:
        does = f"runs of up to {len(names)} ranks have one each, over NCCL"
    return Finding("ok", "GPUs", f"{len(names)} ({', '.join(sorted(set(names)))}): {does}")


def cores() -> Iterator[Finding]:
    """How many cores this process may use: a rank wants one of its own."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    enough = (count or 1) >= 2
    yield Finding("ok" if enough else "note", "cores", f"{count}, shared by all ranks")


def memory() -> Iterator[Finding]:
    """The memory of the machine, of which torch alone takes about 0.65 GB in each rank."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    yield Finding("ok" if size >= 6 else "note", "memory", f"{size:.0f} GiB, shared by all ranks")


def room() -> Iterator[Finding]:
    """Free room where runs write, and in the memory that processes share (NCCL, data loaders)."""
    home = places.home()
    folder = next(each for each in (home, *home.parents) if each.is_dir())
    free = shutil.disk_usage(folder).free / GIB
    found = f"{free:.1f} GiB free in {folder}"
    if free >= 1:
        yield Finding("ok", "disk", found)
    else:
        yield Finding("problem", "disk", found, "make room: runs write logs and checkpoints there")
    if SHARED_MEMORY.is_dir():  # macOS has none and needs none
        free = shutil.disk_usage(SHARED_MEMORY).free / GIB
        remedy = "" if free >= 0.25 else "; start the container with --shm-size=1g"
        yield Finding("note" if remedy else "ok", "/dev/shm", f"{free:.1f} GiB free{remedy}")


def network() -> Iterator[Finding]:
    """Whether ranks on this machine can meet over the loopback."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
        yield Finding("ok", "loopback", "a process reaches another over 127.0.0.1")
    except OSError as error:
        remedy = "ranks meet over it: allow it in the firewall, or bring up the interface lo"
        yield Finding("problem", "loopback", f"127.0.0.1 does not answer: {error}", remedy)
    name = socket.gethostname()
    try:
        yield Finding("ok", "host name", f"{name} is {socket.gethostbyname(name)}")
    except OSError:
        yield Finding("note", "host name", f"{name} has no address; only several machines need it")


def jupyterlab() -> Iterator[Finding]:
    """JupyterLab, which the notebooks need, and demos and worker files do not."""
    if importlib.util.find_spec("jupyterlab"):
        yield Finding("ok", "JupyterLab", "installed")
    else:
        yield Finding("note", "JupyterLab", "not installed: demos run, notebooks do not open")


def data() -> Iterator[Finding]:
    """Which data sets were downloaded; a lab that can use one does without it too."""
    for name, folder in (("MNIST", "MNIST"), ("CIFAR-10", "cifar-10-batches-py")):
        there = (places.ROOT / "data" / folder).is_dir()
        found = "in data/" if there else "not in data/; the labs do without"
        yield Finding("ok" if there else "note", name, found)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    python,
    environment,
    torch_and_what_it_sees,
    cores,
    memory,
    room,
    network,
    jupyterlab,
    data,
)
