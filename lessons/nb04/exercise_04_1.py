"""04.1: a ring that deadlocks."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, judge
from course_utils.checking.findings import described, judging, observe, where
from course_utils.checking.values import close
from lessons.nb04.rings import EVEN, NOT_YET, case_of, look_at_messages, part, row_of_each, rows

TITLE = "a ring that deadlocks"
PROVEN = (
    "up to 6 ranks and a group, 0 to 60,000 values, two dtypes: every value right, also where N "
    "does not divide",
    "one message per rank to one neighbour, of every length, and no collective",
    "on gloo; on NCCL only `batch_isend_irecv` is sure to begin both messages at once",
)
RANKS = (2, 3, 4, 6)
LONELY = "Who receives while everyone sends? Begin both before you wait for either, on every rank."
HINTS = {
    "SIGABRT": "A message is not as long as the tensor that waits for it. Which tensor comes now?",
    "not connected": "Does each message name the `group`, and does every rank send as many?",
    "reached the end of the script": (
        "Does each message name the `group`, and does every rank send as many?"
    ),
}
OURS = '''"""Neighbours in a ring."""

import torch.distributed as dist
from torch import Tensor


def exchange(going: Tensor, coming: Tensor, group: dist.ProcessGroup | None = None) -> None:
    """Send `going` to the right neighbour, and fill `coming` from the left one."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    left, right = (rank - 1) % world, (rank + 1) % world
    begun = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.irecv, coming, group=group, group_peer=left),
            dist.P2POp(dist.isend, going, group=group, group_peer=right),
        ]
    )
    for work in begun:  # both are under way: now wait for both
        work.wait()
'''


def cases(exchange: Callable) -> None:
    """What comes from the left, and every message sent for it."""
    for length, dtype in rows():
        # Equal rows first: gloo aborts at a message from the wrong neighbour if its length differs.
        look(exchange, length, dtype, more=int(length != 3))
    if (group := part()) is not None:
        look(exchange, 7, torch.float32, more=1, group=group)


def look(
    exchange: Callable,
    length: int,
    dtype: torch.dtype,
    more: int,
    group: dist.ProcessGroup | None = None,
) -> None:
    """One exchange, of rows that are each `more` values longer than the left neighbour's."""
    rank, every = dist.get_rank(group), row_of_each(length, dtype, group, more)
    left = every[rank - 1]
    going, coming = every[rank].clone(), torch.full_like(left, NOT_YET)
    found = observe(exchange, going, coming, group, may_change=True) | described(coming)
    here = where(case_of(going, group))
    with judging():
        question = hint(coming.tolist(), every, rank)
        judge(here, found, left, (), question, dtype=dtype, verb="holds")
        if not torch.equal(going, every[rank]):
            said = "The left neighbour fills `coming`, not `going`."
            raise Wrong(f"{here} changed `going`", said)
    with judging():
        even = length >= EVEN
        look_at_messages(here, found, going.nbytes, "`going` has", allowed=1, even=even)


def hint(got: list[float], every: list[torch.Tensor], rank: int) -> str:
    """The question that fits wrong values."""
    for other, row in enumerate(every):
        if len(row) and close(got[: len(row)], row.tolist()[: len(got)], 1e-5):
            return f"These are rank {other}'s values. Who is the left neighbour of rank {rank}?"
    return "A -1 is what the check put into `coming`. Who fills it?"


BOTH = """begun = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.irecv, coming, group=group, group_peer=left),
            dist.P2POp(dist.isend, going, group=group, group_peer=right),
        ]
    )
    for work in begun:  # both are under way: now wait for both
        work.wait()"""

WRONG = [
    (
        "not mended",
        BOTH,
        "dist.send(going, right)\ndist.recv(coming, left)",
        "waits in send to rank",
    ),
    (
        "receives first",
        BOTH,
        "dist.recv(coming, left)\ndist.send(going, right)",
        "Begin both before you wait for either",
    ),
    (
        "a request not waited for",
        BOTH,
        "kept = exchange.__dict__.setdefault('kept', [])\n"
        "kept.append(dist.isend(going, right))\n"
        "dist.recv(coming, left)",
        "did not wait for 1 request",
    ),
    (
        "the library's",
        BOTH,
        "every = [None] * world\n"
        "dist.all_gather_object(every, going, group)\n"
        "coming.copy_(every[left])",
        "used all_gather",
    ),
    (
        "rank 0 takes no part",
        "left, right =",
        "if dist.get_rank() == 0:\n    return\nleft, right =",
        "does every rank send as many?",
    ),
    ("to the left", "left, right =", "right, left =", "left"),
    (
        "fills a tensor of its own",
        "irecv, coming,",
        "irecv, coming.clone(),",
        "Who fills it?",
    ),
]
RIGHT = [
    (
        "odd ranks receive first, through a buffer",
        BOTH,
        "send = lambda: dist.send(going, group=group, group_dst=right)\n"
        "recv = lambda: dist.recv(coming, group=group, group_src=left)\n"
        "for act in (send, recv) if rank % 2 == 0 else (recv, send):\n"
        "    act()",
    ),
    (
        "begins to receive, then sends",
        BOTH,
        "begun = dist.irecv(coming, group=group, group_src=left)\n"
        "dist.send(going, group=group, group_dst=right)\n"
        "begun.wait()",
    ),
]
