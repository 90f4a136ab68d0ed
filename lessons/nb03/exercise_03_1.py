"""03.1: a hook that averages the gradient."""

import copy
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from course_utils.checking.compare import TOLERANCE, Wrong, expect, name_of, named_calls
from course_utils.checking.findings import judging, observe, random_values, where
from nbtorchrun.worker import device

TITLE = "a hook that averages the gradient"
PROVEN = (
    "1 to 4 ranks, float32 and float64: every gradient is the mean, and no parameter moved",
    "one all-reduce per gradient, also of a matrix that the model uses in two places",
)
RANKS = (2, 3, 4, 1)
WITHOUT = ("DistributedDataParallel", "DDP", "register_comm_hook")
OURS = '''"""A hook that averages the gradient."""

import torch.distributed as dist
from torch import nn


def average_gradients(module: nn.Module) -> None:
    """From now on `backward()` leaves the mean over all ranks in the `.grad` of each parameter."""

    def average(parameter: nn.Parameter) -> None:
        """Called by autograd when the gradient of a parameter is complete."""
        parameter.grad /= dist.get_world_size()
        dist.all_reduce(parameter.grad)

    for parameter in module.parameters():  # a shared parameter comes only once
        parameter.register_post_accumulate_grad_hook(average)
'''
WIDTH = 6


def cases(average_gradients: Callable) -> None:
    """Gradients, parameters and messages of a small model with hooks."""
    for dtype, early in ((torch.float64, False), (torch.float32, False), (torch.float64, True)):
        follow(average_gradients, dtype, early)


def follow(average_gradients: Callable, dtype: torch.dtype, early: bool) -> None:
    """Four steps of a model with hooks; in the last one, a rank's batch is infinite."""
    rank, world = dist.get_rank(), dist.get_world_size()
    model = Small(dtype, early)
    plain = copy.deepcopy(model)  # the same model without hooks
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    average_gradients(model)
    total: dict[str, Tensor] = {}
    for step in range(4):
        seeds = [100 * step + each for each in range(world)]
        batches = [random_values(seed, 4, WIDTH, dtype=dtype) for seed in seeds]
        diverged = step == 3
        if diverged:
            batches[-1][1] = torch.inf
        every = [gradients(plain, batch) for batch in batches]  # computed here: nothing is sent
        mean = {name: sum(own[name] for own in every) / world for name in every[0]}
        if step in (1, 3):  # the third step adds to the gradients of the second
            model.zero_grad()
        if step != 2:
            total = {}
        found = observe(model(batches[rank]).sum().backward, again=False)
        total = {name: value + total.get(name, 0) for name, value in mean.items()}
        here = where(f"step {step}, {name_of(dtype)}{', last layer first' * early}")
        hint = "Write down each rank's gradient. Which of them do you count, and how often?"
        if diverged:
            here = where(f"{name_of(dtype)}, one rank has diverged")
            hint = "A rank's gradient is not finite. Don't hide that: the training has diverged."
        with judging():
            look(here, model, before, total, every[rank], hint)
        with judging():
            look_at_messages(here, found, sorted(value.nbytes for value in mean.values()))


