"""Calls the student's accuracy on padded shares, and counts the bytes it sends."""

import torch.distributed as dist
from torch.utils.data import DistributedSampler

from course_utils.checking.compare import count, expect_two_numbers, judge
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import device, init

from exercise_08_1 import accuracy


def mistakes(right: list[bool], ranks: int, rank: int) -> list[tuple[str, float]]:
    """The question for each known mistake, with the accuracy that it gives."""
    size, length = len(right), -(-len(right) // ranks)
    padded = [right[i % size] for i in range(length * ranks)]
    shares = [padded[r::ranks] for r in range(ranks)]
    real = [right[r::ranks] for r in range(ranks)]
    own = [sum(part) / max(1, len(part)) for part in real]
    share = sum(shares[rank]) / length
    short = size // ranks
    whole = sum(map(sum, (part[:short] for part in shares))) / max(1, short * ranks)
    divided = "Did you divide by the number of ranks without summing first?"
    alone = "That is this rank's own accuracy. How does it learn about the others?"
    exact = sum(right) / size
    return [
        ("That is a percentage. An accuracy is between 0 and 1.", 100 * exact),
        ("That is the share of wrong answers.", 1 - exact),
        ("Yours counts padded samples twice. Which are padding?", sum(padded) / len(padded)),
        (alone, own[rank]),
        (alone, share),
        ("That is a mean of the ranks' means. Whose samples weigh too much?", sum(own) / ranks),
        ("Right sum, wrong count: how many samples are not padding?", sum(right) / len(padded)),
        ("Right count, wrong sum: do you count padding as right answers?", sum(padded) / size),
        ("Yours drops the last sample of every rank. On which ranks is it padding?", whole),
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
    with judging():
        here = where(count(size, "sample"))
        hint = "Sample k of rank r is number r + k N. Which numbers are past the end?"
        got = found["answer"]
        if isinstance(got, float) and abs(got - exact) * size < 0.9:  # less than one sample
            hint = "Nearly right: do you round or truncate a number on the way?"
        known = mistakes(right.tolist(), ranks, rank)
        judge(here, found, exact, known, hint, kinds=("float", "int"), tolerance=1e-6)
    with judging():
        expect_two_numbers(here, found["calls"])
