"""Calls the student's loss over a cut vocabulary, beside the one of all logits."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.exercises.cut_layers import measure
from course_utils.exercises.findings import report
from course_utils.worker import device, init

from exercise_06_4 import cut_cross_entropy

init()
rank, ranks = dist.get_rank(), dist.get_world_size()
size = 7  # ids per rank
vocabulary = size * ranks
# The first and last id of the first rank, of the second, and of the last.
targets = torch.tensor([0, size - 1, size, 2 * size - 1, vocabulary - 1], device=device())
numbers = torch.Generator().manual_seed(0)
small = torch.randn(5, vocabulary, generator=numbers, dtype=torch.float64)
factors = torch.arange(1.0, 6.0, dtype=torch.float64, device=device())  # the gradient of each loss
for case, logits in (("small", small), ("large", 1000 * small), ("negative", small - 2000)):
    logits = logits.to(device())
    expected = measure(
        lambda z: cross_entropy(z, targets, reduction="none"), {"logits": logits}, factors
    )
    gradient = expected["gradients"]["logits"].chunk(ranks, 1)[rank]
    own = {"logits": logits.chunk(ranks, 1)[rank]}
    found = measure(lambda z: cut_cross_entropy(z, targets), own, factors)
    found["values"] = found["bytes"] / 8 / len(targets)
    report(case=case, found=found, y=expected["y"], gradients={"logits": gradient})
