"""Ports of this machine."""

import socket


def free_port() -> int:
    """A port of the loopback that nobody uses now; somebody else may take it a moment later."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # port 0: the system chooses
        return probe.getsockname()[1]
