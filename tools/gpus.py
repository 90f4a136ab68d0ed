"""How many ranks a demo starts where nobody says: as many as have a GPU each, if it can use one."""

import ast
import os

from course_utils import cells, paths
from tools.demos import Demo, fitting_ranks

DRIVERS = ("/proc/driver/nvidia", "/dev/nvidia0", "/dev/dxg", "/dev/kfd")
COUNT_GPUS = paths.ROOT / "tools" / "count_gpus.py"


def gpus_here() -> int:
    """The GPUs that ranks of this machine may use; torch counts them, if there is a driver."""
    if not any(map(os.path.exists, DRIVERS)):
        return 0  # at once: torch takes seconds to say so
    from nbtorchrun.launcher.options import Options
    from nbtorchrun.launcher.running import launch_path  # needs more than Python

    found = launch_path(COUNT_GPUS, [], Options(nproc=1)).series("gpus")
    return found[-1] if found else 0


def ranks_for(demo: Demo, gpus: int) -> tuple[int, str]:
    """The number of ranks a demo starts where there are `gpus`, and a sentence that says why.

    The sentence is '' where there is nothing to say: no second GPU, or a GPU for every rank.
    """
    usual = demo.main.nproc
    if gpus < 2:
        return usual, ""
    if why := stays_on_the_cpu(demo):
        return usual, f"It uses no GPU: {why}."
    if usual == 1:
        return 1, "It starts one process, which sends nothing to others."
    if usual <= gpus:
        return usual, ""
    ranks = max((n for n in fitting_ranks(demo) if 2 <= n <= gpus), default=usual)
    if ranks == usual:
        return usual, f"It uses no GPU: it needs {usual} ranks, and there are {gpus} GPUs."
    return ranks, f"It starts {ranks} ranks, one for each GPU (-n {usual}: on the CPU)."


def stays_on_the_cpu(demo: Demo) -> str:
    """Why a demo's script computes on the CPU wherever it runs; '' if it takes GPUs."""
    nodes = list(ast.walk(ast.parse(cells.sources()[demo.main.file])))
    if any(isinstance(node, ast.Constant) and node.value == "gloo" for node in nodes):
        return "its script asks for gloo, whose messages go from memory to memory"
    if any(getattr(node, "id", "") == "links" for node in nodes):
        return "its hosts send through links of the CPU's network"
    return ""
