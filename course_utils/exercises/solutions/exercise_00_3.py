"""Bus bandwidth, after nccl-tests' PERFORMANCE.md."""


def busbw(collective: str, size: int, seconds: float, world_size: int) -> float:
    """Bus bandwidth in bytes per second of a collective over `size` bytes."""
    share = (world_size - 1) / world_size
    factors = {
        "all_reduce": 2 * share,
        "reduce_scatter": share,
        "all_gather": share,
        "all_to_all": share,
        "broadcast": 1,
        "reduce": 1,
    }
    if collective not in factors:
        raise ValueError(f"no factor is known for {collective!r}: choose from {', '.join(factors)}")
    return size / seconds * factors[collective]
