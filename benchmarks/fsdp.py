"""Steps per second and peak bytes of notebook 05's FSDP and torch's `fully_shard`, on 2 ranks.

Both in turn, round after round, with the same units. Bytes are those of all tensors of a rank.
"""

import os
import statistics

from benchmarks import ranks


def run() -> dict:
    """Seconds of a step, a number for each round, and most bytes, by model and way."""
    done = ranks.measured(ranks.script("fsdp_steps.py"))
    seconds: dict[str, dict[str, list[float]]] = {}
    most: dict[str, dict[str, int]] = {}
    for report in done.ranks[0].reports:
        if "bytes" in report:
            most.setdefault(report["model"], {})[report["way"]] = report["bytes"]
        else:
            ways = seconds.setdefault(report["model"], {})
            ways.setdefault(report["way"], []).append(report["seconds"])
    return {"seconds": seconds, "bytes": most, "place": done.place, "cores": os.cpu_count()}


def table(result: dict) -> str:
    """Medians and spreads, and each beside `fully_shard`."""
    lines = []
    for model, ways in result["seconds"].items():
        most = result["bytes"][model]
        lines.append(f"{model:36}{'steps/s':>9}{'min':>9}{'max':>9}{'MB':>8}   beside fully_shard")
        for way, seconds in ways.items():
            rates = [1 / statistics.median(seconds), 1 / max(seconds), 1 / min(seconds)]
            # In each round the two ran one after the other: compare them there.
            pairs = zip(ways["fully_shard"], seconds, strict=True)
            beside = statistics.median(torch / own for torch, own in pairs)
            spread = "".join(f"{rate:9.2f}" for rate in rates) + f"{most[way] / 1e6:8.1f}"
            share = most[way] / most["fully_shard"]
            lines.append(f"  {way:34}{spread}   {beside:.2f} times as fast, {share:.2f} the bytes")
    rounds = len(next(iter(next(iter(result["seconds"].values())).values())))
    lines.append(f"2 ranks, {result['place']}, {rounds} rounds on {result['cores']} cores")
    return "\n".join(lines)
