"""A call of `launch`, checked and written as a request to the agent."""

import os
import sys
from pathlib import Path
from typing import Any

from nbtorchrun import settings
from nbtorchrun.errors import InputError
from nbtorchrun.launcher.options import Options

LOOPBACK_INTERFACE = "lo0" if sys.platform == "darwin" else "lo"


def request_for(
    path: Path, arguments: list[str], run_dir: Path, options: Options, warm: bool
) -> dict[str, Any]:
    """What the agent needs to know for one run, whose ranks are forked if `warm`."""
    return {
        "warm": warm,
        "nproc": options.nproc,
        "nnodes": options.nnodes,
        "rdzv_endpoint": options.rdzv_endpoint,
        "environ": ranks_environ(options),
        "script": script_orders(path, arguments, run_dir),
    }


def needs_fresh_ranks(options: Options) -> str:
    """Why the ranks must be new Pythons, in a few words; '' if forked ones give the same."""
    from nbtorchrun.launcher.client import agent_environ, read_at_start

    agents, ranks = agent_environ(), read_at_start(ranks_environ(options))
    differing = sorted(name for name in agents | ranks if agents.get(name) != ranks.get(name))
    return f"{', '.join(differing)} only takes effect when Python starts" if differing else ""


def script_orders(path: Path, arguments: list[str], run_dir: Path) -> dict[str, Any]:
    """What a rank needs to know about its script (worker/bootstrap.py)."""
    return {
        "run_dir": str(run_dir),
        "script": str(path),
        "arguments": arguments,
        "import_from": list(dict.fromkeys([str(path.parent), str(settings.folder())])),
        "cwd": _here(),
    }


def _here() -> str:
    """The folder that this process works in.

    Raises:
        InputError: it has been deleted.
    """
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InputError(
            "the folder that this process works in has been deleted: choose another with "
            "os.chdir(), or restart the kernel"
        ) from None


def ranks_environ(options: Options) -> dict[str, str]:
    """The environment of the ranks: this process's, with a few defaults, and `env`."""
    from nbtorchrun.launcher.client import inherited, python_path

    threads = max(1, cores() // options.nproc)
    defaults = {
        "OMP_NUM_THREADS": str(threads),  # unset, torchrun prints a banner and takes 1
        "TORCH_DISTRIBUTED_DEBUG": "INFO",  # DDP's errors then name the parameters
    }
    always = {"PYTHONUNBUFFERED": "1"}
    if options.nnodes == 1:
        # No look-up of the host name, and no port open to the network. A shell may name the card
        # of a cluster's network; the ranks of one machine do not need it.
        always |= dict.fromkeys(("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), LOOPBACK_INTERFACE)
    chosen = {name: str(value) for name, value in (options.env or {}).items()}
    found = {**defaults, **inherited(), **always, **chosen}
    return found | {"PYTHONPATH": python_path(found.get("PYTHONPATH"))}


def cores() -> int:
    """The cores that this process may use: a container or `taskset` may allow fewer than all."""
    allowed = getattr(os, "sched_getaffinity", None)  # macOS has none
    return len(allowed(0)) if allowed else os.cpu_count() or 1
