"""Calls the student's ring functions on tensors of several lengths, and watches every message."""

import math
import sys
from importlib import import_module

import torch
import torch.distributed as dist

from course_utils.exercises.compare import Wrong, close, count, judge
from course_utils.exercises.findings import described, judging, observe, random_values, where
from course_utils.worker import init

TASKS = {
    "reduce_scatter": ("exercise_04_1", "ring_reduce_scatter"),
    "all_gather": ("exercise_04_2", "ring_all_gather"),
    "all_reduce": ("exercise_04_4", "ring_all_reduce"),
}
NOT_YET = -1.0
EVEN = 60_000  # values; every number of ranks up to 6 divides it


def hint(task: str, got: list, result: torch.Tensor) -> str:
    """The question that fits a wrong value."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if task == "reduce_scatter" and ranks > 1:
        if len(got) > math.ceil(len(result) / ranks):
            return "One chunk is asked for, and that is more."
        for number, chunk in enumerate(result.tensor_split(ranks)):
            if got and close(got, chunk.tolist(), 1e-5):
                return f"Finished, but that is chunk {number}. Which one comes in last?"
    if NOT_YET in got:
        return "A -1 is what the check put where nothing had come yet. Which chunk is missing?"
    if ranks > 2:
        return "With 2 ranks yours is right. What differs? From which neighbour do you receive?"
    return f"Whose values does rank {rank} lack? And does each rank cut as tensor_split(N)?"


def check_messages(here: str, task: str, found: dict, length: int, itemsize: int) -> None:
    """Raise `Wrong` at a message that a ring does not need."""
    ranks = dist.get_world_size()
    if others := sorted({name for name, _ in found["calls"]} - {"send", "recv"}):
        raise Wrong(f"{here} used {', '.join(others)}", "Can you do it with messages alone?")
    sent = [size for name, size in found["calls"] if name == "send"]
    largest, chunk = max(sent, default=0), math.ceil(length / ranks) * itemsize
    if largest > chunk:
        raise Wrong(
            f"{here} sent {largest:,} bytes in one message; a chunk has at most {chunk:,}",
            "What does the right neighbour still need of all that?",
        )
    allowed = (2 if task == "all_reduce" else 1) * (ranks - 1)
    if len(sent) > allowed:
        raise Wrong(
            f"{here} sent {count(len(sent), 'message')}, allowed are {allowed}",
            "How many steps does a chunk need to have been everywhere?",
        )
    if len(found["peers"]) > 1:
        to = ", ".join(map(str, found["peers"]))
        raise Wrong(f"{here} sent to ranks {to}", "In a ring each rank has one receiver. Which?")
    if length == EVEN and sum(sent) != allowed * chunk:
        raise Wrong(
            f"{here} sent {sum(sent):,} bytes, expected {allowed} x {chunk:,}",
            "In which dtype do the values travel? And is every step's message there?",
        )


def measure(task: str, function: object, length: int, dtype: torch.dtype) -> None:
    """Judge what the function makes of a tensor, and the sizes and receivers of its messages."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    every = [random_values(7 * r + length, length, dtype=dtype) for r in range(ranks)]
    result, mine = sum(every), (rank + 1) % ranks
    tensor = every[rank].clone()
    if task == "all_gather":
        tensor.fill_(NOT_YET).tensor_split(ranks)[mine].copy_(result.tensor_split(ranks)[mine])
    found = observe(function, tensor, may_change=True)
    expected, terms, name = result, every, str(dtype).removeprefix("torch.")
    if task == "reduce_scatter":
        expected = result.tensor_split(ranks)[mine]
        terms = [each.tensor_split(ranks)[mine] for each in every]
    else:
        found |= described(tensor)
    here = where(count(length, "value"))
    if task == "reduce_scatter" and ranks > 1:
        here = where(f"{count(length, 'value')}, chunk {mine}")
    with judging():
        got = found["answer"] if isinstance(found["answer"], list) else []
        none = "Which chunk does this rank own in the end? Return it."
        judge(
            here,
            found,
            expected.tolist(),
            dtype=name,
            verb="returned" if task == "reduce_scatter" else "holds",
            terms=[each.tolist() for each in terms] if length < 100 else None,
            otherwise=hint(task, got, result) if found["kind"] == "Tensor" else none,
        )
    with judging():
        check_messages(here, task, found, length, dtype.itemsize)


task = sys.argv[1]
file, name = TASKS[task]
function = getattr(import_module(file), name)
init()
for length in (3, 7, 8, 13, 1, 0, EVEN):
    measure(task, function, length, torch.float64 if length in (8, 0) else torch.float32)
