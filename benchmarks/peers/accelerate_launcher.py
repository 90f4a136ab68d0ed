"""A session of accelerate's `notebook_launcher`: it forks this process."""

import torch  # noqa: F401 (a notebook has it imported)
from accelerate import notebook_launcher

from benchmarks.peers.work import serve, work

serve(lambda task: notebook_launcher(work, args=(task,), num_processes=2))
