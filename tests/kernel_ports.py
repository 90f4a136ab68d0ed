"""Ports for the kernels that tests start; run as a script, a JupyterLab whose kernels use them.

Jupyter chooses a kernel's ports, and the kernel binds them a second later. If a rank of another
test is given one of them meanwhile, the kernel dies: nbval then fails, and JupyterLab, which
starts it anew, may wait a minute for an answer of the first.
"""

import contextlib
import os
import random
import socket
import sys

from jupyter_client.connect import LocalPortCache

# Linux gives 32768 and above to whoever asks for any port. Of those below, each of pytest-xdist's
# workers has its own: two kernels that start at the same time cannot be given the same one.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = range(20_000 + 500 * WORKER, 20_500 + 500 * WORKER)


class KernelPorts(LocalPortCache):
    """Chooses ports that the system gives only to a process that names them."""

    def find_available_port(self, ip: str) -> int:
        """A port of `PORTS` that is free, and that no kernel of this process was given."""
        chance = random.SystemRandom()  # a test may have seeded the other one
        while True:
            port = chance.choice(PORTS)
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind((ip, port))
                if port not in self.currently_used_ports:
                    self.currently_used_ports.add(port)
                    return port


def port_for_later() -> int:
    """A port for a process that a test starts; until it binds it, nobody is given it."""
    return KernelPorts().find_available_port("127.0.0.1")


def use() -> None:
    """Let every kernel that this process starts from now on have such ports."""
    KernelPorts.instance()  # a singleton for its base class too, which is what Jupyter asks


if __name__ == "__main__":
    from jupyterlab.labapp import main

    use()
    sys.exit(main())
