"""Where a tensor would be: its bytes lie in the CPU's memory, and its storage carries a mark.

What Python makes on the CPU is marked "cpu" by the lack of a mark. What C++ makes inside an
operation names no device that could be trusted: it carries None, and goes with any device.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from tests.standin.state import PROCESS

CPU = torch.device("cpu")
DEVICE = torch._C.TensorBase.device  # the real property


def storage_of(tensor: Tensor) -> Any:
    """The storage of a tensor; None if it has none of its own, as a DTensor."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def place_of(tensor: Tensor) -> torch.device | None:
    """The pretended device; None if it is not known."""
    if type(tensor) not in (Tensor, Parameter):
        for name in ("_local_tensor", "elem"):  # of a DTensor, and of an unfinished collective
            if (inner := getattr(tensor, name, None)) is not None:
                return place_of(inner)
    real = DEVICE.__get__(tensor)
    storage = storage_of(tensor) if real.type == "cpu" else None
    return real if storage is None else getattr(storage, "place", CPU)


def put(tensor: Tensor, place: torch.device | None) -> Tensor:
    """Mark a tensor's storage.

    Raises:
        RuntimeError: there is no such GPU.
    """
    if place is not None and (place.index or 0) >= max(1, PROCESS.gpus):
        raise RuntimeError(f"CUDA error: invalid device ordinal {place.index}")
    storage = storage_of(tensor)
    if storage is not None:
        storage.place = place
    return tensor


def resolved(place: Any) -> torch.device:
    """A device with its number: "cuda" alone is the current one."""
    if isinstance(place, int):
        return torch.device("cuda", place)
    place = torch.device(place)
    if place.type == "cuda" and place.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return place


def tensors_in(*values: Any) -> list[Tensor]:
    """All tensors in nested arguments."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_in(*value)
        elif isinstance(value, dict):
            found += tensors_in(*value.values())
    return found


def common_place(tensors: Iterable[Tensor], what: Any) -> torch.device | None:
    """The device on which an operation on these runs; None if none is known.

    A single value of the CPU goes with tensors of any device.

    Raises:
        RuntimeError: they are on two devices.
    """
    firm, known = set(), False
    for tensor in tensors:
        if place := place_of(tensor):
            known = True
            if place.type != "cpu" or tensor.dim():
                firm.add(place)
    if len(firm) > 1:
        names = " and ".join(sorted(map(str, firm)))
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, "
            f"{names}! (in {what})"
        )
    return next(iter(firm), CPU if known else None)


def span(tensor: Tensor) -> tuple[int, int]:
    """The first byte of a tensor in memory, and the one behind its last."""
    if not tensor.numel():
        return 0, 0
    last = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()
