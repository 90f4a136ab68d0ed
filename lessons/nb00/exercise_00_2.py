"""00.2: all-gather out of send and recv."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from course_utils.checking.compare import Wrong, count, expect_new, judge, shape
from course_utils.checking.findings import judging, observe, random_values, where

TITLE = "all-gather out of send and recv"
PROVEN = (
    "1, 2, 3, 4 and 6 ranks, float32 and float64: every rank has all tensors, in order",
    "point-to-point messages only; each rank sends N - 1 times the bytes of its tensor",
)
RANKS = (2, 3, 4, 6, 1)
WITHOUT = ("all_gather_into_tensor", "all_gather_object", "all_to_all", "all_to_all_single")
ALONE = "A single rank already has everything. Whom does yours send to?"
LONELY = (
    "Who receives while everyone sends? Does every send have its recv, and is every "
    "request kept and waited for?"
)
OURS = '''"""An all-gather: every rank passes on what it got, N - 1 times around the ring."""

import torch
import torch.distributed as dist
from pass_right import pass_right


def all_gather(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Every rank calls this with its tensor (n,); it returns N new tensors: entry r is rank r's."""
    rank, world = dist.get_rank(), dist.get_world_size()
    found = {rank: tensor.clone()}
    for step in range(1, world):  # what comes now began `step` places to the left
        found[(rank - step) % world] = tensor = pass_right(tensor)
    return [found[each] for each in range(world)]
