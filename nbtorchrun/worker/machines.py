"""Machines that meet choose the same back end, even if only some of them have GPUs."""

import os
from typing import Any


def agree_on_a_device(own: str) -> dict[str, Any]:
    """Let every rank use the CPU if one of them, on any machine, has no GPU of its own.

    There is no group yet, so the ranks tell each other through the store where they meet.

    Args:
        own: the kind of this rank's device, "cuda" or "cpu".

    Returns:
        The options with which `init_process_group` uses that same store; none on one machine,
        where all ranks see the same GPUs.
    """
    world = int(os.environ["WORLD_SIZE"])
    if world == int(os.environ.get("LOCAL_WORLD_SIZE", world)):
        return {}
    import torch.distributed as dist

    store, rank, world = next(dist.rendezvous("env://"))
    devices = dist.PrefixStore("nbtorchrun/devices", store)
    devices.set(str(rank), own)
    if any(devices.get(str(other)) == b"cpu" for other in range(world)):
        os.environ["NBTORCHRUN_DEVICE"] = "cpu"
    return {"store": dist.PrefixStore("default_pg", store), "rank": rank, "world_size": world}
