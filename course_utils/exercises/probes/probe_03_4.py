"""Calls the student's accuracy on padded shares, and counts what goes over the wire."""

import torch
from torch.utils.data import DistributedSampler

from course_utils.exercises.findings import report
from course_utils.meter import meter
from course_utils.worker import device, init

from exercise_03_4 import accuracy

init()
for size in (11, 8, 3, 1):
    right = torch.tensor([index % 7 not in (1, 3, 5) for index in range(size)])
    mine = list(DistributedSampler(range(size), shuffle=False))
    with meter() as moved:
        answer = accuracy(right[mine].to(device()), size)
    report(
        size=size,
        answer=answer if isinstance(answer, (int, float)) else None,
        kind=type(answer).__name__,
        collectives=moved.collectives.total() + moved.messages,
        sent=sum(call.bytes for call in moved.calls),
    )
