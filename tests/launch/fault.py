"""One row of the table of faults, and how its script begins."""

from dataclasses import dataclass

START = """\
import os, signal, subprocess, sys, threading, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from nbtorchrun.worker import device, init, report
init()
rank, world = dist.get_rank(), dist.get_world_size()
print("rank", rank, "begins")
tensor = torch.ones(4)
"""
# Rank 1 goes on when the others wait in a call: on a busy machine they may come there late.
OTHERS_WAIT = (
    "import glob\n"
    "calls = glob.glob(os.environ['NBTORCHRUN_RUN_DIR'] + '/rank_[!1]/calls.txt')\n"
    "while rank == 1 and not all('\\n.\\t' in '\\n' + open(path).read() for path in calls):\n"
    "    time.sleep(0.01)\n"
)
# A rank goes on when all have come so far: one that is late may still wait in `init`.
ALL_ARE_HERE = (
    "import pathlib\n"
    "run_dir = pathlib.Path(os.environ['NBTORCHRUN_RUN_DIR'])\n"
    "(run_dir / f'here-{rank}').touch()\n"
    "while len(list(run_dir.glob('here-*'))) < world:\n"
    "    time.sleep(0.01)\n"
)


@dataclass(frozen=True)
class Fault:
    """One row.

    Attributes:
        name: a few words.
        body: the script after `START`; the line to blame ends with `# here`.
        said: parts of the verdict's text.
        kinds: the verdict's kind, or those of which either will do.
        rank: the rank to blame; None where each makes the mistake for itself: the first of those
            that came to it, for a rank that is slow to start may be ended before.
        waits: whether it takes a stall to notice.
        whole: whether `body` is the whole script, without `START`.
        never_said: a part that must not be in the verdict's text, because it would be false.
    """

    name: str
    body: str
    said: tuple[str, ...]
    kinds: tuple[str, ...]
    rank: int | None = 1
    waits: bool = False
    whole: bool = False
    never_said: str = "Traceback"

    @property
    def script(self) -> str:
        """The file's text."""
        return self.body if self.whole else START + self.body

    @property
    def line(self) -> int | None:
        """The number of the line to blame, or None."""
        lines = self.script.split("\n")
        return next((n for n, text in enumerate(lines, 1) if text.endswith("# here")), None)
