"""What a worker script may call: `init`, `device`, `report`, `mark`, `doing` and `worst`.

Under `launch` the reports travel to the notebook; under a plain `torchrun` they are printed.
Of the package only this folder is imported, so that ranks start fast. torch is imported only
where it is used, so that a rank sets up its guards before that import, which takes seconds.
"""

import atexit
import contextlib
import os
import sys
from collections.abc import Iterator
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from nbtorchrun.worker import events, gloo, machines
from nbtorchrun.worker.events import emit, plain, rank
from nbtorchrun.worker.folding import worst, worst_of_ranks

if TYPE_CHECKING:
    import torch

__all__ = ["device", "doing", "init", "mark", "rank", "report", "worst", "worst_of_ranks"]


def device() -> "torch.device":
    """The device of this rank: its own GPU, or the CPU.

    The ranks use GPUs if this machine has one for each of them. `NBTORCHRUN_DEVICE=cpu` forces the
    CPU.
    """
    import torch

    local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if os.environ.get("NBTORCHRUN_DEVICE") == "cpu" or torch.cuda.device_count() < local_ranks:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))


def init(
    *, ranks: int | tuple[int, ...] | None = None, at_least: int = 1, backend: str = ""
) -> None:
    """Start the process group on the back end this machine has; it ends when the script ends.

    That is NCCL if every rank, on every machine, has its own GPU, and gloo otherwise. It returns
    when all ranks are connected: otherwise a rank that ends at once could leave others halfway
    through connecting. Ranks on the CPU see no GPU from here on: libraries that ask what the
    machine has, as `fully_shard` does, would use one.

    Args:
        ranks: the number of ranks that the script can run on, or all such numbers; None for any.
        at_least: the smallest number of ranks that the script can run on.
        backend: "gloo" for a script that needs gloo even on GPUs; '' chooses as above.

    Raises:
        RuntimeError: the script was not started by torchrun.
        SystemExit: it was started on a wrong number of ranks; the message says what it needs.
    """
    if "RANK" not in os.environ:
        file = os.path.basename(sys.argv[0])
        by_hand = f"start this file with torchrun --standalone --nproc-per-node 2 {sys.argv[0]}"
        in_a_cell = "make %%torchrun -n 2 NAME.py the first line of the cell, or call launch()"
        raise RuntimeError(
            "init() found no RANK in the environment, so this process is no rank: "
            + (by_hand if file.endswith(".py") and file != "ipykernel_launcher.py" else in_a_cell)
        )
    _refuse_another_number(ranks, at_least)
    import torch
    import torch.distributed as dist

    gloo.lower_priority()
    meeting = {} if backend else machines.agree_on_a_device(device().type)
    place = device()
    if place.type == "cpu":  # for torch, too: fully_shard asks what this machine has
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    backend = backend or ("nccl" if place.type == "cuda" else "gloo")
    if backend == "nccl":
        torch.cuda.set_device(place)
        meeting["device_id"] = place
    dist.init_process_group(backend, **meeting)
    dist.group.WORLD.barrier().wait()
    emit("group", {"backend": backend, "device": place.type if backend == "nccl" else "cpu"})


def _refuse_another_number(ranks: int | tuple[int, ...] | None, at_least: int) -> None:
    """Exit with one sentence if the script cannot run on this number of ranks."""
    started = int(os.environ["WORLD_SIZE"])
    if ranks is None:
        fits, example, needed = started >= at_least, at_least, f"at least {at_least}"
    else:
        allowed = (ranks,) if isinstance(ranks, int) else ranks
        *others, last = map(str, allowed)
        needed = f"{', '.join(others)} or {last}" if others else last
        fits, example = started in allowed, allowed[0]
    if not fits:
        noun = "rank" if needed == "1" else "ranks"
        raise SystemExit(
            f"{os.path.basename(sys.argv[0])} needs {needed} {noun}, not {started}: "
            f"torchrun --standalone --nproc-per-node {example} {sys.argv[0]}"
        )


@atexit.register  # on import: a script that starts its group itself needs it too
def _end_process_group() -> None:
    """End the process group, and let gloo's threads finish.

    After an error NCCL is aborted: to destroy it would mean to wait for collectives that the other
    ranks may never join.
    """
    if not events.is_rank():
        return  # a child that the rank forked: the group's threads are not in it
    dist = sys.modules.get("torch.distributed")
    if dist and dist.is_available() and dist.is_initialized():
        failed = hasattr(sys, "last_type")  # an error ended the script
        if failed and "nccl" in dist.get_backend_config():
            dist.distributed_c10d._abort_process_group()
        else:
            dist.destroy_process_group()
    gloo.wait_for_the_last_tensor()


def report(**values: Any) -> None:
    """Send named values of this rank to the notebook: numbers, strings, lists, tensors.

    `report(step=3, loss=0.7)` gives `run.series("loss")`; `step` with `total` drives the
    progress bar. If these are not steps of a training, `unit="epoch"` says what they are.
    """
    emit("report", {name: plain(value) for name, value in values.items()})


@contextlib.contextmanager
def mark(name: str) -> Iterator[None]:
    """Record when this rank enters and leaves the block, for `run.timeline()`."""
    start = monotonic_ns()  # one clock for all processes of a machine
    try:
        yield
    finally:
        emit("mark", {"name": name, "start": start, "end": monotonic_ns()})


@contextlib.contextmanager
def doing(what: str) -> Iterator[None]:
    """Say in a few words what the block does: the verdict repeats it if the run stops in there.

    This takes microseconds.
    """
    from nbtorchrun.worker import calls

    calls.comment(what)
    yield
    calls.comment("")  # only if nothing was raised: the verdict must say where it was
