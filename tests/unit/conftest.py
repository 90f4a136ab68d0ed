"""What tests of the command line share: a small course."""

import json
import os
import subprocess
import sys

import pytest

from course_utils import paths
from tools.__main__ import main

DEMO = '''"""Count to a number."""
import argparse
import os
import time
from collections.abc import Sequence

import torch
import torch.distributed as dist

from nbtorchrun.worker import init, rank, report


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--to", type=int, default=3, help="the last number")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two numbers")
    parser.add_argument("--fail", action="store_true", help="rank 1 raises in the end")
    options = parser.parse_args(argv)
    if int(os.environ.get("WORLD_SIZE", 1)) > 8:
        parser.error("nobody counts with more than 8 ranks")
    return options


if __name__ == "__main__":
    options = parse_arguments()
    init()
    for step in range(options.to):
        print("count", step, flush=True)
        dist.all_reduce(torch.ones(1000))
        report(step=step, total=options.to)
        time.sleep(options.pause)
    if options.fail and rank() == 1:
        raise ValueError("cannot count on")
    report(total=options.to)
'''
PROOF = """
from nbtorchrun.worker import rank, report
if rank() == 0:
    report(claim="it counts", on="2 ranks", worst=WORST, bound=1)
"""


class SmallCourse:
    """The command line over one small notebook with the demo `count` and its proof."""

    def __init__(self, folder, monkeypatch, capsys):
        self.root, self.home = folder / "a course", folder / "home"
        self._patch, self._capsys = monkeypatch, capsys
        (self.root / "notebooks").mkdir(parents=True)
        self._added = []

    def add(self, file, source, tag, nproc=2):
        """Add a cell that launches a script."""
        self._added.append(("code", f"%%torchrun -n {nproc} {file}\n{source}", [tag]))

    def write(self, worst=0):
        """Write the notebook; its claim holds if `worst` is at most 1, and None reports none."""
        proof = "" if worst is None else PROOF.replace("WORST", str(worst))
        cells = [
            ("markdown", "# 03 · Counting\nHow far?", []),
            ("code", f"%%torchrun -n 2 --as counting count.py\n{DEMO}", ["demo:count"]),
            ("code", f"%%torchrun -n 3 prove.py\n{proof}", ["proof:count"]),
            *self._added,
        ]
        book = {
            "cells": [
                {"cell_type": kind, "metadata": {"tags": tags}, "source": source}
                for kind, source, tags in cells
            ]
        }
        (self.root / "notebooks" / "03_counting.ipynb").write_text(json.dumps(book))

    def __call__(self, *arguments, worst=0, env=None):
        """Call the command line here, piped: give its status, and what it wrote."""
        self.write(worst)
        self._capsys.readouterr()
        with self._patch.context() as patch:
            patch.setattr(paths, "NOTEBOOKS", self.root / "notebooks")
            for name, value in {"COURSE_HOME": str(self.home), **(env or {})}.items():
                patch.setenv(name, value)
            try:
                status = main(arguments)
            except SystemExit as end:
                status = end.code
        return subprocess.CompletedProcess(arguments, status, *self._capsys.readouterr())

    def start(self, *arguments, env=None, **streams):
        """Start the command line in a process of its own."""
        self.write()
        code = (
            "import sys, pathlib; from course_utils import paths;"
            f"paths.NOTEBOOKS = pathlib.Path({str(self.root / 'notebooks')!r});"
            "from tools.__main__ import main; sys.exit(main(sys.argv[1:]))"
        )
        own = {"COURSE_HOME": str(self.home), "PYTHONPATH": str(paths.ROOT), **(env or {})}
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments], env=os.environ | own, **streams
        )


@pytest.fixture
def small_course(tmp_path, monkeypatch, capsys):
    """A small course of its own."""
    return SmallCourse(tmp_path, monkeypatch, capsys)
