"""Calls the student's ring functions on rows of several lengths, and watches every message."""

import math
import sys
from collections.abc import Callable
from importlib import import_module

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, count, judge
from course_utils.checking.findings import described, judging, observe, random_values, where
from course_utils.checking.values import close
from course_utils.worker import init

FILES = {"exchange": "exercise_04_1", "reduce_scatter": "exercise_04_2"}
FILES["all_gather"] = "exercise_04_3"
NOT_YET = -1.0
EVEN = 60_000  # values; every number of ranks up to 6 divides it


def larger(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """Another way to combine than to add."""
    return torch.maximum(ours, theirs, out=ours)


def question_of(got: list, result: torch.Tensor, every: list, rank: int, combine: object) -> str:
    """The question that fits a wrong value."""
    ranks = len(every)
    if task == "exchange":
        for other, each in enumerate(every):
            if len(each) and close(got[: len(each)], each.tolist()[: len(got)], 1e-5):
                return f"These are rank {other}'s values. Who is the left neighbour of rank {rank}?"
        return "A -1 is what the check put into `coming`. Who fills it?"
    if task == "reduce_scatter" and ranks > 1:
        if combine is larger:
            return "It was to take the larger value. Is it `combine` that takes theirs into yours?"
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


def check_messages(here: str, found: dict, length: int, itemsize: int, ranks: int) -> None:
    """Raise `Wrong` at a message that a ring does not need."""
    if others := sorted({name for name, _ in found["calls"]} - {"send", "recv"}):
        raise Wrong(f"{here} used {', '.join(others)}", "Can you do it with messages alone?")
    sent = [size for name, size in found["calls"] if name == "send"]
    exchanges = task == "exchange"
    chunk = (length if exchanges else math.ceil(length / ranks)) * itemsize
    if (largest := max(sent, default=0)) > chunk:
        most = f"`going` has {chunk:,}" if exchanges else f"a chunk has at most {chunk:,}"
        hint = "What does the right neighbour still need of all that?"
        raise Wrong(f"{here} sent {largest:,} bytes in one message; {most}", hint)
    allowed = 1 if exchanges else ranks - 1
    if len(sent) > allowed:
        hint = "How many steps does a chunk need to have been everywhere?"
        raise Wrong(f"{here} sent {count(len(sent), 'message')}, allowed are {allowed}", hint)
    if len(found["peers"]) > 1:
        to = ", ".join(map(str, found["peers"]))
        raise Wrong(f"{here} sent to ranks {to}", "In a ring each rank has one receiver. Which?")
    if length >= EVEN and sum(sent) != allowed * chunk:
        hint = "In which dtype do the values travel? And is every step's message there?"
        raise Wrong(f"{here} sent {sum(sent):,} bytes, expected {allowed} x {chunk:,}", hint)


def measure(
    length: int,
    dtype: torch.dtype,
    more: int = 0,
    combine: Callable = torch.Tensor.add_,
    group: dist.ProcessGroup = None,
) -> None:
    """Judge what the function makes of a row, and the sizes and receivers of its messages.

    Each rank's row has `more` values more than its left neighbour's.
    """
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    every = [random_values(7 * r + length, length + r * more, dtype=dtype) for r in range(ranks)]
    left, right = (rank - 1) % ranks, (rank + 1) % ranks
    values, case = every[rank].clone(), count(len(every[rank]), "value")
    case += ", the larger value" * (combine is larger) + ", in a group" * (group is not None)
    terms = None
    if task == "exchange":
        coming, expected, result = torch.full_like(every[left], NOT_YET), every[left], every[left]
        found = observe(function, values, coming, group, may_change=True) | described(coming)
    else:
        result = every[0].clone()
        for other in every[1:]:
            combine(result, other)
        if task == "all_gather":
            values.fill_(NOT_YET).tensor_split(ranks)[right].copy_(
                result.tensor_split(ranks)[right]
            )
            found = observe(function, values, group, may_change=True) | described(values)
            expected, terms = result, every
        else:
            found = observe(function, values, combine, group, may_change=True)
            expected = result.tensor_split(ranks)[right]
            terms = [each.tensor_split(ranks)[right] for each in every]
            case += f", chunk {right}" * (ranks > 1)
    here, got = where(case), found["answer"] if isinstance(found["answer"], list) else []
    with judging():
        question = "Which chunk does this rank own in the end? Return it."
        if found["kind"] == "Tensor":
            question = question_of(got, result, every, rank, combine)
        verb = "returned" if task == "reduce_scatter" else "holds"
        terms = terms if length < 100 and group is None and combine is not larger else None
        judge(here, found, expected, (), question, dtype=dtype, verb=verb, terms=terms)
        if task == "exchange" and not torch.equal(values, every[rank]):
            fills = "The left neighbour fills `coming`, not `going`."
            raise Wrong(f"{here} changed `going`", fills)
    with judging():
        check_messages(here, found, len(every[rank]), dtype.itemsize, ranks)


task = sys.argv[1]
function = getattr(import_module(FILES[task]), task)
init()
for length in (3, 7, 8, 13, 1, 0, EVEN):
    # Equal rows first: gloo aborts at a message from the wrong neighbour if its length differs.
    more = int(task == "exchange" and length != 3)
    measure(length, torch.float64 if length in (8, 0) else torch.float32, more)
if task == "reduce_scatter":
    measure(7, torch.float32, combine=larger)
if dist.get_world_size() > 2:
    group = dist.new_group(range(1, dist.get_world_size()))
    if dist.get_rank() > 0:
        measure(7, torch.float32, int(task == "exchange"), group=group)
