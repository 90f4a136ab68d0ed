"""Buckets that leave no tensor behind: they move on by what is packed, not by the room."""


def buckets(sizes: list[int], cap: int) -> list[list[int]]:
    """The numbers of the tensors in each bucket."""
    found, room = [], 0
    for number, size in enumerate(sizes):
        if not found or size > room:
            found.append([])
            room = cap
        found[-1].append(number)
        room -= size
    return found
