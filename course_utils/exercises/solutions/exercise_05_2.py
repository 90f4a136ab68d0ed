"""The memory of ZeRO's stages."""


def my_bytes(stage: int, parameters: int, ranks: int, width: int, states: int) -> int:
    """Bytes of parameters, gradients and optimizer state on a rank; stage 0 is DDP."""
    shard = -(-parameters // ranks)  # padded: rounded up
    master = 4 if width < 4 else 0
    return (
        (shard if stage >= 3 else parameters) * width
        + (shard if stage >= 2 else parameters) * width
        + (shard if stage >= 1 else parameters) * (master + 4 * states)
    )
