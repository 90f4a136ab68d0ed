"""All tests: side by side; notebooks and the browser; what must be alone.

In CI the tests side by side come in two parts. The first runs with nothing but what `./run.sh`
installs, as on a student's machine. Then the extras are installed, and what needs them runs.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from tests import ci

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"  # of each pass, as JUnit's XML
# The later ones take longer; short ones at the end let both workers finish at about the same time.
NOTEBOOKS = sorted((str(path) for path in ROOT.glob("notebooks/*.ipynb")), reverse=True)
NOTEBOOKS.append(str(ROOT / "nbtorchrun" / "example.ipynb"))
# Three on two cores: many wait, for a rank that hangs, for one that starts, or for a link.
SIDE = ("-n", "3", "--dist", "worksteal", "--ignore=tests/browser", "--ignore=tests/alone", "tests")
PASSES = [
    # A notebook's cells stay in one worker. The browser comes first, because it takes longest.
    # Two on two cores: the ranks of three notebooks would spin while they wait for each other.
    ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "tests/browser", *NOTEBOOKS),
    ("tests/alone",),
]


def main() -> int:
    """Run every pass, also after one that failed, and list what failed in all of them.

    Returns:
        the first exit status that is not 0.
    """
    shutil.rmtree(REPORTS, ignore_errors=True)
    if os.environ.get("CI") == "true":
        statuses = [pytest(*SIDE, "-m", "not extra")]
        ci.main()
        statuses.append(pytest(*SIDE, "-m", "extra"))
    else:
        statuses = [pytest(*SIDE)]
    statuses += [pytest(*arguments) for arguments in PASSES]
    for failure in failures():
        print("FAILED", failure)
    return next(filter(None, statuses), 0)


def pytest(*arguments: str) -> int:
    """Run pytest in a process of its own, with a report of its own; return its exit status."""
    report = REPORTS / f"{len(list(REPORTS.glob('*.xml')))}.xml"
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *arguments]
    return subprocess.call(command, cwd=ROOT)


def failures() -> Iterator[str]:
    """Each test that failed in some pass, with the first line of its error."""
    for report in sorted(REPORTS.glob("*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            for said in (*case.iter("failure"), *case.iter("error")):
                first = said.get("message", "").partition("\n")[0]
                yield f"{case.get('classname')}::{case.get('name')}: {first}"


if __name__ == "__main__":
    sys.exit(main())
