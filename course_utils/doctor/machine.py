"""Cores, memory, and room on the disks."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils import paths
from course_utils.doctor.finding import Finding

GIB = 2**30
LEAST_MEMORY, ENOUGH_MEMORY = 2 * GIB, 6 * GIB  # torch takes about 0.65 GB in each process
LEAST_SHARED, ENOUGH_SHARED = 2**20, GIB // 4
SHARED = Path("/dev/shm")


@dataclass(frozen=True)
class Machine:
    """What this process may use.

    Attributes:
        cores: as the kernel schedules it.
        quota: cores' worth of time that its control group grants; None without a limit.
        memory: bytes of the machine, or of its control group.
        available: bytes of it that are not in use; None where the system does not tell.
        disk: free bytes where runs write.
        folder: where that is.
        shared: free bytes in the memory that processes share; None where they cannot write there.
        writable: whether this user may write to `folder`.
    """

    cores: int
    quota: float | None
    memory: int
    available: int | None
    disk: int
    folder: Path
    shared: int | None
    writable: bool = True


def look() -> Iterator[Finding]:
    """Read the facts, and say what they mean."""
    yield from findings(read())


def read() -> Machine:
    """The facts about this machine."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    runs = paths.home() / ".runs"
    folder = next(each for each in (runs, *runs.parents) if each.is_dir())
    group = ControlGroup()
    memory = min(physical, group.memory() or physical)
    free = [bytes_ for bytes_ in (available(), group.free()) if bytes_ is not None]
    return Machine(
        cores=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
        quota=group.cores(),
        memory=memory,
        available=min(free, default=None),
        disk=shutil.disk_usage(folder).free,
        folder=folder,
        shared=shared(),
        writable=os.access(folder, os.W_OK | os.X_OK),
    )


def available() -> int | None:
    """Bytes of memory that programs could have without swapping, as Linux reckons."""
    try:
        found = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def shared() -> int | None:
    """Free bytes in /dev/shm; None where this process cannot write there."""
    if sys.platform != "linux":
        return ENOUGH_SHARED  # macOS has no such folder, and needs none
    if not os.access(SHARED, os.W_OK):
        return None
    return shutil.disk_usage(SHARED).free


class ControlGroup:
    """The limits that a container or a batch system sets, by control groups of version 1 or 2."""

    def __init__(self, root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")):
        self._root = root
        self._paths = {}  # by controller; '' is version 2, which has one path for all
        if own.exists():
            lines = [line.split(":", 2) for line in own.read_text().splitlines()]
            self._paths = {name: path for _, names, path in lines for name in names.split(",")}

    def cores(self) -> float | None:
        """Cores' worth of time it may use."""
        found = [tuple(text.split()) for text in self._texts("", "cpu.max")]
        found += zip(
            self._texts("cpu", "cpu.cfs_quota_us"),
            self._texts("cpu", "cpu.cfs_period_us"),
            strict=False,
        )
        return min((int(q) / int(period) for q, period in found if q.isdigit()), default=None)

    def memory(self) -> int | None:
        """Bytes it may use; a machine's whole memory stands for none in version 1."""
        return min((limit for limit, _ in self._memory()), default=None)

    def free(self) -> int | None:
        """Bytes it has left, those of cached files counted in."""
        return min((limit - used for limit, used in self._memory()), default=None)

    def _memory(self) -> Iterator[tuple[int, int]]:
        """Limit and use, without cached files, of each group with a limit."""
        for controller, limit, used in (
            ("", "memory.max", "memory.current"),
            ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            for folder in self._groups(controller):
                both = [_text(folder / name) for name in (limit, used)]
                if all(text.isdigit() for text in both):
                    yield int(both[0]), int(both[1]) - _cached(folder)

    def _texts(self, controller: str, name: str) -> list[str]:
        """A file of this group and of those around it, where there is one."""
        texts = [_text(folder / name) for folder in self._groups(controller)]
        return [text for text in texts if text]

    def _groups(self, controller: str) -> list[Path]:
        """This group's folder and those around it, whose limits hold too.

        In a container its path is another's, and the root is the group itself.
        """
        own = Path(self._paths.get(controller, "/").lstrip("/"))
        return [self._root / controller / each for each in (own, *own.parents)]


def _cached(group: Path) -> int:
    """Bytes of cached files that a control group can give back."""
    found = re.findall(
        r"^(?:total_)?inactive_file (\d+)", _text(group / "memory.stat"), re.MULTILINE
    )
    # Version 1 has the group's own, and the total with its children, as its use is.
    return max(map(int, found), default=0)


def _text(file: Path) -> str:
    return file.read_text().strip() if file.is_file() else ""


def findings(facts: Machine) -> Iterator[Finding]:
    """What the facts mean for the labs."""
    yield cores(facts)
    yield memory(facts)
    found = f"{facts.disk / GIB:.1f} GiB free in {facts.folder}"
    if not facts.writable:
        remedy = "export COURSE_HOME=FOLDER, one of your own: runs write logs and checkpoints there"
        yield Finding("problem", "disk", f"{facts.folder} cannot be written to by you", remedy)
    elif facts.disk >= GIB:
        yield Finding("ok", "disk", found)
    else:
        yield Finding("problem", "disk", found, "make room: runs write logs and checkpoints there")
    yield shared_memory(facts.shared)


def cores(facts: Machine) -> Finding:
    """A rank wants a core of its own."""
    found, has = f"{facts.cores}, shared by all ranks", float(facts.cores)
    if facts.quota is not None and facts.quota < facts.cores:
        found, has = f"{facts.cores}, for {facts.quota:g} of whose time", facts.quota
    if has >= 2:
        return Finding("ok", "cores", found)
    return Finding(
        "note",
        "cores",
        found,
        "give this machine or container 2 or more: labs run on fewer, but slowly, and what two "
        "ranks gain in time cannot be seen",
    )


def memory(facts: Machine) -> Finding:
    """Ranks, helper and notebook have torch imported, each of them."""
    found = f"{facts.memory / GIB:.1f} GiB, shared by all ranks"
    if facts.available is not None:
        found = f"{facts.available / GIB:.1f} of {facts.memory / GIB:.1f} GiB free"
    has = facts.memory if facts.available is None else facts.available
    if has < LEAST_MEMORY:
        remedy = "close other programs and kernels, or give the container more: labs need 2 GiB"
        return Finding("problem", "memory", found, remedy)
    if facts.memory < ENOUGH_MEMORY:
        return Finding("note", "memory", found, "run one notebook at a time, and few ranks")
    return Finding("ok", "memory", found)


def shared_memory(free: int | None) -> Finding:
    """Python's locks between processes live there, and what NCCL and data loaders pass on."""
    remedy = "mount it: start the container with --shm-size=1g"
    if free is None:
        return Finding("problem", str(SHARED), "not there, or not to be written to", remedy)
    found = f"{free / GIB:.2f} GiB free"
    if free < LEAST_SHARED:
        return Finding("problem", str(SHARED), found, f"make room in it, or {remedy}")
    if free < ENOUGH_SHARED:
        return Finding("note", str(SHARED), found, f"NCCL may want more; {remedy}")
    return Finding("ok", str(SHARED), found)
