"""Wrong answers to 00.2, an all-gather."""

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
    found = [torch.empty_like(tensor) for _ in range(world)]
    found[rank].copy_(tensor)
"""
    return head + "".join(f"    {line}\n" for line in lines)


MUTANTS = {
    "00.2": [
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
    ],
}
