"""A ring in which every rank begins to receive before it waits for its send."""

import torch
import torch.distributed as dist


def ring_all_reduce(tensor: torch.Tensor) -> None:
    """Sum `tensor`, (n,), over all ranks, in place."""
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = tensor.tensor_split(world)
    for step in range(2 * (world - 1)):
        going, mine = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        theirs = torch.empty_like(mine)
        messages = [
            dist.P2POp(dist.irecv, theirs, (rank - 1) % world),
            dist.P2POp(dist.isend, going, (rank + 1) % world),
        ]
        for work in dist.batch_isend_irecv(messages):  # both begin before either is waited for
            work.wait()
        mine.copy_(mine + theirs if step < world - 1 else theirs)
