"""Calls the student's reduce_gradient with uneven rows and in several dtypes, and counts."""

import torch
import torch.distributed as dist

from course_utils.exercises.findings import report
from course_utils.meter import meter
from course_utils.worker import device, init

from exercise_05_3 import reduce_gradient

CASES = {  # rows of each rank, what each rank's gradient is made of, dtype
    "equal rows": ([4, 4, 4, 4], [1.0, 2.0, 3.0, 4.0], torch.float32),
    "uneven rows": ([1, 5, 2, 8], [1.0, 2.0, 3.0, 4.0], torch.float32),
    "large values": ([4, 4, 4, 4], [40_000.0, 50_000.0, 60_000.0, 40_000.0], torch.float16),
}
SIZE = 5  # of a shard; more than the 8 bytes of a number, in float16 too

init()
rank, world = dist.get_rank(), dist.get_world_size()
for name, (rows, values, dtype) in CASES.items():
    factors = torch.arange(1, SIZE * world + 1, device=device()) / (SIZE * world)
    own = slice(SIZE * rank, SIZE * (rank + 1))
    gradient = (factors * values[rank]).to(dtype)
    before = gradient.clone()
    with meter() as moved:
        answer = reduce_gradient(gradient, rows[rank])
    weights = [rows[r] / sum(rows[:world]) for r in range(world)]
    mean = sum(weight * value for weight, value in zip(weights, values[:world], strict=True))
    report(
        case=name,
        rows=rows[:world],
        kind=type(answer).__name__,
        answer=answer.double().flatten() if isinstance(answer, torch.Tensor) else None,
        dtype=str(getattr(answer, "dtype", None)),
        wanted=str(dtype),
        expected=(factors.double() * mean)[own],
        plain=(factors.double() * sum(values[:world]) / world)[own],
        own=gradient.double()[own],
        touched=not torch.equal(gradient, before),
        large=[call.name for call in moved.calls if call.bytes > 8],
        small=[call.name for call in moved.calls if call.bytes <= 8],
    )
