"""Counts what one rank sends and receives: collectives, messages and bytes.

Every call of `torch.distributed` passes through PyTorch's dispatcher, including the calls that DDP,
FSDP and DTensor make from C++. A dispatch mode sees them there. It slows down every operation of
the block, so don't time what you count.
"""

import math
import os
import socket
import struct
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["Call", "Moved", "Wire", "meter"]

# The dispatcher's operators, with the name of the collective and the argument that holds S: all of
# the data that is combined, or the part that one rank contributes.
OPERATORS = {
    "allreduce_": ("all_reduce", "tensors"),
    "allreduce_coalesced_": ("all_reduce", "tensors"),
    "all_reduce": ("all_reduce", "input"),
    "all_reduce_": ("all_reduce", "input"),
    "all_reduce_coalesced": ("all_reduce", "inputs"),
    "all_reduce_coalesced_": ("all_reduce", "inputs"),
    "broadcast_": ("broadcast", "tensors"),
    "reduce_": ("reduce", "tensors"),
    "allgather_": ("all_gather", "input_tensors"),
    "_allgather_base_": ("all_gather", "input_tensor"),
    "allgather_coalesced_": ("all_gather", "input_list"),
    "allgather_into_tensor_coalesced_": ("all_gather", "inputs"),
    "all_gather_into_tensor": ("all_gather", "input"),
    "all_gather_into_tensor_out": ("all_gather", "input"),
    "all_gather_into_tensor_coalesced": ("all_gather", "inputs"),
    "reduce_scatter_": ("reduce_scatter", "input_tensors"),
    "_reduce_scatter_base_": ("reduce_scatter", "input_tensor"),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", "inputs"),
    "reduce_scatter_tensor": ("reduce_scatter", "input"),
    "reduce_scatter_tensor_out": ("reduce_scatter", "input"),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", "inputs"),
    "gather_": ("gather", "input_tensors"),
    "gather_into_tensor_": ("gather", "input_tensor"),
    "scatter_": ("scatter", "output_tensors"),
    "alltoall_": ("all_to_all", "input_tensors"),
    "alltoall_base_": ("all_to_all", "input"),
    "all_to_all_single": ("all_to_all", "input"),
    "barrier": ("barrier", None),
    "monitored_barrier_": ("barrier", None),
    "send": ("send", "tensors"),
    "recv_": ("recv", "tensors"),
    "recv_any_source_": ("recv", "tensors"),
    "isend": ("send", "tensor"),
    "irecv": ("recv", "tensor"),
    "shard_dim_alltoall": ("all_to_all", "input"),  # DTensor's own, on GPUs
}
# torch.distributed's functional collectives name these two differently.
FUNCTIONAL = {"broadcast": ("broadcast", "input"), "broadcast_": ("broadcast", "input")}
MOVES_NOTHING = {"wait_tensor", "wait_tensors", "check_for_nan", "_wrap_tensor_autograd"}
# The bytes received, not yet sent, sent and sent again in Linux's struct tcp_info, at 128, 144, 200
# and 208 (include/uapi/linux/tcp.h).
TCP_INFO = struct.Struct("=128xQ8xI52xQQ")
DRAIN = 5.0  # seconds that the kernel gets to send what it was given


class Call(NamedTuple):
    """One collective or message of this rank.

    Attributes:
        name: as in `torch.distributed`: all_reduce, all_gather, reduce_scatter, send, ...
        bytes: S, the size of what is combined (all_reduce, reduce, broadcast, reduce_scatter,
            all_to_all, send, recv) or of one rank's part (all_gather, gather, scatter).
        dtype: of the tensor; None for a barrier.
        world: number of ranks of its group.
        sent: bytes that this rank must send.
        received: bytes that it must receive.
        ranks: the ranks of its group, by their numbers in the whole job.
    """

    name: str
    bytes: int
    dtype: torch.dtype | None
    world: int
    sent: int
    received: int
    ranks: tuple[int, ...] = ()


class Wire(NamedTuple):
    """Bytes that left and reached this process's TCP sockets, as the kernel counts them."""

    sent: int
    received: int


