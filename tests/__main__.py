"""All tests, in three passes: side by side; notebooks; what must be alone."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The later ones take longer; short ones at the end let both workers finish at about the same time.
NOTEBOOKS = sorted((str(path) for path in ROOT.glob("notebooks/*.ipynb")), reverse=True)
PASSES = [
    # Three on two cores: many wait, for a rank that hangs, for one that starts, or for a link.
    ("-n", "3", "--dist", "worksteal", "--ignore=tests/browser", "--ignore=tests/alone", "tests"),
    # A notebook's cells stay in one worker. The browser comes first, because it takes longest.
    # Two on two cores: the ranks of three notebooks would spin while they wait for each other.
    ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "tests/browser", *NOTEBOOKS),
    ("tests/alone",),
]


def main() -> int:
    """Run every pass, also after one that failed; return the first exit status that is not 0."""
    statuses = [pytest(*arguments) for arguments in PASSES]
    return next(filter(None, statuses), 0)


def pytest(*arguments: str) -> int:
    """Run pytest in a process of its own; return its exit status."""
    return subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
