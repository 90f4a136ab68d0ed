"""Trains with the student's repaired function, beside one process on the whole batch."""

import torch
import torch.distributed as dist
from text_data import batch, encode
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformer import Transformer

from course_utils.checking.compare import NAN, Wrong, count, expect, has_nan, plain
from course_utils.checking.findings import described, judging, where
from course_utils.checking.values import close, is_number
from course_utils.meter import meter
from course_utils.worker import device, init

from exercise_07_3 import train

IDS = encode("the quick brown fox jumps over the lazy dog\n" * 9 + "pack my box " * 40)


def build() -> tuple[Transformer, torch.optim.Optimizer]:
    """A small model, the same on every rank; its steps are so short that two add up."""
    torch.manual_seed(1)
    model = Transformer(97, 8, 2, 16, 1, 32, dropout=0.0).to(device(), torch.float64)
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def values(model: Transformer) -> Tensor:
    """All parameters: (n,)."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def one_process(
    steps: int, size: int, m: int, kept: slice = slice(None)
) -> tuple[Tensor, list[float]]:
    """The parameters and losses of one process; `kept`: which micro-batches count."""
    (model, optimizer), losses = build(), []
    for step in range(steps):
        rows = batch(IDS, 32, size, seed=0, step=step).to(device())
        optimizer.zero_grad()
        each = []
        for mine in rows.chunk(world):
            logits = [(model(p[:, :-1]), p[:, 1:], len(p) / len(mine)) for p in mine.chunk(m)[kept]]
            each.append(
                sum(share * cross_entropy(x.flatten(0, 1), y.flatten()) for x, y, share in logits)
            )
        (sum(each) / world).backward()
        optimizer.step()
        losses.append(sum(each).item() / world)
    return values(model), losses


def everyone(mine: object) -> list:
    """What each rank has, by rank."""
    found = [None] * world
    dist.all_gather_object(found, mine)
    return found


def are_losses(found: object, steps: int) -> bool:
    """Whether it is a list of that many numbers."""
    numbers = isinstance(found, list) and all(map(is_number, found)) and not has_nan(found)
    return numbers and len(found) == steps


def look(steps: int, each: int, m: int) -> None:
    """One training on `each` windows a rank and step, in m micro-batches."""
    size = each * world
    (model, optimizer), given = build(), []
    before = values(model)
    model.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].tolist()))
    with meter() as moved:
        losses = train(model, optimizer, IDS, steps, size, m)
    after, (right, right_losses) = values(model), one_process(steps, size, m)
    seen = [[tuple(row) for rows in every for row in rows] for every in everyone(given)]
    asked = [batch(IDS, 32, size, seed=0, step=step)[:, :-1].tolist() for step in range(steps)]
    wanted = sorted(tuple(row) for rows in asked for row in rows)
    alike = [one == after.tolist() for one in everyone(after.tolist())]
    sent = sum(call.bytes for call in moved.calls if call.name == "all_reduce")
    sizes = [len(rows) for rows in given]
    here = where(f"{each} windows a rank, m = {m}, {steps} steps")
    with judging():
        most = -(-each // m)
        if sum(sizes) != steps * each or max(sizes) > most or len(sizes) > steps * m:
            said = f"{here} passed {sizes} windows through the model, expected {each} a step"
            hint = f"Each rank takes its share of the batch, in m parts of at most {most}."
            raise Wrong(said, hint)
        if world > 1 and all(rows == seen[0] for rows in seen):
            hint = "On what does `batch` depend? Where does the rank come in?"
            raise Wrong(f"{here} trained on the same windows as all others", hint)
        if sorted(row for rows in seen for row in rows) != wanted:
            hint = (
                "One process would draw batch(ids, 32, size, ...). Each rank takes a part of that."
            )
            raise Wrong(f"{here}: together the ranks did not train on the batch of each step", hint)
        if after.isnan().any():
            raise Wrong(f"{here}: a parameter is nan", NAN)
        if not all(alike):
            other = alike.index(False)
            hint = "DDP averages gradients only for a forward pass that it has seen. Who runs it?"
            if each % m:
                hint = f"chunk({m}) of {each} windows makes fewer parts. When does DDP send?"
            raise Wrong(f"{here} and rank {other} end with different parameters", hint)
        if not close(plain(after), plain(right)):
            moves = right - before
            factor = ((after - before) @ moves / (moves @ moves)).item()
            hint = f"The steps are {factor:.2f} times as long as they should. What do you divide?"
            if each % m:
                hint = "The parts differ in size. How much weight does each of them get?"
            for name, part in {"first": slice(1), "last": slice(-1, None)}.items():
                if close(plain(after), plain(one_process(steps, size, m, part)[0])):
                    hint = f"Only the {name} micro-batch of each step counts. Who forgets the rest?"
            raise Wrong(f"{here}: the parameters are not those of one process", hint)
        if sent != (once := steps * 8 * len(after)):
            hint = "Gradients should travel once per step. What keeps DDP silent until then?"
            raise Wrong(f"{here} sent {sent:,} bytes by all_reduce, expected {once:,}", hint)
        expect(
            f"{here} returned",
            described(losses)["kind"],
            "list",
            otherwise="A list: one loss a step.",
        )
        if not are_losses(plain(losses), steps):
            said = f"{here} returned {plain(losses)}, expected the losses of {count(steps, 'step')}"
            hint = "One loss for each step: a number."
            raise Wrong(said, NAN if has_nan(plain(losses)) else hint)
    every = everyone(plain(losses))
    if all(are_losses(each, steps) for each in every):
        with judging():
            mean = [sum(each) / world for each in zip(*every, strict=True)]
            hint = "This rank's mean loss of each step, over all its micro-batches."
            said = f"{here} returned {losses}; the mean of all ranks' losses is"
            expect(said, mean, right_losses, otherwise=hint, tolerance=1e-6)


init()
rank, world = dist.get_rank(), dist.get_world_size()
for steps, each, m in ((2, 4, 2), (3, 5, 4), (1, 3, 1)):
    look(steps, each, m)
