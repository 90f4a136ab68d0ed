"""What a probe tells its check, kept apart from what the student's own file reports.

A probe imports this before the student's file, so that the file cannot replace it.
"""

import copy
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_utils.checking.calls import random_state, same
from course_utils.checking.compare import Wrong, count, name_of, plain
from course_utils.checking.values import is_tensor, type_name
from nbtorchrun.meter import meter
from nbtorchrun.worker import device, events, rank

ENDS = ("wait", "is_completed", "get_future", "get_future_result", "synchronize", "result")
_cases = itertools.count()


def report(**values: Any) -> None:
    """Send named values of this rank to the check; `check.probe` returns these and no others."""
    events.emit("finding", events.plain(values))


@contextmanager
def judging() -> Iterator[None]:
    """Judge one case: report what is wrong in the block, and let this rank go on.

    It has to go on where other ranks may wait for it. `check` shows the first case of all ranks.
    """
    alone = os.environ["WORLD_SIZE"] == "1"
    try:
        yield
    except Wrong as wrong:
        report(wrong=wrong.message, hint=wrong.hint, case=next(_cases))
        if alone:
            raise SystemExit from None
    else:
        if not alone:
            report(case=next(_cases))  # the check sees which ranks came this far


def where(case: str = "") -> str:
    """How a message begins: `3 ranks, 5 values: rank 1`."""
    ranks = count(int(os.environ["WORLD_SIZE"]), "rank")
    return f"{ranks}, {case}: rank {rank()}" if case else f"{ranks}: rank {rank()}"


def pair() -> tuple[dist.ProcessGroup, list[int]] | None:
    """This rank's group of two and its ranks, 0 and 2 or 1 and 3; None unless there are 4 ranks."""
    if dist.get_world_size() != 4:
        return None
    groups = [dist.new_group([first, first + 2]) for first in (0, 1)]
    return groups[rank() % 2], [rank() % 2, rank() % 2 + 2]


def all_and_pair() -> list[tuple[dist.ProcessGroup | None, list[int]]]:
    """Groups to try a function on, each with its ranks: all ranks as None, then the `pair`."""
    everyone, mine = (None, list(range(dist.get_world_size()))), pair()
    return [everyone, mine] if mine else [everyone]


def random_values(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random values with full mantissas, on this rank's device; a seed gives all ranks the same."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device(), dtype)


def observe(
    function: Callable,
    *arguments: Any,
    names: tuple[str, ...] = (),
    may_change: bool = False,
    again: bool = True,
) -> dict[str, Any]:
    """Call the student's function; return its answer, and all that `judge` looks at.

    `kind`, `answer` and `dtype` of the answer, `kinds` and `dtypes` of its parts; whether a second
    call gave an answer in memory that it `shared` with the first; whether the answer is in memory
    that was `given`; the arguments that were `changed`; whether the `random` state was; `calls` as
    `[name, bytes]`, the `peers` to which messages went, requests that were `unwaited`, and bytes on
    the wire that no call accounts for, `hidden`.

    Args:
        function: the student's.
        *arguments: what it is called with.
        names: how a message calls the arguments.
        may_change: whether it may change them.
        again: whether to call it a second time, with the same values.
    """
    before, state = arguments if may_change else copy.deepcopy(arguments), random_state()
    with _requests() as ended, _Works() as works, meter() as moved:
        answer = function(*arguments)
    changed = [
        names[place] if place < len(names) else "an argument"
        for place, (old, new) in enumerate(zip(before, arguments, strict=True))
        if not (may_change or same(old, new))
    ]
    shared = again and not may_change and _shared(answer, function(*copy.deepcopy(before)))
    counted = sum(call.sent for call in moved.calls)
    return {
        **described(answer),
        "shared": shared,
        "given": _shared(answer, arguments),
        "changed": changed,
        "random": random_state() != state,
        "calls": [[call.name, call.bytes] for call in moved.calls],
        "peers": sorted(works.peers),
        "unwaited": max(0, works.made - len(ended)) if _is_gloo() else 0,
        "hidden": max(0, moved.wire.sent - 2 * counted) if moved.wire else 0,
    }


def described(answer: Any) -> dict[str, Any]:
    """An answer as JSON knows it: `kind`, `answer`, `dtype`; `kinds` and `dtypes` of its parts."""
    answer = answer.item() if isinstance(answer, np.generic) else answer  # an np.float64 is a float
    tensors = answer if isinstance(answer, (list, tuple)) else [answer]
    dtypes = [name_of(part.dtype) if isinstance(part, torch.Tensor) else "" for part in tensors]
    return {
        "kind": "tuple" if isinstance(answer, tuple) else type_name(answer),  # named, too
        "kinds": [type_name(each) for each in tensors],
        "answer": plain(answer),
        "dtype": ", ".join(sorted(set(dtypes) - {""})),
        "dtypes": dtypes,
    }


def _shared(one: Any, other: Any) -> bool:
    """Whether two answers hold tensors in the same memory."""
    places = [
        {leaf.untyped_storage().data_ptr() for leaf in tree_leaves(each) if is_tensor(leaf)}
        for each in (one, other)
    ]
    return bool(places[0] & places[1] - {0})


class _Works(TorchDispatchMode):
    """Counts the requests that are made, and notes the ranks to which messages go."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0
        self.peers: set[int] = set()

    def __torch_dispatch__(
        self, operator: Any, types: Any, arguments: tuple = (), named: dict | None = None
    ) -> Any:
        self.made += operator.namespace == "c10d"
        if operator is torch.ops.c10d.send.default:
            self.peers.add(arguments[2])  # tensors, group, rank, tag
        return operator(*arguments, **(named or {}))


@contextmanager
def _requests() -> Iterator[list[dist.Work]]:
    """The requests whose end was asked for inside the block, each once."""
    ended: list[dist.Work] = []
    before = {name: getattr(dist.Work, name) for name in ENDS}
    for name, method in before.items():
        setattr(dist.Work, name, _noting(method, ended))
    try:
        yield ended
    finally:
        for name, method in before.items():
            setattr(dist.Work, name, method)


def _noting(method: Callable, ended: list[dist.Work]) -> Callable:
    def noted(work: dist.Work, *arguments: Any, **named: Any) -> Any:
        if all(work is not other for other in ended):
            ended.append(work)
        return method(work, *arguments, **named)

    return noted


def _is_gloo() -> bool:
    return dist.is_initialized() and dist.get_backend() == "gloo"
