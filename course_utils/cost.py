"""What communication costs: the formulas, their sources, and fits of their constants.

N is the number of ranks and S the size in bytes. A collective takes
`messages * alpha + volume * S * beta + combined * S * gamma` seconds: the messages that one rank
sends one after another, and how many times S it sends and combines (Hockney 1994; Thakur 2005).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Costs:
    """The constants of a machine.

    Attributes:
        alpha: seconds per message, regardless of size (latency).
        beta: seconds per byte on a link in one direction; 1 / bandwidth.
        gamma: seconds to combine one byte with another.
    """

    alpha: float
    beta: float
    gamma: float = 0.0


class Terms(NamedTuple):
    """How often each constant counts: messages one after another, and multiples of S."""

    messages: float
    volume: float
    combined: float


EXCHANGE = Terms(1, 1, 0)  # every rank sends to one neighbour and receives from the other
ADDITION = Terms(0, 0, 1)


def terms(algorithm: str, ranks: int) -> Terms:
    """What an algorithm costs on the busiest rank.

    Args:
        algorithm: the all-reduces naive, tree, ring, halving_doubling and recursive_doubling;
            reduce_scatter and all_gather around a ring; all_to_all, where each part goes straight
            to its rank; broadcast and reduce along a chain, in pieces, so that only one link's
            time counts.
        ranks: N.

    Sources: naive by counting; ring: Patarasuk and Yuan 2009; tree, halving-doubling and recursive
    doubling, also for N that is not a power of two: Thakur, Rabenseifner and Gropp 2005; the
    volumes of the rest: nccl-tests, doc/PERFORMANCE.md.

    Raises:
        ValueError: there is no such algorithm, or fewer than 1 rank.
    """
    if ranks < 1:
        raise ValueError(f"the number of ranks must be 1 or more, not {ranks}")
    others, share = ranks - 1, (ranks - 1) / ranks
    levels = others.bit_length()  # log2(N), rounded up
    power = 1 << (ranks.bit_length() - 1)  # the largest power of two up to N
    fold = power != ranks  # the other ranks hand over their values first, and get the sum last
    doublings, power_share = power.bit_length() - 1, (power - 1) / power
    every = {
        "naive": Terms(2 * others, 2 * others, others),
        "tree": Terms(2 * levels, 2 * levels, levels),
        "ring": Terms(2 * others, 2 * share, share),
        "halving_doubling": Terms(
            2 * doublings + 2 * fold, 2 * power_share + 2 * fold, power_share + fold
        ),
        "recursive_doubling": Terms(doublings + 2 * fold, doublings + 2 * fold, doublings + fold),
        "reduce_scatter": Terms(others, share, share),
        "all_gather": Terms(others, share, 0),
        "all_to_all": Terms(others, share, 0),
        "broadcast": Terms(others, min(1, others), 0),
        "reduce": Terms(others, min(1, others), min(1, others)),
    }
    if algorithm not in every:
        raise ValueError(f"no formula for {algorithm!r}: choose one of {', '.join(every)}")
    return every[algorithm]


def seconds(paid: Terms, size: float, costs: Costs) -> float:
    """Seconds that `paid` takes for `size` bytes."""
    per_byte = paid.volume * costs.beta + paid.combined * costs.gamma
    return paid.messages * costs.alpha + size * per_byte


def predict(algorithm: str, ranks: int, size: float, costs: Costs) -> float:
    """Seconds that an algorithm takes for `size` bytes on `ranks` ranks."""
    return seconds(terms(algorithm, ranks), size, costs)


def fit(measured: Iterable[tuple[Terms, float, float]]) -> Costs:
    """The constants that fit measurements with the least relative error.

    Args:
        measured: (terms, size in bytes, seconds) for each measurement. A constant that no
            measurement depends on comes out as 0.
    """
    rows, scale = [], np.array([1.0, 1e-6, 1e-6])  # columns of similar size
    for paid, size, took in measured:
        rows.append([paid.messages / took, paid.volume * size / took, paid.combined * size / took])
    found = np.linalg.pinv(np.array(rows) * scale) @ np.ones(len(rows))
    return Costs(*(found * scale).clip(min=0).tolist())


def busbw(collective: str, ranks: int, size: float, took: float) -> float:
    """Bytes per second of a link: algbw times a factor (nccl-tests, doc/PERFORMANCE.md)."""
    name = "ring" if collective == "all_reduce" else collective
    return terms(name, ranks).volume * size / took
