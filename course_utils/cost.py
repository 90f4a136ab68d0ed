"""What communication and training cost: the formulas, their sources, and fits of their constants.

N is the number of ranks and S the size in bytes. A collective takes
`messages * alpha + volume * S * beta + combined * S * gamma` seconds: so many messages one after
another, so many times S sent in a row, so many times S combined (Hockney 1994; Thakur 2005).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ADAM_BYTES = 12  # a parameter in mixed precision: fp32 copy, momentum, variance (ZeRO, section 3.1)


@dataclass(frozen=True)
class Costs:
    """The constants of a machine.

    Attributes:
        alpha: seconds that a message takes, however short it is (latency).
        beta: seconds that a byte takes on a link in one direction; 1 / bandwidth.
        gamma: seconds that combining a byte with another takes.
    """

    alpha: float
    beta: float
    gamma: float = 0.0


class Terms(NamedTuple):
    """How often each constant is paid: messages in a row, and multiples of S."""

    messages: float
    volume: float
    combined: float


EXCHANGE = Terms(1, 1, 0)  # every rank sends to one neighbour and receives from the other
ADDITION = Terms(0, 0, 1)


def terms(algorithm: str, ranks: int) -> Terms:
    """What an algorithm costs on the rank that has most to do.

    Args:
        algorithm: naive, tree, ring or halving_doubling, each an all-reduce; or reduce_scatter or
            all_gather, each around a ring; or all_to_all, each part straight to its rank; or
            broadcast or reduce, along a chain, whose pieces follow each other so closely that only
            one link's time counts.
        ranks: N.

    Sources: naive by counting; ring: Patarasuk and Yuan 2009; tree and halving-doubling, also for
    N that is no power of two: Thakur, Rabenseifner and Gropp 2005; the volumes of the rest:
    nccl-tests, doc/PERFORMANCE.md.

    Raises:
        ValueError: an algorithm that is none of these, or fewer ranks than 1.
    """
    if ranks < 1:
        raise ValueError(f"the number of ranks must be 1 or more, not {ranks}")
    others, share = ranks - 1, (ranks - 1) / ranks
    levels = others.bit_length()  # log2(N), rounded up
    power = 1 << (ranks.bit_length() - 1)  # the largest power of two up to N
    fold = power != ranks  # the rest hands its values over first, and gets the result last
    doublings, power_share = power.bit_length() - 1, (power - 1) / power
    every = {
        "naive": Terms(2 * others, 2 * others, others),
        "tree": Terms(2 * levels, 2 * levels, levels),
        "ring": Terms(2 * others, 2 * share, share),
        "halving_doubling": Terms(
            2 * doublings + 2 * fold, 2 * power_share + 2 * fold, power_share + fold
        ),
        "reduce_scatter": Terms(others, share, share),
        "all_gather": Terms(others, share, 0),
        "all_to_all": Terms(others, share, 0),
        "broadcast": Terms(others, min(1, others), 0),
        "reduce": Terms(others, min(1, others), min(1, others)),
    }
    if algorithm not in every:
        raise ValueError(f"no formula for {algorithm!r}: there are {', '.join(every)}")
    return every[algorithm]


def seconds(paid: Terms, size: float, costs: Costs) -> float:
    """What `paid` costs for `size` bytes."""
    per_byte = paid.volume * costs.beta + paid.combined * costs.gamma
    return paid.messages * costs.alpha + size * per_byte


def predict(algorithm: str, ranks: int, size: float, costs: Costs) -> float:
    """Seconds that an algorithm takes for `size` bytes on `ranks` ranks."""
    return seconds(terms(algorithm, ranks), size, costs)


def crossover(one: str, other: str, ranks: int, costs: Costs) -> float | None:
    """The size in bytes from which on `other` is faster than `one`, or the other way round.

    None where one of them is at least as fast at every size.
    """
    ours, theirs = terms(one, ranks), terms(other, ranks)
    fixed = seconds(ours, 0, costs) - seconds(theirs, 0, costs)
    per_byte = seconds(ours, 1, costs) - seconds(theirs, 1, costs) - fixed
    return -fixed / per_byte if fixed * per_byte < 0 else None


def fit(measured: Iterable[tuple[Terms, float, float]]) -> Costs:
    """The constants that explain measurements with the least relative error.

    Args:
        measured: (terms, size in bytes, seconds) of each; constants that none of them depends on
            come out as 0.
    """
    rows, scale = [], np.array([1.0, 1e-6, 1e-6])  # columns of like size
    for paid, size, took in measured:
        rows.append([paid.messages / took, paid.volume * size / took, paid.combined * size / took])
    found = np.linalg.pinv(np.array(rows) * scale) @ np.ones(len(rows))
    return Costs(*(found * scale).clip(min=0).tolist())


def busbw(collective: str, ranks: int, size: float, took: float) -> float:
    """Bytes per second of a link: algbw times a factor (nccl-tests, doc/PERFORMANCE.md)."""
    name = "ring" if collective == "all_reduce" else collective
    return terms(name, ranks).volume * size / took


def zero_bytes(stage: int, parameters: float, ranks: int) -> float:
    """Bytes that training with Adam in mixed precision keeps on each rank.

    Args:
        stage: 0 for plain data parallel; 1, 2 and 3 shard the optimizer's state, then also the
            gradients, then also the parameters (ZeRO, Rajbhandari et al. 2020, section 5).
        parameters: P, their number.
        ranks: N.
    """
    sharded = (0, ADAM_BYTES, ADAM_BYTES + 2, ADAM_BYTES + 4)[stage]
    return parameters * (ADAM_BYTES + 4 - sharded + sharded / ranks)


def zero_volume(stage: int, parameters: float, ranks: int) -> float:
    """Values that each rank sends in a step (ZeRO, section 7): 2P, and 3P for stage 3."""
    return (3 if stage == 3 else 2) * parameters * (ranks - 1) / ranks


def pipeline_bubble(stages: int, microbatches: int, interleaved: int = 1) -> float:
    """Idle time over ideal time (Narayanan et al. 2021, section 2.2)."""
    return (stages - 1) / (interleaved * microbatches)


def tensor_parallel_values(batch: int, sequence: int, hidden: int, ranks: int) -> float:
    """Values that each rank sends for one layer in a step (Narayanan et al. 2021, section 3.2)."""
    return 8 * batch * sequence * hidden * (ranks - 1) / ranks


def flops_per_token(parameters: float, layers: int, heads: int, width: int, length: int) -> float:
    """FLOPs of training on one token (PaLM, Chowdhery et al. 2022, appendix B).

    Args:
        parameters: N.
        layers: L.
        heads: H.
        width: Q, of one head.
        length: T, of the sequence.
    """
    return 6 * parameters + 12 * layers * heads * width * length