'''
CASES = ((1, torch.float32), (3, torch.float32), (5, torch.float64), (20_000, torch.float32))


def cases(all_gather: Callable) -> None:
    """The lists on each rank, the calls that made them, and the bytes sent."""
    for length, dtype in CASES:
        look(all_gather, length, dtype)


def look(all_gather: Callable, length: int, dtype: torch.dtype) -> None:
    """Random values, different on each rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tensors = [random_values(10 * length + r, length, dtype=dtype) for r in range(ranks)]
    found = observe(all_gather, tensors[rank].clone(), names=("the tensor",))
    here = where(f"{count(length, 'value')} each")
    expected = [tensor.tolist() for tensor in tensors]
    with judging():
        question = hint(found, expected, rank, length)
        judge(here, found, expected, (), question, kinds=("list", "tuple"), dtype=dtype)
        expect_new(here, found)
    with judging():  # after the values of all ranks
        if collectives := sorted({name for name, _ in found["calls"]} - {"send", "recv"}):
            said = f"{here} used {', '.join(collectives)}"
            raise Wrong(said, "Can you do it with send and recv only?")
        sent = sum(size for name, size in found["calls"] if name == "send")
        exact = (ranks - 1) * length * dtype.itemsize
        if sent != exact:
            question = "How much must each rank send, at least? Does one rank do all the work?"
            if sent < exact:
                question = "From so few bytes, how can the others know all digits?"
            counted = f"{ranks - 1} x {length * dtype.itemsize} = {exact:,}"
            raise Wrong(f"{here} sent {sent:,} bytes, expected {counted}", question)


def hint(found: dict, expected: list, rank: int, length: int) -> str:
    """The question that fits a wrong list."""
    got, ranks = found["answer"], len(expected)
    if not isinstance(got, list) or len(got) != ranks:
        return f"There are {count(ranks, 'rank')}: whose entry is missing, or is in the list twice?"
    if set(found["kinds"]) != {"Tensor"}:
        return "Each entry is a tensor. What do yours hold?"
    if any(shape(entry) != (length,) for entry in got):
        return f"Each rank gave a tensor of shape ({length},). Which shape do your entries have?"
    if sorted(got) == sorted(expected):
        return "All tensors are there, but entry r should be rank r's, on every rank."
    others = [entry for r, entry in enumerate(got) if r != rank]
    if ranks > 2 and all(entry == others[0] for entry in others) and others[0] in expected:
        return "All entries of other ranks are the same. Do they share a tensor, or a sender?"
    if ranks > 2:
        return "With 2 ranks yours is right. In the second step, whose tensor does a rank pass on?"
    return "Did you keep every request, and wait for it before you used the result?"


FOUND = "[found[each] for each in range(world)]"
ENTRY = "found[(rank - step) % world]"
COMING = "pass_right(tensor)"


def _whole(*lines: str) -> str:
    """An answer that works in another way than ours: it fills the tensors of a list."""
    head = """
import torch
import torch.distributed as dist

def all_gather(tensor):
    rank, world = dist.get_rank(), dist.get_world_size()
    found = [torch.zeros_like(tensor) for _ in range(world)]
    found[rank].copy_(tensor)
"""
    return head + "".join(f"    {line}\n" for line in lines)


WRONG = [
    (
        "everyone sends first",
        _whole(
            "for other in range(world):",
            "    if other != rank: dist.send(tensor, other)",
            "for other in range(world):",
            "    if other != rank: dist.recv(found[other], other)",
            "return found",
        ),
        "Who receives while everyone sends?",
    ),
    (
        "no message at all",
        _whole("return [tensor + 10 * (r - rank) for r in range(world)]"),
        "Did you keep every request",
    ),
    (
        "half of the digits on the wire",
        "tensor = pass_right(tensor)",
        "tensor = pass_right(tensor.half()).to(tensor)",
        "returned",
    ),
    (
        "over the store",
        _whole(
            "import io",
            "store = dist.distributed_c10d._get_default_store()",
            "all_gather.calls = getattr(all_gather, 'calls', 0) + 1",
            "file = io.BytesIO()",
            "torch.save(tensor, file)",
            "store.set(f'{all_gather.calls} {rank}', file.getvalue())",
            "read = lambda r: io.BytesIO(store.get(f'{all_gather.calls} {r}'))",
            "return [torch.load(read(r)) for r in range(world)]",
        ),
        "sent 0 bytes, expected 1 x 4 = 4",
    ),
    (
        "all-gather in a thread",
        _whole(
            "import threading",
            "thread = threading.Thread(target=dist.all_gather, args=(found, tensor))",
            "thread.start()",
            "thread.join()",
            "return found",
        ),
        "how can the others know all digits",
    ),
    (
        "a request thrown away",
        _whole(
            "for other in range(world):",
            "    if other == rank: continue",
            "    dist.isend(tensor, other)",
            "    dist.recv(found[other], other)",
            "return found",
        ),
        "throws a request away",
    ),
    (
        "not waited for, with a sleep",
        _whole(
            "import time",
            "requests = []",
            "for other in range(world):",
            "    if other == rank: continue",
            "    requests += [dist.isend(tensor, other), dist.irecv(found[other], other)]",
            "time.sleep(0.5)",
            "return found",
        ),
        "did not wait for 2 requests",
    ),
    (
        "torch's own",
        _whole("dist.all_gather(found, tensor)", "return found"),
        "used all_gather",
    ),
    (
        "in the order of arrival",
        "{rank: tensor",
        "{0: tensor",
        ENTRY,
        "found[step]",
        "entry r should be rank r's",
    ),
    (
        "filed under the wrong rank",
        _whole(
            "for step in range(world - 1):",
            "    request = dist.isend(found[(rank - step) % world], (rank + 1) % world)",
            "    dist.recv(found[(rank + step + 1) % world], (rank - 1) % world)",
            "    request.wait()",
            "return found",
        ),
        "In the second step, whose tensor",
    ),
    (
        "one box for all",
        "found = {rank: tensor.clone()}",
        "found = {rank: tensor.clone()}\ntensor = tensor.clone()",
        COMING,
        "tensor.copy_(pass_right(tensor))",
        "Do they share a tensor, or a sender?",
    ),
    (
        "on rank 0 only",
        _whole(
            "if rank:",
            "    dist.send(tensor, 0)",
            "    return None",
            "for other in range(1, world): dist.recv(found[other], other)",
            "return found",
        ),
        "rank 1 returned None, expected a list",
    ),
    (
        "everything through rank 0",
        _whole(
            "if rank == 0:",
            "    for other in range(1, world): dist.recv(found[other], other)",
            "    for other in range(1, world): dist.send(torch.stack(found), other)",
            "    return found",
            "whole = torch.stack(found)",
            "dist.send(tensor, 0)",
            "dist.recv(whole, 0)",
            "return list(whole)",
        ),
        "Does one rank do all the work?",
    ),
    ("a tensor", FOUND, f"torch.stack({FOUND})", "returned a Tensor, expected a list"),
    (
        "all in one",
        FOUND,
        f"list(torch.cat({FOUND}))",
        "the form that was asked for: shape (2, 1)",
    ),
    (
        "one is missing",
        "in range(world)]",
        "in range(world) if each != rank]",
        "whose entry is missing, or is in the list twice?",
    ),
    (
        "its own tensor is lost",
        COMING,
        "tensor.copy_(pass_right(tensor)).clone()",
        "changed the tensor that it was given",
    ),
    (
        "its own entry is the caller's tensor",
        "tensor.clone()",
        "tensor",
        "returned memory that it was given",
    ),
    (
        "one buffer for all calls",
        _whole(
            "global buffer",
            "buffer = [old if old.shape == tensor.shape and old.dtype == tensor.dtype else new"
            " for old, new in zip(buffer or found, found)]",
            "found = buffer",
            "found[rank].copy_(tensor)",
            "for step in range(1, world):",
            "    request = dist.isend(tensor, (rank + step) % world)",
            "    dist.recv(found[(rank - step) % world], (rank - step) % world)",
            "    request.wait()",
            "return found",
        )
        + "\nbuffer = None\n",
        "one buffer for all calls",
    ),
    ("numbers", "->", "lambda answer: [each.tolist() for each in answer]", "expected tensors"),
    (
        "alone it sends to itself",
        _whole(
            "for step in range(max(1, world - 1)):",
            "    request = dist.isend(found[(rank - step) % world], (rank + 1) % world)",
            "    dist.recv(found[(rank - step - 1) % world], (rank - 1) % world)",
            "    request.wait()",
            "return found",
        ),
        "A single rank already has everything",
    ),
]
RIGHT = [
    ("a tuple", "->", "tuple"),
    (
        "into one tensor, and then cut",
        _whole(
            "every = torch.stack(found)",
            "for step in range(1, world):",
            "    request = dist.isend(tensor, (rank + step) % world)",
            "    dist.recv(every[(rank - step) % world], (rank - step) % world)",
            "    request.wait()",
            "return list(every)",
        ),
    ),
]
