"""Every operation runs on the CPU, and fails where it would fail on GPUs."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.standin import collectives
from tests.standin.marks import (
    CPU,
    common_place,
    place_of,
    put,
    resolved,
    span,
    storage_of,
    tensors_in,
)
from tests.standin.state import PROCESS, THREAD

aten = torch.ops.aten
COPIES = {aten.copy_.default, aten._to_copy.default, aten._foreach_copy_.default}
# Positions may be on the CPU where the values are on a GPU.
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default}
INDEXING |= {aten._index_put_impl_.default, aten._unsafe_index.Tensor}
VIEWS = {aten.detach.default, aten.alias.default, aten.record_stream.default}
READS = {aten._local_scalar_dense.default, aten.equal.default, aten.nonzero.default}


class Operations(TorchDispatchMode):
    """Sees every operation of the process."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if any(issubclass(kind, Tensor) and hasattr(kind, "__tensor_flatten__") for kind in types):
            return NotImplemented  # a DTensor first takes itself apart
        if func.name() == "run_dtensor_rng_op":  # between two settings of the GPU's generator
            with self:
                return args[2](*args[3:], **kwargs)
        if func.namespace == "c10d":
            return collectives.run(func, args, kwargs)
        given = tensors_in(args, kwargs)
        if not (func in VIEWS or func.is_view):
            refuse_what_has_not_arrived(given, func)
        place = self.where(func, args, kwargs, given)
        if kwargs.get("device") is not None and kwargs["device"].type == "cuda":
            kwargs["device"] = CPU
        before = {id(storage_of(tensor)) for tensor in given}
        result = func(*args, **kwargs)
        for made in tensors_in(result):
            storage = storage_of(made)
            if id(storage) not in before and not hasattr(storage, "place"):  # not one from a file
                put(made, place)
        if place is not None and place.type == "cuda":
            PROCESS.given()
            for tensor in given:
                if place_of(tensor) is None:  # C++ made it: now it is clear where
                    put(tensor, place)
        if func in READS:
            PROCESS.busy = False
        return result

    def where(self, func: Any, args: Any, kwargs: Any, given: list[Tensor]) -> torch.device | None:
        """The device of what an operation makes; also checks the devices of what it is given."""
        asked = kwargs.get("device")
        if asked is not None and asked.type == "cuda":
            return resolved(asked)
        if func in COPIES:  # into a tensor, from wherever
            return next(filter(None, map(place_of, tensors_in(*args[:2]))), None)
        if func in INDEXING:
            positions = [p for p in args[1] if p is not None]
            values = [*tensors_in(args[:1]), *tensors_in(args[2:])]
            place = common_place(values, func)
            if place == CPU and any(place_of(p) not in (CPU, None) for p in positions):
                raise RuntimeError("indices should be either on cpu or on the same device")
            return place
        if given:
            return common_place(given, func)
        return CPU if THREAD.by_python else None


def refuse_what_has_not_arrived(given: list[Tensor], what: Any) -> None:
    """Raise RuntimeError if a collective still writes one of the tensors."""
    for tensor in given if PROCESS.coming else ():
        start, end = span(tensor) if storage_of(tensor) is not None else (0, 0)
        for first, last, name, _ in PROCESS.coming:
            if start < last and first < end:
                raise RuntimeError(
                    f"{what} reads or writes a tensor on which {name} still works: wait() first"
                )
