"""Could NCCL match what the ranks gave it? It has no tags, and a GPU works off a group in order.

Each rank writes down what it gives to NCCL. After the run, `stuck` plays these lists with messages
that wait for their receiver. Real NCCL has room for a short message, so a run may get through that
is stuck here; with longer messages it hangs.
"""

import atexit
import json
import os
from collections import deque
from pathlib import Path
from typing import Any

import torch.distributed as dist

FILE = "given_to_nccl.json"  # in a rank's folder
Message = list[Any]  # "send" or "recv", and the other rank
Given = list[Message] | str  # messages that begin together, or a collective by name


class Log:
    """What this rank gives to NCCL, by group."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[str, Any]] = {}
        self.batch: Any = None
        atexit.register(self.write)

    def note(self, name: str, group: dist.ProcessGroup, peer: int, batch: Any) -> None:
        """A message to or from `peer` (of the group), or a collective; of one batch, or alone."""
        ranks = dist.get_process_group_ranks(group)
        given = self.groups.setdefault(group.group_name, {"ranks": ranks, "given": []})["given"]
        if name not in ("send", "recv"):
            given.append(name)
        elif batch is not None and batch is self.batch and given:
            given[-1].append([name, ranks[peer]])
        else:
            given.append([[name, ranks[peer]]])
        self.batch = batch

    def write(self) -> None:
        """Leave it in the rank's folder."""
        if folder := os.environ.get("NBTORCHRUN_RUN_DIR"):
            path = Path(folder, f"rank_{os.environ['LOCAL_RANK']}", FILE)
            path.write_text(json.dumps(self.groups))


def stuck(folders: list[Path]) -> str:
    """Which rank would wait for ever, and in what; '' if every rank gets through.

    Args:
        folders: of all ranks, in order.
    """
    logs = [
        json.loads(file.read_text()) if (file := folder / FILE).exists() else {}
        for folder in folders
    ]
    for group in sorted({name for log in logs for name in log}):
        ranks = next(log[group]["ranks"] for log in logs if group in log)
        waiting = play({r: deque(logs[r].get(group, {}).get("given", ())) for r in ranks})
        if waiting:
            return f"group {group}: " + "; ".join(f"rank {r} in {w}" for r, w in waiting.items())
    return ""


def play(given: dict[int, deque[Given]]) -> dict[int, Given]:
    """Work the lists off; what the ranks that get no further wait in."""
    moved = True
    while moved:
        moved = False
        heads = {rank: queue[0] for rank, queue in given.items() if queue}
        one, *others = [*heads.values(), None]
        if isinstance(one, str) and others == [one] * (len(given) - 1) + [None]:
            moved = True
            for queue in given.values():
                queue.popleft()
        for rank, head in heads.items():
            for message in [m for m in head if m[0] == "send"] if isinstance(head, list) else []:
                other = heads.get(message[1])
                if isinstance(other, list) and ["recv", rank] in other:
                    head.remove(message)
                    other.remove(["recv", rank])
                    moved = True
        for queue in given.values():
            if queue and queue[0] == []:
                queue.popleft()
    return {rank: queue[0] for rank, queue in given.items() if queue}
