"""Logs each collective before it is called, so that a verdict can say who waits where.

A rank's log is `rank_N/calls.txt`: its last calls, one line of fixed width per call, written
through shared memory. The log survives when the process is killed during a call, and a call costs
only some microseconds more.
"""

import contextlib
import functools
import importlib.abc
import importlib.util
import inspect
import json
import mmap
import os
import sys
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from nbtorchrun.worker import asked, ending, unended

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
    "reduce_scatter": "",  # its parts may have any sizes
    "reduce_scatter_tensor": "input",
    "all_to_all": "",
    "all_to_all_single": "",
    "barrier": "",
    "all_gather_object": "",
    "broadcast_object_list": "",
    "gather_object": "",
    "scatter_object_list": "",
    "init_process_group": "",
    "new_group": "",
    "monitored_barrier": "",
}
UNNUMBERED = "init_process_group", "new_group"  # calls that no group counts
LEAVING = "destroy_process_group", "_abort_process_group"  # ends the connections to other ranks
FUNCTIONAL_MODULE = "torch.distributed._functional_collectives"
# The same of the functional collectives, which the module of that name has.
FUNCTIONAL = {
    "all_reduce": "self",
    "broadcast": "self",
    "all_gather_tensor": "self",
    "all_gather_tensor_autograd": "self",
    "reduce_scatter_tensor": "self",
    "reduce_scatter_tensor_autograd": "self",
    "all_to_all_single": "",
    "all_to_all_single_autograd": "",
}
# What else all ranks must agree on: the rank that a collective starts from or ends at, and how it
# adds up.
AGREED = ("src", "dst", "op", "reduceOp")
# Who a rank is among the others, and where init_process_group looks for them.
MEETING = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
MET = "meeting.json"  # in a rank's folder: those that the script gave it, and torchrun's own
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
        self.folder, self.students = path.parent, tuple(students)
        self._written = 0
        self._counts: Counter[tuple] = Counter()  # by group; messages also by peer and side

    def enter(self, name: str, group: str, tensor: Any, peer: Any, agreed: str) -> int:
        """Note a call that begins; return its slot."""
        way = (group,) if peer is None else (group, peer, name.endswith("send"))
        self._counts[way] += name not in UNNUMBERED
        number = 0 if name in UNNUMBERED else self._counts[way]
        shape = f"{list(tensor.shape)} {tensor.dtype}" if torch.is_tensor(tensor) else ""
        handled = ending.note_in_flight()
        file, line = self._place()
        order = f"{self._written} {handled}" if handled else self._written
        fields = (".", order, name, number, group, shape, peer, agreed, line, file)
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
        """The student's line that made the call, or that started the thread which made it."""
        place = asked.students_place(sys._getframe(3), self.students)
        return place or asked.started_at(self.students) or ("", 0)


_logs: list[CallLog] = []  # one in each rank of `launch`, none under a plain torchrun


def comment(text: str) -> None:
    """Say in the log what the next calls are for."""
    for log in _logs:
        log.comment(text)


def watch(path: Path, students: list[str]) -> None:
    """Log every later call of torch.distributed's functions in this process."""
    log, inside, started = CallLog(path, students), threading.local(), _meeting()
    _logs.append(log)
    for name in (*COLLECTIVES, *MESSAGES):
        noted = _noted(getattr(dist, name), name, log, inside, started)
        # Under both names: torch's own code, such as P2POp, compares the two.
        setattr(dist, name, noted)
        setattr(distributed_c10d, name, noted)
    functional = sys.modules.get(FUNCTIONAL_MODULE)
    if functional:
        _watch_functional(functional, log, inside, started)
    else:  # a cold rank imports it only if it needs it
        sys.meta_path.insert(0, _OnImport(lambda m: _watch_functional(m, log, inside, started)))
    dist.Work.wait = _noting_errors(dist.Work.wait)
    for name in LEAVING:
        leave = ending.noting_in_flight(getattr(distributed_c10d, name))
        setattr(distributed_c10d, name, leave)
        if hasattr(dist, name):
            setattr(dist, name, leave)
    _remember_who_sets(log.students)
    asked.listen(path.parent, log.students)


def _watch_functional(module: Any, *noting: Any) -> None:
    for name in FUNCTIONAL:
        if function := getattr(module, name, None):
            setattr(module, name, _noted(function, name, *noting))


class _OnImport(importlib.abc.MetaPathFinder):
    """Calls `then` with the module of the functional collectives once that is imported."""

    def __init__(self, then: Callable[[Any], None]):
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Let the other finders find it, and then its loader load it."""
        if name != FUNCTIONAL_MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def loading(module: Any) -> None:
                load(module)
                self._then(module)

            spec.loader.exec_module = loading
        return spec


def _noting_errors(wait: Callable) -> Callable:
    """Wrap the `wait` of a call's work: what that raises was raised by the call."""

    @functools.wraps(wait)
    def waiting(*arguments: Any, **named: Any) -> Any:
        began = monotonic()
        try:
            return wait(*arguments, **named)
        except RuntimeError as error:
            error._nbtorchrun_call = {"name": "wait", "seconds": monotonic() - began}
            raise

    return waiting


def _meeting() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in MEETING}


_set_at: dict[str, tuple[str, int] | None] = {}  # the student's lines that set them


