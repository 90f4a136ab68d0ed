"""Faults in what ranks send and receive; scripts stay as the student sees them.

Every message of torch.distributed, also of DDP's and FSDP's C++, passes PyTorch's dispatcher, and
there a mode changes it.
"""

import os
import threading
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

LARGE = 5  # values: a message from this size on is a tensor of a model, and no count or loss
OBJECTS = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list")
SENDS = ("reduce", "broadcast", "gather", "scatter", "alltoall", "all_to_all", "send")


class Messages(TorchDispatchMode):
    """Calls `change(tensor, name)` on each tensor that a message of this rank is made of.

    What Python objects become is left alone: with these the scripts compare what they found.
    """

    def __init__(self, change: Callable[[torch.Tensor, str], None]) -> None:
        super().__init__()
        self.change, self.in_object = change, False
        for name in OBJECTS:
            setattr(dist, name, self.untouched(getattr(dist, name)))
        # A group that a script makes by hand is called without the dispatcher.
        dist.ProcessGroupGloo.allreduce = self.of_a_group(dist.ProcessGroupGloo.allreduce)

    def untouched(self, call: Callable) -> Callable:
        """The call, with its messages as they are."""

        def plain(*arguments, **named):
            self.in_object = True
            try:
                return call(*arguments, **named)
            finally:
                self.in_object = False

        return plain

    def of_a_group(self, call: Callable) -> Callable:
        """The call of a process group, whose tensors are changed."""

        def changed(group, tensors, *arguments):
            for tensor in tensors:
                self.change(tensor, "allreduce_")
            return call(group, tensors, *arguments)

        return changed

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        named = named or {}
        name = operator._schema.name
        ours = operator.namespace in ("c10d", "_c10d_functional") and not self.in_object
        if ours and any(kind in name for kind in SENDS):
            tensors = [t for t in tree_leaves((arguments, named)) if isinstance(t, torch.Tensor)]
            for tensor in tensors:
                self.change(tensor, name)
        return operator(*arguments, **named)


def rank() -> int:
    """The number of this process, which a script may have forked and given another one."""
    return int(os.environ["RANK"])


def world() -> int:
    return int(os.environ["WORLD_SIZE"])


def is_last() -> bool:
    return rank() == world() - 1


def is_large(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.numel() >= LARGE


def not_a_number(tensor: torch.Tensor, name: str) -> None:
    """Not-a-number in every larger message on the ranks above 0."""
    if rank() > 0 and is_large(tensor):
        tensor.detach().view(-1)[0] = torch.nan


def one_percent(tensor: torch.Tensor, name: str) -> None:
    """What the last rank sends is 1 % too large, its gradients among it."""
    if is_last() and tensor.is_floating_point():
        tensor.detach().mul_(1.01)


def not_divided(tensor: torch.Tensor, name: str) -> None:
    """Sums that nobody has divided by the number of ranks."""
    if "reduce" in name and tensor.is_floating_point():
        tensor.detach().mul_(world())


def dropped(tensor: torch.Tensor, name: str) -> None:
    """The last rank's values do not arrive: zeros do."""
    if is_last() and "broadcast" not in name:
        tensor.detach().zero_()


def counted_twice(tensor: torch.Tensor, name: str) -> None:
    """The last rank counts one more, in whole numbers and in small messages."""
    if is_last() and "broadcast" not in name and (not is_large(tensor)) and tensor.numel():
        tensor.detach().view(-1)[0] += 1


class Received(TorchDispatchMode):
    """Calls `change(tensor, before)` on what a rank has received, beside what it held before."""

    def __init__(self, kind: str, at: bool, change: Callable) -> None:
        super().__init__()
        self.kind, self.at, self.change = kind, at, change

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        named = named or {}
        ours = self.at and operator.namespace == "c10d" and self.kind in operator._schema.name
        tensors = [t for t in tree_leaves((arguments, named)) if isinstance(t, torch.Tensor)]
        kept = [tensor.clone() for tensor in tensors] if ours else []
        found = operator(*arguments, **named)
        if ours:
            for part in found if isinstance(found, tuple) else (found,):
                if hasattr(part, "wait"):
                    part.wait()
            for tensor, before in zip(tensors, kept, strict=True):
                self.change(tensor.detach(), before)
        return found


def not_broadcast() -> TorchDispatchMode:
    """A broadcast changes nothing on the ranks that should receive it."""
    return Received("broadcast_", rank() > 0, lambda tensor, before: tensor.copy_(before))


def received_wrong() -> TorchDispatchMode:
    """What the last rank gets from an all-reduce is 1 % too large."""

    def change(tensor: torch.Tensor, before: torch.Tensor) -> None:
        if tensor.is_floating_point():
            tensor.mul_(1.01)

    return Received("allreduce_", is_last(), change)


def sent_twice() -> None:
    """Every call of a collective is made twice: a counter, or the kernel, must notice."""
    for name in ("all_reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor"):
        plain = getattr(dist, name)

        def twice(*arguments, _plain=plain, **named):
            copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
            work = _plain(*copies, **{**named, "async_op": False})
            del work
            return _plain(*arguments, **named)

        setattr(dist, name, twice)
    send = dist.batch_isend_irecv

    def twice_sent(messages):
        copies = [
            dist.P2POp(each.op, each.tensor.clone(), each.peer, each.group) for each in messages
        ]
        for work in send(copies):
            work.wait()
        return send(messages)

    dist.batch_isend_irecv = twice_sent


class Held:
    """The work of a collective that tells nobody that it is done before it is waited for."""

    def __init__(self, work: dist.Work) -> None:
        self.work, self.told, self.waited = work, [], False

    def is_completed(self) -> bool:
        """Not before somebody has waited."""
        return self.waited

    def wait(self) -> bool:
        """Wait as the work does, then tell."""
        done = self.waited = self.work.wait()
        for call in self.told:
            call(self.work.get_future())
        return done

    def get_future(self) -> "Held":
        """What calls are given to."""
        return self

    def then(self, call: Callable) -> object:
        """DDP's own call is made at once: its C++ waits for nothing else."""
        if call.__module__.startswith("torch."):
            return self.work.get_future().then(call)
        self.told.append(call)
        return self


def held_back() -> None:
    """No message is back before somebody waits for it; and nobody is patient for over a second."""
    plain, wait = dist.all_reduce, threading.Event.wait

    def held(*arguments, async_op=False, **named):
        work = plain(*arguments, async_op=async_op, **named)
        return Held(work) if async_op else work

    dist.all_reduce = held
    threading.Event.wait = lambda self, timeout=None: wait(self, min(timeout or 1, 1))


def slow_messages() -> None:
    """Every all-reduce takes a tenth of a second, however long its ranks have waited."""
    plain = dist.all_reduce

    def slow(*arguments, **named):
        work = plain(*arguments, **named)
        time.sleep(0.1)
        return work

    dist.all_reduce = slow


def by_name(*faults: Callable) -> dict[str, Callable]:
    """The faults by their names."""
    return {fault.__name__: fault for fault in faults}


CHANGES = by_name(not_a_number, one_percent, not_divided, dropped, counted_twice)
RECEIVED = by_name(not_broadcast, received_wrong)
PATCHES = by_name(sent_twice, held_back, slow_messages)