@dataclass
class Moved:
    """What one rank moved inside a `meter()` block.

    A message counts with its own size. A collective counts with the fewest bytes that a rank must
    move, by the factors of nccl-tests (doc/PERFORMANCE.md): 2(N-1)/N S for an all-reduce,
    (N-1)/N of all data for all-gather, reduce-scatter and all-to-all (of unequal parts, all but a
    rank's own), and S for broadcast and reduce along a chain of ranks. `wire` has what the back end
    really moved.

    Attributes:
        calls: in the order in which they began.
        wire: bytes on the wire, framing included. None if the kernel does not count them, if it had
            not sent all before or after the block (a warning says so), if a connection was closed
            inside the block, and its count with it, or if the default process group uses another
            back end than gloo for some device: under "cpu:gloo,cuda:nccl", data on a GPU may bypass
            the TCP sockets.
    """

    calls: list[Call] = field(default_factory=list)
    wire: Wire | None = None

    @property
    def sent(self) -> int:
        """Bytes sent."""
        return sum(call.sent for call in self.calls)

    @property
    def received(self) -> int:
        """Bytes received."""
        return sum(call.received for call in self.calls)

    @property
    def messages(self) -> int:
        """Point-to-point messages sent."""
        return sum(call.name == "send" for call in self.calls)

    @property
    def collectives(self) -> Counter[str]:
        """How often each collective was called."""
        return Counter(call.name for call in self.calls if call.name not in ("send", "recv"))


@contextmanager
def meter() -> Iterator[Moved]:
    """Count what this rank moves inside the block.

    Count in one thread at a time: in several, PyTorch's dispatch modes crash now and then.
    `wire` counts everything that passes the sockets. So put a barrier before the block, one at its
    end if another rank may run ahead, and one after it if another rank may close its sockets.

    Yields:
        the counts; `wire` is filled in when the block ends.
    """
    moved = Moved()
    before = _drained() if _over_tcp() else None
    with _Counting(moved):
        yield moved
    after = _drained() if _over_tcp() else None
    # Without a word if a connection is gone: often the other rank has ended, and nobody asks.
    if before is not None and after is not None and before.keys() <= after.keys():
        begun, done = _sum(before), _sum(after)
        moved.wire = Wire(done.sent - begun.sent, done.received - begun.received)


class _Counting(TorchDispatchMode):
    """Notes each call of torch.distributed that passes the dispatcher."""

    def __init__(self, moved: Moved):
        super().__init__()
        self._moved = moved

    def __torch_dispatch__(
        self, operator: Any, types: Any, arguments: tuple = (), named: dict | None = None
    ) -> Any:
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # DTensor acts first; its own calls come back here
        named = named or {}
        if operator.namespace in ("c10d", "_c10d_functional", "_dtensor"):
            names = [argument.name for argument in operator._schema.arguments]
            self._note(operator, dict(zip(names, arguments, strict=False)) | named)
        return operator(*arguments, **named)

    def _note(self, operator: Any, arguments: dict[str, Any]) -> None:
        functional = operator.namespace == "_c10d_functional"
        name = operator._schema.name.partition("::")[2]
        known = OPERATORS | FUNCTIONAL if functional else OPERATORS
        if name not in known:
            if name not in MOVES_NOTHING and operator.namespace != "_dtensor":
                warnings.warn(f"the meter does not know {operator}: not counted", stacklevel=3)
            return
        name, measured = known[name]
        group = _group(arguments)
        tensors = tree_leaves(arguments.get(measured)) if measured else []
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        root = arguments.get("root_rank", arguments.get("src", 0))
        rank, world = dist.get_rank(group), dist.get_world_size(group)
        sent, received = cost(name, size, world, (rank - root) % world)
        splits = [arguments.get(f"{way}_split_sizes") for way in ("input", "output")]
        if all(splits):  # parts of any size: all but this rank's own
            row = math.prod(tensors[0].shape[1:]) * tensors[0].element_size()
            sent, received = (row * (sum(rows) - rows[rank]) for rows in splits)
        dtype = tensors[0].dtype if tensors else None
        ranks = tuple(dist.get_process_group_ranks(group))
        self._moved.calls.append(Call(name, size, dtype, world, sent, received, ranks))


