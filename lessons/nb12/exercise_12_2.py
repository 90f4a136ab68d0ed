"""12.2: add up gradients that some ranks lack."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.checking.compare import Wrong, expect, judge
from course_utils.checking.findings import all_and_pair, judging, observe, random_values, where

TITLE = "add up gradients that some ranks lack"
PROVEN = (
    "1 to 4 ranks, and pairs of 4: every rank has the sum, also of what it lacked itself",
    "what no rank has stays None; no gradient meets that of another parameter",
)
RANKS = (2, 3, 4, 1)
LONELY = (
    "A rank without a gradient has to call the collective, too: the others wait for it. What do "
    "the ranks have to agree about first?"
)
OURS = '''"""Add up the gradients of parameters that not every rank has used."""

from typing import Any

import torch
import torch.distributed as dist
from between_ranks import gather_numbers
from torch import Tensor


def sum_gradients(parameters: list[Tensor], group: Any = None) -> None:
    """Each gradient becomes the sum over the ranks that have one; None, if no rank has one."""
    every = gather_numbers([p.grad is not None for p in parameters], group)
    for place, parameter in enumerate(parameters):
        if not any(has[place] for has in every):
            continue  # all ranks skip it: they have gathered the same
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        if len(every) > 1:
            dist.all_reduce(parameter.grad, group=group)
'''
SHAPES = ((3,), (3,), (3,), (3,))
CASES = ("every rank has all", "each rank lacks another", "one rank lacks the last")
CASES += ("nobody has one", "a rank has none", "odd shapes, each rank lacks another")
SAME = "The ranks' calls are matched by their order alone. Do all ranks call for the same ones?"


def has_gradient(case: str, place: int, ranks: int, first: int) -> list[bool]:
    """Which of the four parameters a rank has used; `first` is the first rank of its group."""
    has = [True] * 4
    if "each rank lacks another" in case:
        has[place % 4] = ranks == 1
    if "lacks the last" in case and place == ranks - 1:
        has[3] = False
    if "nobody" in case:
        has[1 + first] = False  # another one in each pair
    if "has none" in case and place == 0:
        has = [False] * 4
    return has


def cases(sum_gradients: Callable) -> None:
    """Gradients that some ranks lack, of all ranks and in pairs."""
    groups = all_and_pair()
    for seed, case in enumerate(CASES):
        for group, members in groups:
            look(sum_gradients, case, 100 * seed, group, members)


def look(
    function: Callable,
    case: str,
    seed: int,
    group: dist.ProcessGroup | None,
    members: list[int],
) -> None:
    """One call: first who has a gradient afterwards, then its values, then what was sent."""
    ranks, place = len(members), members.index(dist.get_rank())
    shapes = ((2, 2), (), (5,), (1, 3)) if "odd" in case else SHAPES
    every = [drawn(case, seed, each, members, shapes) for each in range(ranks)]
    right = [total(column) for column in zip(*every, strict=True)]
    before = [random_values(seed + 50 + n, *shape) for n, shape in enumerate(shapes)]
    parameters = [each.clone().requires_grad_() for each in before]
    for parameter, gradient in zip(parameters, every[place], strict=True):
        parameter.grad = None if gradient is None else gradient.clone()

    def call() -> Tensor:
        function(parameters, group)
        return torch.cat([z(p.grad, p).flatten() for p in parameters])

    found = observe(call, may_change=True)
    here = where(f"{case}, {'a pair' if group else 'all ranks'}")
    with judging():
        for number, (parameter, wanted) in enumerate(zip(parameters, right, strict=True)):
            if (parameter.grad is None) != (wanted is None):
                what = "no gradient" if parameter.grad is None else "a gradient"
                hint = f"Another rank has one: this rank needs the sum, too. {SAME}"
                if wanted is None:
                    hint = "No rank used it. What does an optimizer do with zero, and with None?"
                raise Wrong(f"{here} has {what} for parameter {number} afterwards", hint)
        whole = torch.cat([z(w, p).flatten() for w, p in zip(right, parameters, strict=True)])
        own = torch.cat([z(w, p).flatten() for w, p in zip(every[place], parameters, strict=True)])
        mistakes = [
            ("That is the mean. The task is the sum.", whole / ranks),
            ("That is this rank's own. Where do the others' come in?", own),
            (SAME, whole[:0]),
        ]
        hint = SAME if "lack" in case or "none" in case else "Add up each gradient over the ranks."
        judge(f"{here}: the gradients", found, whole, mistakes, hint, dtype=torch.float32)
        values = [parameter.detach() for parameter in parameters]
        expect(f"{here}: the parameters are now", values, before, (), "Only gradients change.")
        spent = sum(size for _, size in found["calls"])
        if spent > whole.nbytes + 64 * len(parameters):
            hint = "Each gradient has to travel once. What else do the ranks need to know?"
            raise Wrong(f"{here} handed {spent} bytes to collectives", hint)


def z(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    """A gradient, or zeros where there is none."""
    return torch.zeros_like(parameter).detach() if gradient is None else gradient.detach()


def drawn(
    case: str, seed: int, place: int, members: list[int], shapes: tuple
) -> list[Tensor | None]:
    """The gradients of one rank; every rank knows all ranks'."""
    has = has_gradient(case, place, len(members), members[0])
    each = [random_values(seed + 10 * place + n, *shape) for n, shape in enumerate(shapes)]
    return [gradient if there else None for gradient, there in zip(each, has, strict=True)]


