"""What the forkserver imports once, so that no rank has to; `configure` may name more.

An import may fail, for example if torchvision does not fit torch. Then the rank that needs it gets
the error, and the student sees it there.
"""

import contextlib
import ctypes
import importlib
import os
import signal
import sys
from importlib.metadata import entry_points

import psutil

from nbtorchrun.worker import guards

LARGE = 2**21  # bytes of a large page
MADV_COLLAPSE = 25  # include/uapi/asm-generic/mman-common.h, from Linux 6.1
MODULES = [
    "torch",
    "numpy",
    "multiprocessing.queues",
    "multiprocessing.popen_forkserver",
    "torch.distributed",
    "torch.nn.parallel",
    "torch.utils.data.distributed",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "torch.distributed.checkpoint",
    "nbtorchrun.worker",
    "nbtorchrun.worker.bootstrap",
    "nbtorchrun.worker.calls",
    "nbtorchrun.worker.ending",
    "nbtorchrun.meter",
]


def use_large_pages(*_: object) -> None:
    """Move this process's memory into pages of 2 MB, where the system can.

    A fork copies an entry for each page, and the end of the fork drops them all again. Torch's
    400 MB have 100,000 pages of 4 kB: a rank's start and end would take 30 ms for nothing else.
    """
    with contextlib.suppress(Exception):  # whatever is missing, forks still work
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for area in psutil.Process().memory_maps(grouped=False):
            if "w" in area.perms and area.anonymous >= LARGE:
                start, end = (int(edge, 16) for edge in area.addr.split("-"))
                madvise(start, end - start, MADV_COLLAPSE)  # what cannot move stays where it is


# Now, before the imports: if the agent dies during them, this process must not stay behind.
guards.die_with_parent(int(os.environ["NBTORCHRUN_AGENT"]))

with guards.modules_stay():
    for module in [*MODULES, *filter(None, os.environ["NBTORCHRUN_PRELOAD"].split(","))]:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    # Torch finds a back end by reading the metadata of every installed package: once, here.
    for name in ("gloo", "nccl"):
        for backend in entry_points(group="torch.distributed.backends", name=name):
            with contextlib.suppress(Exception):
                backend.load()()

# Each rank would only find out at its first tensor on a GPU.
if getattr(sys.modules.get("torch"), "cuda", None) and sys.modules["torch"].cuda.is_initialized():
    raise RuntimeError(
        "one of the modules that the forkserver imports has begun to use the GPU, and no process "
        "forked from it could use it again: set warm=False, and see which import did it"
    )

# When the agent asks: it takes some tenths of a second, which the first run should not wait for.
# A rank takes the signal over, to write its stacks: no script meets this handler.
signal.signal(guards.WANT_STACKS, use_large_pages)
