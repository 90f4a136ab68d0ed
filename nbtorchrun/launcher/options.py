"""How a script is launched: one list of options, for functions, magics and commands alike."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbtorchrun.errors import InputError

MAX_RANKS = 64  # on one machine; more is a typing error
FLAGS = ("nproc", "timeout", "stall", "nnodes", "rdzv_endpoint")  # of the magics and of demos


def whole_number(text: str) -> int:
    """Read a whole number from a command line."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


@dataclass(frozen=True)
class Options:
    """The options of a launch; `nbtorchrun.launch` says what each of them means.

    Raises:
        InputError: a value is invalid; the error says in one sentence which and why.
    """

    nproc: int = 2
    timeout: float = 120.0
    stall: float = 30.0
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

        if str((self.env or {}).get("PYTHONOPTIMIZE", "")) not in ("", "0"):
            raise InputError(
                "env sets PYTHONOPTIMIZE, with which Python leaves every assert of the script out: "
                "launch it without this variable"
            )

    @property
    def meeting(self) -> list[str]:
        """Torchrun's options for where the machines meet, as you would type them."""
        if self.nnodes == 1:
            return ["--standalone"]
        return [
            *("--nnodes", str(self.nnodes), "--rdzv-backend", "c10d"),
            *("--rdzv-endpoint", str(self.rdzv_endpoint)),
        ]

    @property
    def notice(self) -> str:
        """What to say before a run over several machines; '' for one machine."""
        if self.nnodes == 1:
            return ""
        return (
            f"{self.nnodes} machines meet at {self.rdzv_endpoint}: "
            "this run listens on the network, without a password"
        )


def add_flags(
    parser: Any, nproc: int | None = Options.nproc, timeout: float = Options.timeout
) -> None:
    """Add `FLAGS` to an argparse parser or group; two of them may have other defaults there."""
    stall, nnodes = Options.stall, Options.nnodes
    number, seconds = {"metavar": "N", "type": whole_number}, {"metavar": "S", "type": float}
    parser.add_argument(
        "--nproc-per-node",
        "-n",
        dest="nproc",
        default=nproc,
        help="ranks on this machine",
        **number,
    )
    parser.add_argument(
        "--timeout",
        default=timeout,
        help=f"stop after S seconds (default: {timeout:g})",
        **seconds,
    )
    parser.add_argument(
        "--stall",
        default=stall,
        help=f"stop after S idle seconds (default: {stall:g})",
        **seconds,
    )
    parser.add_argument(
        "--nnodes",
        default=nnodes,
        help=f"number of machines (default: {nnodes})",
        **number,
    )
    parser.add_argument(
        "--rdzv-endpoint",
        metavar="HOST:PORT",
        help="where the machines meet; the same on each of them",
    )


def flags(values: argparse.Namespace) -> dict[str, Any]:
    """What a command line gave for the options that are flags, by the names of `Options`."""
    return {name: getattr(values, name) for name in FLAGS}


def _is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
