"""Gloo's threads in a rank: they make way for the rank's work, and the rank's end waits for them.

Linux lists a process's threads in `/proc`. Elsewhere these functions find none, and do nothing.
"""

import contextlib
import functools
import glob
import os
import time
from collections.abc import Iterator
from typing import Any

LOOP = "gloo_tcp_loop"  # moves a group's bytes; gloo's names of its threads
RUNNERS = "pt_gloo_runloop"  # wait for the bytes of a collective, and add them up
NICE = 10  # beside foreign work, 19 would leave the loop no time for long messages
LONGEST_END = 5  # seconds


def lower_priority() -> None:
    """Let the loop of every group, also of those made later, run only where it disturbs nobody.

    A loop asks for its connection until it gets it, and keeps its core meanwhile. Where ranks share
    cores, that is often the core of the very thread that holds the connection: a small all-reduce
    of four ranks on two cores takes three times as long. Where cores are free, nothing changes.
    """
    from torch.distributed import distributed_c10d

    create = distributed_c10d._new_process_group_helper
    if hasattr(create, "__wrapped__"):
        return  # it is done already

    @functools.wraps(create)
    def creating(*arguments: Any, **named: Any) -> Any:
        group = create(*arguments, **named)
        for thread in _threads(LOOP):
            number = int(thread["Pid"])
            with contextlib.suppress(OSError):  # it has ended, or a container forbids it
                os.sched_setscheduler(number, os.SCHED_BATCH, os.sched_param(0))
                os.setpriority(os.PRIO_PROCESS, number, NICE)
        return group

    distributed_c10d._new_process_group_helper = creating


def wait_for_the_last_tensor() -> None:
    """Wait until gloo's threads have dropped their last tensors.

    Whatever still refers to a group, as DDP does, keeps its threads alive. If one of them drops a
    tensor of Python while Python shuts down, torch 2.15 aborts the process: "terminate called
    without an active exception".
    """
    deadline, before = time.monotonic() + LONGEST_END, []
    while (threads := _runners()) and time.monotonic() < deadline:
        # To drop a tensor a thread needs the GIL, which was free since the last look. One that
        # slept on all that time has nothing left to drop.
        if threads == before and all(state == "S" for state, *_ in threads):
            break
        before = threads
        time.sleep(0.001)


def _runners() -> list[tuple[str, ...]]:
    """State and number of switches of each thread that runs collectives."""
    return [
        (thread["State"][0], *(value for name, value in thread.items() if "ctxt_switches" in name))
        for thread in _threads(RUNNERS)
    ]


def _threads(name: str) -> Iterator[dict[str, str]]:
    """What Linux says of each thread of this process that has this name."""
    for path in glob.glob("/proc/self/task/*/status"):
        with contextlib.suppress(OSError), open(path) as file:  # it may end meanwhile
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
            if status["Name"] == name:
                yield status
