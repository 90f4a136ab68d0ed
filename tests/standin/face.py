"""The constructors and the methods of tensors, as a machine with GPUs has them."""

import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.futures import Future
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from tests.standin.marks import CPU, DEVICE, place_of, put, resolved, tensors_in
from tests.standin.operations import refuse_what_has_not_arrived
from tests.standin.state import PROCESS, THREAD

CONSTRUCTORS = (
    *("zeros", "ones", "empty", "full", "tensor", "as_tensor", "arange", "linspace", "eye"),
    *("rand", "randn", "randint", "randperm", "empty_strided", "triu_indices", "tril_indices"),
)
CLOCKS = ("perf_counter", "monotonic", "time", "process_time")


def install() -> None:
    """Put the face on."""
    Tensor.device = property(lambda tensor: place_of(tensor) or CPU)
    Tensor.is_cuda = property(lambda tensor: tensor.device.type == "cuda")
    Tensor.is_cpu = property(lambda tensor: tensor.device.type == "cpu")
    Tensor.get_device = lambda tensor: -1 if tensor.device.index is None else tensor.device.index
    Tensor.to = _to(Tensor.to)
    Tensor.cpu = lambda tensor, **_: tensor.to(CPU)
    Tensor.cuda = lambda tensor, device=None, **_: tensor.to(_numbered(device))
    Tensor.pin_memory = lambda tensor, *_: tensor
    Tensor.record_stream = lambda tensor, stream: None
    Tensor.numpy = _only_on_the_cpu(Tensor.numpy)
    Tensor.__array__ = _only_on_the_cpu(Tensor.__array__)
    for name in ("item", "tolist", "__bool__", "__float__", "__int__"):
        setattr(Tensor, name, _waiting(getattr(Tensor, name)))
    Tensor._make_wrapper_subclass = staticmethod(_wrapper(Tensor._make_wrapper_subclass))
    for name in CONSTRUCTORS:
        setattr(torch, name, _constructor(getattr(torch, name)))
    for name in CLOCKS:
        setattr(time, name, _clock(getattr(time, name)))
    torch.serialization.register_package(0, _where_saved, _back_to)  # 0: before torch's own
    torch.load, torch.Generator = _load(torch.load), Generator
    torch.autocast.__init__ = _autocast(torch.autocast.__init__)
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        setattr(torch, name, _of_the_cpu(getattr(torch, name)))
    Future.__init__, Future.set_result = _promise(Future.__init__), _kept(Future.set_result)


def _numbered(device: Any) -> torch.device:
    return resolved("cuda" if device is None else device)


class Moved(torch.autograd.Function):
    """A copy on another device; its gradient goes back to where the tensor was."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, place: torch.device, real_to: Callable, options: tuple):
        ctx.home = place_of(tensor)
        return put(real_to(tensor.detach(), CPU, *options, copy=True), place)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor):
        return put(gradient.clone(), ctx.home), None, None, None


def _to(real: Callable) -> Callable:
    @functools.wraps(real)
    def to(tensor: Tensor, *arguments: Any, copy: bool = False, **named: Any) -> Tensor:
        if arguments and isinstance(arguments[0], Tensor):
            device, dtype = arguments[0].device, arguments[0].dtype
        else:
            device, dtype, *_ = torch._C._nn._parse_to(*arguments, **named)
        if DEVICE.__get__(tensor).type != "cpu":
            return real(tensor, *arguments, copy=copy, **named)
        home, dtype = place_of(tensor) or CPU, dtype or tensor.dtype
        place = home if device is None else resolved(device) if device.type == "cuda" else device
        if place == home or place.type not in ("cpu", "cuda"):
            return real(tensor, place if place.type == "meta" else CPU, dtype, copy=copy)
        if type(tensor) is not Tensor and not isinstance(tensor, torch.nn.Parameter):
            return real(tensor, *arguments, copy=copy, **named)
        moved = Moved.apply(tensor, place, real, ())
        if place == CPU:
            PROCESS.busy = False  # the host has waited until the bytes are there
        return moved if dtype == moved.dtype else real(moved, CPU, dtype)

    return to


def _only_on_the_cpu(real: Callable) -> Callable:
    @functools.wraps(real)
    def convert(tensor: Tensor, *arguments: Any, **named: Any) -> Any:
        if tensor.is_cuda:
            raise TypeError(
                f"can't convert {tensor.device} device type tensor to numpy. Use Tensor.cpu() to "
                "copy the tensor to host memory first."
            )
        return real(tensor, *arguments, **named)

    return convert


def _waiting(real: Callable) -> Callable:
    """The host waits for the value."""

    @functools.wraps(real)
    def read(tensor: Tensor, *arguments: Any) -> Any:
        refuse_what_has_not_arrived([tensor], real.__name__)
        if tensor.is_cuda:
            PROCESS.busy = False
        return real(tensor, *arguments)

    return read


def _wrapper(real: Callable) -> Callable:
    """A tensor that wraps another, as a DTensor, is where that one is (`place_of`)."""

    def make(*arguments: Any, device: Any = None, **named: Any) -> Tensor:
        pretended = device is not None and torch.device(device).type == "cuda"
        return real(*arguments, device=CPU if pretended else device, **named)

    return make


def _constructor(real: Callable) -> Callable:
    """What Python makes is where Python says."""

    @functools.wraps(real)
    def make(*arguments: Any, device: Any = None, **named: Any) -> Tensor:
        if device is None and real.__name__ == "as_tensor" and isinstance(arguments[0], Tensor):
            device = arguments[0].device
        if device is None:
            device = _by_default()
        place = resolved(device)
        if place.type in ("cpu", "cuda"):
            Generator.check(named.get("generator"), place)
        if place.type not in ("cpu", "cuda"):
            return real(*arguments, device=place, **named)
        before, THREAD.by_python = THREAD.by_python, True
        try:
            made = real(*arguments, device=CPU, **named)
        finally:
            THREAD.by_python = before
        if place.type == "cuda":
            put(made, resolved(place))
            PROCESS.given()
        return made

    return make


def _by_default() -> torch.device:
    """The device of the innermost `with torch.device(...)`; torch would make a tensor to know."""
    modes = reversed(_get_current_function_mode_stack())
    return next((mode.device for mode in modes if isinstance(mode, DeviceContext)), CPU)


class Generator(torch.Generator):
    """A generator that pretends to be on a GPU."""

    place = CPU

    def __new__(cls, device: Any = CPU) -> "Generator":
        made = super().__new__(cls, CPU)
        made.place = resolved(device)
        return made

    def __init__(self, device: Any = CPU): ...

    @staticmethod
    def check(generator: Any, place: torch.device) -> None:
        """Raise RuntimeError if it is not of the kind of device on which it should draw."""
        own = getattr(generator, "place", CPU).type
        if generator is not None and own != place.type:
            raise RuntimeError(
                f"Expected a '{place.type}' device type for generator but found '{own}'"
            )


def _where_saved(storage: Any) -> str | None:
    """What a file says of a tensor's device; None if it is on none of the GPUs."""
    place = getattr(storage, "place", None)
    return str(place) if place is not None and place.type == "cuda" else None


