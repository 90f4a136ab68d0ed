"""14.1: agree on a stop."""

from collections.abc import Callable
from functools import partial

import torch.distributed as dist

from course_utils.checking.compare import NOTHING, Wrong, has_nan, named_calls
from course_utils.checking.findings import judging, observe, pair, where
from course_utils.checking.values import flat

TITLE = "agree on a stop"
PROVEN = (
    "1 to 4 ranks and a group of two, whoever wishes to stop: all ranks give the same answer",
    "one collective of a few bytes, whatever the rank itself wishes",
)
RANKS = (3, 2, 4, 1)
LONELY = "Does every rank call the same collective, whatever its own wish is?"
OURS = '''"""One answer for all ranks to the question: do we stop now?"""

import torch
import torch.distributed as dist

from course_utils.worker import device


def agreed(wish: bool, group: dist.ProcessGroup | None = None) -> bool:
    """True on every rank if at least one rank wishes to stop. All ranks call it together."""
    where = device() if dist.get_backend(group) == "nccl" else "cpu"  # gloo needs no GPU
    wishes = torch.tensor(int(wish), device=where)
    dist.all_reduce(wishes, dist.ReduceOp.MAX, group=group)
    return bool(wishes)
'''


def cases(agreed: Callable) -> None:
    """Every set of ranks that wish to stop, of all ranks and of a group."""
    world, rank = dist.get_world_size(), dist.get_rank()
    for chosen in [*(2**one for one in range(world)), 0, 2**world - 1, 5 % 2**world]:
        look(agreed, [bool(chosen >> one & 1) for one in range(world)], None, rank)
    if mine := pair():
        group, members = mine
        for wishing in (0, 1):  # the other pair wishes nothing, and must not hear of it
            wishes = [False, members[0] == wishing]
            look(agreed, wishes, group, members.index(rank))


def look(agreed: Callable, wishes: list[bool], group: dist.ProcessGroup | None, me: int) -> None:
    """One question; `wishes` of the group's ranks."""
    wishing = [number for number, wish in enumerate(wishes) if wish]
    case = f"stop wished by {wishing}" if wishing else "nobody wishes to stop"
    here = where(case + (" of a group of two" if group else ""))
    found = observe(partial(agreed, group=group), wishes[me])
    with judging():
        right = any(wishes)
        values = flat(found["answer"])
        one = len(values) == 1 and isinstance(values[0], (bool, int, float)) and not has_nan(values)
        known = one and found["kind"] not in ("list", "tuple")  # [False] is true
        if not known or bool(values[0]) != right:
            hint = "One wish is enough, also another rank's: all of them must get the same answer."
            if not any(wishes):
                hint = "Nobody wishes to stop. Where does your answer come from?"
            if right and all(wishes) is False and values == [0]:
                hint = "Is it enough that one rank wishes to stop, or must all of them wish it?"
            if known and bool(values[0]) == wishes[me]:
                hint = "That is what this rank wishes. How does it learn about the others?"
            if found["answer"] is None:
                hint = NOTHING
            elif not known:
                hint = "Return one answer, True or False."
            elif group:
                hint = "Do all your calls use the group that was passed in?"
            raise Wrong(f"{here} got {found['answer']}, expected {right}", hint)
        if not found["calls"] and len(wishes) > 1:
            raise Wrong(f"{here} sent nothing", "How did it learn about the others?")
        names = [name for name, _ in found["calls"]]
        objects = ["all_gather", "all_gather"]  # all_gather_object: the sizes, then the bytes
        if len(names) > 1 and names != objects:
            said = f"{here} called {named_calls(found['calls'])}"
            raise Wrong(said, "One collective is enough.")
        if sum(size for _, size in found["calls"]) > 64 * len(wishes):
            said = f"{here} called {named_calls(found['calls'])}"
            raise Wrong(said, "One number per rank is enough.")
        if found["unwaited"]:
            raise Wrong(f"{here} did not wait for its message", "Wait before you read the answer.")


WISHES = "torch.tensor(int(wish), device=where)"
REDUCE = "dist.all_reduce(wishes, dist.ReduceOp.MAX, group=group)"
ANSWER = "bool(wishes)"

WRONG = [
    ("its own wish", REDUCE, "pass", "learn about the others?"),
    ("all must wish", "ReduceOp.MAX", "ReduceOp.MIN", "must all of them wish it?"),
    (
        "only who wishes calls",
        REDUCE,
        f"if not wish:\n    return False\n{REDUCE}",
        "learn about the others?",
    ),
    (
        "rank 0 decides",
        REDUCE,
        "dist.broadcast(wishes, group=group, group_src=0)",
        "expected",
    ),
    ("the whole world", ", group=group", "", "the group that was passed in"),
    ("does not wait", "group=group", "group=group, async_op=True", ""),
    (
        "a megabyte",
        WISHES,
        "torch.full((250_000,), float(wish))",
        ANSWER,
        "bool(wishes[0] > 0)",
        "One number per rank is enough",
    ),
    (
        "an average that is rounded",
        WISHES,
        "torch.tensor(float(wish))",
        REDUCE,
        "dist.all_reduce(wishes, group=group)",
        ANSWER,
        "round(wishes.item() / dist.get_world_size(group)) == 1",
        "expected True",
    ),
    ("nan for yes", ANSWER, "float('nan') if wishes else False", "Return one answer"),
    ("always yes", "->", "lambda wish: True", "Nobody wishes to stop"),
    ("nothing", "->", "lambda wish: None", "end without a `return`"),
]
RIGHT = [
    (
        "a sum",
        WISHES,
        "torch.tensor([float(wish)])",
        REDUCE,
        "dist.all_reduce(wishes, group=group)",
        ANSWER,
        "wishes.item() > 0",
    ),
    (
        "an all-gather, and a tensor as the answer",
        REDUCE,
        "every = [torch.zeros_like(wishes) for _ in range(dist.get_world_size(group))]\n"
        "dist.all_gather(every, wishes, group)",
        ANSWER,
        "torch.stack(every).any()",
    ),
    (
        "an all-gather of objects",
        REDUCE,
        "every = [None] * dist.get_world_size(group)\ndist.all_gather_object(every, wish, group)",
        ANSWER,
        "any(every)",
    ),
]
