"""What this machine has, what a lab needs, and how to mend what is missing.

Needs nothing but Python, so that it also runs where the environment is what is broken. Each part
reads facts, and says in a function of these alone what they mean.
"""

from collections.abc import Callable, Iterator

from course_utils.doctor import environment, helpers, machine, network, torch_and_gpus
from course_utils.doctor.finding import Finding

CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    environment.look,
    torch_and_gpus.look,
    machine.look,
    network.look,
    helpers.look,
    environment.look_at_extras,
)


def doctor() -> int:
    """Print a line for each thing a lab needs; return 1 if a lab would fail, else 0."""
    problems = 0
    for check in CHECKS:
        for finding in check():
            print(finding, flush=True)
            problems += finding.mark == "problem"
    print("\nready" if not problems else f"\nto mend: {problems}")
    return 1 if problems else 0
