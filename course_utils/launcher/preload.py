"""What the forkserver imports once, so that no rank has to.

An import may fail, for example if torchvision does not fit torch. Then the rank that needs it gets
the error, and the student sees it there.
"""

import contextlib
import importlib
import os
from importlib.metadata import entry_points

from course_utils.worker import guards

MODULES = [
    "torch",
    "numpy",
    "psutil",
    "multiprocessing.queues",
    "multiprocessing.popen_forkserver",
    "torch.distributed",
    "torch.nn.parallel",
    "torch.utils.data.distributed",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "torch.distributed.checkpoint",
    "torchvision",
    "course_utils.worker",
    "course_utils.worker.bootstrap",
    "course_utils.worker.calls",
    "course_utils.meter",
]

# Now, before the imports: if the agent dies during them, this process must not stay behind.
guards.die_with_parent(int(os.environ["COURSE_AGENT"]))

with guards.modules_stay():
    for module in MODULES:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    # Torch finds a back end by reading the metadata of every installed package: once, here.
    for name in ("gloo", "nccl"):
        for backend in entry_points(group="torch.distributed.backends", name=name):
            with contextlib.suppress(Exception):
                backend.load()()
