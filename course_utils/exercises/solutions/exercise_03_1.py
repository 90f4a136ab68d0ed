"""Buckets under a cap."""


def my_buckets(sizes: list[int], cap: int, first_cap: int) -> list[list[int]]:
    """The places of the parameters, bucket by bucket in the order in which they are sent."""
    buckets: list[list[int]] = []
    room = 0  # bytes that the last bucket still has room for
    for place in reversed(range(len(sizes))):
        if not buckets or sizes[place] > room:
            room = cap if buckets else first_cap
            buckets.append([])
        buckets[-1].append(place)
        room -= sizes[place]  # below 0 after a parameter that is larger than the cap
    return buckets
