"""Steps per second of a Transformer split over 2 ranks: ours, and PyTorch's parallelize_module.

The model of notebook 07 and the same batch. All ways in turn, round after round, and compared
within each. Ours makes q, k and v by one product and calls scaled_dot_product_attention; PyTorch's
plans cut the notebook's own modules.
"""

import os
import statistics

from benchmarks import ranks


def run() -> dict:
    """Seconds of a step, by size and way, a number for each round."""
    done = ranks.measured(ranks.script("tp_steps.py"))
    seconds: dict[str, dict[str, list[float]]] = {}
    for row in done.ranks[0].reports:
        seconds.setdefault(row["size"], {}).setdefault(row["way"], []).append(row["seconds"])
    return {"seconds": seconds, "place": done.place, "cores": os.cpu_count()}


def table(result: dict) -> str:
    """Medians and spreads in steps per second, and ours compared with PyTorch's."""
    lines = []
    for size, ways in result["seconds"].items():
        lines.append(f"{size:26}{'steps/s':>9}{'min':>9}{'max':>9}   beside parallelize_module")
        for way, seconds in ways.items():
            rates = [1 / statistics.median(seconds), 1 / max(seconds), 1 / min(seconds)]
            pairs = zip(ways["parallelize_module"], seconds, strict=True)
            beside = statistics.median(theirs / own for theirs, own in pairs)
            spread = "".join(f"{rate:9.2f}" for rate in rates)
            lines.append(f"  {way:24}{spread}   {beside:.2f} times as fast")
    rounds = len(next(iter(next(iter(result["seconds"].values())).values())))
    lines.append(f"2 ranks, {result['place']}, {rounds} rounds on {result['cores']} cores")
    return "\n".join(lines)
