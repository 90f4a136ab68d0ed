"""How a script is launched: one list of options, for functions, magics and commands alike."""

import argparse
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from course_utils.errors import InputError

MAX_RANKS = 64  # on one machine; more is a typing error


def whole_number(text: str) -> int:
    """Read a whole number from a command line."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _flag(default: Any, help: str, *names: str, metavar: str, type: Callable = str) -> Any:
    """A field that is also a flag of the magics and of `./run.sh demo`."""
    words = {"help": help, "metavar": metavar, "type": type}
    return field(default=default, metadata={"names": names, "words": words})


@dataclass(frozen=True)
class Options:
    """The options of a launch.

    Attributes:
        nproc: ranks on this machine.
        timeout: seconds after which the run is stopped and called hung.
        stall: seconds without any rank computing, printing or reporting after which the run is
            stopped and called hung.
        warm: fork the ranks from a process that has torch imported (0.1 s) instead of starting
            each as a new Python (some seconds).
        env: environment variables for the ranks, beside those of this process.
        show: print what the ranks say.
        name: what the notebook calls the Run.
        nnodes: number of machines; the same call is made on each of them.
        rdzv_endpoint: where they meet, as `host:port`.

    Raises:
        InputError: a value is invalid; the error says in one sentence which and why.
    """

    nproc: int = _flag(
        2, "ranks on this machine", "--nproc-per-node", "-n", metavar="N", type=whole_number
    )
    timeout: float = _flag(120.0, "stop after S seconds", "--timeout", metavar="S", type=float)
    stall: float = _flag(30.0, "stop after S idle seconds", "--stall", metavar="S", type=float)
    warm: bool = True
    env: Mapping[str, Any] | None = None
    show: bool = True
    name: str = "run"
    nnodes: int = _flag(1, "number of machines", "--nnodes", metavar="N", type=whole_number)
    rdzv_endpoint: str | None = _flag(
        None,
        "where the machines meet; the same on each of them",
        "--rdzv-endpoint",
        metavar="HOST:PORT",
    )

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


def add_flags(parser: Any, **defaults: Any) -> None:
    """Add the options that are flags to an argparse parser or group.

    Args:
        parser: it gets one argument per flag, named as the field.
        defaults: by field name, for flags whose default differs from that of `Options`.
    """
    for option in fields(Options):
        if option.metadata:
            default = defaults.get(option.name, option.default)
            words = dict(option.metadata["words"])
            if default is not None:
                words["help"] += f" (default: {default:g})"
            names = option.metadata["names"]
            parser.add_argument(*names, dest=option.name, default=default, **words)


def flags(values: argparse.Namespace) -> dict[str, Any]:
    """What a command line gave for the options that are flags, by field name."""
    return {f.name: getattr(values, f.name) for f in fields(Options) if f.metadata}


def takes_options(function: Callable) -> Callable:
    """Show the options as parameters of a function that passes `**options` on to `Options`."""
    parameters = list(inspect.signature(function).parameters.values())[:-1]
    options = inspect.signature(Options).parameters.values()
    parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    function.__signature__ = inspect.Signature(parameters)
    return function


def _is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
