"""Calls the student's all_gather, and watches which operations it uses and what it sends."""

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, count, judge, shape
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_00_2 import all_gather

CASES = ((1, torch.float32), (3, torch.float32), (5, torch.float64), (20_000, torch.float32))


def hint(found: dict, expected: list, rank: int, length: int) -> str:
    """The question that fits a wrong list."""
    got, ranks = found["answer"], len(expected)
    if not isinstance(got, list) or len(got) != ranks:
        return f"There are {count(ranks, 'rank')}: whose entry is missing, or is in the list twice?"
    if set(found["kinds"]) != {"Tensor"}:
        return "Each entry is a tensor. What do yours hold?"
    if any(shape(entry) != (length,) for entry in got):
        return f"Each rank gave a tensor of shape ({length},). Which shape do your entries have?"
    if sorted(got) == sorted(expected):
        return "All tensors are there, but entry r should be rank r's, on every rank."
    others = [entry for r, entry in enumerate(got) if r != rank]
    if ranks > 2 and all(entry == others[0] for entry in others) and others[0] in expected:
        return "All entries of other ranks are the same. Do they share a tensor, or a sender?"
    if ranks > 2:
        return "With 2 ranks yours is right. In the second step, whose tensor does a rank pass on?"
    return "Did you keep every request, and wait for it before you used the result?"


def measure(length: int, dtype: torch.dtype) -> None:
    """Judge what the student's function returns for random values, different on each rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tensors = [random_values(10 * length + r, length, dtype=dtype) for r in range(ranks)]
    found = observe(all_gather, tensors[rank].clone(), names=("the tensor",))
    here = where(f"{count(length, 'value')} each")
    expected = [tensor.tolist() for tensor in tensors]
    with judging():
        question = hint(found, expected, rank, length)
        judge(here, found, expected, (), question, kinds=("list", "tuple"), dtype=dtype)
    with judging():  # after the values of all ranks
        if collectives := sorted({name for name, _ in found["calls"]} - {"send", "recv"}):
            said = f"{here} used {', '.join(collectives)}"
            raise Wrong(said, "Can you do it with send and recv only?")
        sent = sum(size for name, size in found["calls"] if name == "send")
        exact = (ranks - 1) * length * dtype.itemsize
        if sent != exact:
            question = "How much must each rank send, at least? Does one rank do all the work?"
            if sent < exact:
                question = "From so few bytes, how can the others know all digits?"
            counted = f"{ranks - 1} x {length * dtype.itemsize} = {exact:,}"
            raise Wrong(f"{here} sent {sent:,} bytes, expected {counted}", question)


init()
for length, dtype in CASES:
    measure(length, dtype)
