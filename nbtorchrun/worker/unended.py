"""Writes down which collective of NCCL has not ended: its function returns long before that.

A rank that waits for its GPU spins, so neither its processor time nor the log of calls shows that
it waits. Torch's flight recorder knows what each GPU was given. It also sees the collectives of DDP
and FSDP, which no function of torch.distributed passes through.
"""

import contextlib
import json
import os
import pickle
import re
import threading
import time
from itertools import chain
from pathlib import Path
from typing import Any

NAME = "unended.json"  # in a rank's folder: the oldest such collective, or `null`
PERIOD = 0.5  # seconds between two looks
WAY = re.compile(r"(send|recv) \d+(?:->|<-)(\d+)")
KNOWN_AS = {  # the recorders' names, where torch.distributed has others
    "_all_gather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "all_reduce_barrier": "barrier",
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
}

_watching: list[Path] = []


def watch(folder: Path, students: tuple[str, ...]) -> None:
    """Look from now on, in a thread: a rank that waits for its GPU lets other threads run.

    Args:
        folder: the rank's.
        students: the folders whose files are the student's.
    """
    if folder not in _watching:
        _watching.append(folder)
        arguments = (folder / NAME, students)
        threading.Thread(target=_look_again_and_again, args=arguments, daemon=True).start()


def _look_again_and_again(path: Path, students: tuple[str, ...]) -> None:
    before, new = None, path.with_suffix(".new")
    while True:
        found = oldest(_recorded(), students)
        if found != before:
            with contextlib.suppress(OSError):  # the run's folder was removed
                new.write_text(json.dumps(found))
                os.replace(new, path)  # nobody reads half of it
        before = found
        time.sleep(PERIOD)


def _recorded() -> list[dict[str, Any]]:
    """The entries of NCCL's recorder that have not ended.

    Since torch 2.15 the back end "nccl" is a new one, nccl2, with a recorder of its own; the older
    one writes where it always did (`TORCH_DIST_USE_NCCL2=0` brings it back).
    """
    from torch._C import _distributed_c10d as c10d

    dumps = [c10d._dump_nccl_trace(True, True, True)]
    if hasattr(c10d, "ProcessGroupNCCL2"):
        dumps.append(c10d._dump_fr_trace(True, True, True, "nccl2"))
    return list(chain.from_iterable(map(entries, dumps)))


def entries(dump: bytes) -> list[dict[str, Any]]:
    """The entries in what torch dumps of a recorder."""
    return pickle.loads(dump)["entries"]


def oldest(recorded: list[dict[str, Any]], students: tuple[str, ...]) -> dict[str, Any] | None:
    """The first of the recorder's entries that has not ended, in the words of the log of calls."""
    for entry in recorded:
        if entry["state"] != "completed" and not entry["retired"]:
            name = entry["profiling_name"].partition(":")[2]
            way = WAY.fullmatch(name)
            number, group = entry["collective_seq_id"], entry["process_group"]
            frames = entry.get("frames", ())
            places = [(f["filename"], f["line"]) for f in frames]  # the innermost first
            return {
                "name": way[1] if way else KNOWN_AS.get(name, name),
                "number": entry["p2p_seq_id"] if way else number,
                "group": "" if group[1] == "default_pg" else group[0],
                "peer": f"rank {way[2]}" if way else "",
                "place": next((place for place in places if place[0].startswith(students)), None),
            }
    return None
