"""Calls the student's plan, dispatch and combine with uneven, empty and silent ranks."""

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.checking.compare import Wrong, judge, kind
from course_utils.checking.findings import described, judging, observe, pair, random_values, where
from course_utils.checking.values import is_tensor
from course_utils.worker import init

from exercise_11_3 import combine, dispatch, plan

WIDTH = 3
init()
rank, world = dist.get_rank(), dist.get_world_size()


def rows_of(case: str, seed: int, place: int, ranks: int) -> tuple[Tensor, Tensor]:
    """The rows of a rank, (n, WIDTH), and where each goes, (n,); every rank knows all ranks'."""
    count = 4 + 3 * place
    if "empty" in case and place == ranks - 1:
        count = 0
    random = torch.Generator().manual_seed(seed + place)
    destination = torch.randint(ranks, (count,), generator=random)
    if "silent" in case and ranks > 1:  # nobody sends to the first rank
        destination = 1 + destination % (ranks - 1)
    if "one goal" in case:
        destination[:] = ranks - 1
    return random_values(seed + 100 + place, count, WIDTH, dtype=torch.float64), destination


def came_to(place: int, every: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The rows that come to a rank, those of the first rank first, each rank's in their order."""
    return torch.cat([rows[destination.to(rows.device) == place] for rows, destination in every])


def unsorted(place: int, every: list[tuple[Tensor, Tensor]], ranks: int) -> Tensor:
    """What comes to a rank if nobody sorts."""
    parts = []
    for rows, destination in every:
        send = destination.bincount(minlength=ranks).tolist()
        parts.append(rows.split(send)[place])
    return torch.cat(parts)


def look(case: str, seed: int, group: dist.ProcessGroup | None, members: list[int]) -> None:
    """One journey there and back, and its gradients."""
    ranks, place = len(members), members.index(rank)
    every = [rows_of(case, seed, each, ranks) for each in range(ranks)]
    rows, destination = every[place]
    destination = destination.to(rows.device)
    rows.requires_grad_()
    here = where(f"{case}, {'a pair' if group else 'all ranks'}")
    found = observe(lambda d: [plan(d, group)], destination, names=("`destination`",))
    travel = plan(destination, group)
    gone = observe(lambda r: dispatch(r, travel), rows, names=("`rows`",))
    came = dispatch(rows, travel)
    right = came_to(place, every)
    back = results = None
    if is_tensor(came) and came.shape == right.shape:
        scale = 1.0 + place
        results = combine(came * scale, travel)
        if is_tensor(results) and results.requires_grad:
            results.backward(torch.ones_like(results))
            back = rows.grad
    with judging():
        hint = "Rows from rank 0 come first, and each rank's rows keep their order."
        mistakes = {
            "`exchange` takes rows in the order of their ranks. Did you sort them before it?": (
                unsorted(place, every, ranks)
            ),
        }
        if is_tensor(came) and sorted(came.flatten().tolist()) == sorted(right.flatten().tolist()):
            hint = "All rows came, in another order. Is your sort stable?"
        judge(f"{here}: dispatch", gone, right, mistakes, hint, dtype=torch.float64)
        if not is_tensor(results):
            raise Wrong(f"{here}: combine returned {kind(results)}, expected a Tensor")
        factor = (1.0 + destination.double()).unsqueeze(1)
        hint = "Row i of the answer is the result of row i. What undoes a sort?"
        given_back = {**gone, **described(results)}
        what = f"{here}: combine did not bring the results back in order: it"
        judge(what, given_back, rows * factor, (), hint, dtype=torch.float64)
        if back is None or not torch.allclose(back, factor.expand_as(rows)):
            hint = "Do the rows travel through `exchange`? Only there gradients flow back."
            raise Wrong(f"{here}: the gradient of the rows is wrong", hint)
        leaving = int((destination != place).sum())
        sent = sum(size for name, size in gone["calls"] if name != "send")
        if ranks > 1 and sent > rows.nbytes + 64 * ranks:
            hint = f"{leaving} of {len(rows)} rows leave this rank. Does each leave once?"
            raise Wrong(f"{here}: dispatch moved {sent} bytes, its rows are {rows.nbytes}", hint)
        spent = sum(size for _, size in found["calls"])
        if spent > 64 * ranks * ranks:
            hint = "The ranks only need to know how many rows come from whom."
            raise Wrong(f"{here}: plan moved {spent} bytes", hint)


mine = pair()
for seed, case in enumerate(
    ("uneven", "an empty rank", "a silent rank", "one goal", "empty, one goal")
):
    look(case, 10 * seed, None, list(range(world)))
    if mine:
        look(case, 10 * seed, *mine)
