"""An all-gather around a ring: what came in one step is passed on in the next."""

import torch
import torch.distributed as dist


def ring_all_gather(tensor: torch.Tensor) -> None:
    """Fill `tensor`, (n,), in place: rank r brings its chunk (r + 1) mod N."""
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = tensor.tensor_split(world)
    for step in range(world - 1):
        messages = [
            dist.P2POp(dist.irecv, chunks[(rank - step) % world], (rank - 1) % world),
            dist.P2POp(dist.isend, chunks[(rank + 1 - step) % world], (rank + 1) % world),
        ]
        for work in dist.batch_isend_irecv(messages):
            work.wait()
