"""A call of `launch`, checked and written as a request to the agent."""

import os
import sys
from pathlib import Path
from typing import Any

from course_utils import notebooks, places
from course_utils.launch.errors import InputError
from course_utils.launch.options import Options

LOOPBACK_INTERFACE = "lo0" if sys.platform == "darwin" else "lo"


def script_path(script: str | Path) -> Path:
    """The path of a worker file; what is missing in `workers/` is written from the notebooks.

    Args:
        script: its name, with or without `workers/` before it.

    Raises:
        InputError: it would lie outside `workers/`, or is not a Python file.
    """
    path = worker_path(script)
    notebooks.write_missing(path.name)
    return path


def worker_path(script: str | Path) -> Path:
    """Where the worker file called `script` lies or would lie.

    Raises:
        InputError: outside `workers/`, or not a Python file.
    """
    folder = places.workers()
    name = str(script).removeprefix("workers/")
    path = folder / name
    if Path(os.path.normpath(path)).parent != folder or path.resolve().parent != folder.resolve():
        raise InputError(f"{script} is outside workers/: give the name of a file in that folder")
    if path.suffix != ".py":
        raise InputError(f"{script} is not a Python file: its name must end in .py")
    return Path(os.path.normpath(path))


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
        "script": {
            "run_dir": str(run_dir),
            "script": str(path),
            "arguments": arguments,
            "import_from": list(dict.fromkeys([str(path.parent), str(places.workers())])),
            "cwd": os.getcwd(),
        },
    }


def environ(options: Options) -> dict[str, str]:
    """The environment of the ranks: this process's, with what the course adds, and `env`."""
    from course_utils.launch.client import python_path

    threads = max(1, (os.cpu_count() or 1) // options.nproc)
    defaults = {
        "OMP_NUM_THREADS": str(threads),  # unset, torchrun prints a banner and takes 1
        "TORCH_DISTRIBUTED_DEBUG": "INFO",  # DDP's errors then name the parameters
    }
    if options.nnodes == 1:  # no look-up of the host's name, no open port
        defaults |= dict.fromkeys(("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), LOOPBACK_INTERFACE)
    ours = {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"}
    chosen = {name: str(value) for name, value in (options.env or {}).items()}
    return {**defaults, **os.environ, **ours, **chosen}
