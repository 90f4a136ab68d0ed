"""How long a run on 2 ranks over gloo takes, from the call to the last rank's end.

Every round tries all ways in turn, so that a machine whose speed drifts is fair to all. The
script is a hello with one all-reduce; the three ways that start a script run it also with
torchvision, FSDP and tensor parallel imported.
"""

import os
import statistics

from benchmarks import peers

ROUNDS = 10
PATIENCE = 120.0  # seconds
TASKS = {"hello": list(peers.PEERS), "hello, with imports": ["torchrun", "cold", "warm"]}


def run() -> dict:
    """Seconds of each call by task and peer; and of a new session's very first call."""
    here = peers.installed()
    seconds: dict[str, dict[str, list[float]]] = {}
    first: dict[str, dict[str, float]] = {}
    for task, names in TASKS.items():
        first[task] = {name: first_call(name, task) for name in names if name in here}
        sessions = {name: peers.Session(name) for name in names if name in here}
        try:
            seconds[task] = {name: [] for name in sessions}
            for number in range(ROUNDS + 1):
                for name, session in sessions.items():
                    took = timed(session, name, task)
                    if number:
                        seconds[task][name].append(took)
        finally:
            for session in sessions.values():
                session.kill()
                session.tidy_up()
    return {"seconds": seconds, "first": first, "rounds": ROUNDS, "cores": os.cpu_count()}


def first_call(name: str, task: str) -> float:
    """Seconds of the first call of a session that has just begun, alone on the machine."""
    session = peers.Session(name)
    try:
        return timed(session, name, task)
    finally:
        session.kill()
        session.tidy_up()


def timed(session: peers.Session, name: str, task: str) -> float:
    """Seconds of one call.

    Raises:
        RuntimeError: it failed.
    """
    answer = session.do(task, PATIENCE)
    if not answer or answer["error"]:
        raise RuntimeError(f"{name} failed: {answer}")
    return answer["seconds"]


def table(result: dict) -> str:
    """The medians and spreads, and what each is beside plain torchrun."""
    lines = []
    for task, ways in result["seconds"].items():
        lines.append(f"{task:30}{'first':>9}{'median':>9}{'min':>9}{'max':>9}   beside torchrun")
        plain = statistics.median(ways["torchrun"])
        for name, seconds in ways.items():
            median = statistics.median(seconds)
            first = result["first"][task][name]
            spread = f"{first:8.3f}s{median:8.3f}s{min(seconds):8.3f}s{max(seconds):8.3f}s"
            beside = f"{plain / median:.1f} times as fast" if name != "torchrun" else ""
            lines.append(f"  {peers.PEERS[name][2]:28}{spread}   {beside}".rstrip())
    missing = [
        about for name, (_, _, about) in peers.PEERS.items() if name not in result["first"]["hello"]
    ]
    lines.append(f"{result['rounds']} rounds on {result['cores']} cores")
    if missing:
        lines.append(f"not installed (.venv/bin/pip install -e '.[bench]'): {', '.join(missing)}")
    return "\n".join(lines)
