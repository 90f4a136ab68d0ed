"""Trains with the student's repaired function, beside one process on the whole batch."""

import torch
import torch.distributed as dist
from text_data import batch, encode
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformer import Transformer

from course_utils.exercises.compare import Wrong, plain
from course_utils.exercises.findings import judging, where
from course_utils.exercises.values import close
from course_utils.meter import meter
from course_utils.worker import device, init

from exercise_07_3 import train

IDS = encode("the quick brown fox jumps over the lazy dog\n" * 9 + "pack my box " * 40)
STEPS, M = 2, 2
SIZE = 12  # 1, 2 and 3 ranks divide it, and each rank's part divides by M


def build() -> tuple[Transformer, torch.optim.Optimizer]:
    """A small model, the same on every rank; its steps are so short that two add up."""
    torch.manual_seed(1)
    model = Transformer(97, 8, 2, 16, 1, 32, dropout=0.0).to(device(), torch.float64)
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def values(model: Transformer) -> Tensor:
    """All parameters: (n,)."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def one_process(kept: slice = slice(None)) -> tuple[Tensor, list[float]]:
    """The parameters and losses of one process; `kept`: which of all micro-batches count."""
    (model, optimizer), losses = build(), []
    for step in range(STEPS):
        rows = batch(IDS, 32, SIZE, seed=0, step=step).to(device())
        parts = [part for mine in rows.chunk(world) for part in mine.chunk(M)[kept]]
        optimizer.zero_grad()
        each = [cross_entropy(model(p[:, :-1]).flatten(0, 1), p[:, 1:].flatten()) for p in parts]
        (sum(each) / (M * world)).backward()
        optimizer.step()
        losses.append(sum(each).item() / (M * world))
    return values(model), losses


def everyone(mine: object) -> list:
    """What each rank has, by rank."""
    found = [None] * world
    dist.all_gather_object(found, mine)
    return found


init()
rank, world = dist.get_rank(), dist.get_world_size()
(model, optimizer), given = build(), []
before = values(model)
model.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].tolist()))
with meter() as moved:
    losses = train(model, optimizer, IDS, STEPS, SIZE, M)
after, (right, right_losses) = values(model), one_process()
seen = [[tuple(row) for rows in each for row in rows] for each in everyone(given)]
asked = [batch(IDS, 32, SIZE, seed=0, step=step)[:, :-1].tolist() for step in range(STEPS)]
wanted = sorted(tuple(row) for rows in asked for row in rows)
alike = [each == after.tolist() for each in everyone(after.tolist())]
sent = sum(call.bytes for call in moved.calls if call.name == "all_reduce")
sizes = [len(rows) for rows in given]
with judging():
    if sizes != (shares := [SIZE // world // M] * (STEPS * M)):
        said = f"{where()} passed {sizes} windows through the model, expected {shares}"
        raise Wrong(said, "Each rank takes its share of the batch, in m micro-batches.")
    if world > 1 and all(rows == seen[0] for rows in seen):
        hint = "On what does `batch` depend? Where does the rank come in?"
        raise Wrong(f"{where()} trained on the same windows as all others", hint)
    if sorted(row for rows in seen for row in rows) != wanted:
        hint = "One process would draw batch(ids, 32, size, ...). Each rank takes its part of that."
        raise Wrong(f"{where()}: together the ranks did not train on the batch of each step", hint)
    if not all(alike):
        other = alike.index(False)
        hint = "DDP averages gradients only for a forward pass that it has seen. Who runs it?"
        raise Wrong(f"{where()} and rank {other} end with different parameters", hint)
    if not close(plain(after), plain(right)):
        moves = right - before
        factor = ((after - before) @ moves / (moves @ moves)).item()
        hint = f"The steps are {factor:.2f} times as long as they should be. By what do you divide?"
        for name, part in {"first": slice(1), "last": slice(-1, None)}.items():
            if close(plain(after), plain(one_process(part)[0])):
                hint = f"Only the {name} micro-batch of each step counts. Who forgets the others?"
        raise Wrong(f"{where()}: the parameters are not those of one process", hint)
    if sent != (once := STEPS * 8 * len(after)):
        hint = "Gradients should travel once per step. What keeps DDP silent until then?"
        raise Wrong(f"{where()} sent {sent:,} bytes by all_reduce, expected {once:,}", hint)
if not isinstance(losses, list) or len(losses) != STEPS:
    losses = [float("nan")] * STEPS
mean = [sum(each) / world for each in zip(*everyone(losses), strict=True)]
with judging():
    if not close(mean, right_losses, 1e-6):
        hint = "This rank's mean loss of each step, over all its micro-batches."
        raise Wrong(f"{where()} returned {losses}, expected the losses of {STEPS} steps", hint)