def cost(name: str, size: int, world: int, place: int = 0) -> tuple[int, int]:
    """The fewest bytes that a rank sends and receives in a collective.

    Args:
        name: the collective, or send or recv.
        size: S, as in `Call.bytes`.
        world: N, the number of ranks.
        place: how many ranks after the root this one comes; 0 for the root itself.

    Source: nccl-tests, doc/PERFORMANCE.md; broadcast and reduce pass along a chain.
    """
    first, last = place == 0, place == world - 1
    match name:
        case "all_reduce":
            both = math.ceil(2 * (world - 1) * size / world)
            return both, both
        case "reduce_scatter" | "all_to_all":
            both = math.ceil((world - 1) * size / world)
            return both, both
        case "all_gather":
            return (world - 1) * size, (world - 1) * size
        case "broadcast":
            return (0 if last else size), (0 if first else size)
        case "reduce":
            return (0 if first else size), (0 if last else size)
        case "gather":
            return (0, (world - 1) * size) if first else (size, 0)
        case "scatter":
            return ((world - 1) * size, 0) if first else (0, size)
        case "send":
            return size, 0
        case "recv":
            return 0, size
        case _:
            return 0, 0


def wire_bytes(drain: bool = False) -> Wire | None:
    """Bytes that this process's open TCP sockets have sent and received since they were opened.

    Args:
        drain: first wait, at most `DRAIN` seconds, until the kernel has sent what it was given.

    Returns:
        None if the kernel does not count them (Linux does, from 4.19), or has not sent all by then.
    """
    sockets = _drained() if drain else _sockets()
    return None if sockets is None else _sum(sockets)


class _Socket(NamedTuple):
    sent: int
    received: int
    unsent: int  # bytes that the kernel still holds


def _sum(sockets: dict[str, _Socket]) -> Wire:
    every = sockets.values()
    return Wire(sum(each.sent for each in every), sum(each.received for each in every))


def _drained() -> dict[str, _Socket] | None:
    """The sockets once the kernel has sent what it was given; None if they can't be counted."""
    deadline = time.monotonic() + DRAIN
    while sockets := _sockets():
        if not (waiting := sum(each.unsent for each in sockets.values())):
            break
        if time.monotonic() > deadline:
            warnings.warn(
                f"bytes on the wire are not known here: after {DRAIN:g} s the kernel still held "
                f"{waiting} bytes that it had not sent. Another rank has not read them yet, or the "
                "machine is busy: try again when it is not",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        time.sleep(0.001)
    return sockets


def _over_tcp() -> bool:
    """Whether the default process group, if there is one, uses gloo for every device."""
    pairs = dist.get_backend_config().split(",") if dist.is_initialized() else []
    return all(pair.endswith(":gloo") for pair in pairs)  # device:backend


def _sockets() -> dict[str, _Socket] | None:
    """Each TCP socket of this process, by its inode; None if the kernel does not count bytes."""
    if sys.platform != "linux":
        return None
    found = {}
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # not a TCP socket, or closed meanwhile
            inode = os.readlink(f"/proc/self/fd/{descriptor}")
            if inode.startswith("socket:"):
                with socket.socket(fileno=os.dup(int(descriptor))) as copy:
                    if copy.type == socket.SOCK_STREAM and copy.family != socket.AF_UNIX:
                        told = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
                        if len(told) < TCP_INFO.size:
                            return None
                        reached, unsent, left, again = TCP_INFO.unpack_from(told)
                        found[inode] = _Socket(left - again, reached, unsent)
    return found


def _group(arguments: dict[str, Any]) -> dist.ProcessGroup:
    """The group of a call: operators pass it boxed, or by its name."""
    if "process_group" in arguments:
        return dist.ProcessGroup.unbox(arguments["process_group"])
    group = arguments["group_name"]
    if isinstance(group, dist.ProcessGroup):
        return group
    return dist.distributed_c10d._resolve_process_group(group)
