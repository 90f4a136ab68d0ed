"""Steps per second of notebook 03's versions and of torch's DDP, on 2 ranks, and of one rank.

All ways in turn, round after round, with the same share of the batch on every rank. `one process`
is the step of rank 0 without any message, while rank 1 waits.
"""

import os
import statistics

from benchmarks import ranks


def run() -> dict:
    """Seconds of a step, by model and way, a number for each round."""
    done = ranks.measured(ranks.script("ddp_steps.py"))
    seconds: dict[str, dict[str, list[float]]] = {}
    for row in done.ranks[0].reports:
        seconds.setdefault(row["model"], {}).setdefault(row["way"], []).append(row["seconds"])
    return {"seconds": seconds, "place": done.place, "cores": os.cpu_count()}


def table(result: dict) -> str:
    """Steps per second, and each way compared with torch's DDP.

    Beside it twice: the median of the rounds' ratios, and the ratio of the lower quartiles, which
    a machine that is busy with something else disturbs less.
    """
    lines = []
    for model, ways in result["seconds"].items():
        lines.append(
            f"{model:14}{'steps/s':>9}{'min':>9}{'max':>9}   beside torch's DDP, quartiles"
        )
        for way, seconds in ways.items():
            rates = [1 / statistics.median(seconds), 1 / max(seconds), 1 / min(seconds)]
            spread = "".join(f"{rate:9.2f}" for rate in rates)
            pairs = zip(ways["torch"], seconds, strict=True)
            beside = statistics.median(torch / own for torch, own in pairs)
            quartiles = [statistics.quantiles(times)[0] for times in (ways["torch"], seconds)]
            lines.append(f"  {way:12}{spread}{beside:21.2f}{quartiles[0] / quartiles[1]:11.2f}")
    rounds = len(next(iter(next(iter(result["seconds"].values())).values())))
    lines.append(f"2 ranks, {result['place']}, {rounds} rounds on {result['cores']} cores")
    return "\n".join(lines)
