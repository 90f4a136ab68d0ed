"""Milliseconds of a step of notebook 09's pipeline beside torch.distributed.pipelining, 4 ranks.

The same stages and batches, in turn, round after round, and compared within each. `sleep`: stages
that sleep 10 ms forward and 20 backward, as on cores of their own; the rest is what messages and
bookkeeping cost, and the bubble. `compute`: small stages that compute, mostly bookkeeping.
"""

import os
import statistics

from benchmarks import ranks


def run() -> dict:
    """Seconds of a step, a number for each round, by work, schedule and way."""
    done = ranks.measured(ranks.script("pipeline_steps.py"), nproc=4)
    seconds: dict[str, dict[str, list[float]]] = {}
    for report in done.ranks[0].reports:
        ways = seconds.setdefault(f"{report['work']}, {report['schedule']}", {})
        ways.setdefault(report["way"], []).append(report["seconds"])
    ideal = {report["work"]: report["ideal"] for report in done.ranks[0].reports}
    return {"seconds": seconds, "ideal": ideal, "place": done.place, "cores": os.cpu_count()}


def table(result: dict) -> str:
    """Medians and spreads, the idle share of stages that sleep, and ours beside PyTorch's."""
    lines = [f"{'':24}{'ms':>8}{'min':>8}{'max':>8}{'idle':>8}   beside torch"]
    for case, ways in result["seconds"].items():
        ideal = result["ideal"][case.partition(",")[0]]
        for way, seconds in ways.items():
            spread = (statistics.median(seconds), min(seconds), max(seconds))
            numbers = "".join(f"{1e3 * time:8.1f}" for time in spread)
            idle = f"{1 - ideal / spread[0]:8.1%}" if ideal else f"{'':8}"
            pairs = zip(ways["torch"], seconds, strict=True)
            beside = statistics.median(theirs / own for theirs, own in pairs)
            lines.append(f"{case:18}{way:6}{numbers}{idle}   {beside:.2f} times as fast")
    rounds = len(next(iter(next(iter(result["seconds"].values())).values())))
    lines.append(f"4 ranks, m = 8, {result['place']}, {rounds} rounds, {result['cores']} cores")
    return "\n".join(lines)
