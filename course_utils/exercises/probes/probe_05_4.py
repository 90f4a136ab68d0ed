"""Calls the student's global_norm on shards of several kinds, and counts."""

import math

import torch
import torch.distributed as dist

from course_utils.exercises.findings import report
from course_utils.meter import meter
from course_utils.worker import device, init

from exercise_05_4 import global_norm

HALF = torch.float16
CASES = {  # the shards of each rank: (value, count, dtype) or None
    "plain": [[(1.0, 4), (2.0, 1)], [(3.0, 2)], [(2.0, 3)], [(1.0, 1)]],
    "a frozen one": [[None, (2.0, 2)], [(2.0, 2), None], [None, (1.0, 1)], [(1.0, 2), None]],
    "an idle rank": [[(3.0, 1)], [], [(4.0, 1)], [None]],
    "float16": [[(300.0, 4, HALF)], [(400.0, 4, HALF)], [(300.0, 1, HALF)], [(500.0, 1, HALF)]],
}

init()
rank, world = dist.get_rank(), dist.get_world_size()
for name, every in CASES.items():
    made = [
        None
        if each is None
        else torch.full((each[1],), each[0], dtype=(*each, torch.float32)[2], device=device())
        for each in every[rank]
    ]
    before = [each if each is None else each.clone() for each in made]
    with meter() as moved:
        answer = global_norm(made)
    squares = [sum(x[0] ** 2 * x[1] for x in shards if x) for shards in every[:world]]
    norms = [math.sqrt(each) for each in squares]
    report(
        case=name,
        kind=type(answer).__name__,
        answer=answer if isinstance(answer, float) else None,
        expected=math.sqrt(sum(squares)),
        own=norms[rank],
        added=sum(norms),
        squared=sum(squares),
        average=math.sqrt(sum(squares) / world),
        touched=any(
            a is not None and not torch.equal(a, b) for a, b in zip(made, before, strict=True)
        ),
        collectives=moved.collectives.total() + moved.messages,
        bytes=sum(call.bytes for call in moved.calls),
    )
