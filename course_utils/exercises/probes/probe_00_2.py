"""Calls the student's all_gather, and watches which operations it uses and what it sends."""

import torch
import torch.distributed as dist

from course_utils.exercises.compare import Wrong, count, judge
from course_utils.exercises.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_00_2 import all_gather

CASES = ((1, torch.float32), (3, torch.float32), (5, torch.float64), (20_000, torch.float32))


def hint(found: dict, expected: list, rank: int, length: int) -> str:
    """The question that fits a wrong list."""
    got, ranks = found["answer"], len(expected)
    if not isinstance(got, list) or len(got) != ranks:
        return f"There are {count(ranks, 'rank')}: whose entry is missing, or there twice?"
    if any(not isinstance(each, list) or len(each) != length for each in got):
        return f"Each rank gave a tensor of shape ({length},). Which shape have your entries?"
    if any(isinstance(each[0], list) for each in got):
        return f"Each rank gave a tensor of shape ({length},). Which shape have your entries?"
    if sorted(got) == sorted(expected):
        return "All tensors are there, but entry r should be rank r's, on every rank."
    others = [each for r, each in enumerate(got) if r != rank]
    if ranks > 2 and all(each == others[0] for each in others) and others[0] in expected:
        return "All entries from others are one rank's. Do they share one tensor, or one sender?"
    if ranks > 2:
        return (
            "With 2 ranks yours is right. What does a rank pass on in the second step, and whose?"
        )
    return "Was every request kept and waited for before you looked?"


def measure(length: int, dtype: torch.dtype) -> None:
    """Judge what the student's function makes of random values, other ones on each rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    every = [random_values(10 * length + r, length, dtype=dtype) for r in range(ranks)]
    found = observe(all_gather, every[rank].clone(), names=("the tensor",))
    here = where(f"{count(length, 'value')} each")
    expected = [each.tolist() for each in every]
    with judging():
        judge(
            here,
            found,
            expected,
            kinds=("list", "tuple"),
            dtype=str(dtype).removeprefix("torch."),
            otherwise=hint(found, expected, rank, length),
        )
    with judging():  # after the values of all ranks
        if collectives := sorted({name for name, _ in found["calls"]} - {"send", "recv"}):
            said = f"{here} used {', '.join(collectives)}"
            raise Wrong(said, "Can you do it with send and recv alone?")
        sent = sum(size for name, size in found["calls"] if name == "send")
        exact = (ranks - 1) * length * dtype.itemsize
        if sent != exact:
            question = "What does each rank need to send, at least? Is one doing everybody's work?"
            if sent < exact:
                question = "How can the others know all digits of these values?"
            counted = f"{ranks - 1} x {length * dtype.itemsize} = {exact:,}"
            raise Wrong(f"{here} sent {sent:,} bytes, expected {counted}", question)


init()
for length, dtype in CASES:
    measure(length, dtype)
