"""Runs a worker file under the meter: `metered.py FILE [arguments]`, on each rank of a launch."""

import os
import runpy
import sys

from course_utils.meter import meter
from course_utils.worker import report

sys.path.remove(os.path.dirname(__file__))  # a worker file may have the same name as a module there
sys.argv = sys.argv[1:]
with meter() as moved:
    runpy.run_path(sys.argv[0], run_name="__main__")
report(metered=[moved.sent, len(moved.calls)])
