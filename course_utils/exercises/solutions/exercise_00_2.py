"""An all-gather in which every rank passes on what it got, N - 1 times around the ring."""

import torch
import torch.distributed as dist


def all_gather(tensor: torch.Tensor) -> list[torch.Tensor]:
    """What every rank calls with its tensor (n,): a list of N tensors, entry r is rank r's."""
    rank, world = dist.get_rank(), dist.get_world_size()
    found = [torch.empty_like(tensor) for _ in range(world)]
    found[rank].copy_(tensor)
    for step in range(world - 1):
        held, coming = (rank - step) % world, (rank - step - 1) % world
        messages = [
            dist.P2POp(dist.isend, found[held], (rank + 1) % world),
            dist.P2POp(dist.irecv, found[coming], (rank - 1) % world),
        ]
        for request in dist.batch_isend_irecv(messages):
            request.wait()
    return found
