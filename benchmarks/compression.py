"""The ways of notebook 10 to train together, side by side: bytes and seconds of a training step.

On the loopback, and on four hosts with a link each where the machine permits network namespaces.
"""

import os
import statistics

from benchmarks.ranks import PATIENCE, measured, script
from course_utils import links

RANKS, ROUNDS = 4, 5
MBIT = (1000, 100, 20)
ON_CPU = {"COURSE_DEVICE": "cpu"}  # it is about gloo


def run() -> dict:
    """Bytes per step by method; seconds per step by network and method, one for each round."""
    path = script("compression_steps.py")
    done = measured(path, str(ROUNDS), nproc=RANKS, env=ON_CPU)
    rows = done.ranks[0].reports
    found = {"loopback": gathered(rows)}
    reason = links.why_not()
    for mbit in () if reason else MBIT:
        linked = links.run(path, ROUNDS, hosts=RANKS, mbit=mbit, timeout=PATIENCE)
        found[f"{mbit} Mbit/s"] = gathered(linked.ranks[0].reports)
    sent = {row["method"]: row["sent"] for row in rows if "sent" in row}
    return {"sent": sent, "seconds": found, "cores": os.cpu_count(), "no links": reason}


def gathered(rows: list[dict]) -> dict[str, list[float]]:
    """The seconds of each method."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if "seconds" in row:
            found.setdefault(row["method"], []).append(row["seconds"])
    return found


def table(result: dict) -> str:
    """Bytes that a rank sends per step, and the median milliseconds per step on each network."""
    networks = result["seconds"]
    lines = [f"{'':16}{'kB a step':>10}" + "".join(f"{f'ms, {name}':>18}" for name in networks)]
    for method, sent in result["sent"].items():
        times = [1e3 * statistics.median(times[method]) for times in networks.values()]
        lines.append(f"{method:16}{sent / 1e3:10.0f}" + "".join(f"{took:18.1f}" for took in times))
    if result["no links"]:
        lines.append(f"links were not measured: {result['no links']}")
    lines.append(f"medians of {ROUNDS} rounds, {RANKS} ranks, {result['cores']} cores")
    return "\n".join(lines)
