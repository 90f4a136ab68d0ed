"""What the ranks of every peer do, and how a session answers."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable

ANSI = re.compile(r"\033\[[0-9;]*m")


def work(task: str) -> None:
    """One all-reduce on two ranks; in a faulty task rank 1 does something else before it."""
    import torch
    import torch.distributed as dist

    if task == "hello, with imports":
        import torch.distributed.fsdp
        import torch.distributed.tensor.parallel
        import torchvision  # noqa: F401
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        misbehave(task)
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == dist.get_world_size()
    dist.destroy_process_group()


def misbehave(task: str) -> None:
    """What rank 1 does in a faulty task."""
    if task == "raises":
        raise ValueError("bad batch")
    if task == "exits":
        os._exit(3)
    if task == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "hangs":
        time.sleep(1000)


def serve(run: Callable[[str], object]) -> None:
    """Answer the tasks that come in by stdin, with `run`."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a peer prints must not mix with the answers
    for task in iter(sys.stdin.readline, ""):
        start, error = time.perf_counter(), ""
        try:
            run(task.strip())
        except BaseException as raised:
            error = ANSI.sub("", f"{type(raised).__name__}: {raised}")
        answers.write(json.dumps({"seconds": time.perf_counter() - start, "error": error}) + "\n")
