"""Plausible wrong answers to exercise 00.2, an all-gather, and the hint that each must get.

A list of (what is wrong, the answer's source, a part of the message).
"""

_GATHER = """
import torch
import torch.distributed as dist

def all_gather(tensor):
    rank, world = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world, (rank - 1) % world
    found = [torch.empty_like(tensor) for _ in range(world)]
    found[rank].copy_(tensor)
    {body}
"""


def _gather(*lines: str) -> str:
    return _GATHER.format(body="\n    ".join(lines))


def _ring(held: str, coming: str, *then: str) -> str:
    """A ring that passes on `held` and receives `coming` in each of its steps."""
    return _gather(
        "for step in range(world - 1):",
        f"    held, coming = {held}, {coming}",
        "    request = dist.isend(found[held], right)",
        "    dist.recv(found[coming], left)",
        "    request.wait()",
        *then,
        "return found",
    )


def _direct(returned: str) -> str:
    """Everyone sends to everyone, rightly, and then returns something else."""
    return _gather(
        "for other in range(world):",
        "    if other == rank: continue",
        "    request = dist.isend(tensor, other)",
        "    dist.recv(found[other], other)",
        "    request.wait()",
        f"return {returned}",
    )


MUTANTS = {
    "00.2": [
        (
            "everyone sends first",
            _gather(
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
            _gather("return [tensor + 10 * (r - rank) for r in range(world)]"),
            "Did you keep every request",
        ),
        (
            "half of the digits on the wire",
            _gather(
                "for other in range(world):",
                "    if other == rank: continue",
                "    box = torch.empty_like(tensor, dtype=torch.float16)",
                "    request = dist.isend(tensor.half(), other)",
                "    dist.recv(box, other)",
                "    request.wait()",
                "    found[other] = box.to(tensor)",
                "return found",
            ),
            "returned",
        ),
        (
            "over the store",
            _gather(
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
            _gather(
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
            _gather(
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
            _gather(
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
            _gather("dist.all_gather(found, tensor)", "return found"),
            "used all_gather",
        ),
        (
            "in the order of arrival",
            _gather(
                "found = [tensor.clone()]",
                "for step in range(world - 1):",
                "    box = torch.empty_like(tensor)",
                "    request = dist.isend(found[-1], right)",
                "    dist.recv(box, left)",
                "    request.wait()",
                "    found.append(box)",
                "return found",
            ),
            "entry r should be rank r's",
        ),
        (
            "filed under the wrong rank",
            _ring("(rank - step) % world", "(rank + step + 1) % world"),
            "In the second step, whose tensor",
        ),
        (
            "one box for all",
            _gather(
                "box = torch.empty_like(tensor)",
                "held = tensor.clone()",
                "for step in range(world - 1):",
                "    request = dist.isend(held, right)",
                "    dist.recv(box, left)",
                "    request.wait()",
                "    held = box.clone()",
                "    found[(rank - step - 1) % world] = box",
                "return found",
            ),
            "Do they share a tensor, or a sender?",
        ),
        (
            "on rank 0 only",
            _gather(
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
            _gather(
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
        (
            "a tensor",
            _direct("torch.stack(found)"),
            "returned a Tensor, expected a list",
        ),
        ("all in one", _direct("list(torch.cat(found))"), "Which shape do your entries have?"),
        (
            "one is missing",
            _direct("[each for r, each in enumerate(found) if r != rank]"),
            "whose entry is missing, or is in the list twice?",
        ),
        (
            "its own tensor is lost",
            _gather(
                "for step in range(world - 1):",
                "    request = dist.isend(tensor.clone(), right)",
                "    dist.recv(tensor, left)",
                "    request.wait()",
                "    found[(rank - step - 1) % world] = tensor.clone()",
                "return found",
            ),
            "changed the tensor that it was given",
        ),
        (
            "alone it sends to itself",
            _gather(
                "for step in range(max(1, world - 1)):",
                "    request = dist.isend(found[(rank - step) % world], right)",
                "    dist.recv(found[(rank - step - 1) % world], left)",
                "    request.wait()",
                "return found",
            ),
            "A single rank already has everything",
        ),
    ],
}