def total(gradients: tuple[Tensor | None, ...]) -> Tensor | None:
    """The sum of those that are there."""
    there = [each for each in gradients if each is not None]
    return sum(there) if there else None


SKIP = "if not any(has[place] for has in every):"
FILL = "parameter.grad = torch.zeros_like(parameter)"
REDUCE = "dist.all_reduce(parameter.grad, group=group)"

WRONG = [
    ("skips what it lacks", SKIP, "if parameter.grad is None:", "matched by their order alone"),
    ("zeros for all", SKIP, "if False:", "No rank used it"),
    ("only what all ranks have", SKIP, SKIP.replace("any", "all"), "Another rank has one"),
    ("the mean", REDUCE, f"{REDUCE}\nparameter.grad /= len(every)", "That is the mean"),
    ("no reduction", REDUCE, "pass", "Where do the others' come in?"),
    (
        "the sum is thrown away",
        FILL,
        "dist.all_reduce(torch.zeros_like(parameter), group=group)\ncontinue",
        "Another rank has one",
    ),
    ("all ranks in place of the group", REDUCE, "dist.all_reduce(parameter.grad)", "a pair"),
    (
        "agrees with all ranks",
        "for p in parameters], group)",
        "for p in parameters])",
        "a pair",
    ),
    (
        "a rank that has none leaves",
        "every = gather_numbers(",
        "if all(p.grad is None for p in parameters):\n    return\nevery = gather_numbers(",
        "A rank without a gradient has to call",
    ),
    ("ones in place of zeros", FILL, FILL.replace("zeros", "ones"), "expected"),
    (
        "everything twice",
        REDUCE,
        f"dist.all_reduce(parameter.grad.clone().repeat(20), group=group)\n{REDUCE}",
        "Each gradient has to travel once",
    ),
    (
        "the parameters too",
        REDUCE,
        f"{REDUCE}\nparameter.data += 1",
        "Only gradients change",
    ),
]
RIGHT = [
    (
        "asks by an all-reduce",
        "every = gather_numbers([p.grad is not None for p in parameters], group)",
        "has = torch.tensor([float(p.grad is not None) for p in parameters])\n"
        "has = has.to(parameters[0].device)\n"
        "if dist.get_world_size() > 1:\n"
        "    dist.all_reduce(has, group=group)\n"
        "every = [has.tolist()] * (2 if dist.get_world_size() > 1 else 1)",
    ),
    (
        "new tensors",
        REDUCE,
        "whole = parameter.grad.clone()\n"
        "dist.all_reduce(whole, group=group)\n"
        "parameter.grad = whole",
    ),
]
