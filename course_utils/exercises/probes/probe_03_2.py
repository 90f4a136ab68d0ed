"""Lets the student's hooks average the gradients of a small model, and looks at all they did."""

import copy
from collections import Counter

import torch
import torch.distributed as dist
from torch import Tensor, nn

from course_utils.exercises.findings import report
from course_utils.meter import meter
from course_utils.worker import device, init

from exercise_03_2 import average_gradients


class Small(nn.Module):
    """A matrix in two places, and a bias that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Linear(2, 2, bias=False), nn.Linear(2, 2)
        self.again.weight = self.first.weight
        self.last = nn.Linear(2, 1)
        self.last.bias.requires_grad_(False)
        for number, parameter in enumerate(self.parameters()):  # the same on every rank
            nn.init.constant_(parameter, 0.5 + 0.25 * number)
        self.to(device(), torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 2) to (B, 1)."""
        return self.last(self.again(self.first(x)).square())


def values(model: nn.Module, what: str) -> dict[str, list[float] | None]:
    """Each trained parameter's values or gradient."""
    found = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            tensor = parameter.detach() if what == "values" else parameter.grad
            found[name] = None if tensor is None else tensor.flatten().tolist()
    return found


init()
rank, world = dist.get_rank(), dist.get_world_size()
model = Small()
plain = copy.deepcopy(model)  # the same model without hooks
average_gradients(model)
for number in range(2):
    batch = torch.tensor([[1.0 + rank, 2.0 - number]], dtype=torch.float64, device=device())
    for each in (model, plain):
        each.zero_grad()
    plain(batch).sum().backward()
    own = values(plain, "gradients")
    for parameter in plain.parameters():
        if parameter.requires_grad:
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
    before = values(model, "values")
    with meter() as moved:
        model(batch).sum().backward()
    report(
        number=number,
        moved=values(model, "values") != before,
        gradients=values(model, "gradients"),
        expected=values(plain, "gradients"),
        own=own,
        calls=Counter(call.name for call in moved.calls),
        trainable=len(own),
    )