def _remember_who_sets(students: tuple[str, ...]) -> None:
    """Remember the student's lines that set the variables in `MEETING`."""
    environ = type(os.environ)
    set_item = environ.__setitem__

    def setting(self: Any, name: Any, value: Any) -> None:
        set_item(self, name, value)
        if name in MEETING:
            _set_at[name] = asked.students_place(sys._getframe(1), students)

    environ.__setitem__ = setting


def _note_meeting(folder: Path, started: dict[str, str | None], given: dict[str, Any]) -> None:
    """Write down what the script says of this rank and of where the ranks meet.

    Each with what torchrun had said, whether a variable said it, and the line that set that.
    """
    query = urllib.parse.urlsplit(str(given.get("init_method") or "")).query
    asked_for = dict(urllib.parse.parse_qsl(query)) | given
    said = {}
    for name, now in _meeting().items():
        argument = asked_for.get(name.lower(), -1)
        value = now if argument in (-1, None) else str(argument)
        place = _set_at.get(name) if value == now else None
        said[name] = [value, started[name], value == now, place]
    with contextlib.suppress(OSError):  # the run's folder was removed
        (folder / MET).write_text(json.dumps(said))


def _noted(
    function: Callable, name: str, log: CallLog, inside: threading.local, started: dict
) -> Callable:
    """Wrap `function` to log its calls, except those that another logged function makes.

    Calls for a group without this rank are not logged either: for them torch only warns.
    """
    signature = inspect.signature(function).parameters
    parameters, side = list(signature), MESSAGES.get(name)
    functional = function.__module__ == FUNCTIONAL_MODULE
    tensor_name = (FUNCTIONAL if functional else COLLECTIVES).get(name, "tensor")
    defaults = {n: signature[n].default for n in AGREED if n in signature and not side}
    rank = os.getpid()
    defaults = {n: None if d is inspect.Parameter.empty else d for n, d in defaults.items()}

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        given = dict(zip(parameters, arguments, strict=False)) | named  # bind() takes 5 us
        group = given.get("group")
        if torch.compiler.is_compiling() or os.getpid() != rank:  # a child of the rank is no rank
            return function(*arguments, **named)
        if getattr(inside, "call", False) or group is dist.GroupMember.NON_GROUP_MEMBER:
            return function(*arguments, **named)
        peer = _peer(given, side, group) if side else None
        agreed = _agreed(defaults, given)
        if name == "init_process_group":
            _note_meeting(log.folder, started, given)
        slot = log.enter(name, _group_name(group), given.get(tensor_name), peer, agreed)
        inside.call, state, began = True, b"!", monotonic()
        try:
            result = function(*arguments, **named)
            state = b"="
            if name == "init_process_group" and "nccl" in dist.get_backend_config():
                unended.watch(log.folder, log.students)
        except RuntimeError as error:  # other types refuse an argument: no other rank's doing
            error._nbtorchrun_call = {"name": name, "seconds": monotonic() - began}
            raise
        finally:
            inside.call = False
            log.leave(slot, state)
        return result

    return call


def _agreed(defaults: dict[str, Any], given: dict[str, Any]) -> str:
    """What of a call all ranks must agree on, beside its tensor, as `src=0, op=sum`."""
    said = []
    for end in ("src", "dst"):
        if end in defaults:  # however the call names that rank; torch's own default is rank 0
            said.append(f"{end}={_end(given, end)}")
    for name in ("op", "reduceOp"):
        if name in defaults:
            said.append(f"op={_word(given.get(name, defaults[name]))}")
    return ", ".join(said)


def _end(given: dict[str, Any], end: str) -> Any:
    """The global rank that a collective starts from (`src`) or ends at (`dst`)."""
    group, inner = given.get("group"), given.get(f"group_{end}")
    if given.get(end) is None and inner is not None and dist.is_initialized():
        return dist.get_global_rank(group or dist.group.WORLD, inner)
    return given.get(end) or 0


def _word(value: Any) -> str:
    """A rank, or the name of an operation, in one word."""
    named = getattr(value, "name", None) or str(getattr(value, "op", value))
    return named.rpartition(".")[2].lower()


def _group_name(group: Any) -> str:
    """The name of a group; '' for the default one."""
    if group is None or group is dist.group.WORLD:
        return ""
    if isinstance(group, str):  # as functional collectives may be given it
        world = dist.group.WORLD
        return "" if world is not None and group == world.group_name else group
    if hasattr(group, "get_group") and getattr(group, "ndim", 0) == 1:  # a mesh
        return _group_name(group.get_group())
    if isinstance(group, tuple) and len(group) == 2 and hasattr(group[0], "get_group"):
        return _group_name(group[0].get_group(group[1]))
    if isinstance(group, list):
        world = dist.get_world_size() if dist.is_initialized() else -1
        return "" if group == list(range(world)) else str(group)
    return getattr(group, "group_name", "")


def _peer(given: dict[str, Any], side: str, group: Any) -> Any:
    """The global rank that a message goes to or comes from; "any rank" if it is left open."""
    if given.get(side) is None and given.get(f"group_{side}") is not None:
        return dist.get_global_rank(group or dist.group.WORLD, given[f"group_{side}"])
    return "any rank" if given.get(side) is None else given[side]
