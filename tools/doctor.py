"""What this machine has, what a lab needs, and how to get what is missing.

psutil is imported only where it is used, because packages may be what is missing.
"""

import contextlib
import importlib.util
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils import NEEDED, paths
from nbtorchrun.display import console
from nbtorchrun.launcher.request import LOOPBACK_INTERFACE
from tools import container, trial
from tools.wrapping import wrapped

COLOURS = {"ok": console.GREEN, "note": console.YELLOW, "problem": console.RED}
GIB = 2**30
LOOPBACK = "127.0.0.1"
ABORT = 'a script with DDP may abort at its end: "terminate called without an active exception"'


@dataclass(frozen=True)
class Finding:
    """What was checked, what was found, and what to do about it ('' for nothing).

    `mark` is `ok`, `note` (labs still run) or `problem` (a lab would fail).
    """

    mark: str
    what: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{self.mark:<8} {self.what:<12}{self.found}"
        return f"{line}\n{'':21} -> {self.remedy}" if self.remedy else line


def finding(what: str, found: str, *rules: tuple[bool, str, str]) -> Finding:
    """The finding of the first rule (condition, mark, remedy) that holds; `ok` if none does."""
    for holds, mark, remedy in rules:
        if holds:
            return Finding(mark, what, found, remedy)
    return Finding("ok", what, found)


def doctor() -> int:
    """Print a line for each thing that a lab needs; return 1 if a lab would fail, else 0."""
    problems = 0
    for each in examine():
        found, *remedy = str(each).split("\n")
        said = "\n".join([wrapped(found, 21), *(wrapped(r, 24) for r in remedy)])
        console.say(each.mark, COLOURS[each.mark], end="")
        console.say(said.removeprefix(each.mark))
        problems += each.mark == "problem"
    print(f"\nproblems to fix: {problems}" if problems else "\nready")
    return 1 if problems else 0


def examine() -> Iterator[Finding]:
    """All findings, in the order in which they are printed."""
    missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
    yield Finding("ok", "Python", f"{platform.python_version()}, {sys.executable}")
    setup = "run ./run.sh setup, or set COURSE_PYTHON to a Python that has all of them"
    found = f"{sys.prefix} lacks {', '.join(missing)}" if missing else sys.prefix
    yield finding("environment", found, (bool(missing), "problem", setup))
    found = {} if "torch" in missing else trial.ask_torch()
    if found:
        yield from torch_and_gpus(found, driver_gpus())
    if "psutil" not in missing:
        yield from machine()
    yield loopback()
    if not missing and found.get("torchrun"):
        yield launch()
    yield from extras()


