"""Buckets that leave nobody behind: what counts is what is packed, and not the room."""


def buckets(sizes: list[int], cap: int) -> list[list[int]]:
    """The numbers of the tensors in each bucket: what counts is what is packed, not the room."""
    found, room = [], 0
    for number, size in enumerate(sizes):
        if not found or size > room:
            found.append([])
            room = cap
        found[-1].append(number)
        room -= size
    return found
