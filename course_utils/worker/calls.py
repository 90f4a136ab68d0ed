"""Logs each collective before it is called, so that a verdict can say who waits where.

A rank's log is `rank_N/calls.txt`: its last calls, one line of fixed width per call, written
through shared memory. The log survives when the process is killed during a call, and a call costs
only some microseconds more.
"""

import functools
import inspect
import mmap
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

SLOTS, WIDTH = 16, 1024  # calls kept, and bytes per call; the file's path is last: it may be cut
# Each function's parameter for the tensor that must have the same shape on all ranks, if any.
COLLECTIVES = {
    "all_reduce": "tensor",
    "broadcast": "tensor",
    "reduce": "tensor",
    "all_gather": "tensor",
    "all_gather_into_tensor": "input_tensor",
    "gather": "tensor",
    "scatter": "tensor",
    "reduce_scatter": "output",
    "reduce_scatter_tensor": "input",
    "all_to_all": "",
    "all_to_all_single": "",
    "barrier": "",
    "all_gather_object": "",
    "broadcast_object_list": "",
    "gather_object": "",
    "scatter_object_list": "",
    "init_process_group": "",
}
# Each function's parameter for the rank that it sends to or receives from.
MESSAGES = {"send": "dst", "recv": "src", "isend": "dst", "irecv": "src"}


class CallLog:
    """The last calls of this rank, in a file that its notebook reads; its last line is a comment.

    Args:
        path: the file.
        students: the folders whose files are the student's.
    """

    def __init__(self, path: Path, students: list[str]):
        path.write_bytes((b" " * (WIDTH - 1) + b"\n") * (SLOTS + 1))
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), (SLOTS + 1) * WIDTH)
        self._students = tuple(students)
        self._written = 0
        self._counts: Counter[tuple] = Counter()  # by group; messages also by peer and side

    def enter(self, name: str, group: str, tensor: Any, peer: Any) -> int:
        """Note a call that begins; return its slot."""
        way = (group,) if peer is None else (group, peer, name.endswith("send"))
        self._counts[way] += name != "init_process_group"
        number = self._counts[way]
        shape = f"{list(tensor.shape)} {tensor.dtype}" if torch.is_tensor(tensor) else ""
        file, line = self._place()
        fields = (".", self._written, name, number, group, shape, peer, line, file)
        slot = self._written % SLOTS
        self._write(slot, "\t".join(map(str, fields)))
        self._written += 1
        return slot * WIDTH

    def comment(self, text: str) -> None:
        """Replace the last line."""
        self._write(SLOTS, f"# {text}")

    def _write(self, slot: int, text: str) -> None:
        line = text.encode()[: WIDTH - 1].ljust(WIDTH - 1)
        self._memory[slot * WIDTH : (slot + 1) * WIDTH - 1] = line

    def leave(self, slot: int, state: bytes) -> None:
        """Note that the call in that slot has returned (`=`) or raised (`!`)."""
        self._memory[slot : slot + 1] = state

    def _place(self) -> tuple[str, int]:
        """The student's line that made the call."""
        frame = sys._getframe(3)
        while frame and not frame.f_code.co_filename.startswith(self._students):
            frame = frame.f_back
        return (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)


_logs: list[CallLog] = []  # one in each rank of `launch`, none under a plain torchrun


def comment(text: str) -> None:
    """Say in the log what the next calls are for."""
    for log in _logs:
        log.comment(text)


def watch(path: Path, students: list[str]) -> None:
    """Log every later call of torch.distributed's functions in this process."""
    log, inside = CallLog(path, students), threading.local()
    _logs.append(log)
    for name in (*COLLECTIVES, *MESSAGES):
        noted = _noted(getattr(dist, name), name, log, inside)
        # Under both names: torch's own code, such as P2POp, compares the two.
        setattr(dist, name, noted)
        setattr(distributed_c10d, name, noted)


def _noted(function: Callable, name: str, log: CallLog, inside: threading.local) -> Callable:
    """Wrap `function` to log its calls, except those that another logged function makes.

    Calls for a group without this rank are not logged either: for them torch only warns.
    """
    parameters = list(inspect.signature(function).parameters)
    tensor_name, side = COLLECTIVES.get(name, "tensor"), MESSAGES.get(name)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        given = dict(zip(parameters, arguments, strict=False)) | named  # bind() takes 5 us
        group = given.get("group")
        if getattr(inside, "call", False) or group is dist.GroupMember.NON_GROUP_MEMBER:
            return function(*arguments, **named)
        peer = _peer(given, side, group) if side else None
        group_name = "" if group is dist.group.WORLD else getattr(group, "group_name", "")
        slot = log.enter(name, group_name, given.get(tensor_name), peer)
        inside.call, state = True, b"!"
        try:
            result = function(*arguments, **named)
            state = b"="
        finally:
            inside.call = False
            log.leave(slot, state)
        return result

    return call


def _peer(given: dict[str, Any], side: str, group: Any) -> Any:
    """The global rank that a message goes to or comes from; "any rank" if it is left open."""
    if given.get(side) is None and given.get(f"group_{side}") is not None:
        return dist.get_global_rank(group or dist.group.WORLD, given[f"group_{side}"])
    return "any rank" if given.get(side) is None else given[side]
