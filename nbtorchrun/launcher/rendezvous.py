"""How the machines of a run meet, and how torchrun learns there that the run was stopped.

`torchrun --standalone` opens its stores on all interfaces, without authentication. For a run on one
machine, torchrun gets a store on 127.0.0.1 instead; the ranks join the same store.
"""

import signal
import socket
import threading

from torch.distributed import TCPStore
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousParameters,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous

BACKEND = "course"
LOOPBACK = "127.0.0.1"


class LoopbackRendezvous(StaticTCPRendezvous):
    """Torchrun's meeting of a fixed number of machines, here of one, with a store of our own."""

    def __init__(self, run_id: str):
        # Bind first and hand the socket over: no other process can take the port in between.
        listener = socket.create_server((LOOPBACK, 0))
        port = listener.getsockname()[1]
        super().__init__(LOOPBACK, port, rank=0, world_size=1, run_id=run_id, timeout=60)
        self._store = TCPStore(  # the base class would open one on all interfaces
            LOOPBACK,
            port,
            is_master=True,
            timeout=self.timeout,
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )

    def get_backend(self) -> str:
        """The name by which torchrun asks for it."""
        return BACKEND

    def shutdown(self) -> bool:
        """Close the store with the run, not whenever the garbage collector gets to it."""
        self._store = None
        return True


def register(stop: threading.Event) -> None:
    """Make `BACKEND` known to torchrun, which ends the ranks of a run once `stop` is set.

    Whenever it has looked at its ranks, torchrun asks whether more machines wait to join. Then no
    rank is half started, as it may be when a signal arrives.
    """

    def handler_for(asked: RendezvousParameters) -> RendezvousHandler:
        handler = LoopbackRendezvous(asked.run_id) if asked.max_nodes == 1 else torchruns_own(asked)
        waiting = handler.num_nodes_waiting

        def waiting_unless_stopped() -> int:
            if stop.is_set():
                raise SignalException("the run was stopped", signal.SIGTERM)
            return waiting()

        handler.num_nodes_waiting = waiting_unless_stopped
        return handler

    rendezvous_handler_registry.register(BACKEND, handler_for)


def torchruns_own(asked: RendezvousParameters) -> RendezvousHandler:
    """Torchrun's own handler for several machines, whose store listens on the network."""
    asked.backend = "c10d"
    return rendezvous_handler_registry.create_handler(asked)
