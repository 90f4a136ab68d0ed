"""Runs all that one GPU can run, and writes what became of it: `python -m tests.gpu.report`.

It takes at most eight minutes: what does not begin in time is listed as not begun.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils import paths
from course_utils.files import script_path
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path
from nbtorchrun.runs import Run
from tests.standin.short_demos import SMALL, WITHOUT
from tools import demos

DEMOS = demos.find_all()
HERE = Path(__file__).resolve().parent
REPORT = paths.ROOT / "docs" / "gpu.md"
BUDGET = 480.0  # seconds
SHARED = ("ddp", "fsdp", "transformer", "resnet", "experts")
BEGIN, END = "<!-- what one card ran -->\n", "<!-- end -->\n"
COMMAND = ".venv/bin/python -m tests.gpu.report"


@dataclass(frozen=True)
class Task:
    """One run: what it shows, its script and arguments, and how it is launched."""

    what: str
    script: Path
    arguments: tuple[str, ...]
    nproc: int = 1
    warm: bool = True


def tasks() -> Iterator[Task]:
    """All that one card can run, the most telling first."""
    script_path("transformer.py"), script_path("flops.py")
    yield Task("the lab, its speed and MFU", HERE / "lab.py", ())
    for warm in (True, False):
        how = "warm" if warm else "cold"
        script = script_path(DEMOS["collectives"].main.file)
        yield Task(f"`collectives` on NCCL, {how}", script, (), warm=warm)
        yield shared("collectives", f", {how}", warm)
    for name, demo in DEMOS.items():
        if name not in WITHOUT | {"collectives"} and 1 in demos.fitting_ranks(demo):
            yield Task(f"`{name}` on NCCL", script_path(demo.main.file), _small(name))
    yield from map(shared, SHARED)


def shared(name: str, how: str = "", warm: bool = True) -> Task:
    """A demo on two ranks that share the card."""
    arguments = (str(script_path(DEMOS[name].main.file)), *_small(name))
    return Task(f"`{name}`, two ranks on gloo{how}", HERE / "on_one_card.py", arguments, 2, warm)


def _small(name: str) -> tuple[str, ...]:
    return tuple(SMALL.get(name, "").split())


def launched(task: Task, left: float) -> Run:
    """Run a task, for at most `left` seconds."""
    options = Options(nproc=task.nproc, timeout=min(left, 120), stall=60, warm=task.warm)
    return launch_path(task.script, task.arguments, options)


def rows(run: Callable[[Task, float], Run], budget: float = BUDGET) -> Iterator[str]:
    """A row of the report for each task; then the lab's own."""
    began, speeds = time.monotonic(), []
    yield "| what | result | seconds |\n| --- | --- | --- |\n"
    for task in tasks():
        left = budget - (time.monotonic() - began)
        if left < 1:
            yield f"| {task.what} | not begun: the {budget:g} s were over | |\n"
            continue
        done = run(task, left)
        said = "ok" if done.ok else done.verdict.headline.replace("|", "/")
        yield f"| {task.what} | {said} | {done.seconds:.1f} |\n"
        speeds += [row for row in done.reports if "mfu" in row]
    yield "\n| the lab on one card | tokens/s | TFLOP/s by the formula | MFU |\n"
    yield "| --- | --- | --- | --- |\n"
    for row in speeds:
        how = ("bfloat16" if row["bf16"] else "float32") + ", compiled" * row["compiled"]
        mfu = "no peak known for this card" if row["mfu"] is None else f"{row['mfu']:.1%}"
        numbers = f"{row['tokens']:,.0f} | {row['flops'] / 1e12:.1f} | {mfu}"
        yield f"| {row['card']}, {how} | {numbers} |\n"


def write(text: str, into: Path = REPORT) -> None:
    """Replace the part of the document that holds the last report."""
    before, _, rest = into.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    into.write_text(before + BEGIN + text + END + after, encoding="utf-8")


def main() -> int:
    """Write the report, and print it; 1 if there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        print("there is no GPU that torch can use: ./run.sh doctor says why", file=sys.stderr)
        return 1
    card = f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n\n"
    text = card
    for row in rows(launched):
        print(row, end="", flush=True)
        text += row
    write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
