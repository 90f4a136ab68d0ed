"""How a script is to be launched: checked once, used everywhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from course_utils.errors import InputError

MAX_RANKS = 64  # on one machine; more is a slip of the finger


@dataclass(frozen=True)
class Options:
    """The options of a launch, as `launch` describes them.

    Raises:
        InputError: one that cannot be, in one sentence.
    """

    nproc: int = 2
    timeout: float = 120
    stall: float = 30
    warm: bool = True
    env: Mapping[str, Any] | None = None
    show: bool = True
    name: str = "run"
    nnodes: int = 1
    rdzv_endpoint: str | None = None

    def __post_init__(self) -> None:
        if not _is_whole(self.nproc, 1, MAX_RANKS):
            raise InputError(
                "the number of ranks must be a whole number from 1 to "
                f"{MAX_RANKS}, not {self.nproc!r}"
            )
        for name in ("timeout", "stall"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise InputError(f"the {name} must be a number of seconds above 0, not {value!r}")
        if not _is_whole(self.nnodes, 1, 10_000):
            raise InputError(f"the number of machines must be 1 or more, not {self.nnodes!r}")
        if self.nnodes > 1 and not re.fullmatch(r"[^\s:/]+:\d+", self.rdzv_endpoint or ""):
            raise InputError(
                f"{self.nnodes} machines need a place to meet: --rdzv-endpoint HOST:PORT, the same "
                "on each, with the address of one of them"
            )
        if self.nnodes == 1 and self.rdzv_endpoint:
            raise InputError("--rdzv-endpoint is for several machines: say how many with --nnodes")

    @property
    def meeting(self) -> list[str]:
        """Torchrun's options for where the machines meet, as one would type them."""
        if self.nnodes == 1:
            return ["--standalone"]
        return [
            *("--nnodes", str(self.nnodes), "--rdzv-backend", "c10d"),
            *("--rdzv-endpoint", str(self.rdzv_endpoint)),
        ]

    @property
    def notice(self) -> str:
        """What is said before a run over several machines; '' for one machine."""
        if self.nnodes == 1:
            return ""
        return (
            f"{self.nnodes} machines meet at {self.rdzv_endpoint}: "
            "this run listens on the network, without a password"
        )


def _is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
