"""Trains with a real parameter server behind a student's gate: one worker is slow, one leaves."""

import sys
import time

import torch
import torch.distributed as dist
from parameter_server import ParameterServer
from ps_worker import leave, pull, push

from course_utils.exercises.findings import report

from exercise_02_3 import StalenessBound

BOUND, STEPS, WORK = int(sys.argv[1]), {1: 20, 2: 6, 3: 10}, {1: 0.0, 2: 0.0, 3: 0.01}

dist.init_process_group("gloo")
rank, model = dist.get_rank(), torch.nn.Linear(4, 4)
if rank == 0:
    gate = StalenessBound(STEPS, BOUND)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    server = ParameterServer(model, optimizer, STEPS, synchronous=False, gate=gate)
    server.serve()
    report(bound=BOUND, steps=server.served.version, staleness=list(server.staleness.values()))
else:
    for _ in range(STEPS[rank]):
        version = pull(model)
        time.sleep(WORK[rank])
        push(model, version, 1)
    leave()
dist.destroy_process_group()
