"""Lets the student's hooks average the gradients of a small model, and checks all they did."""

import copy

import torch
import torch.distributed as dist
from torch import Tensor, nn

from course_utils.checking.compare import TOLERANCE, Wrong, expect, name_of, named_calls
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import device, init

from exercise_03_1 import average_gradients

WIDTH = 6


class Small(nn.Module):
    """A model with a matrix in two places, and a bias that is not trained."""

    def __init__(self, dtype: torch.dtype, early: bool) -> None:
        super().__init__()
        if early:  # the first parameter is the last layer's, whose gradient comes first
            self.last = nn.Linear(WIDTH, 1)
        self.first, self.again = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.again.weight = self.first.weight
        self.last = nn.Linear(WIDTH, 1) if not early else self.last
        self.last.bias.requires_grad_(False)
        self.to(device(), dtype)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):  # the same on every rank
                parameter.copy_(random_values(number, *parameter.shape, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """(B, WIDTH) to (B, 1)."""
        return self.last(self.again(self.first(x)).square())


def gradients(model: nn.Module) -> dict[str, Tensor | None]:
    """Each parameter's gradient, a copy."""
    named = model.named_parameters()
    return {name: None if p.grad is None else p.grad.clone() for name, p in named}


def averaged(own: dict[str, Tensor | None]) -> dict[str, Tensor]:
    """The mean over the ranks."""
    found = {name: gradient for name, gradient in own.items() if gradient is not None}
    for gradient in found.values():
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()
    return found


def look(here: str, model: nn.Module, before: dict, expected: dict, own: dict, world: int) -> None:
    """Raise `Wrong` at the first parameter or gradient that is not as it should be."""
    tolerance = TOLERANCE[name_of(next(model.parameters()).dtype)]
    for name, parameter in model.named_parameters():
        if not torch.equal(parameter.detach(), before[name]):
            hint = "The hook gets the parameter. What of it has to be averaged?"
            raise Wrong(f"{here} backward changed a parameter, {name}", hint)
        got = None if parameter.grad is None else parameter.grad.flatten().tolist()
        if parameter.requires_grad != (name in expected) or (got and name not in expected):
            hint = "The bias is frozen: leave it as it is, without a gradient."
            raise Wrong(f"{here} {name} can be trained now, or has a gradient", hint)
        if name not in expected:
            continue
        right = expected[name].flatten()
        mistakes = [
            ("That is this rank's own gradient. Does the sum get back to `.grad`?", own[name]),
            ("That is the sum over the ranks. What makes it a mean?", right * world),
            ("Do you divide twice, in the hook and by asking for a mean?", right / world),
        ]
        mistakes = [(question, wrong.flatten()) for question, wrong in mistakes]
        hint = "Write down each rank's gradient. Which of them do you count, and how often?"
        if got is None:
            hint = "It is gone. Does your hook write the mean back?"
        expect(f"{here}: the gradient of {name} is", got, right, mistakes, hint, tolerance)


init()
rank, world = dist.get_rank(), dist.get_world_size()
for dtype, early in ((torch.float64, False), (torch.float32, False), (torch.float64, True)):
    model = Small(dtype, early)
    plain = copy.deepcopy(model)  # the same model without hooks
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    average_gradients(model)
    for step in range(3):
        batch = random_values(100 * step + rank, 4, WIDTH, dtype=dtype)
        plain.zero_grad()
        plain(batch).sum().backward()
        own = gradients(plain)
        mean = averaged(gradients(plain))
        if step == 1:  # the third adds to the gradients of the second
            model.zero_grad()
        if step < 2:
            total = {}
        loss = model(batch).sum()
        found = observe(loss.backward, again=False)
        total = {name: value + total.get(name, 0) for name, value in mean.items()}
        here = where(f"step {step}, {name_of(dtype)}{', last layer first' * early}")
        with judging():
            look(here, model, before, total, own, world)
        with judging():
            sizes = sorted(value.nbytes for value in mean.values())
            wanted = [["all_reduce", size] for size in sizes]
            made = sorted(found["calls"], key=lambda call: call[1])
            if made != wanted and not (world == 1 and not made):
                hint = "Register one hook for each trained parameter. How many do you have?"
                if {name for name, _ in made} != {"all_reduce"}:
                    hint = "Which collective alone gives every rank the sum?"
                elif len(made) == len(wanted):
                    hint = "A gradient is as large as its parameter. What else do you send?"
                said = f"{here} backward called {named_calls(made)}, expected one all_reduce for "
                raise Wrong(f"{said}each gradient: {named_calls(wanted)}", hint)
            if found["unwaited"] or found["random"]:
                hint = "The gradients are right only by luck. Do you wait for every request?"
                raise Wrong(f"{here} backward did not wait for a request", hint)