def _back_to(storage: Any, location: str) -> Any:
    """Load it to where it was saved.

    Raises:
        RuntimeError: that is another rank's GPU. On real GPUs this works, and fills that one.
    """
    if not location.startswith("cuda"):
        return None
    place = torch.device(location)
    if place.index != int(os.environ.get("LOCAL_RANK", 0)):
        raise RuntimeError(f"torch.load to {place}, the GPU of another rank: say map_location")
    storage.place = place
    return storage


def _load(real: Callable) -> Callable:
    @functools.wraps(real)
    def load(file: Any, map_location: Any = None, **named: Any) -> Any:
        onto = (
            None if map_location is None or callable(map_location) else torch.device(map_location)
        )
        found = real(file, map_location if onto is None else CPU, **named)
        if onto is not None and onto.type == "cuda":
            for tensor in tensors_in(found):
                put(tensor, resolved(onto))
        return found

    return load


def _autocast(real: Callable) -> Callable:
    @functools.wraps(real)
    def init(self: Any, device_type: str, *arguments: Any, **named: Any) -> None:
        real(self, "cpu" if device_type == "cuda" else device_type, *arguments, **named)

    return init


def _of_the_cpu(real: Callable) -> Callable:
    return lambda kind="cuda": real("cpu" if kind == "cuda" else kind)


def _promise(real: Callable) -> Callable:
    def init(self: Any, *, devices: Any = None) -> None:
        real(self)
        self.devices_named = {resolved(device) for device in devices or ()}

    return init


def _kept(real: Callable) -> Callable:
    """A future has to know the GPUs of its result."""

    @functools.wraps(real)
    def set_result(self: Any, result: Any) -> None:
        places = {tensor.device for tensor in tensors_in(result) if tensor.is_cuda}
        if missing := places - self.devices_named:
            raise ValueError(
                f"The result contained tensors residing on device(s) {missing} which are not "
                f"among the expected device(s) {self.devices_named}"
            )
        real(self, result)

    return set_result


def _clock(real: Callable) -> Callable:
    """A student's script that reads the clock has to wait for its GPU first."""

    @functools.wraps(real)
    def read() -> float:
        caller = sys._getframe(1).f_code.co_filename
        if "/workers/" in caller:
            if PROCESS.busy and PROCESS.since and PROCESS.read:
                line = sys._getframe(1).f_lineno
                raise RuntimeError(
                    f"{caller.rpartition('/')[2]}, line {line}, reads the clock while the GPU may "
                    "still work on what it was given since the clock was read: "
                    "torch.cuda.synchronize() first"
                )
            PROCESS.read, PROCESS.since = True, False
        return real()

    return read
