"""Reports how many GPUs the ranks of this machine may use."""

import os

import torch

from nbtorchrun.worker import report

report(gpus=0 if os.environ.get("COURSE_DEVICE") == "cpu" else torch.cuda.device_count())
