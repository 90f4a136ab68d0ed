"""Torchrun cells for any notebook: live lanes, verdicts, warm ranks, and a meter of bytes.

Imported at first use: a rank needs none of them and starts faster without.
"""

from typing import Any

HOMES = {
    "LaunchError": "nbtorchrun.errors:LaunchError",
    "Stopped": "nbtorchrun.errors:Stopped",
    "configure": "nbtorchrun.settings:configure",
    "launch": "nbtorchrun.launching:launch",
}

__all__ = ["LaunchError", "Stopped", "configure", "launch"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'nbtorchrun' has no attribute {name!r}")
    from pkgutil import resolve_name

    return resolve_name(HOMES[name])


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext nbtorchrun`: the magics, and the process that warm ranks are forked from."""
    from nbtorchrun import magics
    from nbtorchrun.launcher.client import kept_agent

    magics.register(shell)
    if hasattr(shell, "kernel"):  # while the user still reads
        kept_agent()
