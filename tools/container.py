"""What a container or batch system lets this process use (control groups, version 1 or 2)."""

import math
import re
from itertools import product
from pathlib import Path


def limits(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> tuple[float, float, float]:
    """Cores, bytes of memory, and bytes still unused; infinite if there is no limit.

    The limits of the groups that contain this process's own group count too.

    Args:
        root: where the groups' folders are.
        own: the file that names this process's groups.
    """
    cores, memory, unused = [math.inf], [math.inf], [math.inf]
    for line in own.read_text().splitlines() if own.exists() else []:
        _, controllers, path = line.split(":", 2)  # version 2 has one group, with controllers ""
        inner = Path(path.lstrip("/"))
        for controller, group in product(controllers.split(","), (inner, *inner.parents)):
            folder = root / controller / group
            quota = _text(folder, "cpu.max").split()
            quota = quota or [_text(folder, f"cpu.cfs_{part}_us") for part in ("quota", "period")]
            if quota[0].isdigit():
                cores.append(int(quota[0]) / int(quota[1]))
            limit = _text(folder, "memory.max") or _text(folder, "memory.limit_in_bytes")
            if limit.isdigit():
                used = _text(folder, "memory.current") or _text(folder, "memory.usage_in_bytes")
                # Cached files can be dropped. Version 1 also has a total over the groups inside.
                cached = re.findall(r"inactive_file (\d+)", _text(folder, "memory.stat"))
                memory.append(int(limit))
                unused.append(int(limit) - int(used) + max(map(int, cached), default=0))
    return min(cores), min(memory), min(unused)


def _text(folder: Path, name: str) -> str:
    """The text of a small file; '' if there is no such file."""
    file = folder / name
    return file.read_text().strip() if file.is_file() else ""
