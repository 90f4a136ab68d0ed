"""Calls the student's shard and unshard on several lists of tensors, and counts."""

import sys

import torch
import torch.distributed as dist

from course_utils.exercises.compare import Wrong, expect_calls, judge
from course_utils.exercises.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_05_1 import shard, unshard

CASES = [
    [(2, 2), (3,)],
    [(3, 4)],
    [(1,), (), (2, 1, 3)],
    [(5,), (0,), (2,)],
    [(1,)],
]


def tensors(shapes: list[tuple[int, ...]], dtype: torch.dtype) -> list[torch.Tensor]:
    """Random values in these shapes, the same on each rank; a matrix lies transposed in memory."""
    made = [random_values(seed, *shape, dtype=dtype) for seed, shape in enumerate(shapes)]
    return [x.t().contiguous().t() if x.dim() == 2 else x for x in made]


def padded(given: list[torch.Tensor]) -> torch.Tensor:
    """All parts, one after another."""
    flat = torch.cat([tensor.flatten() for tensor in given])
    return torch.cat([flat, flat.new_zeros(-len(flat) % dist.get_world_size())])


def sharded(here: str, given: list[torch.Tensor], name: str) -> None:
    """Judge what the student's shard makes of the tensors."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts: list = []
    found = observe(
        lambda tensors: parts.append(shard(tensors)) or parts[0], given, names=("them",)
    )
    whole = padded(given)
    wanted = whole.chunk(ranks)[rank].tolist()
    flat = torch.cat([tensor.flatten() for tensor in given])
    front = torch.cat([whole.new_zeros(len(whole) - len(flat)), flat]).chunk(ranks)[rank]
    memory = torch.cat(
        [tensor.t().flatten() if tensor.dim() == 2 else tensor.flatten() for tensor in given]
    )
    order = torch.cat([memory, whole.new_zeros(len(whole) - len(flat))]).chunk(ranks)[rank]
    got = found["answer"] if isinstance(found["answer"], list) else []
    otherwise = "Write down the flat tensor with its padding, and cut it. Which piece is yours?"
    if any(isinstance(each, list) for each in got):
        otherwise = "A part has one dimension, (n,)."
    elif len(got) > len(wanted):
        otherwise = "Longer than need be. How many values has the last rank, at the least?"
    elif len(got) < len(wanted):
        otherwise = "All parts are equally long, the last one too. Which values are missing?"
    judge(
        f"{here}: shard",
        found,
        wanted,
        dtype=name,
        mistakes={
            "Dealt out like cards. A part is a piece without gaps.": whole[rank::ranks].tolist(),
            "Where do the zeros go: at the front, or at the end of all?": front.tolist(),
            "In which order do a matrix's values come, however it lies in memory?": order.tolist(),
        },
        otherwise=otherwise,
    )
    held = parts[0].untyped_storage().nbytes() // parts[0].element_size()
    if held > len(wanted):
        raise Wrong(
            f"{here}: the part has {len(wanted)} values, and holds memory for {held}",
            "A view keeps the whole alive. What does a rank need of the others' parts?",
        )
    expect_calls(f"{here}: shard", found["calls"], [[]], "Every rank has the tensors. Why ask?")


def unsharded(here: str, given: list[torch.Tensor], name: str) -> None:
    """Judge what the student's unshard makes of our parts."""
    ranks = dist.get_world_size()
    part = padded(given).chunk(ranks)[dist.get_rank()].clone()
    found = observe(unshard, part, [tensor.shape for tensor in given], names=("the part",))
    expected = [tensor.tolist() for tensor in given]
    got = found["answer"]
    shapes = "A tensor of shape () has one value, one of shape (0,) none. Where is the padding?"
    all_there = "Are all parts in it, in the order of the ranks, and the zeros left out?"
    same = isinstance(got, list) and list(map(_shape, got)) == list(map(_shape, expected))
    judge(
        f"{here}: unshard",
        found,
        expected,
        kinds=("list", "tuple"),
        dtype=name,
        otherwise=all_there if same else shapes,
    )
    allowed = [[["all_gather", part.nbytes]], *([[]] if ranks == 1 else [])]
    hint = "Which collective gives everybody all parts, and nothing else?"
    expect_calls(f"{here}: unshard", found["calls"], allowed, hint)


def _shape(values: object) -> tuple[int, ...]:
    return tuple(torch.tensor(values).shape)


init()
task = {"shard": sharded, "unshard": unsharded}[sys.argv[1]]
for dtype in (torch.float32, torch.float64):
    for shapes in CASES:
        here = where("shapes " + ", ".join(map(str, shapes)))
        given, name = tensors(shapes, dtype), str(dtype).removeprefix("torch.")
        with judging():
            task(here, given, name)
