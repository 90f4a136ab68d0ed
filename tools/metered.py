"""Runs a worker file under the meter: `metered.py FILE [arguments]`, on each rank of a launch."""

import os
import sys

from nbtorchrun.meter import meter
from nbtorchrun.worker import report
from nbtorchrun.worker.bootstrap import execute

sys.path.remove(os.path.dirname(__file__))  # a worker file may have the same name as a module there
sys.argv = sys.argv[1:]
with meter() as moved:
    execute(sys.argv[0])
report(metered=[moved.sent, len(moved.calls)])
