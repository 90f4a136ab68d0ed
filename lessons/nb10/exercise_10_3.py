"""10.3: the sign of the outer step."""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist

from course_utils.checking.compare import count, expect_calls, judge, name_of
from course_utils.checking.findings import judging, observe, pair, random_values, where

TITLE = "the sign of the outer step"
PROVEN = (
    "1 to 4 ranks and a group of two, float32 and float64: before minus the mean of after",
    "one all-reduce, as long as the parameters",
)
RANKS = (2, 3, 4, 1)
OURS = '''"""The outer gradient of DiLoCo: how far the ranks have moved."""

import torch.distributed as dist
from torch import Tensor


def outer_gradient(before: Tensor, after: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """The mean over the ranks of (before - after), (n,): SGD *subtracts* what it is given."""
    moved = (before - after) / dist.get_world_size(group)
    dist.all_reduce(moved, group=group)
    return moved
'''


def cases(outer_gradient: Callable) -> None:
    """Random parameters, of all ranks and of a group; and parameters that have diverged."""
    everyone = list(range(dist.get_world_size()))
    for number, n in enumerate((3, 7, 1, 2000)):
        for dtype in (torch.float32, torch.float64):
            case = f"{count(n, 'value')}, {name_of(dtype)}"
            look(outer_gradient, case, n, 200 * number, dtype, None, everyone)
    if mine := pair():
        look(outer_gradient, "a group of two", 5, 3000, torch.float32, *mine)
    look(outer_gradient, "a rank that has diverged", 4, 4000, torch.float32, None, everyone)


def look(function: Callable, case: str, n: int, seed: int, dtype, group, ranks: list[int]) -> None:
    """One call, of the ranks of a group."""
    here, me = where(case), dist.get_rank()
    before = random_values(seed + 99, n, dtype=dtype)
    after = {rank: random_values(seed + rank, n, dtype=dtype) for rank in ranks}
    if "diverged" in case:
        after[ranks[-1]][1] = torch.inf
    mean = sum(after.values()) / len(ranks)
    arguments = (before.clone(), after[me].clone())
    found = observe(partial(function, group=group), *arguments, names=("`before`", "`after`"))
    share = len(ranks) / dist.get_world_size()
    both = "Check direction and length: take the mean over the ranks, and SGD subtracts it."
    mistakes = [
        ("SGD subtracts the gradient. In which direction would yours go?", mean - before),
        (both, len(ranks) * (mean - before)),
        ("That is the sum over the ranks. What makes it a mean?", len(ranks) * (before - mean)),
        ("How many ranks are in the group?", (before - mean) * share),
        ("How many ranks are in the group?", before - mean * share),
        ("That is this rank's own. How does it learn about the others?", before - after[me]),
        ("That is where the ranks are now. How far have they moved?", mean),
        ("Only `after` needs the mean. Divide before you subtract.", before - len(ranks) * mean),
    ]
    with judging():
        hint = "`before` minus your result must be the mean of the ranks' parameters."
        if "diverged" in case:
            hint = "A rank's parameters are infinite. Don't hide that: the training has diverged."
        judge(here, found, before - mean, mistakes, hint, dtype=dtype)
    with judging():
        allowed = [[["all_reduce", before.nbytes]], *[[]] * (len(ranks) == 1)]
        expect_calls(here, found["calls"], allowed, "One message of P values is enough.")


MOVED = "(before - after) / dist.get_world_size(group)"
REDUCE = "dist.all_reduce(moved, group=group)"
MEAN_AFTER = "after / dist.get_world_size(group)"

WRONG = [
    ("the wrong sign", MOVED, f"-{MOVED}", "SGD subtracts"),
    ("a sum", MOVED, "before - after", "What makes it a mean?"),
    ("its own", MOVED, "before - after", REDUCE, "pass", "How does it learn about the others?"),
    ("the mean of the parameters", MOVED, MEAN_AFTER, "How far have they moved?"),
    (
        "subtracts the sum",
        MOVED,
        "after.clone()",
        "return moved",
        "return before - moved",
        "Only `after` needs the mean",
    ),
    (
        "reduces what it was given",
        f"moved = {MOVED}",
        "after /= dist.get_world_size(group)",
        REDUCE,
        "dist.all_reduce(after, group=group)",
        "return moved",
        "return before - after",
        "changed `after`",
    ),
    (
        "two all-reduces",
        MOVED,
        "before / dist.get_world_size(group)",
        REDUCE,
        f"other = {MEAN_AFTER}\n{REDUCE}\ndist.all_reduce(other, group=group)",
        "return moved",
        "return moved - other",
        "One message of P values",
    ),
    ("the whole world", REDUCE, "dist.all_reduce(moved)", "a group of two"),
    (
        "float16 on the way",
        MOVED,
        f"({MOVED}).half()",
        "return moved",
        "return moved.to(before.dtype)",
        "expected",
    ),
    ("hides infinities", MOVED, f"({MOVED}).nan_to_num()", "Don't hide that"),
    (
        "rank 0 does not call",
        REDUCE,
        f"if dist.get_rank() > 0:\n    {REDUCE}",
        "Does every rank call every collective",
    ),
    ("a dimension too many", "->", "lambda moved: moved[None]", "asked for: shape (3,)"),
    ("a list", "->", "lambda moved: moved.tolist()", "asked for: a Tensor"),
    ("half", "->", "lambda moved: moved.half().to(moved.dtype)", "the last digits are gone"),
    ("on the meta device", "->", "lambda moved: moved.to('meta')", "a Tensor on the meta device"),
    ("sparse", "->", "lambda moved: moved.to_sparse()", "returned a sparse_coo Tensor"),
    ("complex", "->", "lambda moved: moved.to(torch.complex64)", "returned a complex Tensor"),
]
RIGHT = [
    ("the mean of after first", MOVED, MEAN_AFTER, "return moved", "return before - moved"),
]
