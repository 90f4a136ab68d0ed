"""All tests, in three passes: side by side; notebooks, two at a time; what is alone.

A notebook times what it claims, yet has to hold on a machine that has other work too, as a
student's has. What fails is tried once more by itself, a notebook as a whole: two ranks of a test
on two cores that another test takes too may miss a moment they have when alone. What fails again
has failed. What passes then is named, for it is unsteady and wants mending.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PASSES = [
    # Three on two cores: many of them wait, for a rank that hangs or for one that starts.
    ("-n", "3", "--dist", "worksteal", "--ignore=tests/browser", "--ignore=tests/alone", "tests"),
    ("-n", "2", "-p", "tests.longest_first", "tests/browser", "notebooks"),
    ("tests/alone",),
]
SOME_FAILED = 1  # pytest's exit status; others say that it could not run


def main() -> int:
    """Run all passes; return the exit status of what counts."""
    statuses = [run_with_second_try(arguments) for arguments in PASSES]
    return next(filter(None, statuses), 0)


def run_with_second_try(arguments: tuple[str, ...]) -> int:
    """Run one pass, and once more what failed in it."""
    status = pytest("--cache-clear", *arguments)
    if status != SOME_FAILED:
        return status
    failed = failures()
    say(f"{len(failed)} failed, and will be tried once more, one by one")
    status = pytest(*failed)
    again = failures()
    if unsteady := [each for each in failed if each not in again]:
        say("passed by themselves, so they are unsteady:", *unsteady)
    return status


def pytest(*arguments: str) -> int:
    """Run pytest in a process of its own; return its exit status."""
    return subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=ROOT)


def failures() -> list[str]:
    """What failed in pytest's last run, by node id; of a notebook's cells the whole notebook."""
    noted = json.loads((ROOT / ".pytest_cache/v/cache/lastfailed").read_text())
    return list(dict.fromkeys(map(as_a_whole, noted)))  # a dict keeps the order without doubles


def is_cell(node: str) -> bool:
    """Whether a node id is that of a notebook's cell, which nbval runs."""
    return ".ipynb::" in node


def as_a_whole(node: str) -> str:
    """The id of what can be run by itself: of a cell the notebook, for it needs those before it."""
    return node.split("::")[0] if is_cell(node) else node


def say(*lines: str) -> None:
    """Print lines that stand out in the log."""
    print("run.sh test:", "\n  ".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
