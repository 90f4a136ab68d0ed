"""A reduce-scatter around a ring: in each step every rank passes on one chunk."""

import torch
import torch.distributed as dist


def ring_reduce_scatter(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's finished chunk, (rank + 1) mod N, of the sum over all ranks: (m,)."""
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = tensor.tensor_split(world)
    for step in range(world - 1):
        going, mine = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        theirs = torch.empty_like(mine)
        messages = [
            dist.P2POp(dist.irecv, theirs, (rank - 1) % world),
            dist.P2POp(dist.isend, going, (rank + 1) % world),
        ]
        for work in dist.batch_isend_irecv(messages):
            work.wait()
        mine += theirs
    return chunks[(rank + 1) % world]
