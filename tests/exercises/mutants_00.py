"""Plausible wrong answers to the exercises of notebook 00, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

_RANK = """
def global_rank(node_rank, local_rank, ranks_on_node):
    {body}
"""

_CHECKED = """
def global_rank(node_rank, local_rank, ranks_on_node):
    if not 0 <= node_rank < len(ranks_on_node) or not 0 <= local_rank < ranks_on_node[node_rank]:
        raise ValueError("no such process")
    {body}
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

_BUSBW = """
def busbw(collective, size, seconds, world_size):
    share = (world_size - 1) / world_size
    factors = {{"all_reduce": 2 * share, "reduce_scatter": share, "all_gather": share,
               "all_to_all": share, "broadcast": 1, "reduce": 1}}
    {body}
"""

_KNOWN = "if collective not in factors: raise ValueError(collective)"


def _rank(body: str) -> str:
    return _RANK.format(body=body)


def _checked(body: str) -> str:
    return _CHECKED.format(body=body)


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


def _busbw(*lines: str) -> str:
    return _BUSBW.format(body="\n    ".join(lines))


MUTANTS = {
    "00.1": [
        ("the local rank", _checked("return local_rank"), "Every node begins at 0 in yours"),
        (
            "all nodes like this one",
            _checked("return node_rank * ranks_on_node[node_rank] + local_rank"),
            "Are all nodes as large as this one?",
        ),
        (
            "all nodes like the first",
            _checked("return node_rank * ranks_on_node[0] + local_rank"),
            "Are all nodes as large as the first?",
        ),
        (
            "one node too many",
            _checked("return sum(ranks_on_node[: node_rank + 1]) + local_rank"),
            "is this node's own size among those before it?",
        ),
        (
            "round robin",
            _checked("return local_rank * len(ranks_on_node) + node_rank"),
            "Which of the two numbers counts nodes",
        ),
        (
            "counted from 1",
            _checked("return sum(ranks_on_node[:node_rank]) + local_rank + 1"),
            "Does yours begin at 1?",
        ),
        (
            "nobody is refused",
            _rank("return sum(ranks_on_node[:node_rank]) + local_rank"),
            "global_rank(0, 2, [2, 2]) returned 2, expected a ValueError",
        ),
        (
            "a node that is not there",
            _rank(
                "if local_rank not in range(ranks_on_node[node_rank]): raise ValueError\n"
                "    return sum(ranks_on_node[:node_rank]) + local_rank"
            ),
            "raised IndexError, expected a ValueError: there is no node 2",
        ),
        (
            "a float",
            _checked("return sum(ranks_on_node[:node_rank]) / 1 + local_rank"),
            "returned a float, expected the int 0",
        ),
        (
            "the list is eaten",
            _checked(
                "total = local_rank\n"
                "    for _ in range(node_rank): total += ranks_on_node.pop(0)\n"
                "    return total"
            ),
            "changed the list it was given",
        ),
    ],
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
            "torch's own",
            _gather("dist.all_gather(found, tensor)", "return found"),
            "Can you do it with send and recv alone?",
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
            "What does a rank pass on in the second step",
        ),
        (
            "its own, again and again",
            _ring("rank", "(rank - step - 1) % world"),
            "Do they share one tensor, or one sender?",
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
            "Do they share one tensor, or one sender?",
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
            "rank 1 returned a NoneType",
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
            "Is one rank doing everybody's work?",
        ),
        (
            "a tensor",
            _direct("torch.stack(found)"),
            "returned a Tensor, expected a list of tensors",
        ),
        (
            "one is missing",
            _direct("[each for r, each in enumerate(found) if r != rank]"),
            "whose is missing, or there twice?",
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
            "has lost its own tensor",
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
            "A rank alone has all there is",
        ),
    ],
    "00.3": [
        ("algbw", _busbw(_KNOWN, "return size / seconds"), "Which factor makes it busbw?"),
        (
            "half an all-reduce",
            _busbw(_KNOWN, "return size / seconds * min(1, factors[collective] or 1) * share"),
            "An all-reduce is two collectives",
        ),
        (
            "all like all-reduce",
            _busbw(_KNOWN, "return size / seconds * 2 * share"),
            "That is the factor of all-reduce",
        ),
        (
            "bits",
            _busbw(_KNOWN, "return 8 * size / seconds * factors[collective]"),
            "Bits or bytes?",
        ),
        (
            "gigabytes",
            _busbw(_KNOWN, "return size / seconds * factors[collective] / 1e9"),
            "not in GB/s",
        ),
        (
            "times the time",
            _busbw(_KNOWN, "return size * seconds * factors[collective]"),
            "Divide by the time",
        ),
        (
            "upside down",
            _busbw(_KNOWN, "return size / seconds / factors[collective]"),
            "upside down",
        ),
        (
            "an unknown name is 1",
            _busbw("return size / seconds * factors.get(collective, 1)"),
            'busbw("all_recude", 1, 1, 2) returned 1.0, expected a ValueError',
        ),
        (
            "an unknown name is a KeyError",
            _busbw("return size / seconds * factors[collective]"),
            "raised KeyError, expected a ValueError",
        ),
    ],
}
