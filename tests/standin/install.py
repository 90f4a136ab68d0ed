"""Makes a process believe that its machine has GPUs and NCCL."""

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo  # it lists torch's functions by name, so it comes before ours
from torch._C import Future  # what `get_future` gives; torch.futures.Future is derived from it
from torch.utils._python_dispatch import _get_current_dispatch_mode

from tests.standin import collectives, cuda, face
from tests.standin.operations import Operations


def install(gpus: int) -> None:
    """From now on, in all threads; it cannot be taken back."""
    cuda.install(gpus)
    face.install()
    collectives.install()
    Operations().__enter__()
    threading.Thread.run = _watched(threading.Thread.run)
    Future.then = _calling_back(Future.then)
    torch.compile = _without_kernels(torch.compile)


def _without_kernels(compile):
    """Kernels for a GPU cannot be compiled here: a model that asks for them stays as it is."""

    @functools.wraps(compile)
    def compiling(model: Any = None, **options: Any) -> Any:
        return compile(model, **options) if model is None or "backend" in options else model

    return compiling


def _watched(run):
    """A mode belongs to a thread: push it in each new one."""

    @functools.wraps(run)
    def running(thread: threading.Thread) -> None:
        with Operations():
            run(thread)

    return running


def _calling_back(then):
    """What waits for a collective may run in a thread of gloo, which no Python started."""

    @functools.wraps(then)
    def calling_back(future: Future, callback: Callable) -> Future:
        def watched(done: Future) -> Any:
            with contextlib.nullcontext() if _get_current_dispatch_mode() else Operations():
                return callback(done)

        return then(future, watched)

    return calling_back
