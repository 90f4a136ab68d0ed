"""What a test needs beyond what `./run.sh` installs; where it is missing, the test is skipped."""

import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import pytest


def needs(programs: Sequence[str] = (), modules: Sequence[str] = (), why_not: str = "") -> Callable:
    """Mark a test as `extra`: in CI it runs once the extras are installed, after all others.

    Args:
        programs: looked up on PATH; `tests/ci.py` installs their packages.
        modules: of Python; `tests/ci.py` installs them too.
        why_not: another reason why it cannot run here; '' if there is none.
    """
    missing = [name for name in programs if not shutil.which(name)]
    missing += [name for name in modules if not find_spec(name)]
    reason = f"not installed: {', '.join(missing)}" if missing else why_not
    skip = pytest.mark.skipif(bool(reason), reason=reason or "all is there")
    return lambda test: pytest.mark.extra(skip(test))
