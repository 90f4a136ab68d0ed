"""Lets all ranks share the first GPU, over gloo: `on_one_card.py FILE [arguments]`."""

import functools
import os
import sys

import torch

from nbtorchrun import worker
from nbtorchrun.worker.bootstrap import execute

sys.path.remove(os.path.dirname(__file__))
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
worker.device = lambda: torch.device("cuda", 0)
worker.init = functools.partial(worker.init, backend="gloo")
execute(sys.argv[0])
