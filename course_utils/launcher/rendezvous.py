"""A rendezvous for one machine whose only listening socket is on the loopback.

`torchrun --standalone` opens its stores on all interfaces, without authentication. This handler
gives torchrun a store on 127.0.0.1 instead; the ranks join the same store.
"""

import socket

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import rendezvous_handler_registry
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous

BACKEND = "course-loopback"
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
        """The name to give as `--rdzv-backend`."""
        return BACKEND

    def shutdown(self) -> bool:
        """Close the store with the run, not whenever the garbage collector gets to it."""
        self._store = None
        return True


rendezvous_handler_registry.register(BACKEND, lambda asked: LoopbackRendezvous(asked.run_id))
