"""Runs a worker file with a fault in it: `faulty.py FAULT FILE [arguments]`, on each rank.

The script stays as the student sees it. The faults are put in from outside: every message of
torch.distributed, also of DDP's and FSDP's C++, passes PyTorch's dispatcher, and there a mode
changes what a rank sends. What a single process computes is changed at its gradients.
"""

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

LARGE = 9  # values: a message from this size on is a tensor of a model, and no count or loss
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAST = WORLD - 1
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

    def untouched(self, call: Callable) -> Callable:
        """The call, with its messages as they are."""

        def plain(*arguments, **named):
            self.in_object = True
            try:
                return call(*arguments, **named)
            finally:
                self.in_object = False

        return plain

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        named = named or {}
        name = operator._schema.name
        ours = operator.namespace in ("c10d", "_c10d_functional") and not self.in_object
        if ours and any(kind in name for kind in SENDS):
            tensors = [t for t in tree_leaves((arguments, named)) if isinstance(t, torch.Tensor)]
            for tensor in tensors:
                self.change(tensor, name)
        return operator(*arguments, **named)


def is_large(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.numel() >= LARGE


def not_a_number(tensor: torch.Tensor, name: str) -> None:
    """Not-a-number in every larger message on the ranks above 0."""
    if RANK > 0 and is_large(tensor):
        tensor.detach().view(-1)[0] = torch.nan


def one_percent(tensor: torch.Tensor, name: str) -> None:
    """What the last rank sends is 1 % too large, its gradients among it."""
    if RANK == LAST and tensor.is_floating_point():
        tensor.detach().mul_(1.01)


def not_divided(tensor: torch.Tensor, name: str) -> None:
    """Sums that nobody has divided by the number of ranks."""
    if "reduce" in name and tensor.is_floating_point():
        tensor.detach().mul_(WORLD)


def dropped(tensor: torch.Tensor, name: str) -> None:
    """The last rank's values do not arrive: zeros do."""
    if RANK == LAST and "broadcast" not in name:
        tensor.detach().zero_()


def counted_twice(tensor: torch.Tensor, name: str) -> None:
    """The last rank counts one more, in whole numbers and in small messages."""
    if RANK == LAST and "broadcast" not in name and (not is_large(tensor)) and tensor.numel():
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
    return Received("broadcast_", RANK > 0, lambda tensor, before: tensor.copy_(before))


def received_wrong() -> TorchDispatchMode:
    """What the last rank gets from an all-reduce is 1 % too large."""

    def change(tensor: torch.Tensor, before: torch.Tensor) -> None:
        if tensor.is_floating_point():
            tensor.mul_(1.01)

    return Received("allreduce_", RANK == LAST, change)


def wrong_gradients() -> None:
    """What autograd computes on the last rank is 1 % too large, and never a plain number."""
    grad, backward = torch.autograd.grad, torch.Tensor.backward

    def scaled_grad(*arguments, **named):
        found = grad(*arguments, **named)
        return tuple(g if g is None else g * 1.01 for g in found) if RANK == LAST else found

    def scaled_backward(self, gradient=None, *arguments, **named):
        if RANK == LAST:
            gradient = (torch.ones_like(self) if gradient is None else gradient) * 1.01
        return backward(self, gradient, *arguments, **named)

    torch.autograd.grad, torch.Tensor.backward = scaled_grad, scaled_backward


def wrong_rule() -> None:
    """Every rule of the tape of notebook 01 gives a gradient of the wrong sign."""
    import tape

    record = tape.record
    tape.record = lambda value, inputs, rule: record(
        value, inputs, lambda *given: [-part for part in rule(*given)]
    )


def joined_wrong() -> None:
    """Where tensors are joined, the last one is 1 % too large."""
    cat = torch.cat

    def scaled(tensors, *arguments, **named):
        *others, last = tensors
        return cat(
            [*others, last * 1.01 if last.is_floating_point() else last], *arguments, **named
        )

    torch.cat = scaled


def unmasked() -> None:
    """No mask hides anything."""
    torch.Tensor.masked_fill = lambda self, mask, value: self


def blind() -> None:
    """In every softmax, each row sees only its own place."""

    def own_place(self, *arguments, **named):
        return torch.eye(*self.shape[-2:], dtype=self.dtype, device=self.device).expand_as(self)

    torch.Tensor.softmax = own_place


def sample_twice() -> None:
    """A sampler gives each rank its first sample in place of its last one, too."""
    sampler = torch.utils.data.DistributedSampler
    plain = sampler.__iter__

    def with_the_first_again(self):
        first, *others, _ = plain(self)
        return iter([first, *others, first])

    sampler.__iter__ = with_the_first_again


def own_step() -> None:
    """The last rank's parameters move a little further with every step than those of the others."""
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        step = optimizer.step

        def moved(self, *arguments, _step=step, **named):
            found = _step(self, *arguments, **named)
            with torch.no_grad():
                for group in self.param_groups if RANK == LAST else ():
                    for parameter in group["params"]:
                        parameter.add_(1e-3)
            return found

        optimizer.step = moved


def not_trained() -> None:
    """No optimizer takes a step."""
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        optimizer.step = lambda self, closure=None: None


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


def never_freed() -> None:
    """No tensor's memory is given back before the process ends."""
    kept = []
    resize = torch.UntypedStorage.resize_

    def keep(self, size):
        if size == 0:
            kept.append(self)
            return self
        return resize(self, size)

    torch.UntypedStorage.resize_ = keep
    zeros_like, empty_like = torch.zeros_like, torch.empty_like

    def hold(make):
        def made(*arguments, **named):
            tensor = make(*arguments, **named)
            kept.append(tensor)
            return tensor

        return made

    torch.zeros_like, torch.empty_like = hold(zeros_like), hold(empty_like)


MESSAGES = (not_a_number, one_percent, not_divided, dropped, counted_twice)
RECEIVED = (not_broadcast, received_wrong)
PATCHES = (
    wrong_gradients,
    wrong_rule,
    joined_wrong,
    unmasked,
    blind,
    sample_twice,
    own_step,
    not_trained,
    sent_twice,
    never_freed,
)


def main() -> None:
    """Put the fault in, then run the script as `python FILE` would."""
    fault, sys.argv = sys.argv[1], sys.argv[2:]
    script = Path(sys.argv[0])
    sys.path[0] = str(script.parent)
    mode = next((Messages(each) for each in MESSAGES if each.__name__ == fault), None)
    mode = mode or next((each() for each in RECEIVED if each.__name__ == fault), None)
    for patch in PATCHES:
        if patch.__name__ == fault:
            patch()
    if mode:
        with mode:
            runpy.run_path(str(script), run_name="__main__")
    else:
        runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
