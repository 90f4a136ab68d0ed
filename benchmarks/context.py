"""Tokens per second of one layer of attention: three ways over 4 ranks, and one process.

Forward and backward of causal attention with 8 query heads. All ways in turn, round after round,
and compared within each. In "one process", rank 0 computes all of the sequence with one thread, and
the others wait.
"""

import os
import statistics

from benchmarks import ranks

RANKS = 4


def run() -> dict:
    """Seconds of a step, by size and way, a number for each round."""
    done = ranks.measured(ranks.script("context_steps.py"), nproc=RANKS)
    seconds: dict[str, dict[str, list[float]]] = {}
    for row in done.ranks[0].reports:
        seconds.setdefault(row["size"], {}).setdefault(row["way"], []).append(row["seconds"])
    lengths = {row["size"]: row["length"] for row in done.ranks[0].reports}
    place, cores = done.place, os.cpu_count()
    return {"seconds": seconds, "lengths": lengths, "place": place, "cores": cores}


def table(result: dict) -> str:
    """Medians and spreads in tokens per second, and each way compared with one process."""
    lines = []
    for size, ways in result["seconds"].items():
        length = result["lengths"][size]
        lines.append(f"{size:26}{'tokens/s':>10}{'min':>10}{'max':>10}   beside one process")
        for way, seconds in sorted(ways.items()):
            rates = [length / s for s in (statistics.median(seconds), max(seconds), min(seconds))]
            pairs = zip(ways["one process"], seconds, strict=True)
            beside = statistics.median(alone / own for alone, own in pairs)
            spread = "".join(f"{rate:10,.0f}" for rate in rates)
            lines.append(f"  {way:24}{spread}   {beside:.2f} times as fast")
    rounds = len(next(iter(next(iter(result["seconds"].values())).values())))
    place = f"{RANKS} ranks, {result['place']}, {rounds} rounds on {result['cores']} cores"
    return "\n".join([*lines, place])
