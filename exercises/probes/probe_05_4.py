"""Calls the student's global_norm on shards of several kinds, and counts."""

import math

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, judge, named_calls
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_05_4 import global_norm

HALF, SINGLE = torch.float16, torch.float32
CASES = {  # the shards of each rank: (about how large, count, dtype) or None
    "plain": [[(1.0, 4), (2.0, 1)], [(3.0, 2)], [(2.0, 3)], [(1.0, 1)]],
    "a frozen one": [[None, (2.0, 2)], [(2.0, 2), None], [None, (1.0, 1)], [(1.0, 2), None]],
    "float16": [[(300.0, 4, HALF)], [(400.0, 4, HALF)], [(300.0, 1, HALF)], [(500.0, 1, HALF)]],
    "large float16": [[(4e4, 4, HALF)], [(4e4, 4, HALF)], [(4e4, 4, HALF)], [(4e4, 4, HALF)]],
    "many": [[(1.0, 5000)], [(1.0, 5000)], [(1.0, 5000)], [(1.0, 5000)]],
    "an idle rank": [[(3.0, 1)], [], [(4.0, 1)], [None]],
}


def tensor(seed: int, size: float, count: int, dtype: torch.dtype = SINGLE) -> torch.Tensor:
    """Random values between `size` and half as much again, of both signs."""
    draw = random_values(seed, count, dtype=torch.float64)
    return (size * (1 + draw.abs().clamp(max=1) / 2) * draw.sign()).to(dtype)


init()
rank, world = dist.get_rank(), dist.get_world_size()
for name, every in CASES.items():
    made = [
        [each and tensor(17 * r + i, *each) for i, each in enumerate(shards)]
        for r, shards in enumerate(every[:world])
    ]
    found = observe(
        global_norm,
        [each if each is None else each.clone() for each in made[rank]],
        names=("a shard",),
    )
    squares = [
        sum(x.double().square().sum().item() for x in shards if x is not None) for shards in made
    ]
    norms = [math.sqrt(each) for each in squares]
    got = found["answer"]
    otherwise = "Square, add up on each rank, add up over the ranks, take the root: in this order."
    if isinstance(got, float) and not math.isfinite(got) and "float16" in name:
        otherwise = "In which dtype do you square? The square of 300 is beyond float16."
    here = where(name)
    with judging():
        differ = "Averaged, where the ranks hold different values: what is to be done with them?"
        mistakes = {
            "That is this rank's own. Who tells it of the others?": norms[rank],
            "Norms do not add up; their squares do.": sum(norms),
            "That is the square of the norm.": sum(squares),
            differ: math.sqrt(sum(squares) / world),
        }
        norm = math.sqrt(sum(squares))
        judge(here, found, norm, mistakes, otherwise, kinds=("float",), tolerance=1e-5)
    with judging():
        calls = found["calls"]
        if len(calls) not in ((1, 0) if world == 1 else (1,)) or sum(n for _, n in calls) > 8:
            said = f"{here} called {named_calls(calls)}, expected one collective of one number"
            raise Wrong(said, "Which one number of a rank is all that the others need to know?")
