"""What a worker file imports: the ranks' side of nbtorchrun, under the course's name.

`COURSE_DEVICE=cpu` forces the CPU. It is read here, so that a file run by hand heeds it too.
"""

import os

if "COURSE_DEVICE" in os.environ:
    os.environ["NBTORCHRUN_DEVICE"] = os.environ["COURSE_DEVICE"]

from nbtorchrun.worker import (
    device,
    doing,
    init,
    mark,
    rank,
    report,
    worst,
    worst_of_ranks,
)

__all__ = ["device", "doing", "init", "mark", "rank", "report", "worst", "worst_of_ranks"]
