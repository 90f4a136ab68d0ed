"""A call of `launch`, checked and written as a request to the agent."""

import os
import sys
from pathlib import Path
from typing import Any

from course_utils import paths
from course_utils.launcher.options import Options

LOOPBACK_INTERFACE = "lo0" if sys.platform == "darwin" else "lo"


def request_for(
    path: Path, arguments: list[str], run_dir: Path, options: Options
) -> dict[str, Any]:
    """What the agent needs to know for one run."""
    return {
        "warm": options.warm,
        "nproc": options.nproc,
        "nnodes": options.nnodes,
        "rdzv_endpoint": options.rdzv_endpoint,
        "environ": environ(options),
        "script": script_orders(path, arguments, run_dir),
    }


def script_orders(path: Path, arguments: list[str], run_dir: Path) -> dict[str, Any]:
    """What a rank needs to know about its script (worker/bootstrap.py)."""
    return {
        "run_dir": str(run_dir),
        "script": str(path),
        "arguments": arguments,
        "import_from": list(dict.fromkeys([str(path.parent), str(paths.workers())])),
        "cwd": os.getcwd(),
    }


def environ(options: Options) -> dict[str, str]:
    """The environment of the ranks: this process's, with what the course adds, and `env`."""
    from course_utils.launcher.client import python_path

    threads = max(1, (os.cpu_count() or 1) // options.nproc)
    defaults = {
        "OMP_NUM_THREADS": str(threads),  # unset, torchrun prints a banner and takes 1
        "TORCH_DISTRIBUTED_DEBUG": "INFO",  # DDP's errors then name the parameters
    }
    if options.nnodes == 1:  # no look-up of the host name, and no port open to the network
        defaults |= dict.fromkeys(("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), LOOPBACK_INTERFACE)
    ours = {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"}
    chosen = {name: str(value) for name, value in (options.env or {}).items()}
    return {**defaults, **os.environ, **ours, **chosen}