def driver_gpus() -> int:
    """How many GPUs NVIDIA's driver lists."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return len(subprocess.check_output(["nvidia-smi", "-L"], timeout=60).splitlines())
    return 0


def torch_and_gpus(found: dict, listed: int) -> Iterator[Finding]:
    """What `ask_torch` found means for the labs; the driver has `listed` GPUs."""
    error = found.get("error", "").partition("\n")[0]
    if "torch" not in found:
        yield Finding("problem", "torch", error, "install it again, with ./run.sh setup or pip")
        return
    untested = not trial.is_tested(found["torch"])
    yield finding("torch", found["torch"], (untested, "note", trial.TESTED))
    if trial.release(found["torch"]) == (2, 15):
        avoid = "this happens under plain torchrun; the course's init() avoids it on Linux"
        yield Finding("note", "exit", ABORT, avoid)
    yield torchvision(found, error)
    remedy = "install the torch from PyPI: ranks on the CPU communicate over gloo"
    backends = ", ".join(found["backends"]) or "none"
    yield finding("back ends", backends, ("gloo" not in found["backends"], "problem", remedy))
    yield gpus(found, listed)


def torchvision(found: dict, error: str) -> Finding:
    """Whether torchvision can be imported; `error` says why not."""
    if not error:
        return Finding("ok", "torchvision", found["torchvision"])
    version, _, build = found["torch"].partition("+")
    # PyPI serves no version such as 2.15.0+cpu; uv knows where it is.
    install = f"uv pip install --torch-backend {build}" if build else "pip install"
    remedy = f"install the one for this torch: {install} torchvision torch=={version}"
    if re.search("torchvision::nms|undefined symbol", error):
        lines = (paths.ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
        pair = [line for line in lines if line.startswith(("torch==", "torchvision=="))]
        error = f"it does not fit torch {found['torch']}: {error}"
        again = "--reinstall" if build else "--force-reinstall"
        remedy = f"install a pair that fits: {install} {again} {' '.join(pair)}"
    return Finding("problem", "torchvision", error, remedy)


def gpus(found: dict, listed: int) -> Finding:
    """Which GPUs torch can use, and how the course will use them."""
    seen, error = len(found["gpus"]), found.get("gpu error", "").partition("\n")[0]
    warning = "".join(re.findall("CUDA.*", found.get("warnings", ""))[:1])
    what = f"{seen} ({', '.join(sorted(set(found['gpus'])))})"
    on_cpu = os.environ.get("COURSE_DEVICE") == "cpu"
    if on_cpu or not (seen or error or listed):
        why = "COURSE_DEVICE=cpu" if on_cpu else "none"
        return Finding("ok", "GPUs", f"{why}: every rank computes on the CPU, over gloo")
    remedy = "run nvidia-smi: is another program using it? Set COURSE_DEVICE=cpu to do without"
    if re.search("too old|insufficient", error or warning):
        remedy = f"install an NVIDIA driver for CUDA {found['cuda']}, or set COURSE_DEVICE=cpu"
    if error:
        return Finding("problem", "GPUs", f"{what}: {error}", remedy)
    if not seen:
        if not found["cuda"]:
            warning = "it was built without CUDA"
            remedy = "run COURSE_TORCH=cuda ./run.sh setup; elsewhere, install the torch from PyPI"
        elif not warning and (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
            warning, remedy = f"CUDA_VISIBLE_DEVICES is {visible!r}", "unset that variable"
        what = f"{listed} in this machine, but torch sees none; {warning}".rstrip("; ")
        return Finding("note", "GPUs", what, remedy)
    if seen > 1 and "nccl" not in found["backends"]:
        remedy = "install the torch from PyPI, which has it on Linux, or set COURSE_DEVICE=cpu"
        return Finding("problem", "GPUs", f"{what}, but this torch has no NCCL", remedy)
    use = f"runs of up to {seen} ranks use NCCL" if seen > 1 else "runs of 2 ranks use the CPU"
    return Finding("ok", "GPUs", f"{what}: {use}. To test them, ./run.sh test tests/gpu")


def machine() -> Iterator[Finding]:
    """Cores, memory and disk, as far as this process may use them."""
    import psutil

    quota, limit, unused = container.limits()
    here = psutil.virtual_memory()
    yield cores(len(psutil.Process().cpu_affinity()) if psutil.LINUX else os.cpu_count(), quota)
    yield memory(min(here.total, limit), min(here.available, unused))
    runs = paths.home() / ".runs"
    folder = next(path for path in (runs, *runs.parents) if path.is_dir())
    yield disk(folder, shutil.disk_usage(folder).free, os.access(folder, os.W_OK | os.X_OK))
    if psutil.LINUX:  # macOS has no such folder, and needs none
        usable = os.access("/dev/shm", os.W_OK)
        yield shared_memory(shutil.disk_usage("/dev/shm").free if usable else None)


def cores(count: int, quota: float) -> Finding:
    """Every rank needs a core of its own."""
    found = f"{count}, shared by all ranks"
    if quota < count:
        found = f"{count} cores, but this container may use only {quota:g} cores' time"
    remedy = "use 2 or more: with fewer, labs are slow and show no speed-up"
    return finding("cores", found, (min(count, quota) < 2, "note", remedy))


def memory(total: float, available: float) -> Finding:
    """The notebook, its helper and every rank import torch, about 0.65 GB each."""
    found = f"{available / GIB:.1f} of {total / GIB:.1f} GiB free"
    more = "close other programs and kernels, or give the container more: labs need 2 GiB"
    little, few = available < 2 * GIB, "run one notebook at a time, with few ranks"
    return finding("memory", found, (little, "problem", more), (total < 6 * GIB, "note", few))


def disk(folder: Path, free: int, writable: bool) -> Finding:
    """Runs write logs and checkpoints to `folder`."""
    found = f"{free / GIB:.1f} GiB free in {folder}" if writable else f"{folder} is not writable"
    own = "set COURSE_HOME to a folder of your own: runs write logs and checkpoints there"
    room = "make room: runs write logs and checkpoints there"
    return finding("disk", found, (not writable, "problem", own), (free < GIB, "problem", room))


def shared_memory(free: int | None) -> Finding:
    """Python's locks, NCCL and data loaders use it; None if this process cannot write there."""
    remedy = "start the container with --shm-size=1g"
    if free is None:
        return Finding("problem", "/dev/shm", "missing or not writable", remedy)
    full = (free < 2**20, "problem", f"make room in it, or {remedy}")
    small = (free < GIB // 4, "note", f"NCCL may need more: {remedy}")
    return finding("/dev/shm", f"{free / GIB:.2f} GiB free", full, small)


def loopback() -> Finding:
    """Whether one process can reach another over the loopback."""
    remedy = f"allow it in the firewall, or bring up the interface {LOOPBACK_INTERFACE}"
    try:
        socket.if_nametoindex(LOOPBACK_INTERFACE)
        with socket.create_server((LOOPBACK, 0)) as server:
            socket.create_connection(server.getsockname(), 5).close()
        return Finding("ok", "loopback", f"processes can talk over {LOOPBACK}")
    except OSError as error:
        return Finding("problem", "loopback", f"{LOOPBACK} does not answer: {error}", remedy)


def launch() -> Finding:
    """Whether two ranks run, started as the notebooks start them."""
    found, worked = trial.two_ranks()
    return finding(
        "launch", found, (not worked, "problem", "labs start ranks in this way: mend what it names")
    )


def kernel() -> Finding:
    """Whether the kernel `python3`, which the notebooks name, is one of this Python."""
    from jupyter_client.kernelspec import KernelSpecManager

    command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    if re.fullmatch(r"python[\d.]*", command):  # Jupyter puts the server's own in its place
        command = sys.executable
    ours = Path(command).parent == Path(sys.executable).parent
    remedy = "start JupyterLab with ./run.sh lab: its kernels are the course's"
    return finding("kernel", f"python3 is {command}", (not ours, "note", remedy))


def extras() -> Iterator[Finding]:
    """What only parts of the course use: JupyterLab, and downloaded data sets."""
    absent = not importlib.util.find_spec("jupyterlab")
    found, remedy = "not installed" if absent else "installed", "notebooks need it, demos don't"
    yield finding("JupyterLab", found, (absent, "note", remedy))
    if not absent:
        yield kernel()
    for name, folder in (("MNIST", "MNIST"), ("CIFAR-10", "cifar-10-batches-py")):
        absent = not (paths.data() / folder).is_dir()
        found = "not in data/" if absent else "in data/"
        yield finding(name, found, (absent, "note", "labs don't need it: the digits are built in"))
