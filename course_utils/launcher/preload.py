"""What the forkserver imports once, so that no rank has to.

Each import may fail (torchvision that does not fit torch, say): the rank that needs it then gets
the error, where the student sees it.
"""

import contextlib
import importlib
import os

from course_utils.worker import guards

MODULES = [
    "torch",
    "numpy",
    "psutil",
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

# From now on, and not only when all is imported and it listens.
guards.die_with_parent(int(os.environ["COURSE_AGENT"]))

with guards.modules_stay():
    for module in MODULES:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
