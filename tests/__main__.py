"""All tests: side by side; notebooks and the browser; what must be alone.

In CI the tests side by side come in two parts. The first runs with nothing but what `./run.sh`
installs, as on a student's machine. Then the extras are installed, and what needs them runs.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests import ci

ROOT = Path(__file__).resolve().parent.parent
# The later ones take longer; short ones at the end let both workers finish at about the same time.
NOTEBOOKS = sorted((str(path) for path in ROOT.glob("notebooks/*.ipynb")), reverse=True)
# Three on two cores: many wait, for a rank that hangs, for one that starts, or for a link.
SIDE = ("-n", "3", "--dist", "worksteal", "--ignore=tests/browser", "--ignore=tests/alone", "tests")
PASSES = [
    # A notebook's cells stay in one worker. The browser comes first, because it takes longest.
    # Two on two cores: the ranks of three notebooks would spin while they wait for each other.
    ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "tests/browser", *NOTEBOOKS),
    ("tests/alone",),
]


def main() -> int:
    """Run every pass, also after one that failed; return the first exit status that is not 0."""
    if os.environ.get("CI") == "true":
        statuses = [pytest(*SIDE, "-m", "not extra")]
        ci.main()
        statuses.append(pytest(*SIDE, "-m", "extra"))
    else:
        statuses = [pytest(*SIDE)]
    statuses += [pytest(*arguments) for arguments in PASSES]
    return next(filter(None, statuses), 0)


def pytest(*arguments: str) -> int:
    """Run pytest in a process of its own; return its exit status."""
    return subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
