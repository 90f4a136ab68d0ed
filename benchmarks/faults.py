"""Who names the culprit, who leaves processes behind, and who needs how long.

In each fault rank 1 is the culprit: it raises, exits, is killed or sleeps while rank 0 waits for
it in an all-reduce. In the last one the notebook's kernel is killed in the middle of a run.
"""

import re
import time

from benchmarks import peers

PATIENCE = 20.0  # seconds after which a user would give up
SETTLE = 3.0  # seconds in which what is to end has to have ended
FAULTS = {
    "raises": "rank 1 raises",
    "exits": "rank 1 exits with status 3",
    "killed": "rank 1 is killed",
    "hangs": "rank 1 hangs",
    "kernel": "the kernel is killed",
}
# Words that say rank 1, and not only some rank, is to blame.
NAMES_RANK_1 = re.compile(
    r"\brank\W{0,3}1\b|local_rank: 1|process 1 |worker 1\b|engine.{0,12}\b1\b", re.IGNORECASE
)
BLAMES_RANK_0 = re.compile(r"closed by peer|process 0 terminated|rank\W{0,3}0 raised")


def run() -> dict:
    """How each peer handles each fault."""
    return {peer: {fault: outcome(peer, fault) for fault in FAULTS} for peer in peers.installed()}


def outcome(peer: str, fault: str) -> dict:
    """How one peer handles one fault, in a session of its own."""
    session = peers.Session(peer)
    try:
        session.do("hello", PATIENCE)
        before = len(session.left())
        kill_kernel = fault == "kernel"
        answer = session.do("hangs", 3.0) if kill_kernel else session.do(fault, PATIENCE)
        if answer is None:  # the user gives up, or the kernel is killed
            session.kill()
            before = 0
        time.sleep(SETTLE)
        left = max(0, len(session.left()) - before)
    finally:
        session.kill()
        time.sleep(0.5)
        session.tidy_up()
    error = answer["error"] if answer else ""
    blamed = error.rpartition("Root Cause")[2]  # torchrun's word; above it is what each rank met
    names = bool(NAMES_RANK_1.search(blamed)) and not BLAMES_RANK_0.search(blamed)
    return {"seconds": answer and answer["seconds"], "names": names, "left": left}


def table(result: dict) -> str:
    """A table with a row per peer and a column per fault."""
    lines = [f"{'':30}" + "".join(f"{about:>28}" for about in FAULTS.values())]
    for peer, faults in result.items():
        cells = "".join(f"{words(fault, found):>28}" for fault, found in faults.items())
        lines.append(f"{peers.PEERS[peer][2]:30}{cells}")
    return "\n".join(lines)


def words(fault: str, found: dict) -> str:
    """One outcome, in words."""
    left = f"{found['left']} processes left" if found["left"] else "nothing left"
    if fault == "kernel":
        return left
    if found["seconds"] is None:
        return f"no end in {PATIENCE:.0f} s, {left}"
    named = f"{found['seconds']:.1f} s, " + ("named" if found["names"] else "not named")
    return f"{named}, {left}" if found["left"] else named
