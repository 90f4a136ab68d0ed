"""Plausible wrong answers to exercises 03.2 and 03.1, and the hint that each must get.

For each exercise a list of (what is wrong, the answer's source, a part of the message);
in `RIGHT` of (what is other than in the solution, the answer's source).
"""

_BUCKETS = """
import numpy

def my_buckets(sizes, cap, first_cap):
    buckets, room = [], 0
    for place in {order}:
        if {close}:
            room = {room}
            buckets.append([])
        buckets[-1].append(place)
        room -= sizes[place]
    return {result}
"""

_HOOK = """
import torch
import torch.distributed as dist

def average_gradients(module):
    world = dist.get_world_size()
    def average(parameter):
        {body}
    for parameter in {parameters}:
        if {trained}:
            parameter.register_post_accumulate_grad_hook(average)
"""


def _buckets(
    order: str = "reversed(range(len(sizes)))",
    close: str = "not buckets or sizes[place] > room",
    room: str = "cap if buckets else first_cap",
    result: str = "buckets",
) -> str:
    return _BUCKETS.format(order=order, close=close, room=room, result=result)


def _hook(
    *lines: str, parameters: str = "module.parameters()", trained: str = "parameter.requires_grad"
) -> str:
    body = "\n        ".join(lines)
    return _HOOK.format(body=body, parameters=parameters, trained=trained)


RIGHT = {
    "03.1": [
        (
            "a rank alone sends nothing",
            _hook(
                "if world == 1: return",
                "parameter.grad /= world",
                "dist.all_reduce(parameter.grad)",
            ),
        )
    ]
}

MUTANTS = {
    "03.2": [
        (
            "the caller's list is emptied",
            _buckets(result="sizes.clear() or buckets"),
            "changed its arguments",
        ),
        ("first parameter first", _buckets(order="range(len(sizes))"), "begins at the last layer"),
        (
            "order within a bucket",
            _buckets(result="[sorted(each) for each in buckets]"),
            "Whose gradient is complete first",
        ),
        ("order of the buckets", _buckets(result="buckets[::-1]"), "Which is full first"),
        (
            "a cap that is passed",
            _buckets(close="not buckets or room <= 0"),
            "Look before you add, not after",
        ),
        ("no small first bucket", _buckets(room="cap"), "its own cap"),
        ("all buckets small", _buckets(room="first_cap"), "Only the first bucket"),
        (
            "an empty bucket",
            _buckets(result="[[], *buckets] if buckets else [[]]"),
            "An empty bucket is an empty message",
        ),
        (
            "too large is left out",
            _buckets(result="[b for b in buckets if sum(sizes[p] for p in b) <= cap]"),
            "exactly one bucket",
        ),
        ("room is one less", _buckets(close="not buckets or sizes[place] >= room"), "exactly full"),
        ("flat", _buckets(result="sum(buckets, [])"), "a list of lists"),
    ],
    "03.1": [
        (
            "every rank's gradient in one message",
            _hook(
                "every = torch.zeros(world, *parameter.shape, dtype=parameter.dtype)",
                "every[dist.get_rank()] = parameter.grad",
                "dist.all_reduce(every)",
                "parameter.grad = every.mean(0)",
            ),
            "What else do you send?",
        ),
        (
            "not waited for, with a sleep",
            _hook(
                "import time",
                "parameter.grad /= world",
                "dist.all_reduce(parameter.grad, async_op=True)",
                "time.sleep(0.3)",
            ),
            "backward did not wait for a request",
        ),
        (
            "a gradient for the frozen bias",
            _hook("parameter.grad /= world", "dist.all_reduce(parameter.grad)")
            + "        else: parameter.grad = torch.zeros_like(parameter)\n",
            "last.bias can be trained now, or has a gradient",
        ),
        (
            "the frozen bias is trained",
            _hook(
                "parameter.grad /= world",
                "dist.all_reduce(parameter.grad)",
                trained="parameter.requires_grad_() is parameter",
            ),
            "last.bias can be trained now, or has a gradient",
        ),
        (
            "the parameter, as published",
            _hook("dist.all_reduce(parameter.detach())", "parameter.grad /= world"),
            "backward changed a parameter",
        ),
        ("a sum", _hook("dist.all_reduce(parameter.grad)"), "That is the sum"),
        (
            "divided twice",
            _hook(
                "parameter.grad /= world",
                "dist.all_reduce(parameter.grad)",
                "parameter.grad /= world",
            ),
            "Do you divide twice",
        ),
        (
            "a copy is averaged",
            _hook("mean = parameter.grad / world", "dist.all_reduce(mean)"),
            "this rank's own gradient",
        ),
        (
            "on rank 0 only",
            _hook("parameter.grad /= world", "dist.reduce(parameter.grad, 0)"),
            "rank 1: the gradient",
        ),
        (
            "gradient lost",
            _hook("dist.all_reduce(parameter.grad)", "parameter.grad = None"),
            "It is gone",
        ),
        (
            "rank 0's for all",
            _hook("dist.broadcast(parameter.grad, 0)"),
            "That is this rank's own",
        ),
        (
            "gathered, then averaged",
            _hook(
                "every = [torch.empty_like(parameter.grad) for _ in range(world)]",
                "dist.all_gather(every, parameter.grad)",
                "parameter.grad = torch.stack(every).mean(0)",
            ),
            "Which collective alone gives every rank the sum?",
        ),
        (
            "two collectives",
            _hook(
                "parameter.grad /= world",
                "dist.all_reduce(parameter.grad)",
                "dist.broadcast(parameter.grad, 0)",
            ),
            "expected one all_reduce for each gradient",
        ),
        (
            "tied twice",
            _hook(
                "parameter.grad /= world",
                "dist.all_reduce(parameter.grad)",
                parameters="[p for _, p in module.named_parameters(remove_duplicate=False)]",
            ),
            "expected",
        ),
    ],
}
