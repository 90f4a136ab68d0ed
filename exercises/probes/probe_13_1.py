"""Asks the student's agreed() with every set of ranks that wish to stop."""

from functools import partial

import torch.distributed as dist

from course_utils.checking.compare import NOTHING, Wrong
from course_utils.checking.findings import judging, observe, pair, where
from course_utils.checking.values import flat
from course_utils.worker import init

from exercise_13_1 import agreed


def look(wishes: list[bool], group: dist.ProcessGroup | None, me: int) -> None:
    """One question; `wishes` of the group's ranks."""
    wishing = [number for number, wish in enumerate(wishes) if wish]
    case = f"stop wished by {wishing}" if wishing else "nobody wishes to stop"
    here = where(case + (" of a group of two" if group else ""))
    found = observe(partial(agreed, group=group), wishes[me])
    with judging():
        right = any(wishes)
        values = flat(found["answer"])
        one = len(values) == 1 and isinstance(values[0], (bool, int, float))
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
        if len(found["calls"]) > 1:
            raise Wrong(f"{here} made {len(found['calls'])} calls", "One collective is enough.")
        if sum(size for _, size in found["calls"]) > 64 * len(wishes):
            raise Wrong(f"{here} sent {found['calls']}", "One number per rank is enough.")
        if found["unwaited"]:
            raise Wrong(f"{here} did not wait for its message", "Wait before you read the answer.")


init()
world, rank = dist.get_world_size(), dist.get_rank()
for chosen in [*(2**one for one in range(world)), 0, 2**world - 1, 5 % 2**world]:
    look([bool(chosen >> one & 1) for one in range(world)], None, rank)
if mine := pair():
    group, members = mine
    for wishing in (0, 1):  # the other pair wishes nothing, and must not hear of it
        wishes = [False, members[0] == wishing]
        look(wishes, group, members.index(rank))
