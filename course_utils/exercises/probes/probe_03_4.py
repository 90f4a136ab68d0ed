"""Calls the student's accuracy on padded shares, and counts what goes over the wire."""

import torch.distributed as dist
from torch.utils.data import DistributedSampler

from course_utils.exercises.compare import count, expect_two_numbers, judge
from course_utils.exercises.findings import judging, observe, random_values, where
from course_utils.worker import device, init

from exercise_03_4 import accuracy


def mistakes(right: list[bool], ranks: int, rank: int) -> list[tuple[str, float]]:
    """The question for each known mistake, with the accuracy that it gives."""
    size, length = len(right), -(-len(right) // ranks)
    padded = [right[i % size] for i in range(length * ranks)]
    shares = [padded[each::ranks] for each in range(ranks)]
    real = [right[each::ranks] for each in range(ranks)]
    own = [sum(each) / max(1, len(each)) for each in real]
    share = sum(shares[rank]) / length
    short = size // ranks
    whole = sum(map(sum, (each[:short] for each in shares))) / max(1, short * ranks)
    divided = "Divided by the number of ranks without adding up first?"
    alone = "That is this rank's own. Who tells it of the others?"
    return [
        ("Padded samples count twice in yours. Which are padding?", sum(padded) / len(padded)),
        (alone, own[rank]),
        (alone, share),
        ("A mean of the ranks' means. Whose samples weigh too much in it?", sum(own) / ranks),
        ("Right sum, wrong count: how many are there, without padding?", sum(right) / len(padded)),
        ("Right count, wrong sum: is padding among those you call right?", sum(padded) / size),
        ("Yours drops the last sample of every rank. On which is it padding?", whole),
        (divided, own[rank] / ranks),
        (divided, share / ranks),
    ]


init()
rank, ranks = dist.get_rank(), dist.get_world_size()
for size in (37, 11, 10, 5, 3, 5000, 1):
    right = (random_values(size % 10, size) < 0.5).cpu()
    mine = list(DistributedSampler(range(size), shuffle=False))
    found = observe(accuracy, right[mine].to(device()), size, names=("`right`",))
    exact = right.sum().item() / size
    near = isinstance(found["answer"], float) and abs(found["answer"] - exact) < 0.02
    with judging():
        here = where(count(size, "sample"))
        judge(
            here,
            found,
            exact,
            kinds=("float", "int"),
            tolerance=1e-6,
            mistakes=mistakes(right.tolist(), ranks, rank),
            otherwise="Nearly right: is something rounded, or cut off, on its way?"
            if near
            else "Sample k of rank r is number r + k N. Which are beyond the end of the data?",
        )
    with judging():
        expect_two_numbers(here, found["calls"])
