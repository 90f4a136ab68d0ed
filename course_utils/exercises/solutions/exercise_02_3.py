"""A gate for the parameter server: stale synchronous parallel (Ho et al. 2013)."""

from collections.abc import Iterable


class StalenessBound:
    """Lets a worker run at most `bound` steps ahead of the slowest one that is still there."""

    def __init__(self, workers: Iterable[int], bound: int) -> None:
        self.pushes = dict.fromkeys(workers, 0)
        self.bound = bound

    def may_start(self, worker: int) -> bool:
        """Whether `worker` is close enough to the slowest to start its next step."""
        return self.pushes[worker] - min(self.pushes.values()) <= self.bound

    def pushed(self, worker: int) -> None:
        """Count a step of `worker`."""
        self.pushes[worker] += 1

    def left(self, worker: int) -> None:
        """Wait for `worker` no longer."""
        del self.pushes[worker]
