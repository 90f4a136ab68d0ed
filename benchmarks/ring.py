"""The all-reduce and reduce-scatter of notebook 04 beside gloo's, on the loopback and on links.

All ways in turn, round after round. On the links each rank has a host and 200 Mbit/s of its own,
where the machine permits network namespaces.
"""

import os
import statistics

from benchmarks.ranks import PATIENCE, measured, script
from course_utils import cost, links

SIZES = [2**power for power in (12, 16, 20, 24, 26)]  # 4 KiB to 64 MiB
RANKS = (2, 4)
MBIT = 200
ROUNDS = {"loopback": 11, "links": 3}
ON_CPU = {"COURSE_DEVICE": "cpu"}  # it is about gloo, and a loopback that all ranks share

Times = dict[str, list[float]]


def run() -> dict:
    """Seconds by network, ranks, collective and size, and way: a number for each round."""
    path = script("ring_times.py")
    sizes = ",".join(map(str, SIZES))
    found: dict[str, dict[str, Times]] = {}
    for ranks in RANKS:
        done = measured(path, sizes, str(ROUNDS["loopback"]), nproc=ranks, env=ON_CPU)
        found[f"loopback, {ranks} ranks"] = gathered(done.ranks[0].reports)
    reason = links.why_not()
    for ranks in () if reason else RANKS:
        done = links.run(path, sizes, ROUNDS["links"], hosts=ranks, mbit=MBIT, timeout=PATIENCE)
        found[f"links, {ranks} ranks"] = gathered(done.ranks[0].reports)
    return {"seconds": found, "cores": os.cpu_count(), "no links": reason}


def gathered(reports: list[dict]) -> dict[str, Times]:
    """The seconds of each way, under `collective, size`."""
    found: dict[str, Times] = {}
    for report in reports:
        times = found.setdefault(f"{report['collective']}, {report['size']}", {})
        times.setdefault(report["way"], []).append(report["seconds"])
    return found


def table(result: dict) -> str:
    """Bus bandwidth by median; beside gloo round by round; on links the time over the formula."""
    lines = []
    for network, cases in result["seconds"].items():
        ranks = int(network.split()[1])
        lines.append(f"{network:34}{'ms':>10}{'busbw MB/s':>12}   beside gloo   over formula")
        for case, ways in cases.items():
            collective, size = case.split(", ")
            for way, times in ways.items():
                name = collective.replace("-", "_")
                took = statistics.median(times)
                busbw = cost.busbw(name, ranks, int(size), took)
                pairs = zip(ways["gloo"], times, strict=True)
                beside = statistics.median(gloo / own for gloo, own in pairs)
                lines.append(
                    f"  {label(collective, int(size)):22}{way:16}{1e3 * took:9.2f}"
                    f"{busbw / 1e6:12.1f}{beside:14.2f}"
                    + (f"{links.bandwidth(MBIT) / busbw:15.2f}" if "links" in network else "")
                )
    if result["no links"]:
        lines.append(f"links were not measured: {result['no links']}")
    lines.append(
        f"medians of {ROUNDS['loopback']} rounds ({ROUNDS['links']} on links), "
        f"{result['cores']} cores"
    )
    return "\n".join(lines)


def label(collective: str, size: int) -> str:
    """For example `all-reduce 64 MiB`."""
    return f"{collective} {size >> 20} MiB" if size >= 2**20 else f"{collective} {size >> 10} KiB"
