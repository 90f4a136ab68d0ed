"""torch.cuda, as a machine with GPUs has it: streams and events have nothing to order."""

import contextlib
import os
import time
import types
from collections.abc import Iterator
from typing import Any

import torch

from tests.standin.state import PROCESS, THREAD


class Stream:
    """All work is done at once, so streams have nothing to order."""

    def __init__(self, *_: Any, **__: Any):
        self.device = torch.device("cuda", THREAD.device)
        self.cuda_stream = self.stream_id = self.device_index = 0
        self.device_type = 1

    def synchronize(self) -> None:
        PROCESS.busy = False

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def wait_stream(self, other: Any) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None: ...


class Event:
    """A moment on the GPU's clock."""

    def __init__(self, *_: Any, **__: Any):
        self.at = time.monotonic_ns()

    def record(self, stream: Any = None) -> None:
        self.at = time.monotonic_ns()

    def wait(self, stream: Any = None) -> None: ...

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        PROCESS.busy = False

    def elapsed_time(self, later: "Event") -> float:
        return (later.at - self.at) / 1e6


@contextlib.contextmanager
def _current(device: Any) -> Iterator[None]:
    before = THREAD.device
    _set_device(device)
    yield
    THREAD.device = before


def _begin() -> None:
    PROCESS.begun = True


def _current_device() -> int:
    PROCESS.begun = True
    return THREAD.device


def _set_device(device: Any) -> None:
    PROCESS.begun = True
    index = device if isinstance(device, int) else torch.device(device).index
    if index is not None and index >= 0:
        if index >= PROCESS.gpus:
            raise RuntimeError(f"CUDA error: invalid device ordinal {index}")
        THREAD.device = index


def _synchronize(device: Any = None) -> None:
    PROCESS.busy, PROCESS.begun = False, True


def install(gpus: int) -> None:
    """Replace what the course and torch's own Python ask of torch.cuda."""
    PROCESS.gpus, PROCESS.begun = gpus, False
    cuda = torch.cuda
    visible = lambda: 0 if os.environ.get("CUDA_VISIBLE_DEVICES") == "" else gpus
    stream = Stream()
    properties = types.SimpleNamespace(
        name="a pretended GPU", total_memory=2**34, major=9, minor=0, multi_processor_count=100
    )
    replaced = {
        "is_available": lambda: visible() > 0,
        "device_count": visible,
        "is_initialized": lambda: PROCESS.begun,
        "init": _begin,
        "_lazy_init": _begin,
        "current_device": _current_device,
        "set_device": _set_device,
        "device": _current,
        "synchronize": _synchronize,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "stream": lambda stream: contextlib.nullcontext(stream),
        "set_stream": lambda stream: None,
        "Stream": Stream,
        "Event": Event,
        "get_device_name": lambda device=None: properties.name,
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_properties": lambda device=None: properties,
        "is_bf16_supported": lambda *_: True,
        "is_current_stream_capturing": lambda: False,
        "empty_cache": lambda: None,
        "reset_peak_memory_stats": lambda device=None: None,
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "mem_get_info": lambda device=None: (2**34, 2**34),
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "get_rng_state": lambda device="cuda": torch.get_rng_state(),
        "set_rng_state": lambda state, device="cuda": torch.set_rng_state(state),
        "can_device_access_peer": lambda one, other: True,
    }
    for name, value in replaced.items():
        setattr(cuda, name, value)
    replaced = {
        "is_available": lambda: visible() > 0,
        "device_count": visible,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": lambda: THREAD.device,
        "set_device_index": _set_device,
        "current_stream": lambda device=None: stream,
        "synchronize": _synchronize,
    }
    for name, value in replaced.items():
        setattr(torch.accelerator, name, value)
    torch._C._get_accelerator = lambda *_: torch.device("cuda" if visible() else "cpu")
    torch._C._cuda_getDevice = lambda: THREAD.device
    torch._C._cuda_setDevice = _set_device
