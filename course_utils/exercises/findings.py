"""What a probe tells its check, kept apart from what the student's own file reports."""

from typing import Any

from course_utils import worker


def report(**values: Any) -> None:
    """Send named values of this rank to the check; `check.probe` returns these and no others."""
    worker.report(finding=values)
