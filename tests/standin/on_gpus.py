"""Runs a worker file as if there were GPUs: `on_gpus.py GPUS FILE [arguments]`, on each rank."""

import os
import sys
from pathlib import Path

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if path != here]
sys.path.insert(0, str(Path(here).parents[1]))
from nbtorchrun.worker.bootstrap import execute  # noqa: E402 (the path comes first)
from tests.standin.install import install  # noqa: E402

if gpus := int(sys.argv[1]):
    install(gpus)
sys.argv = sys.argv[2:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
execute(sys.argv[0])
