"""What a rank of the benchmark `compression` does: steps of notebook 10's training, in every way.

All ways in turn, round after round; a round is some steps, timed on the slowest rank.
"""

import sys
import time
from itertools import islice

import torch
import torch.distributed as dist
from methods import EVERY, LONGER, METHODS, steps

from nbtorchrun.meter import meter
from nbtorchrun.worker import init, report

init()
torch.set_num_threads(1)
training = {method: steps(method) for method in METHODS}
for run in training.values():
    next(run)  # gives every rank the same start
for turn in range(1 + int(sys.argv[1])):
    for method, run in training.items():
        dist.barrier()
        start = time.perf_counter()
        list(islice(run, EVERY))
        took = torch.tensor((time.perf_counter() - start) / EVERY)
        dist.all_reduce(took, dist.ReduceOp.MAX)
        if turn:  # the first round warms up
            report(step=turn, method=method, seconds=took.item())
for method, run in training.items():
    with meter() as moved:
        list(islice(run, LONGER))  # with H = 30 one meeting
    report(step=0, method=method, sent=moved.sent / LONGER)
