"""A rendezvous for one machine whose only listening socket is on the loopback.

`torchrun --standalone` opens its stores on all interfaces, without authentication. This handler
gives torchrun a store on 127.0.0.1 instead; the ranks join the same store.
"""

import socket
from datetime import timedelta

from torch.distributed import PrefixStore, TCPStore
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)

BACKEND = "course-loopback"
LOOPBACK = "127.0.0.1"


class LoopbackRendezvous(RendezvousHandler):
    """The meeting of one agent with itself."""

    def __init__(self, run_id: str):
        self._run_id = run_id
        # Bind first and hand the socket over: no other process can take the port in between.
        listener = socket.create_server((LOOPBACK, 0))
        self._port = listener.getsockname()[1]
        self._store = TCPStore(
            LOOPBACK,
            self._port,
            is_master=True,
            timeout=timedelta(seconds=60),
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )

    @property
    def use_agent_store(self) -> bool:
        """The ranks use this store too, so no rank has to open one."""
        return True

    def get_backend(self) -> str:
        """The name to give as `--rdzv-backend`."""
        return BACKEND

    def get_run_id(self) -> str:
        """The id torchrun gave this run."""
        return self._run_id

    def next_rendezvous(self) -> RendezvousInfo:
        """This node is node 0 of 1."""
        store = PrefixStore(self._run_id, self._store)
        return RendezvousInfo(store, 0, 1, RendezvousStoreInfo(LOOPBACK, self._port))

    def is_closed(self) -> bool:
        """The only meeting never closes."""
        return False

    def set_closed(self) -> None:
        """Nothing to close."""

    def num_nodes_waiting(self) -> int:
        """No other node ever waits."""
        return 0

    def shutdown(self) -> bool:
        """Close the store with the run, not whenever the garbage collector gets to it."""
        del self._store
        return True


def register() -> None:
    """Make `--rdzv-backend course-loopback` known to torchrun in this process."""
    rendezvous_handler_registry.register(BACKEND, _create)


def _create(parameters: RendezvousParameters) -> RendezvousHandler:
    return LoopbackRendezvous(parameters.run_id)