class Small(nn.Module):
    """A model with a matrix in two places."""

    def __init__(self, dtype: torch.dtype, early: bool) -> None:
        super().__init__()
        if early:  # the first parameter is the last layer's, whose gradient comes first
            self.last = nn.Linear(WIDTH, 1)
        self.first, self.again = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.again.weight = self.first.weight
        self.last = nn.Linear(WIDTH, 1) if not early else self.last
        self.to(device(), dtype)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):  # the same on every rank
                parameter.copy_(random_values(number, *parameter.shape, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """(B, WIDTH) to (B, 1)."""
        return self.last(self.again(self.first(x)).square())


def gradients(model: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    """The gradient of each parameter."""
    named = dict(model.named_parameters())
    found = torch.autograd.grad(model(batch).sum(), list(named.values()))
    return dict(zip(named, found, strict=True))


def look(here: str, model: nn.Module, before: dict, expected: dict, own: dict, hint: str) -> None:
    """Raise `Wrong` at the first parameter or gradient that is not as it should be."""
    world, tolerance = dist.get_world_size(), TOLERANCE[name_of(next(model.parameters()).dtype)]
    for name, parameter in model.named_parameters():
        if not torch.equal(parameter.detach(), before[name]):
            what = "The hook gets the parameter. What of it has to be averaged?"
            raise Wrong(f"{here} backward changed a parameter, {name}", what)
        got = None if parameter.grad is None else parameter.grad.flatten().tolist()
        if not parameter.requires_grad:
            raise Wrong(f"{here} {name} can't be trained any more", "Leave its flags as they are.")
        right = expected[name].flatten()
        mistakes = [
            ("That is this rank's own gradient. Does the sum get back to `.grad`?", own[name]),
            ("That is the sum over the ranks. What makes it a mean?", right * world),
            ("Do you divide twice, in the hook and by asking for a mean?", right / world),
        ]
        mistakes = [(question, wrong.flatten()) for question, wrong in mistakes]
        gone = "It is gone. Does your hook write the mean back?"
        question = gone if got is None else hint
        expect(f"{here}: the gradient of {name} is", got, right, mistakes, question, tolerance)


def look_at_messages(here: str, found: dict, sizes: list[int]) -> None:
    """Raise `Wrong` unless backward sent each gradient once, in an all-reduce, and waited."""
    wanted = [["all_reduce", size] for size in sizes]
    made = sorted(found["calls"], key=lambda call: call[1])
    if made != wanted and not (dist.get_world_size() == 1 and not made):
        hint = "Register one hook for each parameter. How many do you have?"
        if {name for name, _ in made} != {"all_reduce"}:
            hint = "Which collective alone gives every rank the sum?"
        elif len(made) == len(wanted):
            hint = "A gradient is as large as its parameter. What else do you send?"
        said = f"{here} backward called {named_calls(made)}, expected one all_reduce for "
        raise Wrong(f"{said}each gradient: {named_calls(wanted)}", hint)
    if found["unwaited"]:
        hint = "The gradients are right only by luck. Do you wait for every request?"
        raise Wrong(f"{here} backward did not wait for a request", hint)
    if found["random"]:
        hint = "Other code draws from it too. Make a torch.Generator of your own."
        raise Wrong(f"{here} backward changed the global random state", hint)


DIVIDE = "parameter.grad /= dist.get_world_size()"
SUM = "dist.all_reduce(parameter.grad)"
REGISTER = "parameter.register_post_accumulate_grad_hook(average)"

WRONG = [
    (
        "every rank's gradient in one message",
        DIVIDE,
        "every = parameter.grad.new_zeros(dist.get_world_size(), *parameter.shape)\n"
        "every[dist.get_rank()] = parameter.grad",
        SUM,
        "dist.all_reduce(every)\nparameter.grad = every.mean(0)",
        "What else do you send?",
    ),
    (
        "not waited for, with a sleep",
        SUM,
        "import time\ndist.all_reduce(parameter.grad, async_op=True)\ntime.sleep(0.3)",
        "backward did not wait for a request",
    ),
    (
        "no parameter is trained any more",
        SUM,
        f"{SUM}\nparameter.requires_grad_(False)",
        "can't be trained any more",
    ),
    (
        "the parameter, as published",
        SUM,
        "dist.all_reduce(parameter.detach())",
        "backward changed a parameter",
    ),
    (
        "hides what is not finite",
        DIVIDE,
        f"parameter.grad.nan_to_num_()\n{DIVIDE}",
        "Don't hide that",
    ),
    (
        "the last rank does not call",
        SUM,
        f"if dist.get_rank() < max(1, dist.get_world_size() - 1):\n    {SUM}",
        "rank 1 reached the end of the script while",
    ),
    (
        "rank 0 does not call",
        SUM,
        f"if dist.get_rank() > 0:\n    {SUM}",
        "Does every rank call every collective",
    ),
    ("a sum", DIVIDE, "pass", "That is the sum"),
    ("divided twice", SUM, f"{SUM}\n{DIVIDE}", "Do you divide twice"),
    (
        "a copy is averaged",
        DIVIDE,
        "mean = parameter.grad / dist.get_world_size()",
        SUM,
        "dist.all_reduce(mean)",
        "this rank's own gradient",
    ),
    ("on rank 0 only", SUM, "dist.reduce(parameter.grad, 0)", "rank 1: the gradient"),
    ("gradient lost", SUM, f"{SUM}\nparameter.grad = None", "It is gone"),
    (
        "rank 0's for all",
        DIVIDE,
        "pass",
        SUM,
        "dist.broadcast(parameter.grad, 0)",
        "That is this rank's own",
    ),
    (
        "gathered, then averaged",
        DIVIDE,
        "every = [parameter.grad.clone() for _ in range(dist.get_world_size())]",
        SUM,
        "dist.all_gather(every, parameter.grad)\nparameter.grad = sum(every) / len(every)",
        "Which collective alone gives every rank the sum?",
    ),
    (
        "two collectives",
        SUM,
        f"{SUM}\ndist.broadcast(parameter.grad, 0)",
        "expected one all_reduce for each gradient",
    ),
    (
        "tied twice",
        "module.parameters()",
        "[p for _, p in module.named_parameters(remove_duplicate=False)]",
        "expected",
    ),
]
RIGHT = [
    (
        "a rank alone sends nothing",
        DIVIDE,
        f"if dist.get_world_size() == 1:\n    return\n{DIVIDE}",
    ),
    (
        "a frozen parameter gets no hook",
        REGISTER,
        f"if parameter.requires_grad:\n    {REGISTER}",
    ),
    ("begun, and waited for", SUM, "dist.all_reduce(parameter.grad, async_op=True).wait()"),
    (
        "a hook that returns the mean",
        """
import torch.distributed as dist

def average_gradients(module):
    def mean(gradient):
        gradient = gradient / dist.get_world_size()
        dist.all_reduce(gradient)
        return gradient

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_hook(mean)
""",
    ),
]
